"""Derives intervals from the errors of past forecasts, by adaptive conformal prediction in log time.

Forecasts at past moments of the same history are compared with the actual starts, which gives errors (Vovk,
Gammerman, Shafer: Algorithmic Learning in a Random World, 2005). An error is the factor between a forecast
and the actual start. The quantiles of these factors give the interval of a new forecast. Starts after the
same moment depend on each other, so each moment counts once, however many workloads wait. If recent intervals
missed more starts than intended, new intervals become wider; if they missed fewer, narrower (Gibbs, Candes:
Adaptive Conformal Inference Under Distribution Shift, 2021).

The centre of an interval is either the median of the futures, or the geometric mean of this median and the
mean wait of the week. The module chooses the centre whose past intervals have the smaller interval score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from harness.base.units import MINUTE
from harness.studies.forecasting.judged import Held, Judged, within
from harness.studies.forecasting.quantiles import SHARES, Times

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

Centre = Callable[["float | None", Times, int], float]
"""Returns the log of a forecast, given the median of the futures, the week's waits, and the horizon."""

LEAST = 9
"""The minimum number of moments for an interval.

With fewer moments, no error is known to exceed nine errors in ten.
"""

ENOUGH = 20
"""The minimum number of moments for a group of forecasts with the same queue or similar waits."""

ALIKE = 2.0
"""Two forecasts are similar if the logs of their medians differ by at most this number."""

PACE = 0.02
"""How fast intervals widen after misses, and narrow after hits. It moves the target for misses."""

_MOST = 0.4
_LARGEST = 60.0
_STEPS = 4
"""Before similar waits are searched, the logs of predicted waits are rounded to one part in this number."""


class Interval(NamedTuple):
    """The interval that contains a start in 80 of 100 cases, judging by the errors of earlier forecasts.

    Attributes:
        low, middle, high: the quantiles of `SHARES`, in microseconds from now; None for times after the
            horizon.
        moments: the number of moments with similar forecasts, from which the interval is derived.
    """

    low: float | None
    middle: float | None
    high: float | None
    moments: int

    @property
    def times(self) -> Times:
        """The three quantiles."""
        return self.low, self.middle, self.high


def of_futures(middle: float | None, week: Times, horizon: int) -> float:
    """Returns the log of the median start in the futures."""
    return _log(within(middle, horizon))


def of_both(middle: float | None, week: Times, horizon: int) -> float:
    """Returns the log of the geometric mean of the median start in the futures and the mean in `week`."""
    return (_log(within(middle, horizon)) + _log(within(week[1], horizon))) / 2


CENTRES: tuple[Centre, ...] = (of_futures, of_both)


class Errors:
    """The errors of past forecasts.

    Args:
        judged: the past forecasts, in any order.
        horizon: the horizon of the forecasts, in microseconds.
    """

    def __init__(self, judged: Sequence[Judged], horizon: int) -> None:
        ordered = sorted(judged, key=lambda each: (each.moment, each.job))
        self._around = [_Around(ordered, horizon, centre) for centre in CENTRES]

    def by(self, now: int | None) -> Calibration:
        """Returns the calibration from the errors that are known by `now`. If `now` is None, all count."""
        best = min(self._around, key=lambda around: around.score(now))
        return best.by(now)


class _Around:
    """The errors of past forecasts, in order of their moments, for one kind of centre."""

    def __init__(self, judged: Sequence[Judged], horizon: int, centre: Centre) -> None:
        import numpy as np

        self._horizon, self._centre = horizon, centre
        came = [each.came(horizon) for each in judged]
        moments = [each.moment for each in judged]
        self._moments = np.array(moments, dtype=np.int64)
        self._queues = np.array([each.queue for each in judged], dtype=object)
        self._middles = np.array([centre(each.futures[1], each.week, horizon) for each in judged])
        self._came = np.array([_log(time) for time in came])
        known_at = [moment + math.ceil(time) for moment, time in zip(moments, came, strict=True)]
        self._known_at = np.array(known_at, dtype=np.int64)
        self._steps: list[_Step] = []
        for moment, several in groupby(judged, lambda each: each.moment):
            self._step(moment, list(several))

    def score(self, now: int | None) -> float:
        """Returns the mean interval score of the moments that are known by a time, or 0 if there are none."""
        scores = [step.score for step in self._known_steps(now)]
        return fmean(scores) if scores else 0.0

    def by(self, now: int | None) -> Calibration:
        import numpy as np

        low = high = SHARES[0]
        for step in self._known_steps(now):
            low += PACE * (SHARES[0] - step.early)
            high += PACE * (SHARES[0] - step.late)
        past = known = np.ones(len(self._moments), dtype=np.bool_)
        came = self._came
        if now is not None:
            past, known = self._moments < now, self._known_at <= now
            waited = np.array([_log(max(0, now - moment)) for moment in self._moments.tolist()])
            came = np.where(known, came, waited)
        return Calibration(
            _Aim(self._horizon, self._centre, max(0.0, min(low, _MOST)), max(0.0, min(high, _MOST))),
            self._moments[past],
            self._queues[past],
            self._middles[past],
            came[past] - self._middles[past],
            known[past],
        )

    def _known_steps(self, now: int | None) -> Iterator[_Step]:
        return (step for step in self._steps if now is None or step.known_at <= now)

    def _step(self, moment: int, judged: Sequence[Judged]) -> None:
        calibration = self.by(moment)
        if calibration.moments < LEAST:
            return
        held = []
        for each in judged:
            interval = calibration.interval(each.queue, each.futures[1], each.week)
            assert interval is not None
            low, _, high = (within(time, self._horizon) for time in interval.times)
            held.append(Held(moment, low, low, high, each.came(self._horizon)))
        known = max(moment + math.ceil(each.came) for each in held)
        early = fmean(each.came < each.low for each in held)
        late = fmean(each.came > each.high for each in held)
        self._steps.append(_Step(known, early, late, fmean(each.interval_score for each in held)))


