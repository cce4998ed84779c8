"""Reads delimited text of any columns, by a mapping that the user gives.

    map="job_id=JobID, submit_time=Submit:iso, duration=End - Start:iso, queue=Account, request.cpu=CPUs"

The same as a file, `mapping=FILE`: a YAML mapping of the schema's columns to such texts. Columns of the
schema that are not mapped are taken if the file has them under their own names; all others are left aside.
Without a header line (`header=no`) columns are called by their numbers: `map="job_id=1, submit_time=3"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.errors import Fault, InputError, OptionError, TraceError
from harness.models.manifests import read_documents
from harness.readers.cells import (
    Field,
    amount,
    choice,
    is_pairs,
    iso_moment,
    moment,
    pairs,
    seconds,
    span,
    text,
    whole,
)
from harness.readers.delimited import Check, Table, open_table
from harness.readers.schema import LIMIT, REQUEST, Kind, column_of, leave_out
from harness.readers.source import contents
from harness.units import DAY, HOUR, MINUTE, SECOND, parse_duration

_TIMES = {"us": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_BYTES = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_SIZES = {
    "cpu": {"": 1000, "cores": 1000, "millicores": 1, "%": 10},
    "memory": _BYTES,
    "ephemeral-storage": _BYTES,
}
_TRUE, _FALSE = ("true", "True", "1", "yes"), ("false", "False", "0", "no")
_NEVER_EMPTY = ("job_id", "queue")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a column of the schema comes from.

    Attributes:
        column: of the file.
        minus: another column, which is taken away (for a duration between two times).
        plus: another column, whose text follows behind a slash (for names in two parts).
        unit: of the cells.
        constant: what all rows have instead.
    """

    column: str = ""
    minus: str = ""
    plus: str = ""
    unit: str = ""
    constant: str | None = None


def parse_source(text: str) -> Source:
    """A source as it is written: `Column:unit`, `End - Start:unit`, `Job + Task`, or `'constant'`."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return Source(constant=text[1:-1])
    columns, _, unit = text.partition(":")
    column, _, minus = columns.partition(" - ")
    column, _, plus = column.partition(" + ")
    return Source(column.strip(), minus.strip(), plus.strip(), unit.strip())


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a file; rows without a time of submission or a duration are left out.

    Raises:
        TraceError: columns that are missing, or malformed lines, all of them named.
        OptionError: a mapping of columns that the schema does not have so.
    """
    delimiter = {"comma": ",", "tab": "\t"}.get(options["delimiter"], options["delimiter"])
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise OptionError(
            f"option delimiter: {options['delimiter']!r} is neither comma, tab, nor one character"
        )
    table = open_table(path, header=options["header"] == "yes", delimiter=delimiter)
    sources = _sources(table, options)
    fields: list[Field] = []
    checks: list[Check] = []
    columns: list[pl.Expr] = []
    for name, source in sources.items():
        if source.constant is not None:
            columns.append(_constant(name, source.constant).alias(name))
            continue
        field = _field(name, source)
        fields.append(field)
        value = pl.col(name)
        if source.minus:
            begin = replace(field, name=f"{name} - ", column=source.minus)
            fields.append(begin)
            value = (value - pl.col(begin.name)).cast(pl.Duration("us"))
            says = f"is before {source.minus}"
            checks.append(Check(name, value.dt.total_microseconds() < 0, says))
        if source.plus:
            more = replace(field, name=f"{name} + ", column=source.plus)
            fields.append(more)
            value = pl.concat_str(value, pl.col(more.name), separator="/")
        columns.append(_typed(name, source, value).alias(name))
    if not fields:
        has = ", ".join(table.names)
        what = "no column is mapped, and none is called as in the schema"
        fault = Fault("header" if options["header"] == "yes" else "", f"{what}: {has:.200}")
        raise TraceError(str(path), [fault], hint=_GRAMMAR)
    rows = table.typed(fields, checks=checks).select(columns)
    times = [name for name in ("submit_time", "duration") if name in sources]
    kept, left_out = leave_out(rows, {f"without {name}": pl.col(name).is_null() for name in times})
    notes = tuple(f"{name} is {_said(source)}" for name, source in sources.items())
    return Reading(kept, rows.height, left_out, notes, {"harness.source": path.name})


def _sources(table: Table, options: Mapping[str, Any]) -> dict[str, Source]:
    """Column of the schema -> where it comes from, in the order of the mapping."""
    given = _mapping_file(Path(options["mapping"])) if options["mapping"] else {}
    for part in filter(None, (part.strip() for part in options["map"].split(","))):
        name, equals, source = part.partition("=")
        if not equals or not name.strip() or not source.strip():
            raise OptionError(f"option map: {part!r} is not COLUMN=SOURCE", hint=_GRAMMAR)
        given[name.strip()] = source
    sources = {name: parse_source(source) for name, source in given.items()}
    for name in table.names:
        if name not in sources and column_of(name) is not None:
            sources[name] = Source(name)
    return sources


