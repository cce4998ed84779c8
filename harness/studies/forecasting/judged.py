"""Holds past forecasts together with the actual starts."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from harness.studies.forecasting.quantiles import SHARES, Times, quantiles

_UNKNOWN: Times = (None, None, None)
_OUTSIDE = 2 / (1 - (SHARES[2] - SHARES[0]))
"""The penalty for a start outside its interval is its distance from the interval times this factor."""


class Judged(NamedTuple):
    """A workload that waited at a moment, with its forecast and actual start.

    Attributes:
        moment: the moment of the forecast, in microseconds on the history's clock.
        job: the name of the workload in the record.
        starts: the workload's start in each future, in microseconds from the moment; -1 if it does not start
            by the horizon.
        truth: the workload's start in the record; None if the record has no start.
        week, regression: the two simple forecasts of `harness.studies.forecasting.baselines`.
    """

    moment: int
    job: str
    starts: tuple[int, ...]
    truth: int | None
    queue: str = ""
    week: Times = _UNKNOWN
    regression: Times = _UNKNOWN

    @property
    def futures(self) -> Times:
        """The quantiles of the workload's starts in the futures."""
        return quantiles([None if start < 0 else start for start in self.starts])

    def came(self, horizon: int) -> float:
        """Returns the time from the moment to the start, in microseconds, but at most the horizon."""
        return within(None if self.truth is None else self.truth - self.moment, horizon)


def within(time: float | None, horizon: int) -> float:
    """Returns a time, or the horizon if the time is later or unknown."""
    return horizon if time is None else min(time, horizon)


class Held(NamedTuple):
    """A forecast and the actual start, in microseconds from the moment, but at most the horizon."""

    moment: int
    low: float
    middle: float
    high: float
    came: float

    @property
    def interval_score(self) -> float:
        """The interval's width, plus ten times the start's distance from the interval (Winkler, 1972)."""
        outside = max(self.low - self.came, 0.0) + max(self.came - self.high, 0.0)
        return self.high - self.low + _OUTSIDE * outside

    @property
    def pinball(self) -> float:
        """The mean pinball loss of the three quantiles, in microseconds."""
        misses = ((self.came - time, share) for time, share in zip(self[1:4], SHARES, strict=True))
        return fmean(max(share * miss, (share - 1) * miss) for miss, share in misses)
