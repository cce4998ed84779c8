"""Times as tables write them: texts with or without a zone, and numbers that count from 1970."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from harness.readers.time_forms import read_form

INSTANT_UNITS = {"unix": 10**9, "unix-ms": 10**6, "unix-us": 10**3, "unix-ns": 1}
"""Unit of numbers that count from 1970 -> nanoseconds of one."""

_EXAMPLE = datetime(2017, 10, 9, 7, 1, 55, tzinfo=UTC)
_OFFSET = r"[+-]\d\d(?::?\d\d)?$"


def is_form(unit: str) -> bool:
    """Whether a unit is a form of times such as `%d.%m.%Y %H:%M`."""
    return unit.startswith("%")


class Clock:
    """How times without a zone are read.

    Args:
        zone: its name, such as `America/Los_Angeles`.

    Attributes:
        zone: the same.
        twice: of times that were read, which stand in an hour that occurs twice, one expression a column.

    Raises:
        ValueError: there is no such zone.
    """

    def __init__(self, zone: str = "UTC") -> None:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{zone!r} is no time zone, such as Europe/Berlin") from error
        self.zone = zone
        self.twice: list[pl.Expr] = []

    def moments(self, local: pl.Expr) -> pl.Expr:
        """Times of the zone as microseconds since 1970; null where the zone's clocks skip them."""
        if self.zone == "UTC":
            return local.dt.timestamp("us")
        earlier, later = (
            local.dt.replace_time_zone(self.zone, ambiguous=which, non_existent="null").dt.timestamp("us")
            for which in ("earliest", "latest")
        )
        self.twice.append(earlier != later)
        return earlier

    def example(self, unit: str) -> str:
        """A time as the unit writes it."""
        return _EXAMPLE.strftime(unit) if is_form(unit) else "2017-10-09T07:01:55+02:00"

    def reading(self, unit: str) -> Callable[[pl.Expr], pl.Expr]:
        """Texts of a unit as microseconds since 1970.

        Raises:
            ValueError: a form that does not say which moment is meant.
        """
        if not is_form(unit):
            return self._iso
        form = read_form(unit)

        def read(cell: pl.Expr) -> pl.Expr:
            found = form.value(cell)
            return found.dt.timestamp("us") if form.zoned else self.moments(found)

        return read

    def _iso(self, cell: pl.Expr) -> pl.Expr:
        """ISO 8601 with a blank or a T, an offset of hours, of minutes too, `Z`, ` UTC`, or none."""
        text = cell.str.replace(r"\s*(?:UTC|GMT|Z)$", "+00:00")
        clock = text.str.replace(_OFFSET, "").str.strip_chars().str.replace(r"^(\S+)\s+", "${1}T")
        clock = clock.str.replace(r"T(\d\d:\d\d)$", "T$1:00").str.replace(
            r"^(\d{4}-\d\d-\d\d)$", "${1}T00:00:00"
        )
        dated = text.str.contains(r"^\d{4}-\d\d-\d\d$")
        zone = pl.when(~dated).then(text.str.extract(f"({_OFFSET})", 1))
        clock = pl.when(dated).then(text + "T00:00:00").otherwise(clock)
        local = clock.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit="us", strict=False)
        digits = zone.str.replace(":", "", literal=True).str.pad_end(5, "0")
        hours, minutes = (digits.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (1, 3))
        size = (hours * 60 + minutes) * 60_000_000
        ahead = pl.when(digits.str.starts_with("-")).then(-size).otherwise(size)
        plain = self.moments(pl.when(zone.is_null()).then(local))
        return pl.when(zone.is_null()).then(plain).otherwise(local.dt.timestamp("us") - ahead)
