"""Converts the cells of a column to texts, numbers, quantities or times, and finds faulty cells.

A reader declares each of its columns as a `Field`, which converts a whole column in one step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isnan

import polars as pl

from harness.base.units import SECOND
from harness.readers.time_forms import read_form

_EXAMPLE = datetime(2017, 10, 9, 7, 1, 55, tzinfo=UTC)
_SPAN = r"^(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,2}):(\d{2}(?:\.\d+)?)$"

EXACT = 2**53  # a float64 holds integers up to this one exactly
SECONDS = 2**53 // 1_000_000
"""The largest number of seconds that is exact to the microsecond (285 years)."""


def is_amount(column: pl.Expr) -> pl.Expr:
    """Returns True for values that are finite integers that a double holds exactly."""
    return column.is_finite() & (column.abs() <= EXACT) & (column == column.floor())


def is_seconds(column: pl.Expr) -> pl.Expr:
    """Returns True for values that are finite numbers of seconds and exact to the microsecond."""
    return column.is_finite() & (column.abs() <= SECONDS)


def microseconds(column: pl.Expr) -> pl.Expr:
    """Converts seconds to int64 microseconds, rounded to the nearest one. Whole seconds are exact."""
    whole = column.floor()
    return whole.cast(pl.Int64) * 1_000_000 + ((column - whole) * 1e6).round().cast(pl.Int64)


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a file.

    Attributes:
        name: the name in the resulting table, and in the header unless `column` is set.
        value: the function that converts a cell's text to its value, or to null if the text is invalid.
        expects: the kind of text that is required, for messages.
        limits: the bounds of a number.
        empty: whether a cell may be empty. An empty cell becomes null.
        absent: whether the file may lack the column. The table then lacks it too.
        label: the name in messages. The default is the column's name.
        column: the name in the header, if it differs from `name`.
    """

    name: str
    value: Callable[[pl.Expr], pl.Expr]
    expects: str
    limits: tuple[float, float] | None = None
    empty: bool = False
    absent: bool = False
    label: str = ""
    column: str = ""

    @property
    def source(self) -> str:
        """The name of the column in the file."""
        return self.column or self.name

    def wrong(self, cells: pl.Series, values: pl.Series) -> pl.Series:
        """Returns a mask of the rows whose cell has an invalid value, or lacks a required value."""
        missing = values.is_null()
        return missing & (cells != "") if self.empty else missing | (cells == "")

    def says(self, cell: str) -> str:
        """Returns the part of a message that says what is wrong with an invalid cell."""
        if self.limits is not None:
            least, most = self.limits
            with suppress(ValueError):
                if not least <= float(cell) <= most and not isnan(float(cell)):
                    return f"is out of range ({least:,} to {most:,})"
        return f"is not {self.expects}"

    def or_empty(self) -> Field:
        """Returns a copy of this column whose cells may be empty."""
        return replace(self, empty=True)

    def or_absent(self) -> Field:
        """Returns a copy of this column that a file may lack and whose cells may be empty."""
        return replace(self, empty=True, absent=True)


def text(name: str) -> Field:
    """Returns a column of texts, without leading and trailing spaces."""
    return Field(name, lambda cell: cell, "a string")


def choice(name: str, *words: str) -> Field:
    """Returns a column whose cells must each contain one of these words."""
    return Field(name, lambda cell: pl.when(cell.is_in(words)).then(cell), f"one of {', '.join(words)}")


_PAIRS = r"[^=;,]+=[^=;,]*(?:[;,][^=;,]+=[^=;,]*)*"


def is_pairs(text: str) -> bool:
    """Returns True if a text consists of pairs such as `pool=a100;zone=b`."""
    return re.fullmatch(_PAIRS, text) is not None


def pairs(name: str) -> Field:
    """Returns a column of pairs such as `pool=a100;zone=b`, which become maps from text to text.

    In quoted cells, commas can separate the pairs as well.
    """

    def value(cell: pl.Expr) -> pl.Expr:
        parts = pl.element().str.split_exact("=", 1).struct.rename_fields(["key", "value"])
        entries = (
            cell.str.replace_all(",", ";")
            .str.split(";")
            .list.eval(
                pl.struct(
                    parts.struct.field("key").str.strip_chars(), parts.struct.field("value").str.strip_chars()
                )
            )
        )
        return pl.when(cell.str.contains(f"^(?:{_PAIRS})$")).then(entries)

    return Field(name, value, "pairs such as pool=a100;zone=b")


