"""Draws the submission times of jobs. Arrivals are Poisson, diurnal, bursty, or at regular intervals.

All random processes are derived from a single Poisson process with rate 1. Its time is stretched while few
jobs arrive, and compressed while many jobs arrive (time change by the integrated rate). As a result, the
processes differ only in their rate over time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from harness.base.errors import Fault, SpecError
from harness.base.units import DAY, HOUR, INT64_MAX
from harness.trace.generate.uniform import key_of, uniforms

_JOB = 1_000_000_000
"""The number of units per job in the integrated rate. Billionths of a job make sums exact."""


_MOST = INT64_MAX // 4
"""The largest increase in a single step, so that no sum overflows. It exceeds the number of jobs in the
largest trace.
"""

_MOST_STATES = 1_000_000
"""The maximum number of state changes of a bursty process. A higher number probably means a wrong unit."""

_END = INT64_MAX // 4
"""The latest time, so that no time overflows. Traces of more than a hundred years are rejected."""


class Arrivals(Protocol):
    """An arrival process that has started."""

    def times(self, count: int) -> pl.Series:
        """Returns the next submissions as int64 microseconds since the origin, in ascending order."""


class Process(Protocol):
    """An arrival process."""

    @property
    def pace(self) -> float:
        """The mean number of jobs per microsecond."""

    def begun(self, key: int) -> Arrivals:
        """Starts the process. Its random numbers are derived from `key`."""


@dataclass(frozen=True, slots=True)
class Regular:
    """Arrivals at regular intervals of `every` microseconds.

    The first job arrives after `first` microseconds.
    """

    every: int
    first: int

    @property
    def pace(self) -> float:
        """See `Process`."""
        return 1 / max(self.every, 1)

    def begun(self, key: int) -> Arrivals:
        """See `Process`. This process has no randomness."""
        return _Regular(self.every, self.first)


class _Regular:
    def __init__(self, every: int, first: int) -> None:
        self._every, self._first, self._made = every, first, 0

    def times(self, count: int) -> pl.Series:
        numbers = pl.int_range(self._made, self._made + count, eager=True)
        self._made += count
        return numbers.clip(0, _END // max(self._every, 1)) * self._every + self._first


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals at a constant rate, in jobs per microsecond."""

    rate: float

    @property
    def pace(self) -> float:
        """See `Process`."""
        return self.rate

    def begun(self, key: int) -> Arrivals:
        """See `Process`."""
        return _Changed(key, _cyclic([DAY], [self.rate]))


@dataclass(frozen=True, slots=True)
class Diurnal:
    """Arrivals with a rate that varies over the day and is lower on weekends.

    The origin is the start of a Monday.

    Attributes:
        rate: the mean rate over a week, in jobs per microsecond.
        swing: the maximum relative deviation of an hour's rate from the mean of its day, from 0 to 1.
        peak: the hour of the day with the highest rate, from 0 to 23.
        weekend: the rate on a weekend day divided by the rate on a weekday.
    """

    rate: float
    swing: float
    peak: int
    weekend: float

    @property
    def pace(self) -> float:
        """See `Process`."""
        return self.rate

    def begun(self, key: int) -> Arrivals:
        """See `Process`."""
        days = [1.0] * 5 + [self.weekend] * 2
        # The rate is a triangle over the day. A triangle is exact, but a sine would differ between machines.
        hours = [
            1 + self.swing * (1 - min(abs(h - self.peak), 24 - abs(h - self.peak)) / 6) for h in range(24)
        ]
        weights = [day * hour for day in days for hour in hours]
        mean = sum(weights) / len(weights)
        return _Changed(key, _cyclic([HOUR] * 168, [self.rate * weight / mean for weight in weights]))


