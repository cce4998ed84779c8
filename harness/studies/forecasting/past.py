"""Makes forecasts at past moments of a history. Their errors show how wrong a new forecast may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Unpack

from harness.base.text import counted
from harness.runs.estimates.coming_jobs import Past as PastJob
from harness.runs.executors import InParallel
from harness.studies.forecasting.backtest import Backtest, Span, judged_at, moments_in, second_half
from harness.studies.forecasting.baselines import WEEK, Baseline
from harness.studies.forecasting.calibration import LEAST, Calibration, Errors, Interval
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.quantiles import Times
from harness.studies.forecasting.scores import CALIBRATED, Coverage, coverage

FUTURES = 5
"""The number of futures at each past moment. A few suffice, because only their median is needed."""

LEAST_GROWTH = 0.2
"""The growth that must be reached, as a share of the largest earlier week. Most weeks differ by less."""


@dataclass(frozen=True)
class Past:
    """The errors of past forecasts.

    Attributes:
        horizon: the horizon of the futures, in microseconds.
        now: the present time on the history's clock, in microseconds; None if the clocks differ.
        why: the reason if there are no forecasts, as the end of a sentence, or else "".
        baseline: the waits of the last week; None if there are no forecasts.
        grown: how much more work the last week requested than any earlier week; None if the growth is small
            or unknown.
    """

    judged: tuple[Judged, ...] = ()
    horizon: int = 0
    now: int | None = None
    why: str = ""
    baseline: Baseline | None = None
    grown: Growth | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration of new forecasts by these errors."""
        return Errors(self.judged, self.horizon).by(self.now)

    @cached_property
    def held(self) -> Coverage | None:
        """The accuracy of forecasts whose intervals come from the errors at earlier moments.

        The accuracy is None if no forecast has such an interval.
        """
        if not self.judged:
            return None
        found = coverage(self.judged, self.horizon)
        return found if found.others[CALIBRATED].starts else None

    @property
    def most(self) -> int:
        """The largest number of workloads that waited at any of the moments."""
        moments = [each.moment for each in self.judged]
        return max(map(moments.count, set(moments)), default=0)

    @property
    def lacks(self) -> str:
        """A sentence that explains why there are no intervals; "" if there are intervals."""
        if self.why:
            return f"no interval, because harness tested no forecast against the history: {self.why}"
        if self.calibration.moments < LEAST:
            return (
                "no interval is given, because harness compared forecasts with starts at only "
                f"{counted(self.calibration.moments, 'moment')}, and {LEAST} are needed. A longer history "
                "has more moments at which jobs wait, and a larger --calibrate uses more of them"
            )
        return ""

    def interval(self, queue: str, times: Times, waited: int) -> Interval | None:
        """Returns the interval of a start, or None if too little is known.

        `times` has the quantiles of the workload's starts in the futures. `waited` is the time that the
        workload has waited, in microseconds.
        """
        if self.baseline is None:
            return None
        return self.calibration.interval(queue, times[1], self.baseline.week(queue, waited))


def past_of(backtest: Backtest, moments: int, now: int | None, **how: Unpack[InParallel]) -> Past:
    """Makes forecasts at past moments in the last three quarters of a history.

    `now` is the present time on the history's clock, in microseconds, or None if the clocks differ. For
    `how`, see `InParallel`.

    Raises:
        ReplayError: a forecast failed.
    """
    first, last = backtest.history.jobs[0].submit, backtest.history.jobs[-1].submit
    if now is not None:
        last = min(last, now)
    span = Span(first + (last - first) // 4, last)
    drawn = moments_in(backtest, span, moments, "calibration") if last > first else []
    judged = judged_at(backtest, drawn, **how)
    return Past(
        tuple(judged),
        backtest.settings.horizon,
        now,
        baseline=backtest.baselines.at(last),
        grown=growth(backtest.history.jobs, first, last),
    )


def moments_to_judge(backtest: Backtest, count: int) -> tuple[list[int], Span]:
    """Returns `count` moments in the second half of a record, and a quarter as many in its second quarter.

    The moments in the second quarter calibrate the first forecasts in the second half.

    Returns: The moments in chronological order, and the time span in which they are judged.

    Raises:
        InputError: there are no such moments.
    """
    half = second_half(backtest)
    first = backtest.history.jobs[0].submit
    before = Span((first + half.begin) // 2, half.begin)
    drawn = {*moments_in(backtest, half, count), *moments_in(backtest, before, -(-count // 4), "calibration")}
    return sorted(drawn), half


class Growth(NamedTuple):
    """The growth of the requested work in the last week.

    Attributes:
        resource: the resource that grew most.
        share: how much the last week exceeds the largest earlier week, as a share of that earlier week.
    """

    resource: str
    share: float


def growth(jobs: Sequence[PastJob], first: int, last: int) -> Growth | None:
    """Returns the growth of the load in the last week, or None if it is less than `LEAST_GROWTH`.

    The result is also None if the history is shorter than two weeks.

    The work of a job is its requests multiplied by its run time. In each week, only the jobs that were
    submitted in the week count, with their work until the end of the week. Weeks are therefore comparable,
    and the result depends only on facts that are known at `last`. A resource is left out if fewer than half
    of the jobs request it, because a single job could then double the work.

    The jobs are in order of submission. `first` is the beginning of the history, in microseconds on its
    clock, and `last` is the end of the last week.
    """
    weeks = (last - first) // WEEK
    count, asked = 0, Counter[str]()
    work: dict[str, list[int]] = {}
    for job in jobs:
        back, left = divmod(last - job.submit, WEEK)
        if 0 <= back < weeks:
            count, one = count + 1, job.arrival[0]
            for resource, amount in one.requests_of(range(one.pods)).items():
                asked[resource] += 1
                of_weeks = work.setdefault(resource, [0] * weeks)
                of_weeks[back] += amount * min(job.run_time, left)
    found = [
        Growth(resource, of_weeks[0] / max(of_weeks[1:]) - 1)
        for resource, of_weeks in sorted(work.items())
        if any(of_weeks[1:]) and 2 * asked[resource] >= count
    ]
    most = max(found, key=lambda each: each.share, default=None)
    return most if most is not None and most.share >= LEAST_GROWTH else None
