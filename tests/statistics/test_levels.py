"""Intervals of means whose values have bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.comparison.statistics.bounded import of_level
from harness.analysis.comparison.statistics.significance import of_pairs

AMOUNTS = st.floats(0, 1e6).map(lambda value: round(value, 3))
SHARES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@given(st.lists(AMOUNTS, min_size=2, max_size=12))
def test_no_interval_of_amounts_reaches_below_zero(values: list[float]) -> None:
    """It holds the mean, and a constant is certain; in other units it is the same interval."""
    found, larger = of_level(values), of_level([1000 * value for value in values])
    assert found is not None
    assert larger is not None
    mean = sum(values) / len(values)
    assert 0 <= found.low <= mean * (1 + 1e-9)
    assert mean * (1 - 1e-9) <= found.high
    assert (found.low == found.high) == (max(values) == min(values))
    assert (larger.low, larger.high) == pytest.approx((1000 * found.low, 1000 * found.high))


@given(st.lists(SHARES, min_size=2, max_size=12))
def test_no_interval_of_shares_reaches_beyond_its_bounds(values: list[float]) -> None:
    """The interval of what is missing to 1 is the mirrored one."""
    found, lacking = of_level(values, 1.0), of_level([1 - value for value in values], 1.0)
    assert found is not None
    assert lacking is not None
    assert 0 <= found.low <= found.high <= 1
    assert (lacking.low, lacking.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


def test_values_that_differ_little_have_students_interval() -> None:
    """Far from any bound a logarithm is a straight line; below 0 there is no bound at all."""
    near = [1000.0, 1001.0, 1002.0, 1004.0]
    plain, found = of_pairs([0.0] * 4, near, ratio=False), of_level(near)
    assert plain is not None
    assert found is not None
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.01)
    signed = [-1.0, 2.0, 4.0]
    assert of_level(signed) == of_pairs([0.0] * 3, signed, ratio=False)
    assert of_level([1.0]) is None
