"""The sum of a table: of what its values are, not of how they are kept."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from harness.trace.trace import frame_digest


def column(values: list[Any], dtype: Any = None) -> str:
    return frame_digest(pl.DataFrame({"x": pl.Series(values, dtype=dtype)}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (column(["a", "bc"]), column(["ab", "c"])),
        (column(["", None]), column([None, ""])),
        (column([1, 23]), column([12, 3])),
        (column([0, None], pl.Int64), column([None, 0], pl.Int64)),
        (column([1], pl.Int64), column([1], pl.Int32)),
        (column([1.5]), column([1.25])),
        (column([True, None]), column([None, True])),
        (column(["-"]), column([None], pl.String)),
        (column([datetime(2024, 1, 1)]), column([datetime(2024, 1, 2)])),
        (column([[1], [2]]), column([[1, 2], []])),
        (column([{"a": 1}]), column([{"a": None}])),
        (column([b"\x00"]), column([b"\xff"])),
        (column([Decimal(1)]), column([Decimal(2)])),
        (column([2**70], pl.Int128), column([2**70 + 1], pl.Int128)),
        (column([1]), frame_digest(pl.DataFrame({"y": [1]}))),
        (column([1]), frame_digest(pl.DataFrame({"x": [1]}), "besides")),
        (column([], pl.String), column([None], pl.String)),
    ],
)
def test_other_values_have_another_sum(one: str, other: str) -> None:
    """Also where texts, nulls or types would run into each other."""
    assert one != other


def test_chunks_categories_and_neighbours_do_not_show() -> None:
    """The same values, cut otherwise, with categories in another order, or as a part of a longer table."""
    names = ["b", None, "a", "日本", ""] * 30_000
    plain = pl.DataFrame({"x": names, "y": range(len(names))})
    cut = pl.concat([plain[:7], plain[7:]], rechunk=False)
    part = pl.concat([plain, plain])[: plain.height]
    categories = plain.with_columns(pl.col("x").cast(pl.Categorical()))
    mixed = pl.concat([categories[3:5], categories])[2:]
    found = {frame_digest(each) for each in (plain, cut, part, categories, mixed)}
    assert len(found) == 1
