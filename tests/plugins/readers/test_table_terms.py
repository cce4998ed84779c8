"""Random terms of the language agree with a plain evaluation, row by row, in Python's own whole numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Any

import polars as pl

from harness_plugins.readers.tables.syntax import Call, Column, Literal, Source, Sum, parse_source
from harness_plugins.readers.tables.terms import Terms
from harness_plugins.readers.tables.times import Clock
from harness_plugins.readers.tables.values import ROW, Columns

SOURCES = int(os.environ.get("TABLE_TERMS", "400"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT = datetime(2023, 3, 26, 0, 59, 59, 250_000, tzinfo=UTC)
ROWS: dict[str, list[Any]] = {
    "i": [0, 1, 7, None, 64, 2**40],
    "n": [1, 0, 3, 2, None, 5],
    "f": [0.5, 2.25, None, 1e6, 3.125, 0.0],
    "t": ["3", "", "2.75", None, " 12 ", "0004"],
    "x": ["4", "7", None, "4294967295", "3", "1"],
    "d": [AT, AT + timedelta(days=1), None, EPOCH, AT - timedelta(microseconds=1), AT],
    "e": [AT + timedelta(seconds=each) for each in range(6)],
    "s": [
        timedelta(seconds=1),
        timedelta(0),
        None,
        timedelta(days=2),
        timedelta(microseconds=3),
        timedelta(1),
    ],
    "iso": [
        "2023-03-26T01:00:00Z",
        "2023-03-26 10:00:05+09",
        None,
        "",
        "2023-03-26",
        "2023-03-26T01:00:00.5-0130",
    ],
    "tres": ["cpu=4,mem=2G", "1=3,1001=2", None, "gres/gpu:4,mem=1500M", "", "mem=12"],
}
FRAME = pl.DataFrame(
    ROWS,
    schema_overrides={"s": pl.Duration("us"), "d": pl.Datetime("us", "UTC"), "e": pl.Datetime("us", "UTC")},
).with_row_index(ROW)
TABLE = Columns(FRAME.schema, {name: name for name in FRAME.columns})
NUMBERS, INSTANTS = ("i", "n", "f", "t", "x"), ("d", "e", "iso")


def number_terms(random: Random, depth: int) -> str:
    """A random term that is a number."""
    pick = random.randrange(9 if depth else 3)
    inner = [number_terms(random, depth - 1) for _ in range(2)] if depth else []
    match pick:
        case 0 | 1:
            return random.choice(NUMBERS)
        case 2:
            return random.choice(["0", "3", "2.5", "1000"])
        case 3:
            return f"({inner[0]} + {inner[1]})"
        case 4:
            return f"({inner[0]} - {inner[1]})"
        case 5:
            return f"below({inner[0]}, {random.choice([2, 60, 4294967294])})"
        case 6:
            return f"unless({random.choice(NUMBERS)}, {random.choice([0, 3, 4294967295])}, 7)"
        case 7:
            return f"{random.choice(['first', 'most'])}({inner[0]}, {inner[1]})"
        case _:
            keys = random.choice(["'mem'", "'cpu', 1", "1001", "'gres/gpu'"])
            return f"tres(tres, {keys})"


def spans(random: Random) -> str:
    """A random term that is a span of time."""
    pick = random.randrange(5)
    if pick == 0:
        return "s"
    if pick == 1:
        return "s + s - s"
    left, right = random.choice(INSTANTS), random.choice(INSTANTS[:2])
    return f"{left} - {right}" if pick < 4 else f"most({left}, d) - {right}"


def as_number(value: Any) -> Fraction | None:
    """A cell as a number."""
    if isinstance(value, str):
        value = value.strip()
        return Fraction(value) if value else None
    return None if value is None else Fraction(value)


def as_instant(value: Any) -> int | None:
    """A cell as microseconds since 1970."""
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        text = text.replace(" ", "T").replace("Z", "+00:00")
        text = text + ":00" if text[-3] in "+-" and "T" in text else text
        value = datetime.fromisoformat(text)
        value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return None if value is None else (value - EPOCH) // timedelta(microseconds=1)


def plain(term: Any, row: dict[str, Any]) -> Any:
    """A term in one row: a fraction, microseconds of an instant or a span, None."""
    match term:
        case Literal(Decimal() as value):
            return Fraction(value)
        case Column(name) if name in INSTANTS:
            return as_instant(row[name])
        case Column("s"):
            return None if row["s"] is None else row["s"] // timedelta(microseconds=1)
        case Column(name):
            return as_number(row[name])
        case Sum(left, right, sign):
            one, other = plain(left, row), plain(right, row)
            return None if one is None or other is None else one + sign * other
        case Call("below", (inner, Literal(bound))):
            value = plain(inner, row)
            return value if value is not None and value < Fraction(bound) else None
        case Call("unless", (inner, *several)):
            value = plain(inner, row)
            return None if value in [Fraction(each.value) for each in several] else value
        case Call("first", arguments):
            return next((value for each in arguments if (value := plain(each, row)) is not None), None)
        case Call("most", arguments):
            return max((value for each in arguments if (value := plain(each, row)) is not None), default=None)
        case Call("tres", (_, *keys)):
            return tres(row["tres"] or "", [str(each.value) for each in keys])
    raise AssertionError(term)


def tres(text: str, keys: list[str]) -> Fraction:
    """What the first of the keys has in a text."""
    pairs = dict(reversed([part.replace(":", "=").split("=") for part in text.split(",") if part]))
    found = next((pairs[key] for key in keys if key in pairs), "0")
    powers = {"M": 20, "G": 30}
    return Fraction(found[:-1]) * 2 ** powers[found[-1]] if found[-1] in powers else Fraction(found)


def rounded(value: Fraction) -> int | None:
    """The nearest whole number of 64 bits."""
    whole = floor(value + Fraction(1, 2))
    return whole if -(2**63) <= whole < 2**63 else None


def amounts(source: Source, scale: int) -> Iterator[int | None]:
    """A source as an amount in each row."""
    for row in FRAME.iter_rows(named=True):
        top = plain(source.term, row)
        if source.by is None:
            yield None if top is None else rounded(top * scale)
            continue
        below = plain(source.by, row)
        if top is None or below is None or below <= 0:
            yield None
        else:
            whole = ceil(top * scale / below)
            yield whole if -(2**63) <= whole < 2**63 else None


def test_random_amounts_agree_with_fractions() -> None:
    """Sums, bounds, functions and the one division, exact and rounded up; by 0 or nothing it is nothing."""
    random = Random(51)
    for _ in range(SOURCES):
        text = number_terms(random, 3)
        if random.random() < 0.5:
            text = f"{text} / {number_terms(random, 1)}"
        source, scale = parse_source(text), random.choice([1, 1000, 2**20, 10**9])
        terms = Terms(TABLE, "", Clock(), instants=False)
        found = terms.worked_out(FRAME, found=terms.amount(source.term, source.by, scale))["found"].to_list()
        wanted = list(amounts(source, scale))
        # Below nothing is a fault of its own, whichever way it rounds.
        pairs = [(one, other) for one, other in zip(found, wanted, strict=True) if (other or 0) >= 0]
        assert [one for one, _ in pairs] == [other for _, other in pairs], f"{text} times {scale}"


def test_random_spans_agree_with_datetime() -> None:
    """Differences of instants that are typed, or texts with and without an offset."""
    random = Random(52)
    for _ in range(SOURCES):
        source = parse_source(spans(random))
        terms = Terms(TABLE, "iso", Clock(), instants=True)
        found = terms.worked_out(FRAME, found=terms.value(source.term).expr)["found"].to_list()
        assert found == [plain(source.term, row) for row in FRAME.iter_rows(named=True)], source.text
