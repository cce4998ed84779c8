"""Opens plain or gzipped Parquet files for pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.readers.source import unpacked_contents


def parquet_source(path: Path) -> Any:
    """Returns the input of pyarrow for a file: the path, or the decompressed content of a gzipped file.

    The footer is at the end of a Parquet file, so a gzipped file is decompressed in memory and cannot be read
    in pieces. The same is true of a file whose path is not UTF-8, because pyarrow cannot open such a path.

    Raises:
        OSError: the file cannot be read.
        TraceError: the gzip file is damaged, cut off or too large.
    """
    import pyarrow as pa

    data = unpacked_contents(path)
    if data is None and not _is_utf8(path):
        data = path.read_bytes()
    return path if data is None else pa.BufferReader(data)


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
