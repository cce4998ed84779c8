"""By which first bytes the formats are known, for files whose suffix does not tell."""

from __future__ import annotations

from pathlib import Path

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
SWF_COLUMNS = 18


def is_parquet(path: Path, head: bytes) -> bool:
    """Whether a file begins like Parquet."""
    return head.startswith(b"PAR1")


def is_philly(path: Path, head: bytes) -> bool:
    """Whether a file begins with the header line of the Philly extract."""
    first = head.removeprefix(b"\xef\xbb\xbf").splitlines()[:1]
    return first == [",".join(PHILLY_COLUMNS).encode()]


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
