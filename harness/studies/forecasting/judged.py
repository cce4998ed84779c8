"""A forecast of the past beside what came."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from harness.studies.forecasting.quantiles import SHARES, Times, quantiles

_UNKNOWN: Times = (None, None, None)
_OUTSIDE = 2 / (1 - (SHARES[2] - SHARES[0]))
"""What a start outside of its interval costs for each unit of time."""


class Judged(NamedTuple):
    """A workload that waited at a moment, as it was forecast and as it came.

    Attributes:
        moment: when it was forecast, microseconds on the history's clock.
        job: its name in the record.
        starts: of each future when it started, microseconds from then; -1 for not by the horizon.
        truth: when it started by the record; None for never as far as that says.
        queue: where it waited.
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
        """The quantiles of its starts in the futures."""
        return quantiles([None if start < 0 else start for start in self.starts])

    def came(self, horizon: int) -> float:
        """How long after the moment it started, microseconds; the horizon for later."""
        return within(None if self.truth is None else self.truth - self.moment, horizon)


def within(time: float | None, horizon: int) -> float:
    """A time as far as the horizon, where all that is later counts as then."""
    return horizon if time is None else min(time, horizon)


class Held(NamedTuple):
    """A forecast and what came, as far as the horizon; microseconds from the moment."""

    moment: int
    low: float
    middle: float
    high: float
    came: float

    @property
    def interval_score(self) -> float:
        """The width, and ten times what the start is outside by (Winkler, 1972); microseconds."""
        outside = max(self.low - self.came, 0.0) + max(self.came - self.high, 0.0)
        return self.high - self.low + _OUTSIDE * outside

    @property
    def pinball(self) -> float:
        """The mean pinball loss of the three quantiles, microseconds."""
        misses = ((self.came - time, share) for time, share in zip(self[1:4], SHARES, strict=True))
        return fmean(max(share * miss, (share - 1) * miss) for miss, share in misses)
