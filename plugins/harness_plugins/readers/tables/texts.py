"""Converts text in tables to numbers, sizes, durations, true and false, and converts numbers to text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

from harness.base.units import DAY, HOUR, MINUTE
from harness_plugins.readers.tables.values import WIDE, Value

Keep: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""A function that makes an expression a separate step, which is computed once for several uses."""

DECIMALS = 9
"""The number of decimals of numbers that are not integers."""
ONE = 10**DECIMALS
TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")
_PLAIN = r"^[+-]?[0-9]{1,20}(?:\.[0-9]*)?$"
_SUFFIX = r"(?:[KMGTP]iB?|[KMGTP]B|[kmgtp]b|[KMGTP]?[nc]?)"
_SIZE = rf"^([0-9]{{1,18}}(?:\.[0-9]*)?){_SUFFIX}$"
_WHOLE_SIZE = rf"^([0-9]{{1,18}}){_SUFFIX}$"
_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "": 20}
"""The powers of two of Slurm's letters, as in PBS's `gb`. A number without a letter is in MiB."""
_ISO_SPAN = r"^P(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9}(?:\.[0-9]+)?)S)?)?$"
_CLOCK_SPAN = r"^(?:([0-9]{1,6})(?: days?,? |-))?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]+)?)$"


def fixed(cell: pl.Expr) -> pl.Expr:
    """Returns floats multiplied by 10**9, as 128-bit integers.

    The result is null for infinite numbers, for NaN, and for numbers of 1e20 or more.
    """
    good = pl.when(cell.is_finite() & (cell.abs() < 1e20)).then(cell.cast(pl.Float64))
    whole = good.floor()
    found: pl.Expr = whole.cast(WIDE) * ONE + ((good - whole) * 1e9).round().cast(WIDE)
    return found


def text_number(cell: pl.Expr, kept: Keep) -> pl.Expr:
    """Returns the numbers in text multiplied by 10**9, as 128-bit integers.

    Text with an exponent, such as `1e3`, is first converted to the nearest float.
    """
    whole = kept(cell.cast(pl.Int64, strict=False))
    rest = kept(pl.when(whole.is_null()).then(cell))  # nearly all null, which costs next to nothing
    return pl.coalesce(
        whole.cast(WIDE) * ONE, _decimals(rest, kept), fixed(rest.cast(pl.Float64, strict=False))
    )


def _decimals(cell: pl.Expr, kept: Keep) -> pl.Expr:
    """Returns text of digits with a decimal point as numbers with nine decimals. Other text becomes null."""
    plain = kept(pl.when(cell.str.contains(_PLAIN)).then(cell))
    whole = _wide(plain.str.extract(r"^[+-]?([0-9]+)", 1))
    part = (
        plain.str.extract(r"\.([0-9]+)$", 1).fill_null("").str.pad_end(DECIMALS, "0").str.slice(0, DECIMALS)
    )
    size = whole * ONE + part.cast(pl.Int64)
    signed: pl.Expr = size * pl.when(plain.str.starts_with("-")).then(-1).otherwise(1)
    return signed


def _wide(digits: pl.Expr) -> pl.Expr:
    """Returns up to 20 digits as a 128-bit integer. Older polars versions cannot read them in one part."""
    padded = digits.str.zfill(20)
    high, low = padded.str.slice(0, 10).cast(pl.Int64), padded.str.slice(10, 10).cast(pl.Int64)
    return high.cast(WIDE) * 10**10 + low.cast(WIDE)


def sized(cell: pl.Expr, kept: Keep) -> pl.Expr:
    """Returns text such as `85G` as bytes, rounded to the nearest byte."""
    powers = {letter: 2**power for letter, power in _POWERS.items()}
    letter = pl.when(cell.str.contains(_SIZE)).then(cell.str.extract(r"(?i)([KMGTP])", 1).fill_null(""))
    unit = kept(
        letter.str.to_uppercase().replace_strict(powers, default=None, return_dtype=pl.Int64).cast(WIDE)
    )
    whole = kept(cell.str.extract(_WHOLE_SIZE, 1).cast(pl.Int64))
    rest = kept(pl.when(whole.is_null()).then(cell.str.extract(_SIZE, 1)))
    return pl.coalesce(whole.cast(WIDE) * unit, (text_number(rest, kept) * unit + ONE // 2) // ONE)


def spanned(cell: pl.Expr, kept: Keep) -> pl.Expr:
    """Returns the microseconds of a duration that is written in ISO 8601 or like a clock."""
    found = []
    for pattern in (_ISO_SPAN, _CLOCK_SPAN):
        days, hours, minutes = (
            cell.str.extract(pattern, place).cast(pl.Int64).fill_null(0) * scale
            for place, scale in ((1, DAY), (2, HOUR), (3, MINUTE))
        )
        seconds = text_number(kept(cell.str.extract(pattern, 4).fill_null("0")), kept) // 1000
        found.append(
            pl.when(cell.str.contains(pattern)).then(days + hours + minutes + seconds.cast(pl.Int64))
        )
    return pl.coalesce(*found)


def written(value: Value) -> pl.Expr:
    """Returns a number as text, without trailing zeros."""
    if not value.decimals:
        return value.expr.cast(pl.String)
    size = value.expr.abs()
    whole, part = (size // ONE).cast(pl.String), (size % ONE).cast(pl.String).str.zfill(DECIMALS)
    tail = part.str.strip_chars_end("0")
    text = pl.when(tail == "").then(whole).otherwise(pl.concat_str(whole, tail, separator="."))
    return pl.when(value.expr < 0).then(pl.lit("-") + text).otherwise(text)


def flagged(cell: pl.Expr, kept: Keep) -> pl.Expr:
    """Returns text as true or false, or null for other words."""
    del kept
    word = cell.str.to_lowercase()
    return pl.when(word.is_in(TRUE)).then(True).when(word.is_in(FALSE)).then(False)
