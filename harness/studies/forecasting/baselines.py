"""Makes two simple forecasts, with which forecasts from simulated futures are compared.

The first forecast uses the waits in the queue during the last week. The second forecast is a quantile
regression (Koenker and Bassett: Regression Quantiles, Econometrica 46, 1978) on the properties of a job that
are known at submission. Both forecasts use only starts before the moment of the forecast.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.base.grouping import grouped
from harness.base.units import DAY, SECOND
from harness.runs.estimates.traits import Traits
from harness.studies.forecasting.quantiles import SHARES, Times, quantile

if TYPE_CHECKING:
    from harness.runs.estimates.coming_jobs import Past

WEEK = 7 * DAY

RECENT = 1000
"""The maximum number of starts that the regression uses, which are the latest ones."""

LEAST = 50
"""The minimum number of starts for a regression."""

_QUEUES = 20
_LARGEST = 25.0
_UNKNOWN: Times = (None, None, None)


class Baselines:
    """Makes simple forecasts from the starts in a history, at any moment.

    Jobs without a start are ignored.
    """

    def __init__(self, jobs: Iterable[Past]) -> None:
        started = [(job.start, job.submit, job) for job in jobs if job.start is not None]
        started.sort(key=lambda each: each[:2])
        self._jobs = [job for *_, job in started]
        self._starts = [start for start, *_ in started]
        self._lines = {"": _Line(self._jobs)}
        by_queue = grouped((job.traits.queue, job) for job in self._jobs)
        self._lines.update((queue, _Line(several)) for queue, several in by_queue.items())
        self._named = sorted(by_queue, key=lambda queue: (-len(by_queue[queue]), queue))[1 : _QUEUES + 1]

    def at(self, now: int) -> Baseline:
        """Returns both forecasts at a moment, in microseconds on the history's clock."""
        return Baseline(self, now)

    def started(self, since: int, until: int) -> Sequence[Past]:
        """Returns the jobs that started after `since` and not after `until`, in order of their starts."""
        return self._jobs[bisect_right(self._starts, since) : bisect_right(self._starts, until)]

    def latest(self, now: int) -> Sequence[Past]:
        """Returns the jobs that had most recently started at a given time, at most `RECENT` jobs."""
        last = bisect_right(self._starts, now)
        return self._jobs[max(0, last - RECENT) : last]

    def known(self, traits: Traits, priority: int, submit: int) -> list[float]:
        """Returns the properties of a job that are known at submission, as numbers.

        The properties are the job's size, limit, priority and queue, the hour of the day, and how many jobs
        wait before the job in its queue and in all queues.
        """
        hour = 2 * math.pi * (submit % DAY) / DAY
        own = self._lines.get(traits.queue)
        return [
            1.0,
            math.log1p(float(traits.size.rpartition(" ")[2] or 0)),
            math.log1p(float(traits.limit or 0) / SECOND),
            float(priority),
            math.sin(hour),
            math.cos(hour),
            math.log1p(self._lines[""].waiting(submit)),
            math.log1p(0 if own is None else own.waiting(submit)),
            *(float(traits.queue == queue) for queue in self._named),
        ]


class Baseline:
    """Makes the two simple forecasts at a moment.

    Args:
        of: the source of the starts.
        now: the moment, in microseconds on the history's clock.
    """

    def __init__(self, of: Baselines, now: int) -> None:
        self._of, self._now = of, now

    def week(self, queue: str, waited: int) -> Times:
        """Returns a forecast from the waits of the queue's jobs that started during the last week.

        The forecast is based on the jobs that waited longer than `waited`, and on how much longer they
        waited. Its middle is the mean, and its outer values are quantiles. If no job waited that long, all
        jobs of the queue that started count. If no job of the queue started, the jobs of all queues count.

        `waited` says how long the job has waited, in microseconds.

        Returns: The times from now in microseconds; all None if no job started in that week.
        """
        waits = self._week.get(queue) or [wait for each in self._week.values() for wait in each]
        left = [wait - waited for wait in waits if wait > waited] or waits
        if not left:
            return _UNKNOWN
        return quantile(left, SHARES[0]), sum(left) / len(left), quantile(left, SHARES[2])

    @cached_property
    def _week(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for job in self._of.started(self._now - WEEK, self._now):
            assert job.start is not None
            found.setdefault(job.traits.queue, []).append(job.start - job.submit)
        return found

    def regression(self, traits: Traits, priority: int, waited: int) -> Times:
        """Returns the quantiles of a job's remaining wait by quantile regression.

        Returns: The times from now in microseconds; all None if a regression is not possible.
        """
        if self._fitted is None:
            return _UNKNOWN
        columns, fitted = self._fitted
        known = self._of.known(traits, priority, self._now - waited)
        found = []
        for weights in fitted:
            log = sum(known[column] * weight for column, weight in zip(columns, weights, strict=True))
            found.append(max(0.0, math.expm1(min(log, _LARGEST)) * SECOND - waited))
        low, middle, high = sorted(found)
        return low, middle, high

    @cached_property
    def _fitted(self) -> tuple[list[int], list[list[float]]] | None:
        """The columns that vary, with their weights for each of `SHARES`; None without enough starts."""
        jobs = self._of.latest(self._now)
        if len(jobs) < LEAST:
            return None
        rows = [self._of.known(job.traits, job.arrival[0].priority, job.submit) for job in jobs]
        columns = [0] + [at for at in range(1, len(rows[0])) if len({row[at] for row in rows}) > 1]
        known = [[row[at] for at in columns] for row in rows]
        waits = [math.log1p(((job.start or 0) - job.submit) / SECOND) for job in jobs]
        return columns, [fitted(known, waits, share) for share in SHARES]


def fitted(known: Sequence[Sequence[float]], values: Sequence[float], share: float) -> list[float]:
    """Computes the weights of a linear quantile regression from the dual of its linear program.

    `known` has a row of numbers for each value. The first number of each row is 1. `share` is the quantile.
    """
    import numpy as np
    from scipy.optimize import linprog

    matrix = np.array(known)
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-9)  # The solver needs numbers of similar size.
    scaled = matrix / scale
    dual: Any = linprog(
        -np.array(values), A_eq=scaled.T, b_eq=(1 - share) * scaled.sum(axis=0), bounds=(0, 1), method="highs"
    )
    if dual.status:  # If the solver fails, the unconditional quantile is used.
        return [float(np.quantile(values, share)), *[0.0] * (matrix.shape[1] - 1)]
    return [float(each) for each in -dual.eqlin.marginals / scale]


class _Line:
    def __init__(self, jobs: Sequence[Past]) -> None:
        self._submits = sorted(job.submit for job in jobs)
        self._starts = [job.start for job in jobs if job.start is not None]

    def waiting(self, at: int) -> int:
        return max(0, bisect_left(self._submits, at) - bisect_right(self._starts, at))
