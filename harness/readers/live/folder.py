"""Writes the folder of a recording.

Parts appear only when they are complete, so the folder survives a crash.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import InputError, why
from harness.base.files.whole import whole_file
from harness.base.units import SECOND
from harness.readers.recordings import (
    ABOUT,
    FORMAT,
    FORMAT_KEY,
    Part,
    all_parts,
    is_recording,
    part_name,
    parts_of,
    read_about,
)

if sys.platform != "win32":
    import fcntl

_LOCK = "recording.lock"
_SCHEMA = pa.schema(
    [
        ("seen", pa.int64()),
        *((name, pa.string()) for name in ("event", "api_version", "kind", "namespace", "name", "uid")),
        ("resource_version", pa.string()),
        ("object", pa.string()),
    ]
)
_MANY = 64
"""As soon as there are this many parts of about equal size, they are merged, so a recording has few parts."""

_LARGEST = 16 << 20  # the maximum total size of parts to merge, because merging holds all of them in memory


class Known(NamedTuple):
    """An object that existed when it was last observed."""

    namespace: str
    name: str
    api_version: str
    revision: str


class Folder:
    """The folder of a recording in progress.

    Attributes:
        positions: for each kind, the resource version up to which the parts are complete.
        heard: for each kind, the time of the server's last answer at this position, in ISO 8601.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path = path
        self._about = about
        self.positions: dict[str, str] = dict(about.get("positions", {}))
        self.heard: dict[str, str] = dict(about.get("heard", {}))
        # A process may have been killed before it could remove merged parts.
        for part in {*all_parts(path)} - {*parts_of(path)}:
            part.path.unlink()
        self._next = max((part.last for part in parts_of(path)), default=0) + 1

    def known(self) -> dict[str, dict[str, Known]]:
        """Returns all objects that still existed according to the parts, by kind and uid."""
        found: dict[str, dict[str, Known]] = {}
        names = ["event", "kind", "uid", "namespace", "name", "api_version", "resource_version"]
        for part in parts_of(self.path):
            table = pq.read_table(part.path, columns=names)
            for row in table.to_pylist():
                there = found.setdefault(row["kind"], {})
                if row["event"] in ("DELETED", "GONE"):
                    there.pop(row["uid"], None)
                elif row["uid"]:
                    there[row["uid"]] = Known(
                        row["namespace"], row["name"], row["api_version"], row["resource_version"]
                    )
        return found

    def add(self, rows: Sequence[Mapping[str, Any]], positions: Mapping[str, str], now: int) -> None:
        """Adds observations, and then records the position up to which they are complete.

        If the process is killed between these steps, some observations are written twice, but count only
        once.

        `positions` has, for each kind, the resource version up to which the observations are complete. `now`
        is in microseconds since 1970.

        Raises:
            InputError: the observations cannot be written. Earlier additions do not change.
        """
        try:
            if rows:
                table = pa.Table.from_pylist([dict(row) for row in rows], _SCHEMA)
                self._write(table, self._next, self._next)
                self._next += 1
                self._put_together()
            self.heard |= dict.fromkeys(positions, datetime.fromtimestamp(now // SECOND, UTC).isoformat())
            self.positions |= positions
            self._tell()
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{self.path} cannot be written: {why(error).splitlines()[0]}",
                hint="nothing recorded so far is lost; free some disk space and start again within a few "
                "minutes, because the server keeps the missing changes only for that long",
            ) from error

    def _tell(self) -> None:
        about = {**self._about, FORMAT_KEY: FORMAT, "positions": self.positions, "heard": self.heard}
        with whole_file(self.path / ABOUT) as file:
            file.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def _write(self, table: pa.Table, first: int, last: int) -> None:
        with whole_file(self.path / part_name(first, last)) as file:
            pq.write_table(table, file, compression="zstd")

    def _put_together(self) -> None:
        """Merges many parts of about equal size, and then removes them."""
        parts = parts_of(self.path)
        for _, alike in groupby(parts, key=_magnitude):
            several = list(alike)[:_MANY]
            if len(several) == _MANY and sum(part.path.stat().st_size for part in several) <= _LARGEST:
                table = pa.concat_tables(pq.read_table(part.path) for part in several)
                self._write(table, several[0].first, several[-1].last)
                for part in several:
                    part.path.unlink()
                return


def _magnitude(part: Part) -> int:
    pieces, magnitude = part.last - part.first + 1, 0
    while pieces >= _MANY:
        pieces //= _MANY
        magnitude += 1
    return magnitude


@contextmanager
def recording_folder(path: Path, about: Mapping[str, Any]) -> Iterator[Folder]:
    """Open a folder for a recording, exclusively for this process. Create it if necessary.

    A recording continues only with the same server and namespace in `about`.

    Raises:
        InputError: the folder has other content, another process records into it, or it cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with (path / _LOCK).open("ab") as lock:
            _take(lock.fileno(), path)
            yield _opened(path, about)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {why(error)}") from error


def _opened(path: Path, about: Mapping[str, Any]) -> Folder:
    if not is_recording(path):
        others = sorted(each.name for each in path.iterdir() if each.name != _LOCK)
        if [name for name in others if not name.startswith(".harness-")]:
            raise InputError(
                f"{path} is not a recording: it contains {others[0]}", hint="give another folder"
            )
        folder = Folder(path, dict(about))
        folder.add([], {}, 0)
        return folder
    told = read_about(path)
    for name, value in about.items():
        if told.get(name) != value:
            raise InputError(
                f"{path} is a recording of {name} {told.get(name) or '(all)'}, not {value or '(all)'}",
                hint="give another folder; harness trace convert reads one recording at a time",
            )
    return Folder(path, told)


def _take(descriptor: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"another process already records into {path}",
            hint="stop that process first, or give another folder",
        ) from None
