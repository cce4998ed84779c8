"""Turns a table into a trace by a mapping, and names every invalid cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.errors import Fault, OptionError, TraceError
from harness.readers.counts import counted
from harness.readers.schema import Reading, leave_out
from harness_plugins.readers.tables.cells import Cell
from harness_plugins.readers.tables.counting import latest, unmet
from harness_plugins.readers.tables.doubts import Made, raise_doubts
from harness_plugins.readers.tables.files import find_files
from harness_plugins.readers.tables.joining import Rows, read_rows
from harness_plugins.readers.tables.machine import machine_metadata
from harness_plugins.readers.tables.mapping import HINT, TOTAL, TableMapping, read_mapping
from harness_plugins.readers.tables.syntax import LanguageError
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.totals import with_pods
from harness_plugins.readers.tables.values import ROW, Columns


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a table.

    Args:
        path: a file, or a folder of files.
        options: `mapping`, a name or a file; `also`, further files, one per line.

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
    """Returns the rows of some files in the columns of a trace.

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
            left_out["earlier rows of a job_id with a later row"] = earlier
    frame, without = leave_out(frame, dict(unmet(rows, frame, mapping, clock)))
    left_out |= without
    cells = _cells(mapping, rows.columns, clock)
    trace, twice = _values(rows, frame, cells)
    empty = {f"without {name}": pl.col(name).is_null() for name in ("submit_time", "duration")}
    trace, without = leave_out(trace, empty)
    left_out |= without
    if not trace.height:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        what = f"no row is left of {rows.frame.height:,}{counts and f': {counts}'}"
        raise TraceError(str(rows.root), [Fault("", what)])
    totals = [name for name in trace.columns if name.startswith(TOTAL)]
    trace = with_pods(trace, totals)
    numbers = trace[ROW]
    return Reading(
        trace.drop(ROW),
        rows.frame.height,
        left_out,
        tuple(_notes(mapping, sum({**rows.twice, **twice}.values()))),
        {"harness.source": root.name, **_about(mapping)},
        lambda row: rows.place(int(numbers[row])),
    )


def _cells(mapping: TableMapping, table: Columns, clock: Clock) -> list[Cell]:
    """Returns the columns of the trace.

    Raises:
        TraceError: some columns do not fit the table; the message names each.
    """
    cells, faults = [], []
    for name, source in mapping.columns.items():
        try:
            cells.append(Cell(name, source, table, clock, numbers=mapping.short))
        except (LanguageError, ValueError) as error:
            faults.append(Fault(name, f"{source.text}: {error}"))
    if faults:
        raise TraceError(mapping.name, faults, hint=HINT)
    return cells


def _values(rows: Rows, frame: pl.DataFrame, cells: Sequence[Cell]) -> tuple[pl.DataFrame, dict[str, int]]:
    """Returns all columns of the trace, and how many times of each column are in an hour that occurs twice.

    Each column has its own plan, so that its intermediate results are freed after it.

    Raises:
        TraceError: cells are invalid; the message names every invalid cell.
    """
    columns, doubtful = [frame[ROW]], []
    twice: dict[str, int] = {}
    for cell in cells:
        found = cell.terms.worked_out(frame, value=cell.expr)
        columns.append(found["value"].alias(cell.name))
        if any(found[str(place)].any() for place in range(len(cell.terms.doubts))):
            doubtful.append(Made(cell.name, cell.source.text, cell.columns, cell.terms, found))
        twice |= {name: int(found[f"twice {name}"].sum()) for name in cell.terms.twice}
    raise_doubts(rows, doubtful)
    return pl.DataFrame(columns), twice


def _notes(mapping: TableMapping, twice: int) -> Iterator[str]:
    """Yields the conventions that were applied."""
    for name, source in mapping.columns.items():
        yield f"{name} is {source.text}"
    if mapping.zone != "UTC":
        yield f"times without a zone are in {mapping.zone}"
    if twice:
        yield f"{twice:,} times fall into an hour that occurs twice: the earlier one is used"
    if mapping.latest:
        yield f"if rows share a job_id, the row with the greatest {mapping.latest} counts"
    machine = mapping.about.get("machine")
    if machine:
        has = ", ".join(f"{resource} {amount}" for resource, amount in machine["node"].items())
        said = f" ({machine['source']})" if "source" in machine else ""
        yield f"the machine is assumed to have {counted(machine['nodes'], 'node')} of {has}{said}"
    if mapping.about.get("left_out"):
        yield f"the data do not have: {mapping.about['left_out']}"
    yield from (str(each) for each in mapping.about.get("conventions", ()))


def _about(mapping: TableMapping) -> dict[str, str]:
    """Returns a trace's metadata about its source data."""
    licence, machine = mapping.about.get("licence"), mapping.about.get("machine")
    told = {"harness.license": str(licence)} if licence else {}
    return told | (machine_metadata(machine) if machine else {})