def whole(name: str, least: int = 0, most: int = EXACT) -> Field:
    """Returns a column of integers (`4`, `4.0`), as int64."""

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        return pl.when(is_amount(number) & number.is_between(least, most)).then(number).cast(pl.Int64)

    return Field(name, value, "a whole number", (least, most))


def number(name: str, least: float = 0, most: float = EXACT) -> Field:
    """Returns a column of finite numbers, as float64."""

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        return pl.when(number.is_finite() & number.is_between(least, most)).then(number)

    return Field(name, value, "a number", (least, most))


def amount(name: str, scale: int, least: int = 0) -> Field:
    """Returns a column of quantities in a larger unit, scaled and rounded to the nearest int64.

    Args:
        name: the column.
        scale: the number of the schema's units in one unit of the file, such as 1000 for cores or 2**30 for
            GiB. If it is 1, quantities must be integers, because fractions would be lost.
        least: the minimum quantity, in the file's unit.
    """
    if scale == 1:
        return whole(name, least)
    most = EXACT // scale
    unscaled = number(name, least, most)

    def value(cell: pl.Expr) -> pl.Expr:
        return (unscaled.value(cell) * scale).round().cast(pl.Int64)

    return replace(unscaled, value=value)


def seconds(name: str, least: float = 0, unit: int = SECOND) -> Field:
    """Returns a column of times or durations that are written as numbers, in int64 microseconds.

    Args:
        name: the column.
        least: the minimum value, in the file's unit.
        unit: the file's unit in microseconds.
    """
    most = SECONDS * SECOND // unit

    def value(cell: pl.Expr) -> pl.Expr:
        number = cell.cast(pl.Float64, strict=False)
        scaled = number * (unit / SECOND)
        good = is_seconds(scaled) & (number >= least)
        return microseconds(pl.when(good).then(scaled))

    return Field(name, value, "a number", (least, most))


def moment(name: str, form: str) -> Field:
    """Returns a column of moments, as timestamp[us], or as timestamp[us, UTC] if the form has `%z`.

    Args:
        name: the column.
        form: the form of the texts, such as `%Y-%m-%d %H:%M:%S`. See `read_form`.

    Raises:
        ValueError: the form does not determine a moment.
    """
    return Field(name, read_form(form).value, f"a time such as {_EXAMPLE.strftime(form)}")


def iso_moment(name: str) -> Field:
    """Returns a column of moments in ISO 8601, as timestamp[us, UTC]. A time without an offset is in UTC."""

    def value(cell: pl.Expr) -> pl.Expr:
        text = cell.str.replace(" ", "T", literal=True).str.replace("Z$", "+00:00")
        parsed = [
            text.str.to_datetime(form, time_unit="us", strict=False, time_zone="UTC")
            for form in ("%Y-%m-%dT%H:%M:%S%.f%z", "%Y-%m-%dT%H:%M%z")
        ]
        plain = [
            text.str.to_datetime(form, time_unit="us", strict=False).dt.replace_time_zone("UTC")
            for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
        ]
        return pl.coalesce(*parsed, *plain)

    return Field(name, value, "a time such as 2017-10-09T07:01:55+02:00")


def span(name: str) -> Field:
    """Returns a column of durations such as `[days-]hours:minutes:seconds`, in int64 microseconds."""

    def value(cell: pl.Expr) -> pl.Expr:
        groups = cell.str.extract_groups(_SPAN)
        part = [groups.struct.field(str(place)) for place in (1, 2, 3, 4)]
        days, hours, minutes = (text.fill_null("0").cast(pl.Int64, strict=False) for text in part[:3])
        return microseconds(part[3].cast(pl.Float64) + days * 86_400 + hours * 3600 + minutes * 60)

    return Field(name, value, "a duration such as 1-02:30:00")
