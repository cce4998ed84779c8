"""Intervals of differences: right on average, exact on what can be worked by hand, and always the same."""

from __future__ import annotations

import random
from math import exp, sqrt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.bootstrap import LEAST_BLOCKS, MOST_BLOCKS, RESAMPLES, Paired, _draws, _Sample
from harness.statistics.significance import holm, p_value, t_of_z, z_of_t

TRIALS = 1000
DIFFERENCE = 0.3


def queueing(seed: int, jobs: int, memory: float) -> tuple[pl.Series, pl.Series]:
    """Two runs' skewed waits of the same jobs, alike, the second ones `DIFFERENCE` longer on the whole.

    Args:
        seed: of the trial.
        jobs: how many there are.
        memory: how alike a job's wait is to that of the job before, from 0 to below 1.
    """
    draw = random.Random(seed).gauss
    ours = theirs = 0.0
    rest = sqrt(1 - memory * memory)
    base, other = [], []
    for _ in range(jobs):
        ours = memory * ours + rest * draw(0, 1)
        theirs = memory * theirs + rest * draw(0, 1)
        base.append(exp(ours))
        other.append(exp(0.8 * ours + 0.6 * theirs) + DIFFERENCE)
    return pl.Series(base), pl.Series(other)


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "memory"), [(1000, 0.0), (4000, 0.6), (4000, 0.9)])
@pytest.mark.parametrize("statistic", ["mean", "p50"])
def test_intervals_cover_a_known_difference_as_often_as_they_say(
    statistic: str, jobs: int, memory: float
) -> None:
    """In 93 to 97 % of 1,000 trials, whether jobs are independent or wait together."""
    covered = 0
    for seed in range(TRIALS):
        interval = Paired(*queueing(seed, jobs, memory)).interval(statistic)
        assert interval is not None
        covered += interval.low <= DIFFERENCE <= interval.high
    assert 0.93 * TRIALS <= covered <= 0.97 * TRIALS, f"{covered} of {TRIALS}"


def test_a_few_trials_cover_a_known_difference() -> None:
    """What the slow test finds exactly, roughly: of 40 trials nearly all cover, and hardly any covers 0."""
    intervals = [Paired(*queueing(seed, 2000, 0.5)).interval("mean") for seed in range(40)]
    known = [interval for interval in intervals if interval is not None]
    assert len(known) == 40
    assert sum(each.low <= DIFFERENCE <= each.high for each in known) >= 34
    assert sum(each.low <= 0 for each in known) <= 6


def test_the_same_values_differ_by_nothing() -> None:
    """Resamples are the same ones on both sides, so a run and itself have a point for interval."""
    values = pl.Series([float(number % 7) for number in range(100)])
    for statistic in ("mean", "total", "p95"):
        interval = Paired(values, values).interval(statistic)
        assert interval is not None
        assert (interval.low, interval.high, interval.p) == (0, 0, 1)


@pytest.mark.parametrize("statistic", ["mean", "p50", "p99"])
def test_a_constant_difference_is_certain(statistic: str) -> None:
    """Every job waits 5 s longer: whatever is drawn, so does the statistic."""
    base = pl.Series([float(number * number % 83) for number in range(3000)])
    interval = Paired(base, base + 5).interval(statistic)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((5, 5))
    assert interval.p == 0


def test_of_few_jobs_nothing_is_said() -> None:
    """Fewer jobs than the fewest blocks, or none with a value on one side, give no interval."""
    few = pl.Series([1.0] * (LEAST_BLOCKS - 1))
    assert Paired(few, few + 1).interval("mean") is None
    many = pl.Series([1.0] * 50)
    nothing = pl.Series([None] * 50, dtype=pl.Float64)
    assert Paired(many, nothing).interval("mean") is None
    assert Paired(many, nothing).interval("p50") is None


def test_blocks_grow_with_what_neighbours_have_in_common() -> None:
    """Independent jobs are drawn in many blocks, jobs that follow each other in few."""
    nothing = pl.Series([0.0] * 1024)
    apart, together = [], []
    for seed in range(20):
        draw = random.Random(seed).gauss
        values = pl.Series([draw(0, 1) for _ in range(1024)])
        apart.append(Paired(nothing, values).blocks)
        together.append(Paired(nothing, values.cum_sum()).blocks)
    assert sum(apart) / 20 > MOST_BLOCKS / 2
    assert sum(together) / 20 < 1.2 * LEAST_BLOCKS


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 50)), min_size=20, max_size=60), st.sampled_from([50, 95])
)
def test_resampled_percentiles_are_those_of_what_was_drawn(values: list[int | None], percent: int) -> None:
    """Counted out for some resamples: between the order statistics on either side of the percentile."""
    blocks = 16
    column = pl.Series(values, dtype=pl.Float64)
    if column.null_count() == len(column):
        return
    found = _Sample(column, blocks).resampled(f"p{percent}").to_list()
    times = _draws(blocks).times.to_list()
    for resample in range(0, RESAMPLES, 250):
        drawn = sorted(
            value
            for row, value in enumerate(values)
            if value is not None
            for _ in range(times[resample * blocks + row * blocks // len(values)])
        )
        if not drawn:
            assert found[resample] != found[resample]
            continue
        place = percent / 100 * (len(drawn) - 1)
        assert (
            drawn[int(place)] - 1e-9 <= found[resample] <= drawn[min(int(place) + 1, len(drawn) - 1)] + 1e-9
        )


def test_students_t_as_a_normal_deviate() -> None:
    """By tables t of 2.131 at 15 degrees and 2.042 at 30 leave 2.5 % above them, as z = 1.960 does."""
    assert z_of_t(2.131, 15) == pytest.approx(1.960, abs=0.005)
    assert z_of_t(-2.042, 30) == pytest.approx(-1.960, abs=0.005)
    assert t_of_z(z_of_t(1.7, 20), 20) == pytest.approx(1.7)
    assert p_value(2.131, 1, 15) == pytest.approx(0.05, abs=0.001)
    assert (p_value(0, 0, 15), p_value(1, 0, 15)) == (1, 0)


def test_holm_by_hand() -> None:
    """0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1, and none smaller than one before: 0.04 0.06 0.06 0.5."""
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([]) == []
