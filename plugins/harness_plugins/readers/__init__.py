"""Trace readers: canonical Parquet, the Standard Workload Format, and the formats of published traces.

Only what registers them is imported with the plugin; a reader's own module is loaded when it first reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from harness import Option, Reading, RegisterReader, boolean, hookimpl
from harness.units import HOUR, MINUTE, parse_duration, to_amount
from harness_plugins.readers import signs


def _reader(module: str) -> Callable[[Path, Mapping[str, Any]], Reading]:
    """The function `read` of a module of this package, which is imported when it is first called."""

    def read(path: Path, options: Mapping[str, Any]) -> Reading:
        reading: Reading = import_module(f"{__name__}.{module}").read(path, options)
        return reading

    return read


def _bytes(text: str) -> int:
    return to_amount("memory", text)


GPUS_PER_NODE = Option(
    "gpus_per_node", 8, "a job of more GPUs becomes a gang of equal pods of at most these", type=int
)

PRIORITY = Option(
    "priority",
    "number",
    "the kind of a job as a number, as the name of a priority class, or not at all",
    choices=("number", "class", "none"),
)

SWF_OPTIONS = (
    Option(
        "processors",
        "requested",
        "how many a job gets; where that is unknown, the other",
        choices=("requested", "allocated"),
    ),
    Option(
        "processors_per_node",
        0,
        "a job of more processors becomes a gang of equal pods of at most these; 0: any job is one pod",
        type=int,
    ),
    Option(
        "cut_at_request",
        False,
        "end jobs at the run time they requested, as the machine might have done",
        type=boolean,
    ),
    Option("tenant", "queue", "which column is the queue", choices=("queue", "user", "group")),
    Option("cancelled", "keep", "jobs with status 5 (cancelled)", choices=("keep", "drop")),
    Option("zero_length", "keep", "jobs that ran for 0 seconds", choices=("keep", "drop")),
    Option(
        "unknown_run",
        "drop",
        "jobs without a run time (-1): leave them out, or let them run for 0 seconds",
        choices=("drop", "zero"),
    ),
    Option("memory", "requested", "whether jobs ask for memory", choices=("requested", "ignore")),
    Option("machines", "", "of MetaCentrum's extension: the machines file, for node selectors and capacity"),
)

OPENB_OPTIONS = (
    Option(
        "gpu",
        "milli",
        "GPUs in thousandths, so that pods can share one, or whole",
        choices=("milli", "count"),
    ),
    Option("tenant", "qos", "which column is the queue", choices=("qos", "gpu_spec")),
    Option("priority", "qos", "derive priorities from the QoS class, or give none", choices=("qos", "none")),
    Option(
        "pending", "drop", "pods that never ran: leave them out, or let them run", choices=("drop", "keep")
    ),
    Option("run", HOUR, "how long pods run of which the list does not say it", type=parse_duration),
    Option("rate", 0.0, "of lists without times: pods that arrive an hour; 0: all at once", type=float),
)

CHRONUS_OPTIONS = (
    GPUS_PER_NODE,
    PRIORITY,
    Option("unit", MINUTE, "what one unit of the file's times is", type=parse_duration),
)

DLRM_OPTIONS = (
    Option("tenant", "app", "which column is the queue", choices=("app", "role")),
    Option(
        "outlived",
        "end",
        "instances that ran past the trace: let them end with it, or leave them out",
        choices=("end", "drop"),
    ),
    Option("disk_and_rdma", "ignore", "whether instances ask for them", choices=("ignore", "request")),
    Option("priority", 0, "the priority of all instances", type=int),
)

SPOT_OPTIONS = (
    PRIORITY,
    Option("gpu_model", "affinity", "whether jobs need nodes of their model", choices=("affinity", "ignore")),
)

PHILLY_LOG_OPTIONS = (
    GPUS_PER_NODE,
    Option(
        "attempts",
        "total",
        "how long a job runs: as long as all its attempts took together, or the last one",
        choices=("total", "last"),
    ),
)

PAI_OPTIONS = (
    Option("tasks", "", "the task table; by default beside the job table, task for job in its name"),
    Option(
        "gpu",
        "milli",
        "GPUs in thousandths, so that pods can share one, or whole",
        choices=("milli", "count"),
    ),
    Option("tenant", "user", "which column is the queue", choices=("user", "gpu_type")),
    Option("gpu_type", "affinity", "whether pods need nodes of their model", choices=("affinity", "ignore")),
    Option("failed", "keep", "jobs that failed", choices=("keep", "drop")),
)

HELIOS_OPTIONS = (
    Option("tenant", "vc", "which column is the queue", choices=("vc", "user")),
    GPUS_PER_NODE,
)

ACME_OPTIONS = (
    Option("tenant", "type", "which column is the queue", choices=("type", "user")),
    GPUS_PER_NODE,
)

GOOGLE_OPTIONS = (
    Option(
        "instances",
        "",
        "the instance events; by default beside the collection events, instance in their name",
    ),
    Option("tenant", "user", "whose a job is: the user's, or its tier's", choices=("user", "tier")),
    Option("cores", 100.0, "how many cores the largest machine is taken to have", type=float),
    Option(
        "memory", 100 * 2**30, "how many bytes of memory the largest machine is taken to have", type=_bytes
    ),
)

CSV_OPTIONS = (
    Option("map", "", "the schema's columns and where they come from: job_id=JobID, duration=Elapsed:hms"),
    Option("mapping", "", "a YAML file with such a mapping"),
    Option("delimiter", "comma", "what stands between the cells: comma, tab, or one character"),
)

KUBERNETES_OPTIONS = (
    Option(
        "priority",
        "number",
        "the number that the cluster resolved, or the name of the priority class",
        choices=("number", "class"),
    ),
)


@hookimpl
def harness_register_readers(register: RegisterReader) -> None:
    """Register the built-in readers."""
    register(
        "parquet",
        _reader("parquet"),
        help="Parquet in the canonical schema",
        suffixes=(".parquet",),
        sniff=signs.is_parquet,
    )
    register(
        "swf",
        _reader("swf"),
        help="Standard Workload Format (Parallel Workloads Archive), and MetaCentrum's extension of it",
        suffixes=(".swf", ".swf.gz"),
        sniff=signs.is_swf,
        options=SWF_OPTIONS,
    )
    register(
        "philly",
        _reader("philly"),
        help="extract of Microsoft's Philly trace: timestamp,duration,num_gpus,gpu_time,cluster",
        sniff=signs.names_columns(*signs.PHILLY_COLUMNS),
        options=(GPUS_PER_NODE,),
    )
    register(
        "openb",
        _reader("openb"),
        help="pod lists of Alibaba's openb (cluster-trace-gpu-v2023)",
        sniff=signs.names_columns(*signs.OPENB_COLUMNS),
        options=OPENB_OPTIONS,
    )
    register(
        "chronus",
        _reader("chronus"),
        help="Chronus' mixes of Philly jobs with deadlines and best-effort jobs",
        sniff=signs.names_columns(*signs.CHRONUS_COLUMNS),
        options=CHRONUS_OPTIONS,
    )
    register(
        "dlrm",
        _reader("dlrm"),
        help="Alibaba's disaggregated DLRM inference instances of 2025 (cluster-trace-gpu-v2025)",
        sniff=signs.names_columns(*signs.DLRM_COLUMNS),
        options=DLRM_OPTIONS,
    )
    register(
        "spot-gpu",
        _reader("spot_gpu"),
        help="jobs of Alibaba's spot GPU trace of 2026 (cluster-trace-v2026-spot-gpu)",
        sniff=signs.names_columns(*signs.SPOT_COLUMNS),
        options=SPOT_OPTIONS,
    )
    register(
        "opendc",
        _reader("opendc"),
        help="tasks of OpenDC's Parquet traces and of the Workflow Trace Format",
        suffixes=(".parquet",),
        sniff=signs.is_opendc,
    )
    register(
        "kubernetes",
        _reader("kubernetes"),
        help="kubectl get -o json of Kueue's Workloads, of Jobs or of Pods",
        sniff=signs.is_kubernetes,
        options=KUBERNETES_OPTIONS,
    )
    register(
        "csv",
        _reader("mapped_csv"),
        help="delimited text of any columns, by a mapping",
        sniff=signs.is_canonical_csv,
        options=CSV_OPTIONS,
    )
    register(
        "philly-log",
        _reader("philly_log"),
        help="the whole log of Microsoft's Philly: cluster_job_log, JSON with every attempt",
        sniff=signs.is_philly_log,
        options=PHILLY_LOG_OPTIONS,
    )
    register(
        "pai",
        _reader("pai"),
        help="the job and task tables of Alibaba's PAI (cluster-trace-gpu-v2020)",
        sniff=signs.is_pai,
        options=PAI_OPTIONS,
    )
    register(
        "helios",
        _reader("helios"),
        help="job logs of SenseTime's Helios: cluster_log.csv",
        sniff=signs.names_columns(*signs.HELIOS_COLUMNS),
        options=HELIOS_OPTIONS,
    )
    register(
        "acme",
        _reader("acme"),
        help="job traces of Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv",
        sniff=signs.names_columns(*signs.ACME_COLUMNS),
        options=ACME_OPTIONS,
    )
    register(
        "google-2019",
        _reader("google"),
        help="Google's ClusterData 2019: collection and instance events, JSON lines",
        sniff=signs.is_google,
        options=GOOGLE_OPTIONS,
    )
