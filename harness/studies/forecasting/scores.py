"""How forecasts of the past held: how often, how wide they were, and how far off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from harness.base.errors import InputError
from harness.base.units import MINUTE, SECOND
from harness.cluster.model import frozen
from harness.studies.forecasting.calibration import Errors
from harness.studies.forecasting.judged import Held, Judged, within
from harness.studies.forecasting.quantiles import Times

CALIBRATED, WEEK, REGRESSION = "calibrated", "mean wait of the week", "quantile regression"
"""The forecasts that are judged beside the futures as they are."""


@dataclass(frozen=True)
class Coverage:
    """How forecasts held.

    Attributes:
        starts: how many starts were forecast with an interval.
        moments: at how many moments.
        covered: the share of the starts between their p10 and their p90.
        by_moment: the mean over moments of that share: one at which hundreds wait counts once.
        before, after: the shares before the p10 and after the p90.
        width: the median of p90 less p10, microseconds; None where most p90 are later than the horizon.
        error: the median size of the p50's error, over starts where both are known, microseconds.
        printed: of all starts the share that has an interval.
        interval_score: the mean interval score: the width, and ten times what the start is outside by
            (Winkler: A Decision-Theoretic Approach to Interval Estimation, JASA 67, 1972); microseconds.
        pinball: the mean pinball loss of the three quantiles, microseconds.
        log_error: the mean size of the p50's error in natural logs of times, in which a minute more or less
            is next to nothing.
        others: the same of other forecasts of the same starts.
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
        """By which factor the p50 is off, in the geometric mean."""
        return math.exp(self.log_error)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values, times in seconds."""
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
    """How forecasts held; what starts after the horizon counts as not started, in futures and in truth.

    Calibrated forecasts of a moment know all forecasts of earlier moments, and what came of them by then.

    Args:
        judged: the forecasts.
        horizon: of the futures, microseconds.
        since: those of earlier moments are only what others are calibrated by; None for none.

    Raises:
        InputError: nothing was forecast.
    """
    asked = [each for each in judged if since is None or each.moment >= since]
    if not asked:
        raise InputError("at no moment of the record did anything wait, so there is nothing to judge")
    calibrated = _calibrated(judged, horizon)
    forecasts: dict[str, Callable[[Judged], Times | None]] = {
        CALIBRATED: calibrated,
        WEEK: lambda each: each.week,
        REGRESSION: lambda each: each.regression,
    }
    others = {name: _coverage(asked, horizon, forecast) for name, forecast in forecasts.items()}
    return _coverage(asked, horizon, lambda each: each.futures, others)


def _calibrated(judged: Sequence[Judged], horizon: int) -> Callable[[Judged], Times | None]:
    """The forecast with an interval by the errors of earlier moments; None where these are too few."""
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
        Held(
            each.moment,
            within(times[0], horizon),
            within(times[1], horizon),
            within(times[2], horizon),
            each.came(horizon),
        )
        for each, times in made
        if times is not None
    ]
    if not rows:
        return Coverage(0, 0, 0.0, 0.0, 0.0, 0.0, None, None, 0.0)
    by_moment: dict[int, list[bool]] = {}
    for row in rows:
        by_moment.setdefault(row.moment, []).append(row.low <= row.came <= row.high)
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
