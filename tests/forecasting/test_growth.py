"""Load that grows: the last week asks for more work than any week before it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from live_worlds import MONDAY, cluster, queue, workload

import harness
from harness.base.units import DAY, HOUR
from harness.runs.estimates.coming_jobs import Past
from harness.runs.estimates.traits import Traits
from harness.studies.forecasting.past import Growth, growth
from harness.studies.forecasting.text import text
from harness.testing.scripts import Script

GPU = "nvidia.com/gpu"
WEEK = 7 * DAY


def past(day: float, hours: float, **requests: int) -> Past:
    """A job of a history, with its requests for each of its pods."""
    at = round(day * DAY)
    ((arrival,),) = Script().job(f"at-{day}", seconds=hours * 3600, **requests).chunks()
    return Past(arrival, Traits("", "q", "", ""), at, at + round(hours * HOUR), at)


def weekly(*hours: float) -> list[Past]:
    """A job in the middle of each week."""
    return [past(7 * week + 3, each, cpu=1) for week, each in enumerate(hours)]


@pytest.mark.parametrize(
    ("weeks", "share"),
    [((10, 8, 12.5), 0.25), ((10, 8, 15), 0.5), ((10, 8, 11), None), ((20, 10, 15), None), ((10,), None)],
)
def test_the_largest_week_before_counts(weeks: tuple[float, ...], share: float | None) -> None:
    """A fifth more than in any week before is growth, and one week has nothing before it."""
    found = growth(weekly(*weeks), 0, len(weeks) * WEEK)
    assert found == (None if share is None else Growth("cpu", pytest.approx(share)))


def test_only_what_was_known_counts() -> None:
    """A job of the last week counts until now, and one that comes later counts for nothing."""
    jobs = [past(3, 96, cpu=1), past(10, 1000, cpu=1), past(15, 1000, cpu=1)]
    assert growth(jobs, 0, 2 * WEEK) is None


def test_a_resource_that_few_ask_for_does_not_grow() -> None:
    """One of three jobs asks for a GPU, in the last week only with more."""
    jobs = [
        past(2, 1, cpu=4),
        past(3, 1, cpu=4, **{GPU: 1}),
        past(9, 1, cpu=4, **{GPU: 8}),
        past(10, 1, cpu=4),
    ]
    assert growth(jobs, 0, 2 * WEEK) == Growth(GPU, 7.0)
    assert growth([*jobs, past(4, 1, cpu=4), past(11, 1, cpu=4)], 0, 2 * WEEK) is None


def test_a_forecast_says_that_load_grows(tmp_path: Path) -> None:
    """The jobs of the last seven days run twice as long as those before."""
    rows = []
    for day in range(21):
        begin = MONDAY - timedelta(days=21 - day) + timedelta(hours=6)
        for name, submit, start, hours in (("long", 0, 0, 2 if day < 14 else 4), ("next", 1, 4, 1)):
            rows.append(
                {
                    "job_id": f"{name}-{day}",
                    "submit_time": begin + timedelta(hours=submit),
                    "duration": timedelta(hours=hours),
                    "queue": "q-jobs",
                    "request.cpu": 4000,
                    "recorded_start": begin + timedelta(hours=start),
                    "recorded_end": begin + timedelta(hours=start + hours),
                }
            )
    pl.DataFrame(rows).write_parquet(tmp_path / "record.parquet")
    world = cluster(*queue("q", 4), workload("long", 4, since=1), workload("next", 4, limit=3600))
    found = harness.forecast(world, history=tmp_path / "record.parquet", futures=1, calibrate=12, workers=1)
    assert found.past.grown is not None
    said = "the last week of the history requested 63% more cpu than any week before it: load grows"
    assert said in " ".join(text(found).split())
