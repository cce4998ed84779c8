"""Forecasts on other clusters and with one job more, future by future, where it is known what can happen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from cli_environment import called
from live_worlds import MONDAY, NOON, cluster, history, manifests, queue, workload

import harness
from harness import Forecast
from harness.base.errors import OptionError
from harness.base.units import HOUR
from harness.studies.forecasting.paired import By
from harness.studies.forecasting.text import text

WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}


def past(folder: Path, hours: float = 5) -> Any:
    """Sixty jobs that ran so long, ten days ago, none of a Monday afternoon."""
    jobs = [
        (f"past{number}", MONDAY - timedelta(days=10, minutes=60 - number), hours, 4) for number in range(60)
    ]
    return history(folder, jobs)


def now() -> int:
    """Noon, microseconds since 1970."""
    return round(NOON.timestamp()) * 10**6


def forecast(folder: Path, *work: Any, cpu: int = 4, **how: Any) -> Forecast:
    """Four futures of a queue of so many cores, in which each runs 5 h."""
    where = cluster(queue("q", cpu, **WITHIN), *work)
    return harness.forecast(where, history=past(folder), futures=4, workers=1, now=now(), **how)


THERE = (workload("runs", 4, since=2), workload("next", 4, hours=2), workload("last", 4, hours=1))


def test_a_larger_quota_lets_the_next_one_start_now(tmp_path: Path) -> None:
    """As it is they start after 3 and 8 h; with room for one more now and after 3 h, for two more now."""
    wide = {
        name: cluster(queue("q", cpu, **WITHIN), *THERE)
        for name, cpu in (("same", 4), ("eight", 8), ("all", 12))
    }
    found = forecast(tmp_path, *THERE, others=wide)
    starts = {
        name: [(row.name, row.before[1], row.after[1], row.earlier, row.later, row.shift) for row in rows][:2]
        for name, rows in found.shifts.items()
    }
    following, last = "default/next", "default/last"
    hours = [time * HOUR for time in range(9)]
    assert starts == {
        "same": [(following, hours[3], hours[3], 0, 0, None), (last, hours[8], hours[8], 0, 0, None)],
        "eight": [(following, hours[3], 0, 1, 0, -hours[3]), (last, hours[8], hours[3], 1, 0, -hours[5])],
        "all": [(following, hours[3], 0, 1, 0, -hours[3]), (last, hours[8], 0, 1, 0, -hours[8])],
    }
    (runs,) = [row for row in found.shifts["all"] if row.running]
    assert (runs.name, runs.preempted_before, runs.preempted_after) == ("default/runs", 0, 0)
    assert not runs.changed
    told = text(found)
    assert "with eight" in told
    assert "-3h00m" in told
    assert "default/runs" not in told


def test_a_start_that_another_cluster_makes_impossible_is_later(tmp_path: Path) -> None:
    """By the horizon of 4 h only the first one has started; with more cores both have."""
    wide = {"wide": cluster(queue("q", 8, **WITHIN), *THERE)}
    found = forecast(tmp_path, *THERE, others=wide, horizon="4h")
    rows = {row.name: row for row in found.shifts["wide"]}
    assert (rows["default/last"].before[1], rows["default/last"].after[1]) == (None, 3 * HOUR)
    assert (rows["default/last"].earlier, rows["default/last"].shift) == (1, None)
    back = forecast(tmp_path, *THERE, cpu=8, others={"narrow": cluster(queue("q", 4), *THERE)}, horizon="4h")
    (row,) = [each for each in back.shifts["narrow"] if each.name == "default/last"]
    assert (row.earlier, row.later) == (0, 1)


def test_who_is_preempted_without_the_job_as_well_is_not_displaced(tmp_path: Path) -> None:
    """`high` preempts `low` now, in every future; `mine` comes first and preempts it in its place."""
    work = (workload("low", 4, since=2), workload("high", 4, priority=5))
    found = forecast(tmp_path, *work, submit=workload("mine", 4, priority=9))
    assert [(risk.name, risk.share, risk.by) for risk in found.risks] == [
        ("default/low", 1.0, (By("default/high", 1.0),))
    ]
    assert found.with_job is not None
    assert [(risk.name, risk.by) for risk in found.with_job.risks] == [
        ("default/low", (By("default/mine", 1.0),))
    ]
    (row,) = found.displaced
    assert (row.name, row.preempted, row.preempted_more, row.later) == ("default/high", 0, 0, 1)
    assert row.delay == pytest.approx(5 * HOUR, abs=HOUR / 50)


def test_who_preempts_whom_stands_in_a_column(tmp_path: Path) -> None:
    """Of those that are there now, and of those that the job displaces."""
    found = forecast(tmp_path, workload("low", 4, since=2), submit=workload("mine", 4, priority=9))
    (row,) = found.displaced
    assert (row.preempted, row.preempted_more, row.by) == (1, 1, (By("default/mine", 1.0),))
    lines = text(found).splitlines()
    (displaced,) = [line for line in lines if line.startswith("low ") and "runs" in line]
    assert displaced.endswith("mine (100%)")
    at_once = forecast(tmp_path, workload("low", 4, since=2), workload("high", 4, priority=5))
    (line,) = [line for line in text(at_once).splitlines() if line.startswith("low ")]
    assert line.split() == ["low", "q", "runs", "100%", "high", "(100%)"]
    assert at_once.to_json()["preempted"][0]["by"] == [{"name": "default/high", "probability": 1.0}]


def hourly(folder: Path) -> Any:
    """Four weeks in which a job of 5 h and of high priority came every hour, at half past."""
    trace = history(folder, [(f"past{n}", NOON - timedelta(hours=n + 0.5), 5.0, 4) for n in range(28 * 24)])
    return replace(trace, frame=trace.frame.with_columns(pl.lit(100, pl.Int32).alias("priority")))


def test_a_job_that_comes_later_is_named_as_such(tmp_path: Path) -> None:
    """Each hour one of high priority comes, so that `low` is preempted by one of them."""
    where = cluster(
        queue("q", 4, **WITHIN), workload("low", 4, since=1), workload("next", 4, hours=1, priority=-1)
    )
    found = harness.forecast(where, history=hourly(tmp_path), futures=3, workers=1, now=now(), horizon="6h")
    (risk,) = [each for each in found.risks if each.name == "default/low"]
    assert risk.by[0] == By("a job to come", 1.0)


def test_preemptions_of_two_clusters_count_over_the_shorter_of_two_futures(tmp_path: Path) -> None:
    """With room for `next` its future ends at once, so the hours in which `low` is preempted do not count."""
    work = (workload("low", 4, since=1), workload("next", 4, hours=1, priority=-1))
    one, two = (cluster(queue("q", cpu, **WITHIN), *work) for cpu in (4, 8))
    for first, other in ((one, two), (two, one)):
        found = harness.forecast(
            first,
            history=hourly(tmp_path),
            others={"other": other},
            workloads=["default/next"],
            futures=3,
            workers=1,
            now=now(),
            horizon="6h",
        )
        of_both = [found, found.others["other"]]
        assert sorted(each.share for of in of_both for each in of.risks if each.name == "default/low") == [1]
        (low,) = [row for row in found.shifts["other"] if row.name == "default/low"]
        assert (low.preempted_before, low.preempted_after, low.changed) == (0, 0, False)
        assert "in each pair of futures, preemptions count only up to the end of the shorter future" in text(
            found
        )


def test_the_command_takes_patches_and_several_clusters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names are those of replays; a job more is played on each of them."""
    past(tmp_path)
    for name, cpu in (("base", 4), ("wide", 8)):
        (tmp_path / f"{name}.yaml").write_text(
            yaml.safe_dump_all(manifests(queue("q", cpu, **WITHIN), *THERE))
        )
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(workload("mine", 4)))
    flavors = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 12}]}]
    patch = {
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"resourceGroups": [{"flavors": flavors}]},
    }
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(patch))
    command = ["forecast", "--cluster", f"{tmp_path}/base.yaml", "--history", f"{tmp_path}/history.parquet"]
    command += ["--futures", "2", "--workers", "1", "--now", "2026-01-05T12:00:00Z"]
    assert called([*command, "--patch", f"{tmp_path}/more.yaml", "--submit", f"{tmp_path}/job.yaml"]) == 0
    told = capsys.readouterr().out
    assert "mine would start in 13h00m; it displaces no workload" in told
    assert "with more, mine would start in 3h00m; it displaces no workload" in told
    assert called([*command, "--cluster", f"{tmp_path}/wide.yaml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (name,) = document["clusters"]
    assert name == "wide"
    first, *_ = document["clusters"]["wide"]["differences"]
    assert first == {
        "name": "default/next",
        "queue": "q",
        "state": "waiting",
        "p50_before_seconds": 10800.0,
        "p50_after_seconds": 0.0,
        "earlier": 1.0,
        "later": 0.0,
        "shift_p50_seconds": -10800.0,
        "preempted_before": 0.0,
        "preempted_after": 0.0,
    }
    assert document["clusters"]["wide"]["waiting"][0]["p50_seconds"] == 0
    assert called([*command, "--patch", f"{tmp_path}/more.yaml", "--backtest", "3"]) == 2
    assert "a backtest judges forecasts of a history on one cluster" in capsys.readouterr().err


def test_other_clusters_are_a_mapping() -> None:
    """Any other argument is refused in words."""
    with pytest.raises(OptionError, match="others"):
        harness.forecast("dump.yaml", others=["more.yaml"])  # type: ignore[arg-type]


def test_each_cluster_is_played_by_the_plugin_that_it_selects(tmp_path: Path) -> None:
    """Kueue's Configuration of the other one has fair sharing on."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "fairSharing": {"enable": True},
    }
    found = forecast(tmp_path, *THERE, others={"fair": cluster(queue("q", 4), configuration, *THERE)})
    plugins = [each.world.settings.plugin for each in (found, found.others["fair"])]
    assert plugins == ["kueue-classic", "fairsharing"]
