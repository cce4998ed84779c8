"""Parquet files as pyarrow opens them, plain or gzipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.readers.source import unpacked_contents


def parquet_source(path: Path) -> Any:
    """What pyarrow reads of a Parquet file: its path, or if it is gzipped what it holds, in memory.

    The footer is at the end of a Parquet file, so that a gzipped one cannot be read in pieces.

    Raises:
        OSError: it cannot be read.
        TraceError: a gzip file that is damaged, cut off or too large.
    """
    import pyarrow as pa

    data = unpacked_contents(path)
    return path if data is None else pa.BufferReader(data)
