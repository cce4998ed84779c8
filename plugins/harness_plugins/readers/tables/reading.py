"""A table as a trace, by a mapping: one plan of polars, of which every doubtful cell is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl

from harness.errors import Fault, InputError, OptionError, TraceError
from harness.readers.schema import LIMIT, REQUEST, Kind, Reading, column_of, leave_out
from harness.units import DAY, HOUR, MINUTE, SECOND, parse_duration
from harness_plugins.readers.tables.files import Rows, find_files, read_rows
from harness_plugins.readers.tables.mapping import HINT, TOTAL, TableMapping, read_mapping
from harness_plugins.readers.tables.syntax import (
    Compared,
    Condition,
    IsIn,
    IsNull,
    LanguageError,
    Not,
    Source,
    Term,
    Together,
    columns_of,
    parse_term,
)
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock
from harness_plugins.readers.tables.totals import with_pods
from harness_plugins.readers.tables.values import ROW, Doubt, Terms, is_instant_unit
from harness_plugins.readers.tables.values import Kind as Of

_SPANS = {"": SECOND, "us": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_BYTES = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_AMOUNTS = {"cpu": {"": 1000, "cores": 1000, "millicores": 1}, "memory": _BYTES, "ephemeral-storage": _BYTES}
_TRUE, _FALSE = ("true", "True", "1", "yes"), ("false", "False", "0", "no")
_SHOWN = 1000
_NEGATIVE = {"duration": "is before it began", "requested_time": "is less than nothing"}


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a table.

    Args:
        path: a file, or a folder of files.
        options: `mapping`, a name or a file; `also`, further files, one a line.

    Raises:
        OptionError: there is no such mapping.
        TraceError: the mapping or a file cannot be read, or cells mean nothing of their kind.
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
    """The rows of some files in the columns of a trace.

    Raises:
        TraceError: see `read`.
    """
    clock = Clock(mapping.zone)
    rows = read_rows(root, paths, mapping, clock)
    frame = rows.frame
    left_out: dict[str, int] = {}
    if mapping.latest:
        frame, earlier = _latest(rows, mapping, clock)
        if earlier:
            left_out["earlier rows of a job_id that has a later one"] = earlier
    frame, without = leave_out(frame, dict(_unmet(rows, frame, mapping, clock)))
    left_out |= without
    cells = _cells(mapping, frame.schema, clock)
    trace = _values(rows, frame, cells, mapping)
    empty = {f"without {name}": pl.col(name).is_null() for name in ("submit_time", "duration")}
    trace, without = leave_out(trace, empty)
    left_out |= without
    totals = [name for name in trace.columns if name.startswith(TOTAL)]
    trace = with_pods(trace.drop(ROW), totals)
    twice = rows.twice + sum(frame.select(each.fill_null(value=False).sum()).item() for each in clock.twice)
    return Reading(
        trace,
        rows.frame.height,
        left_out,
        tuple(_notes(mapping, twice)),
        {"harness.source": root.name, **_license(mapping)},
    )


def _cells(mapping: TableMapping, types: Mapping[str, pl.DataType], clock: Clock) -> list[_Cell]:
    """The columns of the trace.

    Raises:
        TraceError: some are not of what the table has; each is named.
    """
    cells, faults = [], []
    for name, source in mapping.columns.items():
        try:
            cells.append(_Cell(name, source, types, clock))
        except (LanguageError, ValueError) as error:
            faults.append(Fault(name, f"{source.text}: {error}"))
    if faults:
        raise TraceError(mapping.name, faults, hint=HINT)
    return cells


class _Cell:
    """One column of a trace.

    Args:
        name: of the column, or `total.RESOURCE`.
        source: what it is made of.
        types: of the columns of the table.
        clock: of times without a zone.

    Attributes:
        name: the same.
        source: the same.
        doubts: rows whose cells mean nothing.
        expr: its values.
    """

    def __init__(self, name: str, source: Source, types: Mapping[str, pl.DataType], clock: Clock) -> None:
        self.name, self.source = name, source
        self.doubts: list[Doubt] = []
        column = column_of(REQUEST + name.removeprefix(TOTAL) if name.startswith(TOTAL) else name)
        assert column is not None
        self._kind, self._clock = column.kind, clock
        if source.constant is not None:
            self.expr = self._constant(source.constant)
            return
        unit = source.unit
        timed = self._kind in (Kind.TIME, Kind.DURATION)
        pair = "-" in source.text and not unit and self._texts(source.term, types)
        terms = Terms(types, unit, clock, instants=is_instant_unit(unit) or (timed and pair))
        self.expr = self._made(terms)
        self.doubts = [*terms.doubts, *self.doubts]

    @staticmethod
    def _texts(term: Term, types: Mapping[str, pl.DataType]) -> bool:
        """Whether a term has several columns, all of texts: then these are instants."""
        names = list(columns_of(term))
        return len(names) > 1 and all(types[name] == pl.String for name in names)

    def _made(self, terms: Terms) -> pl.Expr:
        source, unit = self.source, self.source.unit
        match self._kind:
            case Kind.TIME | Kind.DURATION if source.by is not None:
                raise LanguageError("divides a time; / is for amounts")
            case Kind.TIME:
                return self._time(terms, unit)
            case Kind.DURATION:
                value = terms.value(source.term)
                if value.kind is Of.SPAN:
                    return self._checked(value.expr).cast(pl.Duration("us"))
                scale = self._scale(_SPANS, unit)
                return self._checked(terms.span(value, source.term, scale).expr).cast(pl.Duration("us"))
            case Kind.INT64 | Kind.INT32:
                resource = self.name.removeprefix(TOTAL).removeprefix(REQUEST).removeprefix(LIMIT)
                scale = self._scale(_AMOUNTS.get(resource, {"": 1}), unit)
                found = terms.amount(source.term, source.by, scale)
                least = 1 if self.name == "pods" else 0
                if self.name != "priority":
                    self.doubts.append(
                        Doubt((found < least).fill_null(value=False), "", f"is less than {least}")
                    )
                return found
            case Kind.BOOL:
                return self._flag(terms)
        if source.by is not None:
            raise LanguageError("divides, and a text is needed")
        self._scale({"": 1}, unit)
        return terms.text(source.term)

    def _time(self, terms: Terms, unit: str) -> pl.Expr:
        value = terms.value(self.source.term)
        counts = (
            unit in _SPANS and value.kind in (Of.NUMBER, Of.TEXT) and not (value.kind is Of.TEXT and not unit)
        )
        if counts:  # from the trace's origin
            return terms.span(value, self.source.term, _SPANS[unit]).expr.cast(pl.Duration("us"))
        if unit and not is_instant_unit(unit):
            self._scale({"": 1, "iso": 1, **INSTANT_UNITS}, unit)
        return terms.instant(value, self.source.term).expr.cast(pl.Datetime("us", "UTC"))

    def _checked(self, expr: pl.Expr) -> pl.Expr:
        says = _NEGATIVE.get(self.name, "is less than nothing")
        self.doubts.append(Doubt((expr < 0).fill_null(value=False), "", says))
        return expr

    def _scale(self, known: Mapping[str, int], unit: str) -> int:
        if unit not in known:
            units = ", ".join(each for each in known if each) or "none"
            raise LanguageError(f"{unit!r} is none of its units ({units})")
        return known[unit]

    def _flag(self, terms: Terms) -> pl.Expr:
        value = terms.value(self.source.term)
        if value.kind is Of.FLAG:
            return value.expr
        text = terms.text(self.source.term)
        known = pl.when(text.is_in(_TRUE)).then(True).when(text.is_in(_FALSE)).then(False)
        self.doubts.append(Doubt(text.is_not_null() & known.is_null(), "", "is neither true nor false"))
        return known

    def _constant(self, constant: str) -> pl.Expr:
        """A text, a duration such as `5m`, or a whole number in the schema's unit."""
        match self._kind:
            case Kind.STRING:
                return pl.lit(constant)
            case Kind.DURATION:
                try:
                    return pl.lit(parse_duration(constant)).cast(pl.Duration("us"))
                except InputError as error:
                    raise LanguageError(error.message) from error
            case Kind.INT32 | Kind.INT64 if constant.isdecimal() and len(constant) < 19:
                return pl.lit(int(constant), pl.Int64)
            case Kind.BOOL if constant in (*_TRUE, *_FALSE):
                return pl.lit(constant in _TRUE)
        raise LanguageError(f"cannot be {constant!r} in every row")


