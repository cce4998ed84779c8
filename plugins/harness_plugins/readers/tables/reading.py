"""A table as a trace, by a mapping: one plan of polars, of which every doubtful cell is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    Sum,
    Term,
    Together,
    columns_of,
    parse_term,
)
from harness_plugins.readers.tables.times import INSTANT_UNITS, Clock
from harness_plugins.readers.tables.totals import with_pods
from harness_plugins.readers.tables.values import ROW, Columns, Doubt, Terms, Value, is_instant_unit
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
    trace = with_pods(trace.drop(ROW), totals)
    return Reading(
        trace,
        rows.frame.height,
        left_out,
        tuple(_notes(mapping, sum({**rows.twice, **twice}.values()))),
        {"harness.source": root.name, **_license(mapping)},
    )


def _cells(mapping: TableMapping, table: Columns, clock: Clock) -> list[_Cell]:
    """The columns of the trace.

    Raises:
        TraceError: some are not of what the table has; each is named.
    """
    cells, faults = [], []
    for name, source in mapping.columns.items():
        try:
            cells.append(_Cell(name, source, table, clock))
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
        table: its columns.
        clock: of times without a zone.

    Attributes:
        name: the same.
        source: the same.
        terms: what it is worked out with, and which rows' cells mean nothing.
        expr: its values.
    """

    def __init__(self, name: str, source: Source, table: Columns, clock: Clock) -> None:
        self.name, self.source = name, source
        column = column_of(REQUEST + name.removeprefix(TOTAL) if name.startswith(TOTAL) else name)
        assert column is not None
        self._kind = column.kind
        unit = source.unit
        timed = self._kind in (Kind.TIME, Kind.DURATION)
        pair = not unit and self._texts(source.term, table.types)
        self.terms = Terms(table, unit, clock, instants=is_instant_unit(unit) or (timed and pair))
        constant = source.constant
        self.expr = self._made(self.terms) if constant is None else self._constant(constant)

    @staticmethod
    def _texts(term: Term, types: Mapping[str, pl.DataType]) -> bool:
        """Whether a term is a sum of several columns, all of texts: then these are instants."""
        names = list(columns_of(term))
        return isinstance(term, Sum) and len(names) > 1 and all(types[name] == pl.String for name in names)

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
                    if not is_instant_unit(unit):
                        self._scale({**_SPANS, "iso": 1, **INSTANT_UNITS}, unit)
                    return self._checked(value.expr).cast(pl.Duration("us"))
                scale = self._scale(_SPANS, unit)
                return self._checked(terms.span(value, source.term, scale).expr).cast(pl.Duration("us"))
            case Kind.INT64 | Kind.INT32:
                resource = self.name.removeprefix(TOTAL).removeprefix(REQUEST).removeprefix(LIMIT)
                scale = self._scale(_AMOUNTS.get(resource, {"": 1}), unit)
                found = terms.amount(source.term, source.by, scale)
                least = 1 if self.name == "pods" else 0
                if self.name != "priority":
                    rows = (found < least).fill_null(value=False)
                    terms.doubts.append(Doubt(rows, "", f"is less than {least}"))
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
        self.terms.doubts.append(Doubt((expr < 0).fill_null(value=False), "", says))
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
        terms.doubts.append(Doubt(text.is_not_null() & known.is_null(), "", "is neither true nor false"))
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
    term = parse_term(mapping.latest)
    terms = Terms(rows.columns, "", clock, instants=False)
    try:
        name, value = terms.text(mapping.columns["job_id"].term), terms.value(term)
        if value.kind is Of.TEXT:
            value = _dated(rows, term, clock) or terms.number(value, term)
    except LanguageError as error:
        raise TraceError(mapping.name, [Fault("latest", str(error))]) from error
    if value.kind in (Of.LIST, Of.FLAG, Of.NOTHING):
        what = f"{mapping.latest} is {value.kind.value}, which has no greatest"
        raise TraceError(mapping.name, [Fault("latest", what)])
    found = terms.worked_out(rows.frame, name=name, by=value.expr)
    _raise_doubts(rows, [("latest", mapping.latest, terms, found)])
    kept = (
        found.sort("by", ROW, nulls_last=False).unique("name", keep="last", maintain_order=True)[ROW].sort()
    )
    return rows.frame[kept], rows.frame.height - len(kept)


