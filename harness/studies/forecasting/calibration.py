"""Intervals as wide as forecasts of this history were off: split conformal prediction in log time.

At moments of the past, the median of some futures is compared with what came (Vovk, Gammerman, Shafer:
Algorithmic Learning in a Random World, 2005). The quantiles of these errors, as factors of the median, make
the interval of a new forecast. Starts of one moment depend on each other, so a moment counts once, however
many wait at it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.base.units import MINUTE
from harness.studies.forecasting.judged import Judged, within
from harness.studies.forecasting.quantiles import SHARES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

LEAST = 9
"""With fewer moments than this no error is large enough to be beyond nine in ten: there is no interval."""

ENOUGH = 20
"""With fewer moments than this, forecasts of one queue or of like waits are no group of their own."""

ALIKE = 2.0
"""Forecasts whose medians differ by no more than this power of e are alike."""

_LARGEST = 60.0
_STEPS = 4
"""A predicted wait is rounded to this part of a power of e before others like it are looked for."""


class Interval(NamedTuple):
    """Where a start lies in 80 of 100 cases, by how far forecasts were off before.

    Attributes:
        low, high: microseconds from now; None for later than the horizon.
        moments: at how many moments there were forecasts like it.
    """

    low: float | None
    high: float | None
    moments: int


class Errors:
    """How far forecasts of the past were off.

    Args:
        judged: those forecasts, in any order.
        horizon: of their futures, microseconds.
    """

    def __init__(self, judged: Sequence[Judged], horizon: int) -> None:
        import numpy as np

        self._horizon = horizon
        self._moments = np.array([each.moment for each in judged], dtype=np.int64)
        self._queues = np.array([each.queue for each in judged], dtype=object)
        self._middles = np.array([_log(within(each.futures[1], horizon)) for each in judged])
        self._came = np.array([_log(each.came(horizon)) for each in judged])
        self._known_at = np.array(
            [each.moment + math.ceil(each.came(horizon)) for each in judged], dtype=np.int64
        )

    def by(self, now: int | None) -> Calibration:
        """What is known of them by a time on their clock; all of it where that is None."""
        import numpy as np

        if now is None:
            everything = np.ones(len(self._moments), dtype=np.bool_)
            return self._calibration(everything, everything, self._came)
        past = self._moments < now
        known = self._known_at <= now
        waited = np.array([_log(max(0, now - moment)) for moment in self._moments.tolist()])
        return self._calibration(past, known, np.where(known, self._came, waited))

    def _calibration(self, past: Flags, known: Flags, came: Floats) -> Calibration:
        middles = self._middles[past]
        return Calibration(
            self._horizon,
            self._moments[past],
            self._queues[past],
            middles,
            came[past] - middles,
            known[past],
        )


class Calibration:
    """What errors of the past say of a new forecast.

    Args:
        horizon: of the futures, microseconds.
        moments, queues, middles: when and for which queue was forecast, and the log of the median.
        errors: the log of what came as a factor of the median; of what has not come, its least value.
        known: whether it has come.
    """

    def __init__(
        self,
        horizon: int,
        moments: npt.NDArray[np.int64],
        queues: npt.NDArray[np.object_],
        middles: Floats,
        errors: Floats,
        known: Flags,
    ) -> None:
        self._horizon = horizon
        self._moments, self._queues, self._middles = moments, queues, middles
        self._errors, self._known = errors, known
        self._kept: dict[tuple[str, int], tuple[float, float, int]] = {}
        self.moments = len(set(moments.tolist()))

    def interval(self, queue: str, middle: float | None) -> Interval | None:
        """The interval of a start; None where too few moments say anything.

        Args:
            queue: where the workload waits.
            middle: the median of its starts in the futures; None for later than the horizon.
        """
        if self.moments < LEAST:
            return None
        log = _log(within(middle, self._horizon))
        key = queue, round(log * _STEPS)
        if key not in self._kept:
            self._kept[key] = self._factors(queue, key[1] / _STEPS)
        low, high, moments = self._kept[key]
        return Interval(self._time(log + low), self._time(log + high), moments)

    def _time(self, log: float) -> float | None:
        found = max(0.0, float(round(math.exp(min(log, _LARGEST)) - MINUTE)))
        return None if found >= self._horizon else found

    def _factors(self, queue: str, middle: float) -> tuple[float, float, int]:
        """The logs of both factors, and how many moments they are from.

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
        beyond = max(0.0, 1 - SHARES[2] * (count + 1) / count)
        low, high = (self._quantile(these, share) for share in (beyond, 1 - beyond))
        return min(low, float(self._errors[these].max())), high, count

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