def _latest(rows: Rows, mapping: TableMapping, clock: Clock) -> tuple[pl.DataFrame, int]:
    """Of the rows of one job the one with the greatest value, the last of equal ones; and how many go."""
    frame = rows.frame
    terms = Terms(frame.schema, "", clock, instants=False)
    try:
        name = terms.text(mapping.columns["job_id"].term)
        value = terms.value(parse_term(mapping.latest))
        by = terms.number(value, parse_term(mapping.latest)) if value.kind is Of.TEXT else value
    except LanguageError as error:
        raise TraceError(mapping.name, [Fault("latest", str(error))]) from error
    ordered = frame.select(ROW, name=name, by=by.expr).sort("by", ROW, nulls_last=False)
    kept = ordered.unique("name", keep="last", maintain_order=True)[ROW].sort()
    return frame[kept], frame.height - len(kept)


def _unmet(
    rows: Rows, frame: pl.DataFrame, mapping: TableMapping, clock: Clock
) -> Iterator[tuple[str, pl.Expr]]:
    """Each condition as the reason for which rows are left out that do not meet it."""
    terms = Terms(frame.schema, "", clock, instants=False)
    found = []
    for text, condition in mapping.where:
        try:
            found.append((f"{text} does not hold", ~_holds(condition, terms).fill_null(value=False)))
        except LanguageError as error:
            raise TraceError(mapping.name, [Fault("where", f"{text}: {error}")]) from error
    _raise_doubts(rows, frame, [("where", text_of(mapping), doubt) for doubt in terms.doubts])
    yield from found


