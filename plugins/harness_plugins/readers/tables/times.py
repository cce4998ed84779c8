"""Reads times in the forms that tables use: text with or without a zone, and numbers relative to 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from harness.readers.time_forms import read_form

INSTANT_UNITS = {"unix": 10**9, "unix-ms": 10**6, "unix-us": 10**3, "unix-ns": 1}
"""The length in nanoseconds of each unit of numbers that are relative to 1970."""

_EXAMPLE = datetime(2017, 10, 9, 7, 1, 55, tzinfo=UTC)
_OFFSET = r"[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


class When(NamedTuple):
    """The times that were read from text. Each time is in one of two columns.

    Attributes:
        local: times without a zone, as a local clock shows them, or null for other times.
        fixed: times with an offset, in microseconds since 1970, or null for other times.
    """

    local: pl.Expr
    fixed: pl.Expr


def is_form(unit: str) -> bool:
    """Returns True if a unit is a time format such as `%d.%m.%Y %H:%M`."""
    return unit.startswith("%")


def is_instant_unit(unit: str) -> bool:
    """Returns True if a unit says how to read a time, such as `iso`, `unix` or a time format."""
    return unit in INSTANT_UNITS or unit == "iso" or is_form(unit)


class Clock:
    """Reads times without a zone as times in the zone of this clock.

    Args:
        zone: the name of the zone, such as `America/Los_Angeles`.

    Raises:
        ValueError: the zone does not exist.
    """

    def __init__(self, zone: str = "UTC") -> None:
        try:
            ZoneInfo(zone)
            pl.select(pl.lit(_EXAMPLE.replace(tzinfo=None)).dt.replace_time_zone(zone))
        except (ZoneInfoNotFoundError, pl.exceptions.PolarsError, ValueError, OSError) as error:
            raise ValueError(f"{zone!r} is not a time zone such as Europe/Berlin") from error
        self.zone = zone

    def moments(self, local: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Converts local times of the zone to microseconds since 1970.

        Times that the clocks skip become null. There are two results. They differ only in an hour that occurs
        twice: the first result has the earlier time, and the second has the later time.
        """
        if self.zone == "UTC":
            return local.dt.timestamp("us"), local.dt.timestamp("us")
        earlier, later = (
            local.dt.replace_time_zone(self.zone, ambiguous=which, non_existent="null").dt.timestamp("us")
            for which in ("earliest", "latest")
        )
        return earlier, later

    def example(self, unit: str) -> str:
        """Returns an example of a time in the notation of the unit."""
        return _EXAMPLE.strftime(unit) if is_form(unit) else "2017-10-09T07:01:55+02:00"

    def read(self, cell: pl.Expr, unit: str) -> When:
        """Converts text in the notation of a unit to times.

        Raises:
            ValueError: the format does not determine a point in time.
        """
        if not is_form(unit):
            return _iso(cell)
        try:
            form = read_form(unit)
        except ValueError as error:
            raise ValueError(f"{unit!r} is not a time format: {error}") from error
        found = form.value(cell)
        if form.zoned:
            return When(pl.lit(None, pl.Datetime("us")), found.dt.timestamp("us"))
        return When(found, pl.lit(None, pl.Int64))


def _iso(cell: pl.Expr) -> When:
    """Reads ISO 8601 with a blank or a T.

    The offset may be hours, hours and minutes, `Z`, ` UTC`, or missing.
    """
    text = cell.str.replace(r"\s*(?:UTC|GMT|Z)$", "+00:00")
    dated = text.str.contains(_DATE)
    clock = text.str.replace(_OFFSET, "").str.strip_chars().str.replace(r"^(\S+)\s+", "${1}T")
    clock = clock.str.replace(r"T([0-9]{2}:[0-9]{2})$", "T$1:00")
    clock = pl.when(dated).then(text + "T00:00:00").otherwise(clock)
    zone = pl.when(~dated).then(text.str.extract(f"({_OFFSET})", 1))
    local = clock.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
    digits = zone.str.replace(":", "", literal=True).str.pad_end(5, "0")
    hours, minutes = (digits.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (1, 3))
    size = (hours * 60 + minutes) * 60_000_000
    ahead = pl.when(digits.str.starts_with("-")).then(-size).otherwise(size)
    return When(
        pl.when(zone.is_null()).then(local),
        pl.when(zone.is_not_null()).then(local.dt.timestamp("us") - ahead),
    )
