"""Forecasts of a history's own past: what they say of how far a new one may be off."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property

from harness.base.text import counted
from harness.studies.forecasting.backtest import Backtest, Span, judged_at, moments_in, second_half
from harness.studies.forecasting.baselines import Baseline
from harness.studies.forecasting.calibration import LEAST, Calibration, Errors, Interval
from harness.studies.forecasting.growth import Growth, growth
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.quantiles import Times
from harness.studies.forecasting.scores import CALIBRATED, Coverage, coverage

FUTURES = 5
"""So many futures are played at each moment of the past: their median is all that is wanted."""


@dataclass(frozen=True)
class Past:
    """How far forecasts of the past were off.

    Attributes:
        judged: those forecasts.
        horizon: of their futures, microseconds.
        now: what time it is on the history's clock, microseconds; None if it has another clock.
        why: why there are none, in words that a sentence goes on with; "" where there are some.
        baseline: the waits of the last week; None where there are no forecasts.
        grown: how much more work the last week asked for than any week before it; None if it did not.
    """

    judged: tuple[Judged, ...] = ()
    horizon: int = 0
    now: int | None = None
    why: str = ""
    baseline: Baseline | None = None
    grown: Growth | None = None

    @cached_property
    def calibration(self) -> Calibration:
        """What their errors say of a new forecast."""
        return Errors(self.judged, self.horizon).by(self.now)

    @cached_property
    def held(self) -> Coverage | None:
        """How they held, each with an interval by the moments before it; None where none has one."""
        if not self.judged:
            return None
        found = coverage(self.judged, self.horizon)
        return found if found.others[CALIBRATED].starts else None

    @property
    def most(self) -> int:
        """The most that waited at any of the moments."""
        moments = [each.moment for each in self.judged]
        return max(map(moments.count, set(moments)), default=0)

    @property
    def lacks(self) -> str:
        """Why there is no interval, and what would be needed, in one sentence; "" where there is one."""
        if self.why:
            return f"no interval is given, as no forecast of the past was judged: {self.why}"
        if self.calibration.moments < LEAST:
            return (
                f"no interval is given: at {counted(self.calibration.moments, 'moment')} of the history "
                f"something waited, and {LEAST} are needed. A longer history has more, and a larger "
                "--calibrate looks at more"
            )
        return ""

    def interval(self, queue: str, times: Times, waited: int) -> Interval | None:
        """The interval of a start; None where too little is known.

        Args:
            queue: where the workload waits.
            times: the quantiles of its starts in the futures.
            waited: how long it has waited, microseconds.
        """
        if self.baseline is None:
            return None
        return self.calibration.interval(queue, times[1], self.baseline.week(queue, waited))


def past_of(
    backtest: Backtest,
    moments: int,
    now: int | None,
    *,
    workers: int | None,
    executor: Executor | None,
) -> Past:
    """Forecasts at moments of a history before now, of its last three quarters.

    Args:
        backtest: the record.
        moments: at how many moments.
        now: what time it is on the history's clock, microseconds; None if it has another clock.
        workers: how many processes judge.
        executor: judges instead.

    Raises:
        ReplayError: a forecast could not be made.
    """
    first, last = backtest.history.jobs[0].submit, backtest.history.jobs[-1].submit
    if now is not None:
        last = min(last, now)
    span = Span(first + (last - first) // 4, last)
    drawn = moments_in(backtest, span, moments, "calibration") if last > first else []
    judged = judged_at(backtest, drawn, workers=workers, executor=executor)
    return Past(
        tuple(judged),
        backtest.settings.horizon,
        now,
        baseline=backtest.baselines.at(last),
        grown=growth(backtest.history.jobs, first, last),
    )


def moments_to_judge(backtest: Backtest, count: int) -> tuple[list[int], Span]:
    """Moments of the second half of a record, and a quarter as many of the quarter before.

    The earlier ones are there for the first of the others, which are calibrated by them.

    Returns:
        The moments in their order, and from when until when they are judged.

    Raises:
        InputError: there are no such moments.
    """
    half = second_half(backtest)
    first = backtest.history.jobs[0].submit
    before = Span((first + half.begin) // 2, half.begin)
    drawn = {
        *moments_in(backtest, half, count),
        *moments_in(backtest, before, -(-count // 4), "calibration"),
    }
    return sorted(drawn), half
