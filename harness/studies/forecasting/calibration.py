"""Intervals as wide as forecasts of this history were off: adaptive conformal prediction in log time.

At moments of the past, what was forecast is compared with what came (Vovk, Gammerman, Shafer: Algorithmic
Learning in a Random World, 2005). The quantiles of these errors, as factors of the forecast, make the
interval of a new one. Starts of one moment depend on each other, so a moment counts once, however many wait
at it. The
share that is to lie outside follows what recent intervals missed (Gibbs, Candes: Adaptive Conformal Inference
Under Distribution Shift, 2021).

An interval is around one of two centres: the median of the futures, or the geometric mean of that and of the
mean wait of the week. The better one is that whose intervals had the smaller interval score until now.
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
"""Makes the log of a forecast of the median of the futures, the waits of the week and the horizon."""

LEAST = 9
"""With fewer moments than this no error is large enough to be beyond nine in ten: there is no interval."""

ENOUGH = 20
"""With fewer moments than this, forecasts of one queue or of like waits are no group of their own."""

ALIKE = 2.0
"""Forecasts whose medians differ by no more than this power of e are alike."""

PACE = 0.02
"""How fast the shares outside follow what recent intervals missed."""

_MOST = 0.4
_LARGEST = 60.0
_STEPS = 4
"""A predicted wait is rounded to this part of a power of e before others like it are looked for."""


class Interval(NamedTuple):
    """Where a start lies in 80 of 100 cases, by how far forecasts were off before.

    Attributes:
        low, middle, high: the quantiles of `SHARES`, microseconds from now; None for later than the horizon.
        moments: at how many moments there were forecasts like it.
    """

    low: float | None
    middle: float | None
    high: float | None
    moments: int

    @property
    def times(self) -> Times:
        """The quantiles."""
        return self.low, self.middle, self.high


def of_futures(middle: float | None, week: Times, horizon: int) -> float:
    """The log of the median of the futures."""
    return _log(within(middle, horizon))


def of_both(middle: float | None, week: Times, horizon: int) -> float:
    """The log of the geometric mean of that and of the mean wait of the week."""
    return (_log(within(middle, horizon)) + _log(within(week[1], horizon))) / 2


CENTRES: tuple[Centre, ...] = (of_futures, of_both)
"""Around these intervals are made."""


class Errors:
    """How far forecasts of the past were off.

    Args:
        judged: those forecasts, in any order.
        horizon: of their futures, microseconds.
    """

    def __init__(self, judged: Sequence[Judged], horizon: int) -> None:
        ordered = sorted(judged, key=lambda each: (each.moment, each.job))
        self._around = [_Around(ordered, horizon, centre) for centre in CENTRES]

    def by(self, now: int | None) -> Calibration:
        """What is known of them by a time on their clock; all of it where that is None."""
        best = min(self._around, key=lambda around: around.score(now))
        return best.by(now)


class _Around:
    """How far forecasts of the past were off that are made of one centre.

    Args:
        judged: those forecasts, ascending by moment.
        horizon: of their futures, microseconds.
        centre: the forecast.
    """

    def __init__(self, judged: Sequence[Judged], horizon: int, centre: Centre) -> None:
        import numpy as np

        self._judged, self._horizon, self._centre = judged, horizon, centre
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
        """The mean interval score over the moments that are known by a time; 0 where none is."""
        scores = [step.score for step in self._known_steps(now)]
        return fmean(scores) if scores else 0.0

    def by(self, now: int | None) -> Calibration:
        """See `Errors`."""
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
        """Keep what intervals of a moment missed that were made by the moments before it."""
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
    """What the intervals of one moment missed.

    Attributes:
        known_at: since when all of its starts are known, microseconds.
        early, late: the shares of the starts before and after their intervals.
        score: their mean interval score.
    """

    known_at: int
    early: float
    late: float
    score: float


class _Aim(NamedTuple):
    """What intervals are to be.

    Attributes:
        horizon: of the futures, microseconds.
        centre: around which they are.
        low, high: the shares of the starts that are to lie below and above.
    """

    horizon: int
    centre: Centre
    low: float
    high: float


class Calibration:
    """What errors of the past say of a new forecast.

    Args:
        aim: what intervals are to be.
        moments, queues, middles: when and for which queue was forecast, and the log of the centre.
        errors: the log of what came as a factor of the centre; of what has not come, its least value.
        known: whether it has come.
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
        """The interval of a start; None where too few moments say anything.

        Args:
            queue: where the workload waits.
            middle: the median of its starts in the futures; None for later than the horizon.
            week: the mean wait of the week, see `harness.studies.forecasting.baselines`.
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
        """The logs of the factors of the three quantiles, and how many moments they are from.

        They are from the same queue and predicted waits like this one, else from such waits of all queues,
        else from all.
        """
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
        """The error that a share of some errors does not exceed, each moment as one.

        Starts that have not come count as later than so far (Kaplan and Meier, 1958).
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
    """The log of a time, in which a minute more or less is next to nothing."""
    return math.log(time + MINUTE)
