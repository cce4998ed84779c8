"""Reads run folders. No other module reads `run.json` and the stored tables directly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.base.errors import RunError, why
from harness.base.files.hold import put_back
from harness.base.options import did_you_mean
from harness.base.tables import schemas
from harness.base.tables.parquet import TIMES
from harness.runs.seal import info_is_whole, is_sealed, table_fault
from harness.runs.settings import SETTINGS

TABLES = ("jobs", "decisions", "stints", "timeline", "metrics")

ON_REQUEST = "causes"
"""An additional table, which exists only in runs for which the causes of waiting were determined."""

_AGAIN = "replay it again: a damaged run is replaced"

_INFO: dict[str, type] = {
    "run": str,
    "label": str,
    "trace.name": str,
    "trace.sha256": str,
    "trace.jobs": int,
    "trace.resources": list,
    "trace.origin_us": int,
    "cluster.sha256": str,
    "cluster.nodes": int,
    "cluster.capacity": dict,
    "cluster.queues": dict,
    "policy.name": str,
    "policy.options": dict,
    **{f"settings.{each.key}": each.kind for each in SETTINGS.values() if each.kind is not None},
    "window": list,
    "outcome.jobs": int,
    "outcome.half_bound_gangs": list,
    "provenance.cpu_seconds": float,
}
"""The keys that harness reads from `run.json`, and their types. A mismatch means that someone edited the
file.
"""

_GANG = {"job", "bound", "pods", "held"}


def read_info(folder: Path) -> dict[str, Any]:
    """Returns the content of the `run.json` in a folder.

    Raises:
        RunError: the file is missing or damaged, or has a different schema.
    """
    put_back(folder)
    path = folder / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _no_run(folder) from None
    except NotADirectoryError:
        raise RunError(f"{folder} is a file, not the folder of a run", hint=_where(folder.parent)) from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read: {why(error)}", hint=_AGAIN) from error
    info: dict[str, Any] = found if isinstance(found, dict) else {}
    if info.get("schema") not in schemas.READABLE:
        raise RunError(
            f"{folder} has schema {info.get('schema')!r}; this version of harness reads "
            f"{', '.join(map(repr, schemas.READABLE[:-1]))} and {schemas.READABLE[-1]!r}",
            hint="replay it again",
        )
    for place, kind in _INFO.items():
        value: Any = info
        for key in place.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if type(value) is not kind:
            raise RunError(f"{path} is damaged: {place} is {value!r}, not a {kind.__name__}", hint=_AGAIN)
    gangs = info["outcome"]["half_bound_gangs"]
    if not all(isinstance(gang, dict) and gang.keys() >= _GANG for gang in gangs):
        raise RunError(
            f"{path} is damaged: outcome.half_bound_gangs lacks the resources that a gang held", hint=_AGAIN
        )
    if not _tells_of_livelock(info["outcome"].get("stopped")):
        raise RunError(f"{path} is damaged: outcome.stopped does not describe a livelock", hint=_AGAIN)
    if [type(time) for time in info["window"]] != [int, int]:
        raise RunError(f"{path} is damaged: window does not have two times", hint=_AGAIN)
    if is_sealed(info) and not info_is_whole(info):
        raise RunError(f"{path} is damaged: it does not contain the checksums of its content", hint=_AGAIN)
    return info


def _tells_of_livelock(found: object) -> bool:
    """Returns True if `outcome.stopped` is absent or is a valid description of a livelock."""
    if found is None:
        return True
    if not isinstance(found, dict) or not isinstance(found.get("jobs"), list):
        return False
    figures = [found.get(name) for name in ("since_us", "at_us", "preemptions")]
    for party in found["jobs"]:
        if not isinstance(party, dict) or type(party.get("job")) is not str:
            return False
        figures += [party.get("preempted"), party.get("preempts")]
    return all(type(figure) is int for figure in figures)


def tables_of(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the tables that a run has kept."""
    if info.get("kept", "all") != "all":
        return ("metrics",)
    return (*TABLES, ON_REQUEST) if ON_REQUEST in info.get("tables", {}) else TABLES


