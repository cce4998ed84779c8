"""Converts a table to a trace with a mapping, and reports every invalid cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.errors import Fault, OptionError, TraceError
from harness.base.units import DAY
from harness.readers.counts import agreeing, counted
from harness.readers.schema import REQUEST, Reading, leave_out
from harness_plugins.readers.tables.cells import Cell
from harness_plugins.readers.tables.counting import latest, unmet
from harness_plugins.readers.tables.doubts import Made, raise_doubts
from harness_plugins.readers.tables.files import find_files
from harness_plugins.readers.tables.joining import Rows, read_rows
from harness_plugins.readers.tables.machine import machine_metadata
from harness_plugins.readers.tables.mapping import HINT, TOTAL, TableMapping, read_mapping
from harness_plugins.readers.tables.syntax import LanguageError
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.values import ROW, Columns

_CORE = 1000
_YEAR = 365 * DAY
_FAR = 20 * _YEAR
_FIRST = "main"
_BEGIN, _END, _NUMBER, _ALL = "\0begin", "\0end", "\0number", "\0all"


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a table.

    Args:
        path: a file, or a folder of files.
        options: `mapping`, which is a name or a file, and `also`, which lists additional files, one per
            line.

    Raises:
        OptionError: the mapping does not exist.
        TraceError: the mapping or a file cannot be read, or cells are invalid for their kind.
    """
    if not options["mapping"]:
        raise OptionError(
            "a table needs a mapping", hint="harness trace convert TABLE OUT.parquet --map MAPPING"
        )
    mapping = read_mapping(options["mapping"])
    more = [Path(each) for each in options["also"].split("\n") if each]
    paths = find_files(path, mapping.files, more)
    return table_to_trace(path, paths, mapping)


def table_to_trace(root: Path, paths: Sequence[Path], mapping: TableMapping) -> Reading:
    """Converts the rows of these files to the columns of a trace.

    Raises:
        TraceError: see `read`.
    """
    clock = Clock(mapping.zone)
    rows = read_rows(root, paths, mapping, clock)
    mapping = mapping.of_table(rows.has, root)
    frame = rows.frame
    left_out: dict[str, int] = {}
    if mapping.latest:
        frame, earlier = latest(rows, mapping, clock)
        if earlier:
            left_out["rows whose job_id appears again in a later row"] = earlier
    frame, without = leave_out(frame, dict(unmet(rows, frame, mapping, clock)))
    left_out |= without
    cells = _cells(mapping, rows.columns, clock)
    trace, twice, lost = _values(rows, frame, cells)
    empty = {f"without {name}": pl.col(name).is_null() for name in ("submit_time", "duration")}
    trace, without = leave_out(trace, empty)
    left_out |= without
    if not trace.height:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        what = f"no row is left of {rows.frame.height:,}{counts and f': {counts}'}"
        what = what if rows.frame.height else "has no rows"
        raise TraceError(str(rows.root), [Fault("", what)])
    totals = [name for name in trace.columns if name.startswith(TOTAL)]
    trace = with_pods(trace, totals)
    numbers = trace[ROW]
    return Reading(
        trace.drop(ROW),
        rows.frame.height,
        left_out,
        (*_notes(mapping, sum({**rows.twice, **twice}.values())), *_doubtful(trace, lost)),
        {"harness.source": root.name, **_about(mapping)},
        lambda row: rows.place(int(numbers[row])),
    )


def _cells(mapping: TableMapping, table: Columns, clock: Clock) -> list[Cell]:
    cells, faults = [], []
    for name, source in mapping.columns.items():
        try:
            cells.append(Cell(name, source, table, clock, numbers=mapping.short))
        except (LanguageError, ValueError) as error:
            faults.append(Fault(name, f"{source.text}: {error}"))
    if faults:
        raise TraceError(mapping.name, faults, hint=HINT)
    return cells


def _values(
    rows: Rows, frame: pl.DataFrame, cells: Sequence[Cell]
) -> tuple[pl.DataFrame, dict[str, int], dict[tuple[str, str], int]]:
    """Returns all columns of the trace, and two numbers of rows for each column.

    The first number is that of times in an hour that occurs twice, and the second that of amounts that are
    lost for a reason.

    Each column has its own plan, so its intermediate results are freed when the column is complete.
    """
    columns, doubtful = [frame[ROW]], []
    twice: dict[str, int] = {}
    lost: dict[tuple[str, str], int] = {}
    for cell in cells:
        found = cell.terms.worked_out(frame, value=cell.expr)
        columns.append(found["value"].alias(cell.name))
        if any(found[str(place)].any() for place in range(len(cell.terms.doubts))):
            doubtful.append(Made(cell.name, cell.source.text, cell.columns, cell.terms, found))
        twice |= {name: int(found[f"twice {name}"].sum()) for name in cell.terms.twice}
        lost |= {(cell.name, why): int(found[f"lost {why}"].sum()) for why in cell.terms.lost}
    raise_doubts(rows, doubtful)
    return pl.DataFrame(columns), twice, lost


