"""Intervals of differences: right on average, exact on what can be worked by hand, and always the same."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.comparison.statistics.bootstrap import (
    BLOCKS,
    LEAST_JOBS,
    RESAMPLES,
    T_OF_BLOCKS,
    Paired,
    _Sample,
    _times,
)
from harness.analysis.comparison.statistics.plateau import levels_off, memory
from harness.analysis.comparison.statistics.significance import (
    ALIKE,
    CONFIDENCE,
    LEVEL,
    holm,
    of_pairs,
    p_value,
    t_quantile,
)
from harness.analysis.comparison.statistics.skewed import ends_of_mean, p_of_mean, skewness


def independent(seed: int, jobs: int, factor: float) -> tuple[pl.Series, pl.Series]:
    """Two runs' skewed waits of the same jobs, the second ones longer by a factor."""
    draw = np.random.default_rng(seed)
    base = draw.exponential(size=jobs)
    return pl.Series(base), pl.Series(factor * draw.permuted(base))


def test_students_t_of_the_blocks_is_scipys() -> None:
    """It is written down so that a comparison of lost work alone needs no scipy."""
    assert pytest.approx(t_quantile((1 + CONFIDENCE) / 2, BLOCKS - 1), rel=1e-12) == T_OF_BLOCKS


def test_a_few_trials_cover_a_known_factor() -> None:
    """What docs/statistics.md has exactly, roughly: of 40 trials nearly all cover 1.2, and few cover 1."""
    intervals = [Paired(*independent(seed, 2000, 1.2)).interval("mean") for seed in range(40)]
    known = [interval for interval in intervals if interval is not None]
    assert len(known) == 40
    assert all(each.ratio for each in known)
    assert sum(each.low <= 1.2 <= each.high for each in known) >= 34
    assert sum(each.has_nothing for each in known) <= 6


def test_the_same_values_differ_by_nothing() -> None:
    """Resamples are the same ones on both sides, so a run and itself have a point for interval."""
    values = pl.Series([float(number % 7) for number in range(LEAST_JOBS)])
    for statistic, nothing in (("mean", 1), ("total", 1), ("p95", 1), ("p50", 1)):
        interval = Paired(values, values).interval(statistic)
        assert interval is not None
        assert (interval.low, interval.high, interval.p) == pytest.approx((nothing, nothing, 1))


@pytest.mark.parametrize("statistic", ["mean", "p50", "p99"])
def test_a_constant_difference_is_certain(statistic: str) -> None:
    """Every job waits 5 s longer than nothing: whatever is drawn, so does the statistic."""
    nothing = pl.Series([0.0] * 3000)
    interval = Paired(nothing, nothing + 5).interval(statistic)
    assert interval is not None
    assert (interval.low, interval.high, interval.ratio) == (5, 5, False)
    assert interval.p == 0


def test_of_few_jobs_nothing_is_said() -> None:
    """Too few for blocks, or none with a value on one side, give no interval."""
    few = pl.Series([1.0] * (LEAST_JOBS - 1))
    assert Paired(few, few + 1).interval("mean") is None
    many = pl.Series([1.0] * LEAST_JOBS)
    nothing = pl.Series([None] * LEAST_JOBS, dtype=pl.Float64)
    assert Paired(many, nothing).interval("mean") is None
    assert Paired(many, nothing).interval("p50") is None


def test_lost_work_of_few_blocks_is_told_from_none() -> None:
    """Nothing on one side, and most of it in one block on the other: a standard error would see nothing."""
    nothing = pl.Series([0.0] * 1024)
    lost = [0.0] * 1024
    for block in range(0, BLOCKS, 3):
        lost[block * 32] = 10_000.0 if block == 3 else 10.0
    interval = Paired(nothing, pl.Series(lost)).interval("total")
    assert interval is not None
    assert interval.low > 0
    assert interval.p == 2.0 ** (1 - 11)


