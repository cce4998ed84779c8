"""By which first bytes the formats are known, for files whose suffix does not tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SWF_COLUMNS = 18
SWF_EXTENDED_COLUMNS = 21

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
OPENB_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
SPOT_NODE_COLUMNS = ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")

_MARK = b"\xef\xbb\xbf"


def has_columns(head: bytes, columns: tuple[str, ...]) -> bool:
    """Whether the first line of comma-separated text names all these columns."""
    lines = head.removeprefix(_MARK).lstrip().splitlines()
    names = lines[0].split(b",") if lines else []
    return {column.encode() for column in columns} <= {name.strip(b' "') for name in names}


def names_columns(*columns: str) -> Callable[[Path, bytes], bool]:
    """A sign: the header line names all these columns."""

    def sign(path: Path, head: bytes) -> bool:
        return has_columns(head, columns)

    return sign


def is_parquet(path: Path, head: bytes) -> bool:
    """Whether a file begins like Parquet."""
    return head.startswith(b"PAR1")


def is_swf(path: Path, head: bytes) -> bool:
    """Whether the first line that is no comment has 18 numbers, or those and three more words.

    The head may end within that line.
    """
    lines = head.removeprefix(_MARK).splitlines()
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
