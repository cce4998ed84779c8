"""Intervals of values some of which are at the bound of what they can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.comparison.missing import Lack
from harness.analysis.comparison.paired import Paired
from harness.analysis.comparison.statistics.bounded import of_bounded_pairs
from harness.analysis.comparison.statistics.significance import LEVEL, Interval, of_pairs

AMOUNTS = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))


@pytest.mark.parametrize("size", [5, 10])
def test_what_lacks_of_a_bound_is_covered_more_often(size: int) -> None:
    """Of exponential lacks, of which a fifth is 0: in 93 % or more, where Student's t covers in under 90."""
    times, hits, draw = 2_000, [0, 0], np.random.default_rng(size)
    drawn = draw.exponential(0.01, (times, size)) * (draw.random((times, size)) > 0.2)
    for lacks in drawn:
        sides = [1.0] * size, (1 - lacks).tolist()
        for place, interval in enumerate((of_pairs(*sides, ratio=False), of_bounded_pairs(*sides))):
            assert interval is not None
            hits[place] += interval.low <= -0.008 <= interval.high
    assert hits[0] / times < 0.9
    assert 0.93 <= hits[1] / times <= 0.97


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=2, max_size=12))
def test_it_is_never_narrower_than_students_and_calls_what_it_excludes(
    pairs: list[tuple[float, float]],
) -> None:
    """Its p is below the level where 0 is outside it, and only there; turned around it is mirrored."""
    base, other = ([pair[side] for pair in pairs] for side in (0, 1))
    plain, found = of_pairs(base, other, ratio=False), of_bounded_pairs(base, other)
    assert plain is not None
    assert found is not None
    assert (found.low <= plain.low, found.high >= plain.high, found.p >= plain.p) == (True, True, True)
    edge = 1e-9 * max(abs(found.low), abs(found.high))
    if not found.certain and min(abs(found.low), abs(found.high)) > edge:
        assert (found.p < LEVEL) == (not found.has_nothing)
    mirrored = of_bounded_pairs(other, base)
    assert mirrored is not None
    assert (mirrored.low, mirrored.high) == pytest.approx((-found.high, -found.low), rel=1e-9, abs=1e-9)
    assert mirrored.p == pytest.approx(found.p, rel=1e-6)


def test_equal_differences_leave_nothing_to_test() -> None:
    """As of Student's; and one pair has no interval."""
    assert of_bounded_pairs([1.0] * 6, [0.5] * 6) == Interval(-0.5, -0.5, 0.0, 6)
    assert of_bounded_pairs([1.0], [0.5]) is None


def paired(*values: list[float], unit: str) -> Paired:
    """Values of several runs in which none is missing."""
    return Paired(values, [Lack(0, len(values[0]))] * len(values), unit)


def test_a_share_that_is_1_somewhere_is_compared_by_differences_near_its_bound() -> None:
    """Means are arithmetic then; below 1 and for other units they are geometric, and differences factors."""
    full, lacking = [1.0, 1.0, 0.97], [0.99, 0.9, 1.0]
    of_shares, of_others = (paired(full, lacking, unit=unit) for unit in ("share", "factor"))
    assert of_shares.evidence(1).interval == of_bounded_pairs(full, lacking)
    assert of_shares.mean(1) == pytest.approx((0.99 + 0.9 + 1) / 3, rel=1e-15)
    assert of_shares.difference(1) == of_bounded_pairs(full, lacking)
    parts = [after / before - 1 for before, after in zip(full, lacking, strict=True)]
    relative = of_bounded_pairs([0.0] * 3, parts)
    assert relative is not None
    assert of_shares.relative(1) == pytest.approx((relative.low, relative.high), rel=1e-12)
    assert of_others.evidence(1).interval == of_pairs(full, lacking, ratio=True)
    assert of_others.mean(1) == pytest.approx((0.99 * 0.9) ** (1 / 3), rel=1e-15)
    below = paired([0.9, 0.8], [0.7, 0.75], unit="share")
    assert below.evidence(1).interval == of_pairs([0.9, 0.8], [0.7, 0.75], ratio=True)


def test_what_is_0_somewhere_is_compared_near_that_bound_unless_it_can_be_less() -> None:
    """Counts cannot be below 0; where a value of a run is, 0 is no bound."""
    none, some, less = [0.0, 0.0, 1.0], [1.0, 2.0, 9.0], [-1.0, 2.0, 9.0]
    assert paired(none, some, unit="count").evidence(1).interval == of_bounded_pairs(none, some)
    assert paired(none, less, unit="").evidence(1).interval == of_pairs(none, less, ratio=False)


def test_the_mean_of_a_share_has_an_interval_that_leans_away_from_its_bound() -> None:
    """It is that of what lacks of 1, and of counts that of what is above 0."""
    shares, counts = [1.0, 0.99, 0.93, 1.0], [0.0, 1.0, 7.0, 0.0]
    lacks = of_bounded_pairs([1.0] * 4, shares)
    assert lacks is not None
    level = paired(shares, unit="share").level(0)
    assert level is not None
    assert (level.low, level.high) == (1 + lacks.low, 1 + lacks.high)
    assert paired(counts, unit="count").level(0) == of_bounded_pairs([0.0] * 4, counts)
    assert paired([1.0] * 4, unit="share").level(0) == Interval(1.0, 1.0, 1.0, 4)