def _dated(rows: Rows, term: Term, clock: Clock) -> Value | None:
    """Texts as instants where all of them are; None where they are none."""
    terms = Terms(rows.columns, "", clock, instants=True)
    value = terms.instant(terms.value(term), term)
    found = terms.worked_out(rows.frame, at=value.expr)
    if any(found[str(place)].any() for place in range(len(terms.doubts))):
        return None
    series = found["at"]
    return Value(Of.INSTANT, pl.lit(series))


def _unmet(
    rows: Rows, frame: pl.DataFrame, mapping: TableMapping, clock: Clock
) -> Iterator[tuple[str, pl.Expr]]:
    """Each condition as the reason for which rows are left out that do not meet it."""
    terms = Terms(rows.columns, "", clock, instants=False)
    conditions = []
    for text, condition in mapping.where:
        try:
            conditions.append((text, _holds(condition, terms).fill_null(value=False)))
        except LanguageError as error:
            raise TraceError(mapping.name, [Fault("where", f"{text}: {error}")]) from error
    if not conditions:
        return
    named = {f"met {place}": holds for place, (_, holds) in enumerate(conditions)}
    found = terms.worked_out(frame, **named)
    _raise_doubts(rows, [("where", text_of(mapping), terms, found)])
    for place, (text, _) in enumerate(conditions):
        unmet = found.filter(~pl.col(f"met {place}"))[ROW]
        yield f"{text} does not hold", pl.col(ROW).is_in(unmet.implode())


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
            return pl.any_horizontal(pl.lit(False), *(left == right for left, right in pairs))
        case Compared(left, operator, right):
            ordered = operator not in ("==", "!=")
            one, other = terms.comparable(left, right, ordered=ordered)
            return {
                "==": one == other, "!=": one != other, "<": one < other,
                "<=": one <= other, ">": one > other, ">=": one >= other,
            }[operator]  # fmt: skip
    raise AssertionError(condition)


def _values(rows: Rows, frame: pl.DataFrame, cells: Sequence[_Cell]) -> tuple[pl.DataFrame, dict[str, int]]:
    """All columns of the trace, and of which column how many times stand in an hour that occurs twice.

    Each column is worked out by a plan of its own, so that what it needs on the way is gone after it.

    Raises:
        TraceError: cells mean nothing; every one is named.
    """
    columns, doubtful = [frame[ROW]], []
    twice: dict[str, int] = {}
    for cell in cells:
        found = cell.terms.worked_out(frame, value=cell.expr)
        columns.append(found["value"].alias(cell.name))
        if any(found[str(place)].any() for place in range(len(cell.terms.doubts))):
            doubtful.append((cell.name, cell.source.text, cell.terms, found))
        twice |= {name: int(found[f"twice {name}"].sum()) for name in cell.terms.twice}
    _raise_doubts(rows, doubtful)
    return pl.DataFrame(columns), twice


def _raise_doubts(rows: Rows, several: Sequence[tuple[str, str, Terms, pl.DataFrame]]) -> None:
    """Name every cell that means nothing, by the file and row.

    Args:
        rows: the rows of the table.
        several: what is made, what of, its terms, and what these gave.

    Raises:
        TraceError: there are any.
    """
    found: list[tuple[int, Fault]] = []
    for name, text, terms, values in several:
        for place, doubt in enumerate(terms.doubts):
            wrong = values.filter(pl.col(str(place)))[ROW].head(_SHOWN).to_list()
            for row in wrong:
                cell = rows.frame[row, rows.columns.names[doubt.column]] if doubt.column else None
                where = f"column {doubt.column}: {str(cell)!r:.60}" if doubt.column else text
                what = f"{where} {doubt.says}"
                found.append((row, Fault(f"{rows.place(row)}: {name}", what)))
    if found:
        found.sort(key=lambda item: item[0])
        raise TraceError(str(rows.root), [fault for _, fault in dict.fromkeys(found)], hint=_REMEDY)


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