_GRAMMAR = "such as map=\"job_id=JobID, duration=End - Start:iso, queue='default', request.memory=Mem:GiB\""


def _mapping_file(path: Path) -> dict[str, str]:
    faults: list[Fault] = []
    documents, _ = read_documents(contents(path).decode("utf-8", "replace"), faults)
    mapping: Any = documents[0].content if len(documents) == 1 else {"": None}
    if not isinstance(mapping, dict) or not all(isinstance(source, str) for source in mapping.values()):
        faults.append(Fault("", "must be one mapping of the schema's columns to texts"))
    if faults:
        raise TraceError(str(path), faults, hint=_GRAMMAR)
    return dict(mapping)


def _kind(name: str) -> Kind | None:
    column = column_of(name)
    return None if column is None else column.kind


def _field(name: str, source: Source) -> Field:
    """How a column of the file is read."""
    made = _made(name, source)
    if source.minus and _kind(name) is not Kind.DURATION:
        raise OptionError(f"option map: {name} is no duration, so that it cannot be {_said(source)}")
    if source.plus and _kind(name) not in (None, Kind.STRING):
        raise OptionError(f"option map: {name} is no text, so that it cannot be {_said(source)}")
    made = replace(made, name=name, column=source.column)
    return made if name in _NEVER_EMPTY else made.or_empty()


def _made(name: str, source: Source) -> Field:
    unit, column = source.unit, source.column
    match _kind(name):
        case Kind.TIME:
            units = _MOMENTS
        case Kind.DURATION:
            units = _MOMENTS if source.minus else _SPANS
        case Kind.INT64:
            resource = name.removeprefix(REQUEST).removeprefix(LIMIT)
            sizes = _SIZES.get(resource, {"": 1})
            units = {known: _amount(scale) for known, scale in sizes.items()}
        case Kind.INT32:
            units = {"": lambda column: whole(column, -(2**31), 2**31 - 1)}
        case Kind.BOOL:
            units = {"": lambda column: choice(column, *_TRUE, *_FALSE)}
        case Kind.MAP:
            units = {"": pairs}
        case _:
            units = {"": text}
    if unit.startswith("%") and units is _MOMENTS:
        try:
            return moment(column, unit)
        except ValueError as error:
            raise OptionError(
                f"option map: {name}={column}: {unit!r} is no form of times: {error}"
            ) from error
    if unit not in units:
        known = ", ".join(repr(word) for word in units if word) or "none"
        raise OptionError(f"option map: {name}={column}: {unit!r} is not one of its units ({known})")
    return units[unit](column)


def _amount(scale: int) -> Callable[[str], Field]:
    return lambda column: amount(column, scale)


def _numbers(scale: int) -> Callable[[str], Field]:
    return lambda column: seconds(column, unit=scale)


_SPANS: dict[str, Callable[[str], Field]] = {
    "": seconds,
    "hms": span,
    **{unit: _numbers(scale) for unit, scale in _TIMES.items()},
}
_MOMENTS: dict[str, Callable[[str], Field]] = {
    "": seconds,
    "iso": iso_moment,
    "unix": seconds,
    **{unit: _numbers(scale) for unit, scale in _TIMES.items()},
}


def _typed(name: str, source: Source, value: pl.Expr) -> pl.Expr:
    """A value in a type that the schema takes."""
    kind = _kind(name)
    if kind is Kind.TIME and source.unit == "unix":
        return value.cast(pl.Datetime("us", "UTC"))
    if kind is Kind.BOOL:
        return value.is_in(_TRUE)
    if (kind is Kind.TIME and source.unit in _SPANS) or (kind is Kind.DURATION and not source.minus):
        return value.cast(pl.Duration("us"))
    return value


def _constant(name: str, constant: str) -> pl.Expr:
    """A text for a column of texts, a duration such as `5m`, or a whole number in the schema's unit."""
    kind = _kind(name)
    if kind is Kind.DURATION:
        try:
            return pl.lit(parse_duration(constant)).cast(pl.Duration("us"))
        except InputError as error:
            raise OptionError(f"option map: {name}: {error}") from error
    if kind in (None, Kind.STRING):
        return pl.lit(constant)
    if kind is Kind.BOOL and constant in (*_TRUE, *_FALSE):
        return pl.lit(constant in _TRUE)
    if kind is Kind.MAP and is_pairs(constant):
        return pairs(name).value(pl.lit(constant))
    if kind in (Kind.INT32, Kind.INT64) and constant.isdecimal() and len(constant) < _DIGITS:
        return pl.lit(int(constant), pl.Int64)
    raise OptionError(f"option map: {name} cannot be {constant!r} in every row")


_DIGITS = 19


def _said(source: Source) -> str:
    if source.constant is not None:
        return f"{source.constant!r} in every row"
    signs = ((" - ", source.minus), (" + ", source.plus))
    column = source.column + "".join(f"{sign}{other}" for sign, other in signs if other)
    return f"the column {column}" + (f" in {source.unit}" if source.unit else "")
