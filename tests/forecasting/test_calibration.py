"""Intervals that are as wide as forecasts of the past were off, and what these are compared with."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from cli_environment import called
from live_worlds import MONDAY, cluster, manifests, queue, workload

import harness
from harness.base.errors import OptionError
from harness.base.units import DAY, HOUR, MINUTE, SECOND
from harness.runs.estimates.coming_jobs import Past
from harness.runs.estimates.traits import Traits
from harness.studies.forecasting.baselines import Baselines, fitted
from harness.studies.forecasting.calibration import ENOUGH, LEAST, Errors
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.scores import CALIBRATED, REGRESSION, WEEK, coverage
from harness.studies.forecasting.text import text
from harness.testing.scripts import Script
from harness.trace.generate.uniform import uniform

HORIZON = 7 * DAY


def week(middle: float) -> tuple[float, float, float]:
    """Waits of the last week that say the same as the futures."""
    return middle, middle, middle


def judged(moment: int, middle: float, came: float, name: str = "job", queue: str = "q") -> Judged:
    """A forecast whose futures all say the same; times in hours, the moment in days."""
    at = moment * DAY
    start = round(middle * HOUR)
    return Judged(at, f"{name}-{moment}", (start,), at + round(came * HOUR), queue, week(start))


def test_an_interval_covers_what_its_past_promises() -> None:
    """Starts come a random factor after the median: of 300 that follow, 80 % lie within."""

    def factor(number: int) -> float:
        return math.exp(2 * uniform("factor", number) - 1)

    middles = [1 + 4 * uniform("middle", number) for number in range(600)]
    past = [judged(number, middles[number], middles[number] * factor(number)) for number in range(600)]
    held = coverage(past, HORIZON, since=300 * DAY)
    calibrated = held.others[CALIBRATED]
    assert held.covered == 0
    assert calibrated.printed == 1
    assert calibrated.covered == pytest.approx(0.8, abs=0.05)
    assert calibrated.interval_score < held.interval_score


def test_a_moment_counts_once_however_many_wait_at_it() -> None:
    """A thousand are late by a day at one of forty moments; at all others everybody starts as forecast."""
    past = [judged(number, 2, 2) for number in range(39)]
    crowd = [judged(39, 2, 26, name=f"late-{number}") for number in range(1000)]
    interval = Errors([*past, *crowd], HORIZON).by(None).interval("q", 2 * HOUR, week(2 * HOUR))
    assert interval is not None
    assert (interval.low, interval.high) == (pytest.approx(2 * HOUR), pytest.approx(2 * HOUR))


def test_there_is_no_interval_by_fewer_moments_than_it_takes() -> None:
    """Of eight errors none is beyond nine in ten."""
    past = [judged(number, 2, 2 + number) for number in range(LEAST)]
    assert Errors(past[1:], HORIZON).by(None).interval("q", 2 * HOUR, week(2 * HOUR)) is None
    interval = Errors(past, HORIZON).by(None).interval("q", 2 * HOUR, week(2 * HOUR))
    assert interval is not None
    assert interval.high == pytest.approx((2 + LEAST - 1) * HOUR)
    assert interval.moments == LEAST


def test_what_has_not_come_counts_as_later() -> None:
    """Of twenty that were to start in two hours half have not after ten days, so nobody knows nine in ten."""
    known = [judged(number, 2, 2) for number in range(10)]
    open_ones = [judged(10 + number, 2, 24 * 20) for number in range(10)]
    errors = Errors([*known, *open_ones], 60 * DAY)
    early, late = (
        errors.by(20 * DAY + HOUR).interval("q", 2 * HOUR, week(2 * HOUR)),
        errors.by(None).interval("q", 2 * HOUR, week(2 * HOUR)),
    )
    assert early is not None
    assert late is not None
    assert early.high is None
    assert late.high == pytest.approx(20 * DAY, rel=0.01)


def test_nothing_is_known_of_later_moments() -> None:
    """What came after now, and what was forecast after now, changes no interval."""
    past = [judged(number, 2, 3) for number in range(20)]
    later = [judged(20 + number, 2, 20) for number in range(20)]
    one, other = (Errors(several, HORIZON).by(20 * DAY) for several in (past, [*past, *later]))
    assert one.interval("q", HORIZON, week(HORIZON)) == other.interval("q", HORIZON, week(HORIZON))
    assert one.moments == other.moments == 20


def test_queues_and_waits_that_are_alike_have_their_own_intervals() -> None:
    """If there are enough moments of them; else those of all count."""
    short = [judged(number, 1, 1) for number in range(ENOUGH)]
    long = [judged(number, 40, 80) for number in range(ENOUGH)]
    other = [judged(number, 1, 4, queue="other") for number in range(ENOUGH)]
    calibration = Errors([*short, *long, *other], HORIZON).by(None)
    highs = {}
    for name, middle in (("q", 1), ("q", 40), ("other", 1), ("third", 40)):
        interval = calibration.interval(name, middle * HOUR, week(middle * HOUR))
        assert interval is not None
        assert interval.high is not None
        highs[name, middle] = interval.high / HOUR
    assert highs == {
        ("q", 1): pytest.approx(1),
        ("q", 40): pytest.approx(80, rel=0.01),
        ("other", 1): pytest.approx(4),
        ("third", 40): pytest.approx(80, rel=0.01),
    }


def test_scores_are_as_they_are_defined() -> None:
    """Two starts with an interval from 1 h to 9 h: one within, one 2 h late."""
    starts = tuple(hour * HOUR for hour in range(1, 10))
    pair = [Judged(0, "within", starts, 4 * HOUR), Judged(0, "late", starts, 11 * HOUR)]
    held = coverage(pair, 24 * HOUR)
    assert held.interval_score == pytest.approx((8 + (8 + 10 * 2)) / 2 * HOUR)
    within = 0.1 * 3 + 0.5 * 1 + 0.1 * 5
    late = 0.1 * 10 + 0.5 * 6 + 0.9 * 2
    assert held.pinball == pytest.approx((within + late) / 6 * HOUR)
    logs = [math.log((5 * HOUR + MINUTE) / (4 * HOUR + MINUTE)), math.log((11 * 60 + 1) / (5 * 60 + 1))]
    assert held.log_error == pytest.approx(sum(logs) / 2)
    assert set(held.others) == {CALIBRATED, WEEK, REGRESSION}
    assert held.others[CALIBRATED].printed == 0


# --- what anybody would try ---------------------------------------------------------------------------------


def ran(submit: float, wait: float, queue: str = "q", size: int = 1) -> Past:
    """A job that was submitted so many hours after the beginning, and waited so many."""
    at = round(submit * HOUR)
    ((arrival,),) = Script().job("job", seconds=3600, queue=queue, cpu=1000 * size).chunks()
    return Past(arrival, Traits("", queue, f"cpu {size}", ""), at, None, at + round(wait * HOUR))


def test_the_week_is_that_of_the_queue_and_of_those_that_waited_as_long() -> None:
    """One of 2 h and one of 6 h; whoever has waited 3 h is one of the second kind."""
    past = [ran(100, 2), ran(101, 6), ran(100, 50, queue="other"), ran(-200, 90)]
    last = Baselines(past).at(110 * HOUR)
    assert last.week("q", 0) == (2 * HOUR, 4 * HOUR, 6 * HOUR)
    assert last.week("q", 3 * HOUR) == (3 * HOUR, 3 * HOUR, 3 * HOUR)
    assert last.week("q", 9 * HOUR) == (2 * HOUR, 4 * HOUR, 6 * HOUR)
    assert last.week("third", 0)[1] == 4 * HOUR
    assert Baselines(past).at(-150 * HOUR).week("q", 0) == (None, None, None)


def test_quantile_regression_finds_the_quantiles_of_each_size() -> None:
    """Small jobs wait 1 to 19 h and large ones ten times as long."""
    rows = [[1.0, float(large)] for large in (0, 1) for _ in range(19)]
    values = [math.log(10**large * wait) for large in (0, 1) for wait in range(1, 20)]
    for share, wait in ((0.1, 2), (0.5, 10), (0.9, 18)):
        first, second = fitted(rows, values, share)
        assert math.exp(first) == pytest.approx(wait)
        assert math.exp(first + second) == pytest.approx(10 * wait)


def test_the_regression_knows_only_what_was_known_then() -> None:
    """Starts after the moment change nothing; what a job has waited counts."""
    past = [ran(number, 3, size=1 + number % 2) for number in range(80)]
    later = [ran(200 + number, 90) for number in range(80)]
    traits = Traits("", "q", "cpu 2", "")
    one, other = (Baselines(several).at(100 * HOUR) for several in (past, [*past, *later]))
    assert one.regression(traits, 0, 0) == other.regression(traits, 0, 0)
    assert one.regression(traits, 0, 0) == pytest.approx((3 * HOUR,) * 3, abs=SECOND)
    assert one.regression(traits, 0, HOUR) == pytest.approx((2 * HOUR,) * 3, abs=SECOND)
    assert Baselines(past[:20]).at(100 * HOUR).regression(traits, 0, 0) == (None, None, None)


# --- of a forecast ------------------------------------------------------------------------------------------

DAYS = 28


def recorded(folder: Path) -> Path:
    """Each day a job that takes all 4 cores for 4 h, and an hour later one that starts when it has ended."""
    rows: list[dict[str, Any]] = []
    for day in range(DAYS):
        first = MONDAY - timedelta(days=DAYS - day) + timedelta(hours=6)
        for name, submit, start, hours in (("long", 0, 0, 4), ("next", 1, 4, 1)):
            begin = first + timedelta(hours=start)
            rows.append(
                {
                    "job_id": f"{name}-{day}",
                    "submit_time": first + timedelta(hours=submit),
                    "duration": timedelta(hours=hours),
                    "queue": "q-jobs",
                    "request.cpu": 4000,
                    "recorded_start": begin,
                    "recorded_end": begin + timedelta(hours=hours),
                }
            )
    pl.DataFrame(rows).write_parquet(folder / "record.parquet")
    return folder / "record.parquet"


THERE = [*queue("q", 4), workload("long", 4, since=1), workload("next", 4, limit=3600)]
"""One runs for an hour, and one waits."""


def test_a_record_gives_the_forecast_its_interval(tmp_path: Path) -> None:
    """All forecasts of its past were right to the second, so that the interval is the p50."""
    asked: dict[str, Any] = {"history": recorded(tmp_path), "futures": 3, "calibrate": 12}
    world = cluster(*THERE)
    found = harness.forecast(world, workers=1, **asked)
    (start,) = found.starts
    assert start.interval is not None
    assert start.times[1] == 3 * HOUR
    assert (start.interval.low, start.interval.high) == pytest.approx((3 * HOUR, 3 * HOUR), abs=1)
    first, *_ = text(found).splitlines()
    assert first.startswith("at ")
    assert "of this history 100% of" in first
    assert "the p50 was off by a factor of 1.0 (" in first
    document = found.to_json()
    assert document["schema"] == 2
    assert document["waiting"][0]["interval"]["p90"] == document["waiting"][0]["p50"]
    assert document["past"]["moments"] == 12
    assert set(document["past"]["held"]["others"]) == {CALIBRATED, WEEK, REGRESSION}
    with ThreadPoolExecutor(2) as executor:
        assert harness.forecast(world, executor=executor, **asked).to_json() == document


def test_too_short_a_past_says_what_is_needed(tmp_path: Path) -> None:
    """Eight moments of the past are not enough, and a history without starts says nothing of it."""
    path = recorded(tmp_path)
    asked: dict[str, Any] = {"futures": 1, "workers": 1}
    found = harness.forecast(cluster(*THERE), history=path, calibrate=LEAST - 1, **asked)
    first, *lines = text(found).splitlines()
    assert first.startswith("no interval is given, because harness compared forecasts with starts at only 8 ")
    assert not any("p90" in line for line in lines)
    assert found.to_json()["waiting"][0]["interval"] is None
    plain = tmp_path / "plain.parquet"
    pl.read_parquet(path).drop("recorded_start", "recorded_end").write_parquet(plain)
    found = harness.forecast(cluster(*THERE), history=plain, **asked)
    assert "the history does not say when its jobs started; use the folder of a run" in found.past.lacks
    none = harness.forecast(cluster(*THERE), history=path, calibrate=0, **asked)
    assert none.past.judged == ()
    assert none.past.lacks.endswith("--calibrate 0 turns this off")
    with pytest.raises(OptionError, match="calibrate: -1 is not a number of moments"):
        harness.forecast(cluster(*THERE), history=path, calibrate=-1, **asked)


def test_more_than_ever_waited_is_told(tmp_path: Path) -> None:
    """One waited at each moment of the past, and two wait now."""
    world = cluster(*THERE, workload("more", 4, limit=3600))
    found = harness.forecast(
        world, history=recorded(tmp_path), futures=1, calibrate=LEAST, workers=1, workloads=["next"]
    )
    assert text(found).startswith("intervals use 9 moments of this history, too few to say how often")
    assert "2 workloads wait now, and at most 1 waited at any moment of the past" in text(found)


def test_the_backtest_has_a_row_for_each_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The futures, their calibrated intervals, and the two simple ones, with the scores of each."""
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(manifests(queue("q", 4))))
    args = ["forecast", "--cluster", f"{tmp_path}/cluster.yaml", "--history", str(recorded(tmp_path))]
    assert called([*args, "--futures", "1", "--workers", "1", "--backtest", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = [line for line in lines if line.startswith("forecast ")]
    assert head.split("  ")[-1].strip() == "p50 off by"
    for name in ("futures", CALIBRATED, WEEK, REGRESSION):
        assert any(line.startswith(f"{name}  ") for line in lines), name
    (calibrated,) = [line.split() for line in lines if line.startswith(CALIBRATED)]
    assert calibrated[1:4] == ["100%", "100.0%", "100.0%"]
