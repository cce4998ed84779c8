"""A forecast of the past beside what came."""

from __future__ import annotations

from typing import NamedTuple

from harness.studies.forecasting.quantiles import Times, quantiles

_UNKNOWN: Times = (None, None, None)


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
