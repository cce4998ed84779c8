"""Recognises each format from the first bytes of a file."""

from __future__ import annotations

import re
from pathlib import Path

from harness.base.errors import TraceError
from harness.readers.sniff import MARK, beginning, first_line, has_columns
from harness_plugins.readers.parquet_source import parquet_source

SWF_COLUMNS = 18
SWF_EXTENDED_COLUMNS = 21

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
OPENB_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
CHRONUS_COLUMNS = ("job_id", "user", "num_gpu", "expect_time_list", "best_effort", "job_type")
DLRM_COLUMNS = ("instance_sn", "role", "app_name", "rdma_request", "max_instance_per_node")
SPOT_COLUMNS = ("job_name", "organization", "worker_num", "job_type")
SPOT_NODE_COLUMNS = ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")

HELIOS_COLUMNS = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "start_time")
ACME_COLUMNS = ("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state", "start_time")

_PARQUET = b"PAR1"
_YAML_OBJECT = re.compile(rb"^(?:\xef\xbb\xbf)?apiVersion:[ \t]+[a-z]", re.MULTILINE)
_TABLE = re.compile(rb"(?:NAMESPACE +)?NAME +.* AGE\b")


_OPENDC_COLUMNS = {"id", "submission_time", "duration", "cpu_count", "mem_capacity"}
_WORKFLOW_COLUMNS = {"id", "ts_submit", "runtime", "resource_amount_requested", "workflow_id"}


def is_parquet(path: Path, head: bytes) -> bool:
    """Returns True for Parquet files, by their name or first bytes, unless they have another known schema."""
    named = path.suffix.lower() == ".parquet"
    return (named or head.startswith(_PARQUET)) and not is_opendc(path, head)


def is_opendc(path: Path, head: bytes) -> bool:
    """Returns True if a Parquet file has the columns of OpenDC's tasks or of the Workflow Trace Format."""
    columns = _parquet_columns(path) if head.startswith(_PARQUET) else set()
    return columns >= _OPENDC_COLUMNS or columns >= _WORKFLOW_COLUMNS


def _parquet_columns(path: Path) -> set[str]:
    """Returns the columns of a Parquet file, or an empty set if the footer cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return set(pq.read_schema(parquet_source(path)).names)
    except (TraceError, pa.ArrowException, OSError, ValueError):
        return set()


def is_canonical_csv(path: Path, head: bytes) -> bool:
    """Returns True if the header line has the names of the canonical schema."""
    first = first_line(head)
    return has_columns(head, ("job_id", "submit_time", "duration", "queue")) and b"request." in first


def is_kubernetes(path: Path, head: bytes) -> bool:
    """Returns True if a file begins like a Kubernetes object or a list of objects, in JSON or YAML.

    A table of `kubectl get` counts too, because the reader's error says how to get objects.
    """
    if beginning(head).startswith(b"{"):
        return b'"apiVersion"' in head
    return _YAML_OBJECT.search(head) is not None or _TABLE.match(first_line(head)) is not None


_SACCT = re.compile(rb"[A-Za-z]+")
_SACCT_JSON = (b'"association"', b'"derived_exit_code"', b'"allocation_nodes"')


def is_slurm(path: Path, head: bytes) -> bool:
    """Returns True if a file begins with column names of `sacct`, its error message, or its JSON."""
    head = beginning(head)
    if head.startswith(b"{"):
        return b'"jobs"' in head and all(name in head for name in _SACCT_JSON)
    first = head.partition(b"\n")[0]
    names = set(_SACCT.findall(first))
    return first.startswith(b"sacct: ") or (bool(names & {b"JobID", b"JobIDRaw"}) and b"State" in names)


def is_prometheus(path: Path, head: bytes) -> bool:
    """Returns True if a file begins like an answer of Prometheus' HTTP API, or a list of answers."""
    head = beginning(head)
    marks = b'"resultType"', b'"errorType"'
    return head.startswith((b"{", b"[")) and b'"status"' in head and any(mark in head for mark in marks)


def is_philly_log(path: Path, head: bytes) -> bool:
    """Returns True if a file begins like a JSON list of Philly's jobs."""
    head = beginning(head)
    return head.startswith(b"[") and b'"attempts"' in head and b'"vc"' in head


def is_pai(path: Path, head: bytes) -> bool:
    """Returns True if a file has the name of PAI's job table, which has no header line."""
    return path.name.startswith("pai_job_table.csv")


def is_google(path: Path, head: bytes) -> bool:
    """Returns True if the first line is an event of a collection."""
    first = first_line(head)
    return first.startswith(b"{") and b'"collection_id"' in first and b'"time"' in first


def is_swf(path: Path, head: bytes) -> bool:
    """Returns True if the first line that is not a comment has 18 numbers, or 18 numbers and three words.

    The first bytes may end within this line.
    """
    lines = head.removeprefix(MARK).splitlines()
    jobs = [line.split() for line in lines if line.strip() and not line.lstrip().startswith(b";")]
    if not jobs:
        return any(line.startswith(b"; Version: 2") for line in lines)
    numbers, further = jobs[0][:SWF_COLUMNS], jobs[0][SWF_COLUMNS:]
    return (
        len(numbers) == SWF_COLUMNS
        and all(_is_number(word) for word in numbers)
        and (not further or further[0].startswith(b"{"))
    )


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
