"""Recordings of a cluster: folders of Parquet parts with the versions of its objects, as they were seen.

`harness trace record` writes them; a reader takes them as they are. A part is `FIRST-LAST.parquet`, by the
numbers of the first and the last piece in it: small ones are put together, and where both are there, the
larger one counts. Beside them `recording.json` says what is recorded and up to when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import Fault, TraceError
from harness.base.json_text import parse_json

ABOUT = "recording.json"
FORMAT = "1"
FORMAT_KEY = "harness.recording"

COLUMNS = ("seen", "event", "api_version", "kind", "namespace", "name", "uid", "resource_version", "object")
"""Of a part: when it was seen (microseconds since 1970), the event, which object, and its JSON text."""

_WORDS = ("event", "api_version", "kind", "namespace", "name", "uid")

STANDING = ("ClusterQueue", "Cohort", "LocalQueue", "ElasticQuota", "ElasticQuotaTree", "Node")
"""Kinds of objects that no trace is made of: quotas and nodes, whose changes become events."""

GAP = "GAP"
"""The event of a row that says that for a while nobody watched; its JSON text says `since` when."""

_PART = re.compile(r"(\d{8,})-(\d{8,})\.parquet")


class Part(NamedTuple):
    """A part of a recording.

    Attributes:
        first, last: the numbers of the pieces that are in it.
        path: the file.
    """

    first: int
    last: int
    path: Path


class Row(NamedTuple):
    """What was seen.

    Attributes:
        where: it stands, for messages.
        seen: microseconds since 1970.
        event: of a watch; `LISTED`; `GONE` of what was no longer there; `GAP`.
        api_version, kind, namespace, name, uid: of the object.
        content: the object, or what else the row says.
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
    """Whether a path is a folder with a recording."""
    return path.is_dir() and (path / ABOUT).is_file()


def part_name(first: int, last: int) -> str:
    """What the part with these pieces is called."""
    return f"{first:08}-{last:08}.parquet"


def parts_of(folder: Path) -> list[Part]:
    """The parts of a recording in order, without those that a larger one has put together."""
    kept: list[Part] = []
    for part in all_parts(folder):
        if not kept or part.last > kept[-1].last:
            kept.append(part)
    return kept


def all_parts(folder: Path) -> list[Part]:
    """All parts that are in a folder, a larger one before those that are in it."""
    every = []
    for path in folder.iterdir():
        found = _PART.fullmatch(path.name)
        if found:
            every.append(Part(int(found[1]), int(found[2]), path))
    return sorted(every, key=lambda part: (part.first, -part.last))


def read_about(folder: Path) -> dict[str, Any]:
    """What a recording says about itself.

    Raises:
        TraceError: that is missing, spoilt, or of another version.
    """
    path = folder / ABOUT
    try:
        about = parse_json(path.read_bytes())
    except OSError as error:
        raise TraceError(str(path), [Fault("", f"cannot be read: {error.strerror or error}")]) from error
    except ValueError as error:
        raise TraceError(str(path), [Fault("", f"is not JSON: {error}")]) from error
    version = about.get(FORMAT_KEY) if isinstance(about, dict) else None
    if version != FORMAT:
        what = f"{FORMAT_KEY} is {version!r}, and this version of harness reads {FORMAT!r}"
        raise TraceError(str(path), [Fault("", what)])
    return dict(about)


def read_rows(folder: Path) -> Iterator[Row]:
    """All that was seen, in that order; what was written twice after a restart comes twice.

    It may be recorded meanwhile.

    Raises:
        TraceError: a part is damaged or is none.
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
                break  # it was put together with others just now
            for number, row in enumerate(rows, start=1):
                yield _row(part, number, row)
            last = part.last


def _rows(part: Part) -> list[dict[str, Any]] | None:
    """The rows of a part; None if it is no longer there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_table(part.path, columns=list(COLUMNS)).to_pylist())
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"is no part of a recording, or damaged: {str(error).splitlines()[0]}"
        raise TraceError(str(part.path), [Fault("", what)]) from error


def _row(part: Part, number: int, row: Mapping[str, Any]) -> Row:
    where = f"{part.path.name}, row {number:,}"
    try:
        content = parse_json(row["object"])
        words = {name: str(row[name]) for name in _WORDS}
        return Row(where, int(row["seen"]), content=dict(content), **words)
    except (ValueError, TypeError) as error:
        raise TraceError(str(part.path), [Fault(f"row {number:,}", f"is not readable: {error}")]) from error
