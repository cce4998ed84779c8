"""A small whole file of every format that a built-in reader takes, for tests of damaged files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import polars as pl


@dataclass(frozen=True)
class Sample:
    """Files of one format.

    Attributes:
        reader: whose format it is.
        files: name -> contents.
        main: the file that is read; others stand beside it.
        damaged: the file that is to be damaged.
        options: of the reader.
    """

    reader: str
    files: Mapping[str, bytes]
    main: str
    damaged: str
    options: Mapping[str, str]

    def write(self, folder: Path, damaged: bytes | None = None) -> Path:
        """Write the files, one of them with other contents; answers the main one."""
        for name, contents in self.files.items():
            (folder / name).write_bytes(contents if damaged is None or name != self.damaged else damaged)
        return folder / self.main

    @property
    def contents(self) -> bytes:
        """What is to be damaged."""
        return self.files[self.damaged]


def _one(reader: str, name: str, contents: str | bytes, **options: str) -> Sample:
    data = contents if isinstance(contents, bytes) else contents.encode()
    return Sample(reader, {name: data}, name, name, options)


def _two(reader: str, main: str, first: str, beside: str, second: str) -> tuple[Sample, Sample]:
    files = {main: first.encode(), beside: second.encode()}
    return Sample(reader, files, main, main, {}), Sample(reader, files, main, beside, {})


def _parquet(**columns: list[object]) -> bytes:
    file = BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


SWF = (
    "; UnixStartTime: 1027839845\n; MaxProcs: 240\n"
    "   11   342072     32  43306   32  43307    -1   32  43200    -1  1   4   1  -1 -1  1 -1 -1\n"
    "   12   342343      5    553   40 552.21    -1   40  43200 15640  1   4   1  -1 -1  1 -1 -1\n"
    "   13   342926   6042  10027   10  10030    -1   -1     -1    -1  5   3   2  -1  2  1 -1 -1\n"
)
EXTENDED = (
    "1 1356996147 5 60 4 1 1024 4 7200 1073741824 1 62 1 1 -1 1 1 1 {1,1,2,2} q_2h 2:ppn=2:x86_64#excl\n"
    "2 1356996148 5 60 7 1 1024 7 7200 1073741824 1 63 1 1 -1 1 1 1 {1} q_1d 1:ppn=1+3:ppn=2:cl_big\n"
)
MACHINES = "0\tbig\t2\t80\t1\t1048576\n1\tsmall\t40\t12\t1\t524288\n"
PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    "2017-10-09 06:13:03,2951.0,12,35412.0,6214e9\n"
)
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time\n"
    "a,4000,1024,2,1000,T4|P100,LS,Running,10,110,20\nb,500,0,1,460,,BE,Succeeded,11.5,12.0,12.0\n"
)
OPENB_SHORT = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,1024,2,1000\nb,500,10,0,0\n"
CHRONUS = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type\n"
    "0,vc_a,1,8555,5049,vgg16,747,14,1105,10,0,strict\n1,vc_b,12,832,296,alexnet,98,8,159-189,10-8,0,soft\n"
)
DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,"
    "deletion_time\n"
    "i0,HN,app_0,12,16,1,1,25,30,120.5,240.0,640.0,800.0,8,,,\n"
    "i1,CN,app_1,12,16,0,0,25,30,120.5,240.0,640.0,800.0,-1,475.0,623.0,1623.5\n"
)
SPOT = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
    "239255,13,A10,20,1,1,0,2764799,HP\n437260,57,A100-SXM4-80GB,15.5,1,16,9589663,41060,Spot\n"
)
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,vcJ,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
    "2,u,vcb,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:36,246,3\n"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
    "5,u5,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
    "2023-03-01 00:20:51+08:00,117,32,936.0\n"
)
CSV = "job_id,submit_time,duration,queue,request.cpu,priority\na,0,5.5,q,2,7\nb,1,2,q,1,\n"
PAI_JOBS = "a,i1,u1,Terminated,100.0,900.0\nb,i2,u2,Failed,200.0,300.0\n"
PAI_TASKS = (
    "a,ps,1.0,Terminated,150.0,900.0,600.0,29.3,,\na,worker,2.0,Terminated,160.0,850.5,400.0,10.0,50.0,T4\n"
    "b,tensorflow,1.0,Failed,210.0,300.0,600.0,1.0,200.0,V100\n"
)
ATTEMPT = {
    "start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
    "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
}  # fmt: skip
PHILLY_LOG = json.dumps(
    [
        {
            "status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "attempts": [ATTEMPT, ATTEMPT],
            "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c",
        }
    ],
    indent=1,
)  # fmt: skip
WORKLOAD = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {
        "name": "w", "namespace": "team", "uid": "u1", "creationTimestamp": "2025-03-01T10:00:00Z",
    },
    "spec": {
        "queueName": "lq",
        "priority": 100,
        "podSets": [
            {
                "name": "main",
                "count": 4,
                "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}},
            }
        ],
    },
    "status": {
        "conditions": [
            {"type": "Admitted", "status": "True", "lastTransitionTime": "2025-03-01T10:05:00Z"},
            {"type": "Finished", "status": "True", "lastTransitionTime": "2025-03-01T11:05:00Z"},
        ]
    },
}  # fmt: skip
KUBERNETES = json.dumps({"apiVersion": "v1", "items": [WORKLOAD], "kind": "List"}, indent=1)
_EVENT = '{{"time": "{}", "type": "{}", "collection_id": "1", "collection_type": "0", "priority": "200"{}}}\n'
COLLECTIONS = "".join(_EVENT.format(time, kind, ', "user": "ann"') for time, kind in ((7, 0), (8, 3), (9, 6)))
INSTANCES = "".join(
    _EVENT.format(7, 0, f', "instance_index": "{index}", "resource_request": {{"cpus": 0.5, "memory": 0.25}}')
    for index in range(2)
)

SLURM = """\
JobIDRaw|JobID|User|QOS|Submit|Eligible|Start|End|ElapsedRaw|State|NNodes|ReqTRES|AllocTRES|JobName|Suspended
44|44|bob|low|1795318713|1795318713|1795318713|1795318722|9|REQUEUED|1|cpu=2,node=1|cpu=2,mem=2M,node=1|a|00:00:00
44.0|44.0|||1795318713|1795318713|1795318713|1795318722|9|CANCELLED|1||cpu=2,mem=2048M,node=1|batch|00:00:00
44|44|bob|low|1795318722|1795318843|1795318847|1795318865|18|COMPLETED|1|cpu=2|cpu=2,mem=2M,node=1|a|00:00:00
83|83+0|ann|low|2026-11-22T03:39:00|2026-11-22T03:39:00|2026-11-22T03:39:11|2026-11-22T03:39:18|7|COMPLETED|1\
|cpu=2,mem=1.75G,node=1|billing=2,cpu=2,mem=1.75G,node=1|b|00:00:00
84|83+1|ann|low|2026-11-22T03:39:00|2026-11-22T03:39:00|2026-11-22T03:39:11|2026-11-22T03:39:18|7|COMPLETED|1\
|cpu=3,gres/gpu:a100=1,node=2|cpu=3,gres/gpu:a100=1,gres/gpu=1,node=2|b|c|00:00:00
90|89_[5-9%2]|ann|low|2026-11-22T03:39:00|Unknown|Unknown|Unknown|0|PENDING|1|cpu=3,node=1||d|00:00:00
91|91|ann|low|2026-11-22T03:39:00|Unknown|None|2026-11-22T03:39:18|0|CANCELLED by 7|1|cpu=3,node=1||e|00:00:00
"""
_COUNTED = {"type": "cpu", "name": None, "count": 4}
SLURM_JSON = json.dumps(
    {
        "jobs": [
            {
                "account": "bio", "allocation_nodes": 1, "association": {}, "derived_exit_code": 0,
                "array": {"job_id": 7, "task_id": {"set": True, "infinite": False, "number": 3}},
                "het": {"job_id": 0, "job_offset": None}, "job_id": 9, "name": "n", "partition": "batch",
                "qos": "low", "user": "ann", "state": {"current": ["COMPLETED"], "reason": "None"},
                "kill_request_user": "", "restart_cnt": 2, "steps": [{}],
                "time": {
                    "elapsed": 5, "eligible": 1795318791, "start": 1795318792, "end": 1795318797,
                    "submission": 1795318790, "suspended": 0,
                    "limit": {"set": True, "infinite": True, "number": 0},
                },
                "tres": {
                    "allocated": [_COUNTED, {"type": "mem", "name": "", "count": 2048}],
                    "requested": [_COUNTED, {"type": "gres", "name": "gpu", "count": 1}],
                },
            }
        ]
    },
    indent=1,
)  # fmt: skip

_LABELS = {"namespace": "a", "pod": "p", "uid": "u"}
_START, _PHASE = "kube_pod_start_time", "kube_pod_status_phase"
PROMETHEUS = json.dumps(
    {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"__name__": _START, **_LABELS}, "values": [[15.5, "10"], [20.5, "10"]]},
                {"metric": {"__name__": "kube_pod_created", **_LABELS}, "values": [[20, "5"]]},
                {"metric": {"__name__": _PHASE, **_LABELS, "phase": "Failed"}, "values": [[20, "1"]]},
                {"metric": {"__name__": "kube_pod_completion_time", **_LABELS}, "value": [20, "18"]},
                {
                    "metric": {
                        "__name__": "kube_pod_container_resource_requests", **_LABELS, "container": "c",
                        "resource": "cpu",
                    },
                    "values": [[20, "0.5"]],
                },
            ],
        },
    },
    indent=1,
)  # fmt: skip

SAMPLES = {
    "parquet": _one(
        "parquet",
        "trace.parquet",
        _parquet(
            job_id=["a", "b"],
            submit_time=[pl.Series([1], dtype=pl.Duration("us"))[0]] * 2,
            duration=[pl.Series([9], dtype=pl.Duration("us"))[0]] * 2,
            queue=["q", "r"],
            user=["u", None],
            **{"request.cpu": [5, 6]},
        ),
    ),
    "swf": _one("swf", "log.swf", SWF),
    "swf in gzip": _one("swf", "log.swf.gz", gzip.compress(SWF.encode(), mtime=0)),
    "extended swf": _one("swf", "log.swf", EXTENDED),
    "machines": Sample(
        "swf",
        {"log.swf": EXTENDED.encode(), "all.machines": MACHINES.encode()},
        "log.swf",
        "all.machines",
        {"machines": "all.machines"},
    ),
    "philly": _one("philly", "philly.csv", PHILLY),
    "openb": _one("openb", "pods.csv", OPENB),
    "openb without times": _one("openb", "pods.csv", OPENB_SHORT),
    "chronus": _one("chronus", "mix.csv", CHRONUS),
    "dlrm": _one("dlrm", "dlrm.csv", DLRM),
    "spot-gpu": _one("spot-gpu", "job_info_df.csv", SPOT),
    "opendc": _one(
        "opendc",
        "tasks.parquet",
        _parquet(
            id=[7, 8],
            submission_time=[1_656_604_920_000] * 2,
            duration=[1_500, 7],
            cpu_count=[16, 1],
            mem_capacity=[100_000, 5],
        ),
    ),
    "helios": _one("helios", "cluster_log.csv", HELIOS),
    "acme": _one("acme", "trace_seren.csv", ACME),
    "csv": _one("csv", "jobs.csv", CSV),
    "philly-log": _one("philly-log", "cluster_job_log", PHILLY_LOG),
    "kubernetes": _one("kubernetes", "answer.json", KUBERNETES),
    "prometheus": _one("prometheus", "answers.json", PROMETHEUS),
    "slurm": _one("slurm", "sacct.txt", SLURM),
    "slurm json": _one("slurm", "sacct.json", SLURM_JSON),
}
SAMPLES["pai jobs"], SAMPLES["pai tasks"] = _two(
    "pai", "pai_job_table.csv", PAI_JOBS, "pai_task_table.csv", PAI_TASKS
)
SAMPLES["google collections"], SAMPLES["google instances"] = _two(
    "google-2019", "collection_events.json", COLLECTIONS, "instance_events.json", INSTANCES
)
