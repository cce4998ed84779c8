"""Measures how accurate past forecasts were, by the coverage and width of intervals and by errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from harness.base.errors import InputError
from harness.base.grouping import grouped
from harness.base.units import MINUTE, SECOND
from harness.cluster.model import frozen
from harness.studies.forecasting.calibration import Errors
from harness.studies.forecasting.judged import Held, Judged, within
from harness.studies.forecasting.quantiles import Times

CALIBRATED, WEEK, REGRESSION = "calibrated", "mean wait of the week", "quantile regression"
"""The names of the forecasts that are judged in addition to the plain futures."""


@dataclass(frozen=True)
class Coverage:
    """The accuracy of forecasts.

    Attributes:
        starts: the number of starts whose forecast has an interval.
        covered: the share of starts between their p10 and p90.
        by_moment: the mean of this share over moments, so that a moment with hundreds of waiting jobs counts
            once.
        before, after: the shares of starts before the p10 and after the p90.
        width: the median of p90 minus p10, in microseconds; None if most p90 are after the horizon.
        error: the median absolute error of the p50, over the starts for which both times are known, in
            microseconds.
        printed: the share of all starts that have an interval.
        interval_score: the mean interval score in microseconds. The score is the interval's width, plus ten
            times the distance of the start from the interval (Winkler: A Decision-Theoretic Approach to
            Interval Estimation, JASA 67, 1972).
        pinball: the mean pinball loss of the three quantiles, in microseconds.
        log_error: the mean absolute error of the p50 in natural logs. One minute is added to each time before
            the log, so that errors of seconds hardly matter.
        others: the same measures for other forecasts of the same starts.
    """

    starts: int
    moments: int
    covered: float
    by_moment: float
    before: float
    after: float
    width: float | None
    error: float | None
    printed: float = 1.0
    interval_score: float = 0.0
    pinball: float = 0.0
    log_error: float = 0.0
    others: Mapping[str, Coverage] = field(default_factory=frozen)

    @property
    def factor(self) -> float:
        """The typical factor by which the p50 is wrong, as a geometric mean."""
        return math.exp(self.log_error)

    def to_json(self) -> dict[str, Any]:
        """Returns the measures as plain values, with times in seconds."""
        times = ("width", "error", "interval_score", "pinball")
        names = [name for name in self.__dataclass_fields__ if name not in (*times, "others")]
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name in times:
            time = getattr(self, name)
            found[f"{name}_seconds"] = None if time is None else time / SECOND
        if self.others:
            found["others"] = {name: each.to_json() for name, each in self.others.items()}
        return found


def coverage(judged: Sequence[Judged], horizon: int, since: int | None = None) -> Coverage:
    """Returns the accuracy of forecasts. A start after the horizon counts as no start.

    The calibrated forecasts at a moment use all forecasts at earlier moments, and the starts that are known
    by then.

    Moments before `since` are not judged, but calibrate later forecasts. If `since` is None, all forecasts
    are judged. `horizon` is in microseconds.

    Raises:
        InputError: there are no forecasts.
    """
    asked = [each for each in judged if since is None or each.moment >= since]
    if not asked:
        raise InputError(
            "no workload waited at any moment of the record at which a run time was known, so there is "
            "nothing to judge"
        )
    calibrated = _calibrated(judged, horizon)
    forecasts: dict[str, Callable[[Judged], Times | None]] = {
        CALIBRATED: calibrated,
        WEEK: lambda each: each.week,
        REGRESSION: lambda each: each.regression,
    }
    others = {name: _coverage(asked, horizon, forecast) for name, forecast in forecasts.items()}
    return _coverage(asked, horizon, lambda each: each.futures, others)


def _calibrated(judged: Sequence[Judged], horizon: int) -> Callable[[Judged], Times | None]:
    """Returns a function that gives the calibrated quantiles of a forecast, from errors at earlier moments.

    The function returns None if too few errors are known by then.
    """
    errors = Errors(judged, horizon)
    by_moment = {moment: errors.by(moment) for moment in {each.moment for each in judged}}

    def forecast(each: Judged) -> Times | None:
        found = by_moment[each.moment].interval(each.queue, each.futures[1], each.week)
        return None if found is None else found.times

    return forecast


def _coverage(
    judged: Sequence[Judged],
    horizon: int,
    forecast: Callable[[Judged], Times | None],
    others: Mapping[str, Coverage] | None = None,
) -> Coverage:
    made = [(each, forecast(each)) for each in judged]
    rows = [
        Held(each.moment, low, middle, high, each.came(horizon))
        for each, times in made
        if times is not None
        for low, middle, high in [[within(time, horizon) for time in times]]
    ]
    if not rows:
        return Coverage(0, 0, 0.0, 0.0, 0.0, 0.0, None, None, 0.0)
    by_moment = grouped((row.moment, row.low <= row.came <= row.high) for row in rows)
    errors = [abs(row.came - row.middle) for row in rows if max(row.came, row.middle) < horizon]
    width = median(math.inf if low < high == horizon else high - low for _, low, _, high, _ in rows)
    return Coverage(
        len(rows),
        len(by_moment),
        fmean(row.low <= row.came <= row.high for row in rows),
        fmean(fmean(each) for each in by_moment.values()),
        fmean(row.came < row.low for row in rows),
        fmean(row.came > row.high for row in rows),
        None if math.isinf(width) else width,
        median(errors) if errors else None,
        len(rows) / len(judged),
        fmean(row.interval_score for row in rows),
        fmean(row.pinball for row in rows),
        fmean(abs(math.log((row.came + MINUTE) / (row.middle + MINUTE))) for row in rows),
        frozen(others),
    )
