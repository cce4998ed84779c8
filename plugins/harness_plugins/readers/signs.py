"""By which first bytes the formats are known, for files whose suffix does not tell."""

from __future__ import annotations

from pathlib import Path

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
SWF_COLUMNS = 18
OPENB_SHORT_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
OPENB_POD_COLUMNS = (
    *OPENB_SHORT_COLUMNS, "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


def is_parquet(path: Path, head: bytes) -> bool:
    """Whether a file begins like Parquet."""
    return head.startswith(b"PAR1")


def is_philly(path: Path, head: bytes) -> bool:
    """Whether a file begins with the header line of the Philly extract."""
    return _begins_with(head, PHILLY_COLUMNS)


def is_openb(path: Path, head: bytes) -> bool:
    """Whether a file begins with the header line of an openb pod list."""
    return _begins_with(head, OPENB_POD_COLUMNS) or _begins_with(head, OPENB_SHORT_COLUMNS)


def _begins_with(head: bytes, columns: tuple[str, ...]) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").splitlines()[:1] == [",".join(columns).encode()]


def is_swf(path: Path, head: bytes) -> bool:
    """Whether the first line that is no comment has 18 numbers (the head may end within it)."""
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    jobs = [line.split() for line in lines if line.strip() and not line.lstrip().startswith(b";")]
    if not jobs:
        return any(line.startswith(b"; Version: 2") for line in lines)
    return len(jobs[0]) == SWF_COLUMNS and all(_is_number(word) for word in jobs[0])


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