def text_of(mapping: TableMapping) -> str:
    """The conditions of a mapping as one."""
    return " and ".join(text for text, _ in mapping.where)


def _holds(condition: Condition, terms: Terms) -> pl.Expr:
    """Whether a condition holds; null where a value that it asks about is not there."""
    match condition:
        case IsNull(term):
            value = terms.value(term)
            return value.expr.is_null()
        case Not(inner):
            return ~_holds(inner, terms)
        case Together(several, every):
            parts = [_holds(each, terms) for each in several]
            return pl.all_horizontal(parts) if every else pl.any_horizontal(parts)
        case IsIn(term, values):
            pairs = [terms.comparable(term, each) for each in values]
            return reduce(
                lambda one, other: one | other, (left == right for left, right in pairs), pl.lit(False)
            )
        case Compared(left, operator, right):
            one, other = terms.comparable(left, right)
            return {
                "==": one == other, "!=": one != other, "<": one < other,
                "<=": one <= other, ">": one > other, ">=": one >= other,
            }[operator]  # fmt: skip
    raise AssertionError(condition)


def _values(rows: Rows, frame: pl.DataFrame, cells: Sequence[_Cell], mapping: TableMapping) -> pl.DataFrame:
    """All columns of the trace, in one plan; every doubtful cell is a fault."""
    doubts = [(cell.name, cell.source.text, doubt) for cell in cells for doubt in cell.doubts]
    _raise_doubts(rows, frame, doubts)
    return frame.lazy().select(ROW, *(cell.expr.alias(cell.name) for cell in cells)).collect()


def _raise_doubts(rows: Rows, frame: pl.DataFrame, doubts: Sequence[tuple[str, str, Doubt]]) -> None:
    """Name every cell that means nothing, by the file and row.

    Raises:
        TraceError: there are any.
    """
    if not doubts:
        return
    counts = frame.select(
        doubt.rows.sum().alias(str(place)) for place, (_, _, doubt) in enumerate(doubts)
    ).row(0)
    found: list[tuple[int, Fault]] = []
    for count, (name, text, doubt) in zip(counts, doubts, strict=True):
        if not count:
            continue
        wrong = frame.filter(doubt.rows).head(_SHOWN)
        values = wrong[doubt.column].to_list() if doubt.column else [None] * wrong.height
        for row, value in zip(wrong[ROW], values, strict=True):
            what = (
                f"column {doubt.column}: {str(value)!r:.60} {doubt.says}"
                if doubt.column
                else f"{text} {doubt.says}"
            )
            found.append((row, Fault(f"{rows.place(row)}: {name}", what)))
    if found:
        found.sort(key=lambda item: item[0])
        raise TraceError(str(rows.root), [fault for _, fault in found], hint=_REMEDY)


_REMEDY = "unless() and below() take values that mean none away, and where: leaves rows out"


def _notes(mapping: TableMapping, twice: int) -> Iterator[str]:
    """The conventions that were applied."""
    for name, source in mapping.columns.items():
        yield f"{name} is {source.text}"
    if mapping.zone != "UTC":
        yield f"times without a zone are of {mapping.zone}"
    if twice:
        yield f"{twice:,} times stand in an hour that occurs twice: the earlier is taken"
    if mapping.latest:
        yield f"of rows with one job_id that with the greatest {mapping.latest} counts"
    yield from (str(each) for each in mapping.about.get("conventions", ()))


def _license(mapping: TableMapping) -> dict[str, str]:
    licence = mapping.about.get("licence")
    return {"harness.license": str(licence)} if licence else {}
