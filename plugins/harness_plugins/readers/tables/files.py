"""Reads the wanted columns from the files of a table: Parquet, JSON or text, which may be compressed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from harness.base.errors import Fault, TraceError
from harness.readers.source import contents
from harness_plugins.readers.parquet_source import parquet_source
from harness_plugins.readers.tables.delimited import read_text
from harness_plugins.readers.tables.documents import is_json, read_documents
from harness_plugins.readers.tables.mapping import TableMapping
from harness_plugins.readers.tables.parts import Part
from harness_plugins.readers.tables.typed import is_parquet, read_parquet

_TAR = (257, b"ustar")


def find_files(path: Path, pattern: str, more: Sequence[Path] = ()) -> list[Path]:
    """Returns the file itself or the files in a folder that match a pattern, then the additional files.

    Raises:
        TraceError: no file in the folder matches.
    """
    if not path.is_dir():
        return [path, *more]
    try:
        found = [each for each in path.glob(pattern or "**/*") if each.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise TraceError(str(path), [Fault("files", f"{pattern!r} is not a pattern: {error}")]) from error
    kept = sorted(
        each for each in found if not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    first, _, rest = pattern.partition("/")
    if not kept and rest and fnmatchcase(path.name, first):  # the folder itself is the pattern's first part
        return find_files(path, rest, more)
    if not kept:
        raise TraceError(str(path), [Fault("files", f"no file in the folder matches {pattern or '**/*'!r}")])
    return [*kept, *more]


def parts_of(path: Path, mapping: TableMapping) -> Iterator[Part]:
    """Yields the tables of a file, which has one table or is an archive with several.

    Raises:
        TraceError: the file cannot be read.
    """
    if is_parquet(path):
        yield read_parquet(path, parquet_source(path), mapping.pick)
        return
    data = contents(path)
    place, mark = _TAR
    if data[place : place + len(mark)] == mark:
        for name, inside in _members(path, data):
            yield _written(Path(f"{path}/{name}"), inside, mapping)
        return
    yield _written(path, data, mapping)


def _members(path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is not None:
                    yield member.name, file.read()
    except tarfile.TarError as error:
        raise TraceError(str(path), [Fault("", f"is not a complete tar archive: {error}")]) from error


def _written(path: Path, data: bytes, mapping: TableMapping) -> Part:
    if not data.strip():
        raise TraceError(str(path), [Fault("", "has no lines")])
    if is_json(data):
        return read_documents(path, data, mapping.pick, inside=mapping.records)
    return read_text(path, data, mapping.pick, delimiter=mapping.delimiter, header=mapping.header)