def check_present(folder: Path, info: Mapping[str, Any]) -> None:
    """Check that every table that was kept exists.

    Raises:
        RunError: a table is missing.
    """
    missing = [f"{name}.parquet" for name in tables_of(info) if not (folder / f"{name}.parquet").is_file()]
    if missing:
        raise RunError(f"{folder} is incomplete: there is no {', '.join(missing)}", hint=_AGAIN)


def check_table(folder: Path, info: Mapping[str, Any], name: str) -> None:
    """Check that a table has its original bytes, and the columns that the schema requires.

    The name is one of `TABLES`, or `ON_REQUEST`.

    Raises:
        RunError: the table is damaged or does not exist.
    """
    if name not in TABLES and name not in tables_of(info):
        raise RunError(f"a run has no table {name!r}", hint=did_you_mean(name, TABLES))
    path = folder / f"{name}.parquet"
    try:
        fault = table_fault(folder, name, info.get("tables", {}).get(name, {})) if is_sealed(info) else None
        fault = fault or _schema_fault(path, name, info)
        if fault is None and not is_sealed(info):
            _read_through(path)
    except (OSError, pa.ArrowException) as error:
        fault = getattr(error, "strerror", None) or _first_line(error)
    if fault is not None:
        raise RunError(f"{path} is damaged: {fault}", hint=_AGAIN)


def _schema_fault(path: Path, name: str, info: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with the columns of a table, or None."""
    found = pq.read_schema(path)
    if (found.metadata or {}).get(b"harness.run_schema") != info["schema"].encode():
        return f"it is not a table of schema {info['schema']!r}"
    columns = dict(pl.DataFrame(found.empty_table()).schema)
    time = pl.Datetime if info["trace"].get("times") == "timestamp" else pl.Duration
    for column, dtype in schemas.table(name, info["trace"]["resources"], info["schema"]).items():
        there = columns.get(column)
        if there is None:
            return f"it has no column {column!r}"
        wanted = time if column in TIMES else dtype  # A polars type class matches all time zones.
        if there != wanted:
            return f"its column {column!r} is {there}, not {wanted}"
    return None


def _read_through(path: Path) -> None:
    """Read every value of a table that has no checksum, to find out whether the table is readable."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for _ in file.iter_batches():
            pass


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Convert errors from reading a run's tables to an error that names the run.

    Raises:
        RunError: a table can't be read although its bytes are unchanged.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        raise RunError(
            f"{folder}: a table cannot be read: {_first_line(error)}",
            hint="the file is not damaged: its checksum is right; try again",
        ) from error


def _no_run(folder: Path) -> RunError:
    if not folder.exists():
        name = folder.name.partition("*")[0]
        return RunError(f"{folder}: there is no such folder", hint=_where(folder.parent, name))
    return RunError(f"{folder} is not a run: it has no run.json", hint=_where(folder))


def _where(folder: Path, name: str = "") -> str:
    """Returns a hint about a run in or below the folder, preferably one whose name begins with `name`."""
    found = [each for each in _folders_below(folder) if (each / "run.json").is_file()]
    found.sort(key=lambda each: not each.name.startswith(name))
    if not found:
        return "harness replay prints the folders of its runs"
    return f"give the folder of a run, such as {found[0]}"


def _folders_below(folder: Path) -> Iterator[Path]:
    """Yields the folders in a folder, each followed by its own subfolders.

    Hidden folders are skipped, because another process may be writing them. Folders that can't be read or
    that disappear in the meantime are skipped as well.
    """
    for each in _folders_in(folder):
        yield each
        yield from _folders_in(each)


def _folders_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(each for each in folder.iterdir() if not each.name.startswith(".") and each.is_dir())
    return []


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
