"""Defines the options of the readers."""

from __future__ import annotations

from harness import Option, boolean
from harness.base.units import HOUR, MINUTE, parse_duration, to_amount


def _bytes(text: str) -> int:
    return to_amount("memory", text)


GPUS_PER_NODE = Option(
    "gpus_per_node",
    8,
    "a job with more GPUs becomes a gang of equal pods, each with at most this many GPUs",
    type=int,
)

PRIORITY = Option(
    "priority",
    "number",
    "the job's kind as a numeric priority, as the name of a priority class, or not used",
    choices=("number", "class", "none"),
)

_GPU = Option(
    "gpu",
    "milli",
    "whether GPUs are counted in thousandths, so that pods can share a GPU, or as whole GPUs",
    choices=("milli", "count"),
)


def _tenant(*columns: str) -> Option:
    return Option("tenant", columns[0], "the column with the queue", choices=columns)


SWF_OPTIONS = (
    Option(
        "processors",
        "requested",
        "which number of processors a job gets: allocated or requested; if it is unknown, the other one",
        choices=("requested", "allocated"),
    ),
    Option(
        "processors_per_node",
        0,
        "a job with more processors becomes a gang of equal pods, each with at most this number; 0: every "
        "job is one pod",
        type=int,
    ),
    Option(
        "cut_at_request",
        False,
        "whether jobs end at their requested run time, as if the machine had stopped them then",
        type=boolean,
    ),
    _tenant("queue", "user", "group", "partition"),
    Option("cancelled", "keep", "jobs with status 5 (cancelled)", choices=("keep", "drop")),
    Option("zero_length", "keep", "jobs that ran for 0 seconds", choices=("keep", "drop")),
    Option(
        "unknown_run",
        "drop",
        "jobs without a run time (-1): leave them out, or let them run for 0 seconds",
        choices=("drop", "zero"),
    ),
    Option("memory", "requested", "whether jobs request memory", choices=("requested", "ignore")),
    Option("machines", "", "for MetaCentrum's extension: its machines file, for node selectors and capacity"),
)

OPENB_OPTIONS = (
    _GPU,
    _tenant("qos", "gpu_spec"),
    Option("priority", "qos", "derive priorities from the QoS class, or not", choices=("qos", "none")),
    Option(
        "pending", "drop", "pods that never ran: leave them out, or let them run", choices=("drop", "keep")
    ),
    Option("run", HOUR, "how long pods run if the list has no times", type=parse_duration),
    Option("rate", 0.0, "for lists without times: pods that arrive per hour; 0: all at time 0", type=float),
    Option(
        "fill",
        0.0,
        "shuffle pods, and drop or repeat some, so that they request this many GPUs at time 0; 0: do neither",
        type=float,
    ),
    Option("seed", 0, "the random seed of `fill`", type=int),
)

CHRONUS_OPTIONS = (
    GPUS_PER_NODE,
    PRIORITY,
    Option("unit", MINUTE, "the length of one unit of the file's times", type=parse_duration),
)

DLRM_OPTIONS = (
    _tenant("app", "role"),
    Option(
        "outlived",
        "end",
        "instances that ran past the end of the trace: let them end with it, or leave them out",
        choices=("end", "drop"),
    ),
    Option(
        "disk_and_rdma", "ignore", "whether instances request disk and RDMA", choices=("ignore", "request")
    ),
    Option("priority", 0, "the priority of all instances", type=int),
)

SPOT_OPTIONS = (
    PRIORITY,
    Option(
        "gpu_model", "affinity", "whether jobs need nodes of their GPU model", choices=("affinity", "ignore")
    ),
)

PHILLY_LOG_OPTIONS = (
    GPUS_PER_NODE,
    Option(
        "attempts",
        "total",
        "how long a job runs: as long as all its attempts together, or as long as its last attempt",
        choices=("total", "last"),
    ),
)