def _notes(mapping: TableMapping, twice: int) -> Iterator[str]:
    for name, source in mapping.columns.items():
        if source.text != name:
            yield f"{name} is {source.text}"
    if mapping.zone != "UTC":
        yield f"times without a zone are in {mapping.zone}"
    if twice:
        yield f"{agreeing(twice, 'time', 'are')} in an hour that occurs twice, and the earlier time is used"
    if mapping.latest:
        yield f"if rows share a job_id, the row with the greatest {mapping.latest} is used"
    machine = mapping.about.get("machine")
    if machine:
        has = ", ".join(f"{resource} {amount}" for resource, amount in machine["node"].items())
        said = f" ({machine['source']})" if "source" in machine else ""
        yield f"the machine is assumed to have {counted(machine['nodes'], 'node')} of {has}{said}"
    if mapping.about.get("left_out"):
        yield f"jobs missing from the data: {mapping.about['left_out']}"
    yield from (str(each) for each in mapping.about.get("conventions", ()))


def _doubtful(trace: pl.DataFrame, lost: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yields notes about amounts without a divisor, and about times that are probably not what they seem."""
    for (name, why), count in lost.items():
        if count:
            yield f"{name}: {agreeing(count, 'row', 'have')} {why}, so no amount is known"
    yield from _of_1970(trace)
    submitted = trace["submit_time"]
    if submitted.dtype == pl.Duration and submitted.cast(pl.Int64).min() >= _FAR:  # type: ignore[operator]
        yield (
            f"submit_time: all jobs arrive more than {_FAR // _YEAR} years after the trace's origin. If the "
            "numbers count from 1970, add their unit, such as unix"
        )


def _of_1970(trace: pl.DataFrame) -> Iterator[str]:
    """Yields notes about dates that are probably a 0 or -1, which many tables write if there is no time."""
    submitted = trace["submit_time"]
    if submitted.dtype == pl.Duration:
        return
    if submitted.to_physical().max() < _YEAR:  # type: ignore[operator]
        yield "submit_time: all jobs arrive before 1971. If they came later, check the unit, such as unix-ms"
        return
    for name in ("submit_time", "recorded_start", "recorded_end"):
        count = int((trace[name].to_physical() < DAY).sum()) if name in trace.columns else 0
        if count:
            yield (
                f"{name}: {agreeing(count, 'row', 'have')} a time before 1970-01-02. If 0 or -1 means `no "
                "time` in the table, leave such rows out with `where`, or use unless()"
            )


def _about(mapping: TableMapping) -> dict[str, str]:
    licence, machine = mapping.about.get("licence"), mapping.about.get("machine")
    told = {"harness.license": str(licence)} if licence else {}
    return told | (machine_metadata(machine) if machine else {})


def with_pods(trace: pl.DataFrame, totals: Sequence[str]) -> pl.DataFrame:
    """Returns a trace in which `total.RESOURCE` has become `request.RESOURCE` of a pod.

    A total is divided into whole units, which are cores if the total is a number of whole cores. If the units
    do not divide evenly, the first pods have one unit more. A job with different pods has a row for each
    kind. Its pods are a gang unless the trace says otherwise.

    `trace` has one row for each job. A missing amount in a column of `totals` counts as 0.
    """
    if not totals:
        return trace
    pods = pl.col("pods").fill_null(1).cast(pl.Int64) if "pods" in trace.columns else pl.lit(1, pl.Int64)
    trace = trace.with_columns(pods.alias(_ALL))
    more, base, unit = {}, {}, {}
    for name in totals:
        total = pl.col(name).fill_null(0)
        one = (
            pl.when(total % _CORE == 0).then(_CORE).otherwise(1)
            if name == f"{TOTAL}cpu"
            else pl.lit(1, pl.Int64)
        )
        unit[name] = one
        base[name] = total // (pl.col(_ALL) * one) * one
        more[name] = (total - base[name] * pl.col(_ALL)) // one
    edges = pl.concat_list(pl.lit(0, pl.Int64), pl.col(_ALL), *more.values()).list.unique().list.sort()
    trace = trace.with_columns(
        edges.alias(_BEGIN),
        *(base[name].alias(f"\0base {name}") for name in totals),
        *(more[name].alias(f"\0more {name}") for name in totals),
        *(unit[name].cast(pl.Int64).alias(f"\0unit {name}") for name in totals),
    )
    trace = trace.with_columns(
        pl.col(_BEGIN).list.slice(0, pl.col(_BEGIN).list.len() - 1), pl.col(_BEGIN).list.slice(1).alias(_END)
    )
    trace = trace.with_columns(pl.int_ranges(1, pl.col(_BEGIN).list.len() + 1).alias(_NUMBER))
    several = bool((trace[_BEGIN].list.len() > 1).any())
    trace = trace.explode(_BEGIN, _END, _NUMBER)
    columns = {
        f"{REQUEST}{name.removeprefix(TOTAL)}": pl.col(f"\0base {name}")
        + pl.when(pl.col(_BEGIN) < pl.col(f"\0more {name}")).then(pl.col(f"\0unit {name}")).otherwise(0)
        for name in totals
    }
    trace = trace.with_columns(**columns, pods=pl.col(_END) - pl.col(_BEGIN))
    if several:
        number = pl.col(_NUMBER).cast(pl.String)
        called = pl.when(pl.col(_NUMBER) == 1).then(pl.lit(_FIRST)).otherwise(pl.lit(f"{_FIRST}-") + number)
        trace = trace.with_columns(pod_set=called)
        if "gang" not in trace.columns:
            trace = trace.with_columns(gang=pl.col(_ALL) > 1)
    return trace.drop([each for each in trace.columns if each.startswith("\0") and each != ROW], *totals)
