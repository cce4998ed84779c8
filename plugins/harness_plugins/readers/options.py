"""The options of the readers, each with its effect."""

from __future__ import annotations

from harness import Option, boolean
from harness.base.units import HOUR, MINUTE, parse_duration, to_amount


def _bytes(text: str) -> int:
    return to_amount("memory", text)


GPUS_PER_NODE = Option(
    "gpus_per_node",
    8,
    "a job of more GPUs becomes a gang of equal pods, each with at most this many",
    type=int,
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
        "the number of processors of a job; if it is unknown, the other one",
        choices=("requested", "allocated"),
    ),
    Option(
        "processors_per_node",
        0,
        "a job of more processors becomes a gang of equal pods, each with at most this many; 0: any job "
        "is one pod",
        type=int,
    ),
    Option(
        "cut_at_request",
        False,
        "end jobs at the run time they requested, as the machine might have done",
        type=boolean,
    ),
    Option("tenant", "queue", "which column is the queue", choices=("queue", "user", "group", "partition")),
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
    Option("run", HOUR, "how long pods run if the list does not say it", type=parse_duration),
    Option("rate", 0.0, "of lists without times: pods that arrive an hour; 0: all at once", type=float),
    Option(
        "fill",
        0.0,
        "shuffle pods, all at 0, and drop or repeat some, so that they ask for so many GPUs; 0: do not",
        type=float,
    ),
    Option("seed", 0, "what `fill` draws by", type=int),
)

CHRONUS_OPTIONS = (
    GPUS_PER_NODE,
    PRIORITY,
    Option("unit", MINUTE, "the length of one unit of the file's times", type=parse_duration),
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
    Option("tenant", "user", "the tenant of a job: its user, or its tier", choices=("user", "tier")),
    Option("cores", 100.0, "how many cores the largest machine is taken to have", type=float),
    Option(
        "memory", 100 * 2**30, "how many bytes of memory the largest machine is taken to have", type=_bytes
    ),
)

CSV_OPTIONS = (
    Option("map", "", "the schema's columns and their sources: job_id=JobID, duration=Elapsed:hms"),
    Option("mapping", "", "a YAML file with such a mapping"),
    Option(
        "delimiter", "comma", "the separator between the cells of a text file: comma, tab, or one character"
    ),
    Option(
        "header",
        "yes",
        "whether the first line names the columns; else a mapping calls them by their numbers, from 1",
        choices=("yes", "no"),
    ),
)

TABLE_OPTIONS = (
    Option("mapping", "", "a YAML file that says what the columns are, or the name of a known data set"),
    Option("also", "", "further files of the same table, one a line"),
)

KUBERNETES_OPTIONS = (
    Option(
        "attempts",
        "last",
        "how long a Workload runs: from its last admission, or all its admissions together",
        choices=("last", "total"),
    ),
    Option(
        "priority",
        "number",
        "the number that the cluster resolved, or the name of the priority class",
        choices=("number", "class"),
    ),
)

SLURM_OPTIONS = (
    Option(
        "tenant", "partition", "which column is the queue", choices=("partition", "account", "qos", "user")
    ),
    Option(
        "arrival",
        "eligible",
        "when a job arrives: when it could first be considered, or when it was first submitted",
        choices=("eligible", "submit"),
    ),
    Option(
        "resources",
        "allocated",
        "the request of a job: the amounts it was granted, or those it asked for",
        choices=("allocated", "requested"),
    ),
    Option(
        "attempts",
        "last",
        "how long a job that was requeued runs: as its last run, or all its runs together",
        choices=("last", "total"),
    ),
    Option(
        "unfinished",
        "drop",
        "jobs that had started and not ended: leave them out, or let them run as long as they had, or until "
        "their time limit",
        choices=("drop", "elapsed", "limit"),
    ),
    Option("timezone", "UTC", "the zone in which sacct ran, for times without a time zone"),
    Option("qos", "", "a file of what sacctmgr -P show qos printed, for priorities"),
    Option(
        "priority",
        "number",
        "the QOS as a number (with the option qos), as the name of a priority class, or not at all",
        choices=("number", "class", "none"),
    ),
    Option(
        "gpu_model",
        "affinity",
        "whether jobs that asked for a type of GPUs need nodes of it",
        choices=("affinity", "ignore"),
    ),
)

PROMETHEUS_OPTIONS = (
    Option("files", "", "further answers beside the file, as a pattern of names: '*.json*'"),
    Option(
        "arrival",
        "job",
        "when the first pods of a Job arrive: when the Job was made, or when they were",
        choices=("job", "pod"),
    ),
    Option(
        "tenant",
        "queue",
        "the tenant of a pod: the LocalQueue in its labels or its Job's, else the namespace; or always "
        "the namespace",
        choices=("queue", "namespace"),
    ),
    Option(
        "priority",
        "none",
        "the name of the pod's priority class, or none",
        choices=("class", "none"),
    ),
)