PAI_OPTIONS = (
    Option(
        "tasks",
        "",
        "the task table; by default next to the job table, with 'task' instead of 'job' in its name",
    ),
    _GPU,
    _tenant("user", "gpu_type"),
    Option(
        "gpu_type", "affinity", "whether pods need nodes of their GPU type", choices=("affinity", "ignore")
    ),
    Option("failed", "keep", "jobs that failed", choices=("keep", "drop")),
)

HELIOS_OPTIONS = (_tenant("vc", "user"), GPUS_PER_NODE)

ACME_OPTIONS = (_tenant("type", "user"), GPUS_PER_NODE)

GOOGLE_OPTIONS = (
    Option(
        "instances",
        "",
        "the instance events; by default next to the collection events, with 'instance' in its name",
    ),
    Option("tenant", "user", "the tenant of a job: its user, or its tier", choices=("user", "tier")),
    Option("cores", 100.0, "the assumed number of cores of the largest machine", type=float),
    Option("memory", 100 * 2**30, "the assumed memory of the largest machine, in bytes", type=_bytes),
)

CSV_OPTIONS = (
    Option("map", "", "the schema's columns and their sources: job_id=JobID, duration=Elapsed:hms"),
    Option("mapping", "", "a YAML file with a mapping in the language of map"),
    Option(
        "delimiter", "comma", "the separator between the cells of a text file: comma, tab, or one character"
    ),
    Option(
        "header",
        "yes",
        "whether the first line names the columns; if not, a mapping numbers them from 1",
        choices=("yes", "no"),
    ),
)

TABLE_OPTIONS = (
    Option("mapping", "", "a YAML file that describes the columns, or the name of a known data set"),
    Option("also", "", "additional files of the same table, one per line"),
)

KUBERNETES_OPTIONS = (
    Option(
        "attempts",
        "last",
        "how long a Workload runs: in its last admission, or in all its admissions together",
        choices=("last", "total"),
    ),
    Option(
        "priority",
        "number",
        "a job's priority: the number in spec.priority, or the name of the priority class",
        choices=("number", "class"),
    ),
)

SLURM_OPTIONS = (
    _tenant("partition", "account", "qos", "user"),
    Option(
        "arrival",
        "eligible",
        "when a job arrives: when it first became eligible to start, or when it was first submitted",
        choices=("eligible", "submit"),
    ),
    Option(
        "resources",
        "allocated",
        "the request of a job: the granted resources, or the requested resources",
        choices=("allocated", "requested"),
    ),
    Option(
        "attempts",
        "last",
        "how long a requeued job runs: as long as its last run, or as all its runs together",
        choices=("last", "total"),
    ),
    Option(
        "unfinished",
        "drop",
        "jobs that had started but not ended: leave them out, let them run as long as they had run in the "
        "log, or let them run until their time limit",
        choices=("drop", "elapsed", "limit"),
    ),
    Option("timezone", "UTC", "the zone in which sacct ran, for times without a time zone"),
    Option("qos", "", "a file with the output of sacctmgr -P show qos, for priorities"),
    Option(
        "priority",
        "number",
        "the QOS as a number (with the option qos), as the name of a priority class, or not used",
        choices=("number", "class", "none"),
    ),
    Option(
        "gpu_model",
        "affinity",
        "whether jobs that requested a type of GPUs need nodes with this type",
        choices=("affinity", "ignore"),
    ),
)

PROMETHEUS_OPTIONS = (
    Option("files", "", "a name pattern for additional answers next to the file: '*.json*'"),
    Option(
        "arrival",
        "job",
        "when the first pods of a Job arrive: at the creation time of the Job, or of the pods",
        choices=("job", "pod"),
    ),
    Option(
        "tenant",
        "queue",
        "the tenant of a pod: the LocalQueue in its labels or its Job's labels, else the namespace; or "
        "always the namespace",
        choices=("queue", "namespace"),
    ),
    Option("priority", "none", "the name of the pod's priority class, or none", choices=("class", "none")),
)
