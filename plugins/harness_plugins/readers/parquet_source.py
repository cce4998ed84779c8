"""Parquet files as pyarrow opens them, plain or gzipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.readers.source import unpacked_contents


def parquet_source(path: Path) -> Any:
    """Returns the source of a Parquet file for pyarrow: its path, or its unpacked content if it is gzipped.

    The footer is at the end of a Parquet file. So a gzipped file is unpacked in memory, and cannot be read in
    pieces.

    Raises:
        OSError: the file cannot be read.
        TraceError: a gzip file that is damaged, cut off or too large.
    """
    import pyarrow as pa

    data = unpacked_contents(path)
    return path if data is None else pa.BufferReader(data)