def test_signs_of_blocks_are_drawn_where_they_differ() -> None:
    """Losses on both sides alike are no difference."""
    ours = pl.Series([float(number % 5) for number in range(1024)])
    interval = Paired(ours, ours.reverse()).interval("total")
    assert interval is not None
    assert interval.has_nothing
    assert interval.p > 0.5


def test_a_series_levels_off_where_neighbours_have_nothing_in_common() -> None:
    """Independent jobs do; jobs that follow each other, and queues that grow, do not."""
    draw = np.random.default_rng(1)
    levelled = [levels_off(draw.exponential(size=20_000)) for _ in range(20)]
    walks = [levels_off(draw.normal(size=20_000).cumsum()) for _ in range(20)]
    assert sum(levelled) >= 14
    assert sum(walks) == 0
    assert not levels_off(np.arange(5000.0))
    assert levels_off(np.zeros(200))


def test_a_congested_pair_is_known_by_either_run() -> None:
    """Also where the difference itself is small."""
    draw = np.random.default_rng(2)
    calm = pl.Series(draw.exponential(size=9000))
    jammed = pl.Series(np.abs(draw.normal(size=9000).cumsum()))
    assert not Paired(calm, calm * 1.1).congested("mean")
    assert Paired(jammed, jammed).congested("mean")
    assert Paired(calm, jammed).congested("mean")


