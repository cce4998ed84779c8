"""Reads recordings of a cluster, which are folders of Parquet parts with observed versions of its objects.

The command `harness trace record` writes recordings, and a reader reads them directly. Observations are
written in numbered pieces, and a part contains one or more pieces. It is named `FIRST-LAST.parquet` after the
numbers of its first and last piece. Small parts are merged into larger parts. During a merge, both exist, and
only the larger part is read. The file `recording.json` next to the parts contains the recorded server, and
the position up to which parts are complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import Fault, TraceError, why
from harness.base.json_text import parse_json

ABOUT = "recording.json"
FORMAT = "1"
FORMAT_KEY = "harness.recording"

COLUMNS = ("seen", "event", "api_version", "kind", "namespace", "name", "uid", "resource_version", "object")
"""The columns of a part. `seen` is in microseconds since 1970, and `object` is JSON text."""

_WORDS = ("event", "api_version", "kind", "namespace", "name", "uid")

STANDING = ("ClusterQueue", "Cohort", "LocalQueue", "ElasticQuota", "ElasticQuotaTree", "Node")
"""The kinds that are not part of traces, namely quotas and nodes. Their changes become events."""

GAP = "GAP"
"""The event of a row that stands for a time without a watch.

The JSON text of the row contains the start of this time as `since`.
"""

_PART = re.compile(r"(\d{8,})-(\d{8,})\.parquet")


class Part(NamedTuple):
    """A part of a recording.

    Attributes:
        first, last: the numbers of the first and the last piece. A piece is what was written at one time.
    """

    first: int
    last: int
    path: Path


class Row(NamedTuple):
    """An observation.

    Attributes:
        where: the place of the row, for messages.
        seen: the time of the observation, in microseconds since 1970.
        event: the event of a watch, or one of three other words. `LISTED` is an object in a list, and `GONE`
            is an object that no longer existed. `GAP` means that changes before this time may be missing.
        content: the object or, for a `GAP`, the time at which the gap began.
    """

    where: str
    seen: int
    event: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    content: Mapping[str, Any]


def is_recording(path: Path) -> bool:
    """Returns True if a path is a folder with a recording."""
    return path.is_dir() and (path / ABOUT).is_file()


def part_name(first: int, last: int) -> str:
    """Returns the name of the part that consists of these pieces."""
    return f"{first:08}-{last:08}.parquet"


def parts_of(folder: Path) -> list[Part]:
    """Returns the parts of a recording in order, without parts that a larger part contains."""
    kept: list[Part] = []
    for part in all_parts(folder):
        if not kept or part.last > kept[-1].last:
            kept.append(part)
    return kept


def all_parts(folder: Path) -> list[Part]:
    """Returns all parts in a folder, with a larger part before the parts that it contains."""
    every = []
    for path in folder.iterdir():
        found = _PART.fullmatch(path.name)
        if found:
            every.append(Part(int(found[1]), int(found[2]), path))
    return sorted(every, key=lambda part: (part.first, -part.last))


def read_about(folder: Path) -> dict[str, Any]:
    """Returns the metadata of a recording.

    Raises:
        TraceError: the metadata is missing, damaged, or has another version.
    """
    path = folder / ABOUT
    try:
        about = parse_json(path.read_bytes())
    except OSError as error:
        raise TraceError(str(path), [Fault("", f"cannot be read: {why(error)}")]) from error
    except ValueError as error:
        raise TraceError(str(path), [Fault("", f"is not JSON: {error}")]) from error
    version = about.get(FORMAT_KEY) if isinstance(about, dict) else None
    if version != FORMAT:
        what = f"{FORMAT_KEY} is {version!r}, and this version of harness reads {FORMAT!r}"
        raise TraceError(str(path), [Fault("", what)])
    return dict(about)


def read_rows(folder: Path) -> Iterator[Row]:
    """Yields all observations in order, including those that were written twice after a restart.

    The recording may continue while harness reads it.

    Raises:
        TraceError: a part is damaged or is not a Parquet file.
    """
    read_about(folder)
    last = 0
    while True:
        left = [part for part in parts_of(folder) if part.last > last]
        if not left:
            return
        for part in left:
            rows = _rows(part)
            if rows is None:
                break  # the part was just merged with other parts
            for number, row in enumerate(rows, start=1):
                yield _row(part, number, row)
            last = part.last


def _rows(part: Part) -> list[dict[str, Any]] | None:
    """Returns the rows of a part, or None if the part no longer exists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_table(part.path, columns=list(COLUMNS)).to_pylist())
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"is not a part of a recording, or is damaged: {str(error).splitlines()[0]}"
        raise TraceError(str(part.path), [Fault("", what)]) from error


def _row(part: Part, number: int, row: Mapping[str, Any]) -> Row:
    where = f"{part.path.name}, row {number:,}"
    try:
        content = parse_json(row["object"])
        words = {name: str(row[name]) for name in _WORDS}
        return Row(where, int(row["seen"]), content=dict(content), **words)
    except (ValueError, TypeError) as error:
        raise TraceError(str(part.path), [Fault(f"row {number:,}", f"is not readable: {error}")]) from error
