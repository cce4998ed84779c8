"""Makes forecasts at past moments of a history. Their errors show how wrong a new forecast may be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from harness.base.text import counted
from harness.runs.executors import InParallel
from harness.studies.forecasting.backtest import Backtest, Span, judged_at, moments_in, second_half
from harness.studies.forecasting.baselines import Baseline
from harness.studies.forecasting.calibration import LEAST, Calibration, Errors, Interval
from harness.studies.forecasting.growth import Growth, growth
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.quantiles import Times
from harness.studies.forecasting.scores import CALIBRATED, Coverage, coverage

FUTURES = 5
"""The number of futures at each past moment. A few suffice, because only their median is needed."""


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