def test_a_few_large_losses_are_told_though_small_ones_follow_each_other() -> None:
    """Their sum is as good as independent; ranks, which all blocks count alike in, are not."""
    draw = np.random.default_rng(5)
    lost = np.where(np.arange(9_000) // 500 % 2, 1.0, 0.0)
    lost[draw.integers(0, 9_000, 200)] += draw.exponential(500, size=200)
    paired = Paired(pl.Series(np.zeros(9_000)), pl.Series(lost))
    assert paired.congested("mean")
    assert not paired.congested("total")


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 50)), min_size=40, max_size=90), st.sampled_from([50, 95])
)
def test_resampled_percentiles_are_those_of_what_was_drawn(values: list[int | None], percent: int) -> None:
    """Counted out for some resamples: between the order statistics on either side of the percentile."""
    column = np.array([float("nan") if value is None else float(value) for value in values])
    found = _Sample(column, BLOCKS).resampled(f"p{percent}")
    times = _times(BLOCKS)
    for resample in range(0, RESAMPLES, 250):
        drawn = sorted(
            value
            for row, value in enumerate(values)
            if value is not None
            for _ in range(int(times[resample, row * BLOCKS // len(values)]))
        )
        if not drawn:
            assert np.isnan(found[resample])
            continue
        place = percent / 100 * (len(drawn) - 1)
        low, high = drawn[int(place)], drawn[min(int(place) + 1, len(drawn) - 1)]
        assert low - 1e-9 <= found[resample] <= high + 1e-9


def test_blocks_are_drawn_alike_everywhere() -> None:
    """As Python's own generator promises on every version."""
    draw = random.Random(1).random
    first = [int(draw() * BLOCKS) for _ in range(BLOCKS)]
    assert _times(BLOCKS)[0].tolist() == [first.count(block) for block in range(BLOCKS)]
    assert _times(BLOCKS).sum(axis=1).tolist() == [BLOCKS] * (RESAMPLES + 1) + [BLOCKS - 1] * BLOCKS


# --- twins ------------------------------------------------------------------------------------------------


def test_twins_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), Student's t of two degrees 4.303."""
    interval = of_pairs([0, 1, 0], [1, 3, 3], ratio=False)
    assert interval is not None
    wide = 4.302653 / 3**0.5
    assert (interval.low, interval.high) == pytest.approx((2 - wide, 2 + wide), abs=1e-5)
    assert interval.p == pytest.approx(0.0742, abs=1e-4)
    assert (interval.size, interval.ratio) == (3, False)


def test_what_can_only_be_above_0_differs_by_a_factor() -> None:
    """Twice and eight times as much is four times on the whole; an interval never goes below nothing."""
    interval = of_pairs([1, 10], [2, 80], ratio=True)
    assert interval is not None
    assert (interval.low * interval.high) ** 0.5 == pytest.approx(4)
    assert 0 < interval.low < 1 < interval.high


@pytest.mark.parametrize(("ratio", "nothing"), [(True, 1), (False, 0)])
def test_what_never_varies_is_certain(ratio: bool, nothing: float) -> None:
    """Equal values differ by nothing, and a constant difference is a point.

    Of fewer than six pairs it may be there by chance: all five are to one side in 1 of 16 times.
    """
    same = of_pairs([3, 4, 5], [3, 4, 5], ratio=ratio)
    assert same is not None
    assert (same.low, same.high, same.p, same.certain) == (nothing, nothing, 1, True)
    other = of_pairs([2, 2, 2], [4, 4, 4], ratio=ratio)
    assert other is not None
    assert (other.low, other.p, other.certain) == (pytest.approx(2), 1 / 4, True)
    for count, p in ((2, 1 / 2), (5, 1 / 16), (6, 0)):
        several = of_pairs([2] * count, [4] * count, ratio=ratio)
        assert several is not None
        assert (several.p, several.certain) == (p, True)
    assert of_pairs([1], [2], ratio=ratio) is None


@given(
    st.lists(
        st.floats(-5, 5, allow_subnormal=False).map(lambda value: round(value, 3)), min_size=2, max_size=12
    )
)
def test_p_is_below_the_level_only_where_0_is_outside(differences: list[float]) -> None:
    """A verdict and its interval never contradict each other; a point of few pairs has no verdict."""
    interval = of_pairs([0.0] * len(differences), differences, ratio=False)
    assert interval is not None
    few = interval.certain and len(differences) < ALIKE
    assert (interval.has_nothing or few) == (interval.p >= LEVEL)


@given(st.floats(-9, 9), st.floats(0.01, 3), st.floats(-5, 5), st.sampled_from([3, 10, 32]))
def test_skewed_ends_and_p_say_the_same(estimate: float, error: float, skew: float, count: int) -> None:
    """And neither end is nearer than Student's."""
    low, high = ends_of_mean(estimate, error, skew, count)
    wide = error * t_quantile((1 + CONFIDENCE) / 2, count - 1)
    assert low <= estimate - wide + 1e-9
    assert high >= estimate + wide - 1e-9
    p = p_of_mean(estimate, error, skew, count)
    assert (low <= 0 <= high) == (p >= LEVEL) or abs(p - LEVEL) < 1e-9


def test_an_interval_reaches_further_to_the_side_of_a_long_tail() -> None:
    """Of values with a long tail above, the mean is more often far below the truth than far above it."""
    low, high = ends_of_mean(0, 1, 2, 10)
    assert high > -low
    assert skewness([0, 0, 0, 9]) > 0 > skewness([9, 9, 9, 0])
    assert skewness([0, 1, 2]) == skewness([1, 2]) == 0


def test_memory_makes_errors_larger() -> None:
    """Where longer blocks vary more than shorter ones would have it; never smaller."""
    draw = np.random.default_rng(3)
    assert 1 <= memory(draw.normal(size=8_000), 32) < 1.5
    assert memory(np.repeat(draw.normal(size=16), 500), 32) > 1.3
    assert memory(np.zeros(200), 32) == 1


def test_students_t() -> None:
    """By tables t of 2.131 at 15 degrees and 2.042 at 30 leave 2.5 % above them."""
    assert t_quantile((1 + CONFIDENCE) / 2, 15) == pytest.approx(2.131, abs=5e-4)
    assert t_quantile((1 + CONFIDENCE) / 2, 30) == pytest.approx(2.042, abs=5e-4)
    assert p_value(-2.131, 1, 15) == pytest.approx(0.05, abs=1e-4)
    assert (p_value(0, 0, 15), p_value(1, 0, 15)) == (1, 0)


def test_holm_by_hand() -> None:
    """0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1, and none smaller than one before: 0.04 0.06 0.06 0.5."""
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([]) == []
