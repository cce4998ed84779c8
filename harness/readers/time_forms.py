"""Parses columns of times by forms such as `%d.%m.%Y %H:%M`, with the same results as `strptime`.

The parsers of tables use the same directives, but give some of them other meanings. For example, `%f` is
nanoseconds, and `%y` has another first year. This module converts a form to the regular expression that
Python uses, so that each form has only one meaning. The names of days and months are English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from harness.base.units import DAY, HOUR, MINUTE, SECOND

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _any_of(names: tuple[str, ...]) -> str:
    """Returns a pattern for names, longest first, so that no name matches the prefix of another name."""
    return "|".join(sorted(names, key=len, reverse=True))


_PATTERNS = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "1[0-2]|0[1-9]|[1-9]",
    "B": _any_of(_MONTHS),
    "b": _any_of(tuple(name[:3] for name in _MONTHS)),
    "d": "3[0-1]|[1-2][0-9]|0[1-9]|[1-9]| [1-9]",
    "j": "36[0-6]|3[0-5][0-9]|[1-2][0-9][0-9]|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]",
    "A": _any_of(_DAYS),
    "a": _any_of(tuple(name[:3] for name in _DAYS)),
    "H": "2[0-3]|[0-1][0-9]|[0-9]",
    "I": "1[0-2]|0[1-9]|[1-9]",
    "p": "am|pm",
    "M": "[0-5][0-9]|[0-9]",
    "S": "6[0-1]|[0-5][0-9]|[0-9]",
    "f": "[0-9]{1,6}",
    "z": r"[+-][0-9]{2}:?[0-5][0-9](?::?[0-5][0-9](?:\.[0-9]{1,6})?)?|(?-i:Z)",
}
"""Maps directives to the patterns of their texts."""

KNOWN = ", ".join(f"%{letter}" for letter in _PATTERNS) + ", %%"
"""All directives that a form may contain."""

_ONE_OF = ("Yy", "mBb", "HI")
"""Groups of directives for the same part of a time. A form may contain only one of each group."""

_NUMBERS = "YymdjHIMS"
_REST = "rest"
_FIRST_YEAR = 69
"""The first two-digit year of the 1900s. Smaller years belong to the 2000s."""


@dataclass(frozen=True, slots=True)
class TimeForm:
    """A form of times, such as `%d.%m.%Y %H:%M`.

    With `%z`, times are converted to UTC. Otherwise, they are local times of an unknown time zone.
    """

    text: str
    pattern: str
    letters: frozenset[str]

    @property
    def zoned(self) -> bool:
        """True if times in this form include a UTC offset."""
        return "z" in self.letters

    def value(self, cell: pl.Expr) -> pl.Expr:
        """Converts texts to timestamp[us], or to timestamp[us, UTC] if the form has `%z`.

        A text becomes null if `strptime` would raise an error, or if its UTC offset includes parts of a
        minute.
        """
        groups = cell.str.extract_groups(self.pattern).struct
        text = {letter: groups.field(letter) for letter in self.letters}
        if "d" in text:
            text["d"] = text["d"].str.strip_chars_start()
        part = {letter: text[letter].cast(pl.Int64) for letter in _NUMBERS if letter in text}
        day = self._day(text, part)
        found = day.cast(pl.Datetime("us")) + self._since_midnight(text, part).cast(pl.Duration("us"))
        found = pl.when(groups.field(_REST) == "").then(found)
        return found.dt.replace_time_zone("UTC") if self.zoned else found

    def _day(self, text: dict[str, pl.Expr], part: dict[str, pl.Expr]) -> pl.Expr:
        """Returns the date, or null for a day that the month or the calendar does not have."""
        if "y" in part:
            year = part["y"] + pl.when(part["y"] < _FIRST_YEAR).then(2000).otherwise(1900)
        else:
            year = pl.when(part["Y"] > 0).then(part["Y"])
        if "j" in part:
            return _date(year, pl.lit("01"), pl.lit("01")) + pl.duration(days=part["j"] - 1)
        month = part["m"] if "m" in part else _month(text["B"] if "B" in text else text["b"])
        return _date(year, _two_digits(month), _two_digits(part["d"]))

    def _since_midnight(self, text: dict[str, pl.Expr], part: dict[str, pl.Expr]) -> pl.Expr:
        """Returns the microseconds since the beginning of the day.

        If the second is above 59, the result is null.
        """
        none = pl.lit(0, pl.Int64)
        hour = part.get("H", none)
        if "I" in part:
            hour = part["I"] % 12 + pl.when(text["p"].str.to_lowercase() == "pm").then(12).otherwise(0)
        second = pl.when(part["S"] < 60).then(part["S"]) if "S" in part else none
        time = hour * HOUR + part.get("M", none) * MINUTE + second * SECOND
        if "f" in text:
            time = time + text["f"].str.pad_end(6, "0").cast(pl.Int64)
        return time - _offset(text["z"]) if "z" in text else time


def read_form(text: str) -> TimeForm:
    """Parse a form of times.

    Raises:
        ValueError: a directive is unknown or redundant, or the form has no complete date.
    """
    letters: list[str] = []
    pattern = ""
    at = 0
    while at < len(text):
        literal = text[at] != "%"
        letter = "" if literal else text[at + 1 : at + 2]
        if literal:
            blanks = len(text) - at - len(text[at:].lstrip())
            pattern += r"\s+" if blanks else re.escape(text[at])
            at += max(1, blanks)
            continue
        if letter != "%" and letter not in _PATTERNS:
            raise ValueError(f"%{letter} is none of the directives {KNOWN}")
        pattern += "%" if letter == "%" else f"(?P<{letter}>{_PATTERNS[letter]})"
        letters += [] if letter == "%" else [letter]
        at += 2
    _check(letters)
    return TimeForm(text, f"(?is)^{pattern}(?P<{_REST}>.*)$", frozenset(letters))


def _check(letters: list[str]) -> None:
    """Reject directives that do not determine a moment."""
    has = frozenset(letters)
    for letter in has:
        if letters.count(letter) > 1:
            raise ValueError(f"%{letter} occurs twice")
    for same in _ONE_OF:
        several = [f"%{letter}" for letter in same if letter in has]
        if len(several) > 1:
            raise ValueError(f"{' and '.join(several)} express the same thing")
    if not has & set("Yy"):
        raise ValueError("it has no year (%Y or %y)")
    if "j" in has and has & set("mBbd"):
        raise ValueError("%j already gives month and day")
    if "j" not in has and not (has & set("mBb") and "d" in has):
        raise ValueError("it has no month and day (%m or %b, and %d; or %j)")
    if "I" in has and "p" not in has:
        raise ValueError("%I needs %p for the half of the day")


def _two_digits(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.String).str.zfill(2)


def _month(name: pl.Expr) -> pl.Expr:
    numbers = {known[:3].lower(): number for number, known in enumerate(_MONTHS, start=1)}
    known = name.str.slice(0, 3).str.to_lowercase()
    return known.replace_strict(numbers, default=None, return_dtype=pl.Int64)


def _date(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    whole = pl.concat_str(year.cast(pl.String).str.zfill(4), month, day, separator="-")
    return whole.str.to_date("%Y-%m-%d", strict=False)


def _offset(zone: pl.Expr) -> pl.Expr:
    """Returns the UTC offset in microseconds, or null if it is a day or more or has parts of a minute."""
    digits = zone.str.replace(":", "", literal=True)
    hours, minutes = (digits.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (1, 3))
    size = hours * HOUR + minutes * MINUTE
    signed = pl.when(digits.str.starts_with("-")).then(-size).otherwise(size)
    whole = (zone.str.len_bytes() <= len("+05:30")) & (size < DAY)
    return pl.when(zone == "Z").then(0).when(whole).then(signed)
