"""Sums that nothing rounds, and questions asked of arrays, against the same in plain Python or polars."""

from __future__ import annotations

from itertools import accumulate, groupby
from math import fsum

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.metrics.exact import exact_sum, resource_time, resource_times, whole_sum
from harness.base.arrays import NEVER, Groups, codes, firsts, is_text, joint, numbers, places, quantile, short

WHOLE = st.integers(-(2**62), 2**62)
AMOUNT = st.one_of(st.integers(0, 2**62), st.integers(-1000, 1000))


@given(st.lists(st.tuples(AMOUNT, AMOUNT, st.booleans()), max_size=40))
def test_resource_time_is_exact_beyond_64_bits(rows: list[tuple[int, int, bool]]) -> None:
    """In each group of neighbouring rows, the first of which begins one."""
    amounts, spans = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    begins = [at for at, row in enumerate(rows) if at == 0 or row[2]]
    ends = [*begins[1:], len(rows)]
    products = [amount * span for amount, span, _ in rows]
    found = resource_times(amounts, spans, np.array(begins, np.intp))
    assert found == [sum(products[begin:end]) for begin, end in zip(begins, ends, strict=False)]
    assert resource_time(amounts, spans) == sum(products)


@given(st.lists(WHOLE))
def test_whole_numbers_add_up_beyond_64_bits(values: list[int]) -> None:
    """Whatever their signs."""
    assert whole_sum(np.array(values, np.int64)) == sum(values)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-200, 200))))
def test_whole_numbers_stay_the_same_in_fewer_bytes(values: list[int]) -> None:
    """Whatever their signs, and up to the largest that 64 bits have."""
    found = short(np.array(values, np.int64))
    assert found.tolist() == values
    assert found.itemsize == (1 if all(-128 <= each < 128 for each in values) else found.itemsize)


@given(st.lists(st.floats(-1e300, 1e300)))
def test_floats_add_up_and_are_rounded_once(values: list[float]) -> None:
    """As `math.fsum` does."""
    assert exact_sum(np.array(values, np.float64)) == fsum(values)


@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(-50, 50)), max_size=30))
def test_groups_keep_the_order_of_their_rows(rows: list[tuple[int, int]]) -> None:
    """Sums so far are those within each group, and go back to the order of the rows."""
    keys, values = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    groups = Groups(keys)
    ordered = sorted(rows, key=lambda row: row[0])
    assert list(zip(groups.keys.tolist(), values[groups.order].tolist(), strict=True)) == ordered
    sums = [
        each for _, of in groupby(ordered, lambda row: row[0]) for each in accumulate(row[1] for row in of)
    ]
    assert groups.running(values[groups.order]).tolist() == sums
    assert groups.back(values[groups.order]).tolist() == values.tolist()
    assert {key: place.stop - place.start for key, place in groups} == {
        key: len(list(of)) for key, of in groupby(ordered, lambda row: row[0])
    }
    assert groups.last.tolist() == [*groups.first.tolist()[1:], *([True] if rows else [])]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]))
def test_a_quantile_is_linear_between_two_values(values: list[float], part: float) -> None:
    """As polars gives it, to the last digit."""
    expected = pl.Series(values).quantile(part, "linear")
    assert quantile(np.array(sorted(values)), part) == expected


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=20), st.sampled_from([1, 10**12]))
def test_rows_that_are_the_same_have_the_same_number(rows: list[tuple[int, int]], apart: int) -> None:
    """And others have others, all below the number of rows, also where they are far from each other."""
    shifted = [(np.array([row[side] for row in rows], np.int64) + 3) * apart for side in (0, 1)]
    found = joint(*shifted).tolist()
    assert len({*zip(rows, found, strict=True)}) == len({*rows}) == len({*found})
    assert all(0 <= each < len(rows) for each in found)


def test_what_is_not_there_has_a_number_of_its_own() -> None:
    """Of numbers, of truths, and of names; no text is a null."""
    frame = pl.DataFrame({"n": [1, None, 3], "whether": [True, None, False]})
    assert [each.tolist() for each in numbers(frame, "n", "whether")] == [[1, NEVER, 3], [1, NEVER, 0]]
    names = pl.Series("name", ["b", None, "a", "b"], dtype=pl.Enum(["a", "b"]))
    assert codes(names).tolist() == [1, NEVER, 0, 1]
    assert is_text(names.cast(pl.String), "b", "c").tolist() == [True, False, False, True]
    assert firsts(np.array([1, 1, 2, 1])).tolist() == [True, False, True, True]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
@pytest.mark.parametrize("several", [3, 300])
def test_the_place_of_a_text_is_that_among_all(several: int, dtype: type[pl.DataType]) -> None:
    """Whatever other texts there were before; in one byte where that is enough."""
    pl.Series([f"other{number}" for number in range(500)], dtype=pl.Categorical)
    names = [f"n{number:03}" for number in range(several)]
    column = pl.Series([names[-1], names[0], names[-1], names[1]], dtype=pl.String).cast(dtype)
    found = places(column, pl.Series(names))
    assert found.tolist() == [several - 1, 0, several - 1, 1]
    assert found.itemsize == (1 if several < 256 else 2)
    assert places(column.clear(), pl.Series([], dtype=pl.String)).tolist() == []