class _Step(NamedTuple):
    """The misses of the intervals at one moment.

    Attributes:
        known_at: when all starts after the moment are known, in microseconds.
        early, late: the shares of the starts before and after their intervals.
        score: the mean interval score of these intervals.
    """

    known_at: int
    early: float
    late: float
    score: float


class _Aim(NamedTuple):
    """What intervals should achieve.

    Attributes:
        horizon: the horizon of the futures, in microseconds.
        low, high: the shares of the starts that should be below and above the intervals.
    """

    horizon: int
    centre: Centre
    low: float
    high: float


class Calibration:
    """Derives the interval of a new forecast from the errors of past forecasts.

    Args:
        moments, queues, middles: the moment, the queue, and the log of the centre of each forecast.
        errors: the log of `actual start / centre` for each forecast. If the job has not started, this is the
            smallest possible value.
        known: whether the job has started.
    """

    def __init__(
        self,
        aim: _Aim,
        moments: npt.NDArray[np.int64],
        queues: npt.NDArray[np.object_],
        middles: Floats,
        errors: Floats,
        known: Flags,
    ) -> None:
        self._aim = aim
        self._moments, self._queues, self._middles = moments, queues, middles
        self._errors, self._known = errors, known
        self._kept: dict[tuple[str, int], tuple[float, float, float, int]] = {}
        self.moments = len(set(moments.tolist()))

    def interval(self, queue: str, middle: float | None, week: Times) -> Interval | None:
        """Returns the interval of a start, or None if too few moments have errors.

        `middle` is the median start of the workload in the futures, or None if the median is after the
        horizon. For `week`, see `harness.studies.forecasting.baselines`.
        """
        if self.moments < LEAST:
            return None
        log = self._aim.centre(middle, week, self._aim.horizon)
        key = queue, round(log * _STEPS)
        if key not in self._kept:
            self._kept[key] = self._factors(queue, key[1] / _STEPS)
        *factors, moments = self._kept[key]
        low, half, high = (self._time(log + factor) for factor in factors)
        return Interval(low, half, high, int(moments))

    def _time(self, log: float) -> float | None:
        found = max(0.0, float(round(math.exp(min(log, _LARGEST)) - MINUTE)))
        return None if found >= self._aim.horizon else found

    def _factors(self, queue: str, middle: float) -> tuple[float, float, float, int]:
        """Returns the logs of the factors for the three quantiles, and the number of moments behind them."""
        alike = abs(self._middles - middle) <= ALIKE
        for these in (alike & (self._queues == queue), alike):
            count = len(set(self._moments[these].tolist()))
            if count >= ENOUGH:
                break
        else:
            these, count = alike | True, self.moments
        below = max(0.0, 1 - (1 - self._aim.low) * (count + 1) / count)
        above = max(0.0, 1 - (1 - self._aim.high) * (count + 1) / count)
        low, half, high = (self._quantile(these, share) for share in (below, SHARES[1], 1 - above))
        return min(low, float(self._errors[these].max())), half, high, count

    def _quantile(self, these: Flags, share: float) -> float:
        """Returns the error that a share of the errors does not exceed. Moments have equal weights.

        If a job has not started, its start counts as later than the time so far (Kaplan and Meier, 1958).
        """
        import numpy as np

        errors, known = self._errors[these], self._known[these]
        _, inverse, counts = np.unique(self._moments[these], return_inverse=True, return_counts=True)
        order = np.lexsort((~known, errors))
        weights = (1.0 / counts[inverse])[order]
        at_risk = np.maximum(weights[::-1].cumsum()[::-1], weights)
        left = np.cumprod(np.where(known[order], 1 - weights / at_risk, 1.0))
        over = np.flatnonzero((1 - left >= share - 1e-9) & known[order])
        return float(errors[order][over[0]]) if len(over) else math.inf


def _log(time: float) -> float:
    """Returns the log of a time plus one minute, so that the logs of short times hardly differ."""
    return math.log(time + MINUTE)
