"""Random numbers that anybody can compute again."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.trace.generate.distributions import (
    Choice,
    Clipped,
    Distribution,
    LogNormal,
    Pareto,
    Uniform,
    Weibull,
    pick,
)
from harness.trace.generate.uniform import key_of, splitmix64, uniforms

_WORD = 2**64


def reference(state: int) -> int:
    """One step of SplitMix64 as its paper writes it, in Python's own integers."""
    mixed = (state + 0x9E3779B97F4A7C15) % _WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % _WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % _WORD
    return mixed ^ (mixed >> 31)


def test_the_generator_is_splitmix64() -> None:
    """The outputs that are published for the seed 1234567."""
    assert splitmix64(1234567, pl.int_range(3, eager=True)).to_pylist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@given(st.integers(0, _WORD - 1), st.integers(0, 2**40))
def test_any_number_is_there_without_those_before(key: int, number: int) -> None:
    """Random numbers are a function of key and counter."""
    state = (key + number * 0x9E3779B97F4A7C15) % _WORD
    assert splitmix64(key, pl.Series([number])).to_pylist() == [reference(state)]


def test_uniforms_are_within_and_even() -> None:
    """Never 0 or 1, so that logarithms are finite; ten bins hold a tenth each."""
    drawn = uniforms(key_of(1, "a"), pl.int_range(100_000, eager=True))
    assert drawn.is_between(0, 1, closed="none").all()
    counts = (drawn * 10).floor().value_counts()["count"]
    assert all(abs(count - 10_000) < 400 for count in counts)


def test_keys_of_other_purposes_are_unrelated() -> None:
    """Durations do not follow sizes."""
    numbers = pl.int_range(20_000, eager=True)
    one, other = (uniforms(key_of(1, "a", purpose), numbers) for purpose in ("duration", "size"))
    frame = pl.DataFrame({"one": one, "other": other})
    assert abs(frame.select(pl.corr("one", "other")).item()) < 0.02


@pytest.mark.parametrize(
    ("distribution", "quantiles"),
    [
        (LogNormal(600, 3600), {0.5: 600, 0.9: 3600}),
        (Weibull(1000), {0.5: 693, 0.9: 2303}),
        (Pareto(100, 2.0), {0.5: 141, 0.75: 200}),
        (Uniform(1, 100), {0.5: 50, 0.9: 90}),
        (Clipped(Weibull(1000), 900, 1100), {0.1: 900, 0.9: 1100}),
        (Choice([1, 8], [3.0, 1.0]), {0.7: 1, 0.8: 8}),
    ],
)
def test_distributions_have_their_quantiles(distribution: Distribution, quantiles: dict[float, int]) -> None:
    """What a specification says is what comes out."""
    numbers = pl.int_range(100_000, eager=True)
    values = distribution.values(lambda purpose: uniforms(key_of(3, purpose), numbers))
    for share, value in quantiles.items():
        assert values.quantile(share, "nearest") == pytest.approx(value, rel=0.03)


@given(st.lists(st.floats(0.0, 10.0), min_size=1), st.floats(1e-9, 1 - 1e-9))
def test_what_has_no_weight_is_never_picked(weights: list[float], number: float) -> None:
    """A weight of 0 is never, at the ends of the numbers too."""
    if sum(weights) > 0.1:
        assert weights[pick(weights, pl.Series([number]))[0]] > 0