@dataclass(frozen=True, slots=True)
class Bursty:
    """A Markov-modulated Poisson process. Each state lasts for an exponentially distributed time.

    Attributes:
        rates: the rate of each state, in jobs per microsecond.
        stays: the mean duration of each state, in microseconds. The last state is followed by the first.
    """

    rates: Sequence[float]
    stays: Sequence[int]

    @property
    def pace(self) -> float:
        """See `Process`."""
        jobs = sum(rate * stay for rate, stay in zip(self.rates, self.stays, strict=True))
        return jobs / sum(self.stays)

    def begun(self, key: int) -> Arrivals:
        """See `Process`."""
        return _Changed(key, _Modulated(self.rates, self.stays, key_of(key, "states")).times)


class _Changed:
    """A Poisson process with rate 1 and a time change.

    `time_of` returns the times at which the integrated rate has given values, in units of 1 / `_JOB` jobs.
    """

    def __init__(self, key: int, time_of: Callable[[pl.Series], pl.Series]) -> None:
        self._key, self._time_of = key_of(key, "arrivals"), time_of
        self._made = self._reached = 0

    def times(self, count: int) -> pl.Series:
        numbers = pl.int_range(self._made, self._made + count, eager=True)
        self._made += count
        gaps = (-uniforms(self._key, numbers).log() * _JOB).round(0).cast(pl.Int64)
        reached = gaps.cum_sum() + self._reached
        self._reached = int(reached[-1])
        return self._time_of(reached)


def _cyclic(spans: Sequence[int], rates: Sequence[float]) -> Callable[[pl.Series], pl.Series]:
    """Returns a `time_of` function for a repeating rate that is constant within each span of microseconds."""
    steps = _Steps(list(spans), list(rates))
    whole, cycle = steps.reached, steps.ends

    def time_of(reached: pl.Series) -> pl.Series:
        rounds = reached // whole
        return rounds.clip(0, _END // cycle) * cycle + steps.times(reached - rounds * whole)

    return time_of


class _Steps:
    """A piecewise constant rate, and the times at which its integral has given values."""

    def __init__(self, spans: Sequence[int] = (), rates: Sequence[float] = ()) -> None:
        self._starts: list[int] = []  # microseconds
        self._before: list[int] = []  # integrated rate, in billionths of a job
        self._paces: list[float] = []  # microseconds per billionth of a job
        self.ends = self.reached = 0
        for span, rate in zip(spans, rates, strict=True):
            self.add(span, rate)

    def add(self, span: int, rate: float) -> None:
        gained = round(span * rate * _JOB)
        if gained:  # a step without arrivals needs no entry
            self._starts.append(self.ends)
            self._before.append(self.reached)
            self._paces.append(span / gained)
        self.ends += span
        self.reached += min(gained, _MOST)  # larger than any number of jobs

    def times(self, reached: pl.Series) -> pl.Series:
        """Returns the times at which the integral has the given values.

        All values must be below `self.reached`.
        """
        before = pl.Series(self._before, dtype=pl.Int64)
        place = before.search_sorted(reached, side="right").cast(pl.Int64) - 1
        late = (reached - before.gather(place)).cast(pl.Float64) * pl.Series(self._paces).gather(place)
        late = late.clip(0.0, float(_END))
        return pl.Series(self._starts, dtype=pl.Int64).gather(place) + late.floor().cast(pl.Int64)


class _Modulated:
    """The states of a bursty process, which are drawn on demand."""

    def __init__(self, rates: Sequence[float], stays: Sequence[int], key: int) -> None:
        self._rates, self._stays, self._key = rates, stays, key
        self._steps, self._drawn = _Steps(), 0

    def times(self, reached: pl.Series) -> pl.Series:
        needed = int(reached[-1])
        while self._steps.reached <= needed and self._steps.ends < _END:
            if self._drawn > _MOST_STATES:
                what = f"changes its state more than {_MOST_STATES:,} times before enough jobs arrive"
                hint = "are `rate` and `stay` given in the right unit?"
                raise SpecError("bursty", [Fault("", what)], hint=hint)
            numbers = pl.int_range(self._drawn, self._drawn + 256, eager=True)
            for share in (-uniforms(self._key, numbers).log()).to_list():
                state = self._drawn % len(self._rates)
                self._steps.add(max(1, round(share * self._stays[state])), self._rates[state])
                self._drawn += 1
        return self._steps.times(reached)
