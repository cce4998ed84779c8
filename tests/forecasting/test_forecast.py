"""Forecasts of small live clusters, of which it is known what can happen."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from cli_environment import called
from live_worlds import MONDAY, NOON, Manifest, cluster, history, manifests, queue, time_of, workload

import harness
from harness import Cluster, Forecast
from harness.base.errors import InputError, OptionError
from harness.base.units import HOUR
from harness.studies.forecasting.from_files import Asked
from harness.studies.forecasting.quantiles import quantile
from harness.studies.forecasting.text import text

PODS = """\
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 4, pods: 10}}}
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: d}
spec:
  nodeName: n
  activeDeadlineSeconds: 36000
  containers: [{name: c, resources: {requests: {cpu: 4}}}]
status: {phase: Running, startTime: "2026-01-05T11:00:00Z"}
---
apiVersion: v1
kind: Pod
metadata: {name: next, namespace: d}
spec:
  activeDeadlineSeconds: 36000
  containers: [{name: c, resources: {requests: {cpu: 4}}}]
"""
"""A node, a Pod that runs on all of it, and one that waits."""
WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}


def ran(folder: Path, *hours: float, cpu: int = 4, ago: int = 10) -> Any:
    """A history of jobs that ran so long, a day each, and were over by now; none of a Monday afternoon."""
    return history(
        folder,
        [
            (f"past{number}", MONDAY - timedelta(days=ago, minutes=len(hours) - number), each, cpu)
            for number, each in enumerate(hours)
        ],
    )


def quantiles(found: Forecast, name: str = "default/next") -> tuple[Any, ...]:
    """When a job starts, hours."""
    (start,) = [each for each in found.starts if each.name == name]
    return tuple(None if time is None else time / HOUR for time in start.times)


def test_the_next_one_starts_when_the_one_that_runs_ends(tmp_path: Path) -> None:
    """It has run 2 h; of those that ran longer all ran 5 h: so it ends, and the next one starts, in 3 h."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    past = ran(tmp_path, *[1.0] * 30, *[5.0] * 30)
    counts: list[tuple[int, int]] = []
    found = harness.forecast(
        world, history=past, futures=8, workers=1, now=_now(), watch=lambda *count: counts.append(count)
    )
    assert counts == [(done, 8) for done in range(9)]
    assert quantiles(found) == (3.0, 3.0, 3.0)
    (start,) = found.starts
    assert (start.waited, start.unstarted) == (HOUR, 0)
    assert found.risks == []
    assert "jobs of the same queue and size" in start.drawn_from


def test_a_future_ends_when_those_that_are_asked_about_have_started(tmp_path: Path) -> None:
    """The first one waits 3 h for what runs, and the last one 8 h; what comes after is not played."""
    world = cluster(queue("q", 4), *THERE, workload("last", 4))
    asked: dict[str, Any] = {"history": ran(tmp_path, *[5.0] * 60), "futures": 2, "workers": 1, "now": _now()}
    every = harness.forecast(world, **asked)
    found = harness.forecast(world, workloads=["next"], **asked)
    assert [each.name for each in every.starts] == ["default/next", "default/last"]
    assert [each.end / HOUR for each in every.futures] == [8, 8]
    (start,) = found.starts
    assert start == every.starts[0]
    assert [each.end / HOUR for each in found.futures] == [3, 3]
    assert not any(line.startswith("last ") for line in text(found).splitlines())
    with_job = harness.forecast(world, workloads=["next"], submit=workload("mine", 4), **asked)
    assert with_job.submitted is not None
    assert with_job.submitted.times[1] == 13 * HOUR
    with pytest.raises(InputError, match="no Workload or Pod default/nxt waits for a start") as told:
        harness.forecast(world, workloads=["nxt"], **asked)
    assert told.value.hint == "did you mean 'default/next'?"


def test_the_reason_for_a_wait_stands_beside_the_start(tmp_path: Path) -> None:
    """It is that of harness simulate, in its words; one that can start now is shown so."""
    world = cluster(queue("q", 5), *THERE, workload("small", 1))
    past = ran(tmp_path, *[5.0] * 60)
    found = harness.forecast(world, history=past, futures=2, workers=1, now=_now())
    assert [start.reason and start.reason.waits_for for start in found.starts] == ["quota", "starts"]
    answers = harness.simulate(world).answers
    assert [start.reason and start.reason.why for start in found.starts] == [each.why for each in answers]
    first = found.to_json()["waiting"][0]
    assert (first["waits_for"], first["why"]) == ("quota", answers[0].why)


def test_a_limit_ends_what_runs_where_there_is_no_history() -> None:
    """It may run 6 h and has run 2 h."""
    runs = workload("runs", 4, since=2, limit=6 * 3600)
    world = cluster(queue("q", 4), runs, workload("next", 4, hours=1, limit=3600))
    found = harness.forecast(world, futures=3, workers=1, now=_now())
    low, _, high = quantiles(found)
    assert low == pytest.approx(4, abs=0.02)
    assert high == low
    assert any("there is no history" in note for note in found.notes)
    (assumed,) = [note for note in found.notes if "waitForPodsReady" in note]
    assert assumed.startswith("waitForPodsReady is on, which is Kueue's default")


def test_a_restart_after_a_preemption_takes_the_whole_run_time_again(tmp_path: Path) -> None:
    """`runs` has run 2 of 5 h; `high` takes its place now and runs 5 h; `low` waits for both: 5 and 5 h."""
    world = cluster(
        queue("q", 4, **WITHIN),
        workload("runs", 4, since=2, priority=1),
        workload("high", 4, hours=0, priority=2),
        workload("low", 4, hours=1),
    )
    past = ran(tmp_path, *[5.0] * 60)
    found = harness.forecast(world, history=past, futures=4, workers=1, now=_now())
    (risk,) = found.risks
    assert (risk.name, risk.running, risk.share, risk.median) == ("default/runs", True, 1.0, 0)
    assert quantiles(found, "default/low")[0] == pytest.approx(10, abs=0.05)
    kept = harness.forecast(world, history=past, futures=4, workers=1, now=_now(), on_preemption="resume")
    assert quantiles(kept, "default/low")[0] == pytest.approx(8, abs=0.05)


@pytest.mark.parametrize("dated", [False, True])
def test_a_maintenance_that_is_to_come_moves_the_forecast(dated: bool, tmp_path: Path) -> None:
    """The queue is held from 1 h to 12 h from now on, so that `next` does not start in 3 h."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    times = [f"{(NOON + timedelta(hours=hours)).isoformat()}" if dated else f"{hours}h" for hours in (1, 12)]
    annotations = dict(zip(("harness/from", "harness/until"), times, strict=True))
    metadata = {"name": "q", "annotations": annotations}
    held = world.patched({"kind": "ClusterQueue", "metadata": metadata, "spec": {"stopPolicy": "Hold"}})
    past = ran(tmp_path, *[1.0] * 30, *[5.0] * 30)
    found = harness.forecast(held, history=past, futures=4, workers=1, now=_now(), others={"open": world})
    assert quantiles(found) == (12.0, 12.0, 12.0)
    assert quantiles(found.others["open"]) == (3.0, 3.0, 3.0)


def test_a_backtest_takes_dates_only(tmp_path: Path) -> None:
    """From when else would a time count?"""
    metadata = {"name": "q", "annotations": {"harness/from": "1h"}}
    held = cluster(queue("q", 4)).patched(
        {"kind": "ClusterQueue", "metadata": metadata, "spec": {"stopPolicy": "Hold"}}
    )
    asked = Asked(held, ran(tmp_path, 1.0, 2.0))
    with pytest.raises(OptionError, match="a backtest begins at many moments"):
        asked.judged(2, harness.plugins.load(), workers=1)


def test_what_does_not_start_by_the_horizon_is_counted(tmp_path: Path) -> None:
    """Half of the histories end too late: the p90 is unknown, and half is not started."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    past = ran(tmp_path, *[3.0, 100.0] * 200, ago=20)
    found = harness.forecast(world, history=past, futures=60, workers=1, now=_now(), horizon="2d")
    (start,) = found.starts
    assert start.times[0] == HOUR
    assert start.times[2] is None
    assert start.unstarted == pytest.approx(0.5, abs=0.2)
    assert found.unstarted == start.unstarted
    assert "of the starts did not happen within 2d00h" in text(found)


def test_a_history_that_ended_long_ago_says_so_and_still_has_jobs_come(tmp_path: Path) -> None:
    """Each hour a job comes that takes all cores for 110 minutes and goes first, so `next` never starts."""
    file = tmp_path / "dump.yaml"
    runs, after = workload("runs", 4, since=1, priority=100), workload("next", 4, hours=1)
    file.write_text(yaml.safe_dump_all(manifests(queue("q", 4), runs, after)))
    for days in (0, 20, 70):
        end = NOON - timedelta(days=days)
        hours = [(f"past{hour}", end - timedelta(hours=hour), 11 / 6, 4) for hour in range(28 * 24)]
        trace = history(tmp_path, hours)
        high = pl.lit(100, pl.Int32).alias("priority")
        trace = replace(trace, frame=trace.frame.with_columns(high))
        found = harness.forecast(file, history=trace, futures=4, workers=1, now=_now(), horizon="2d")
        assert found.unstarted == 1
        (said,) = [note for note in found.notes if "its last job was submitted" in note] or [""]
        told = f"history: its last job was submitted at {end:%Y-%m-%dT%H:%M:%SZ}, {days}d00h before now; "
        assert said == (f"{told}future days are drawn from days up to that time" if days else "")


def test_a_history_that_is_all_later_says_so(tmp_path: Path) -> None:
    """It knew nothing by now; its run times count all the same."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    asked: dict[str, Any] = {"futures": 3, "workers": 1, "now": _now()}
    later = harness.forecast(world, history=ran(tmp_path, *[5.0] * 60, ago=-10), **asked)
    assert quantiles(later)[0] == 3
    (said,) = [note for note in later.notes if "after now" in note]
    assert said == (
        "history: all of its jobs were submitted after now, the first at 2026-01-14T23:00:00Z, "
        "so the forecast uses all of its run times and days as if they were already over"
    )
    before = harness.forecast(world, history=ran(tmp_path, *[5.0] * 60), **asked)
    assert not [note for note in before.notes if "after now" in note]


def test_futures_that_were_ended_early_are_told(tmp_path: Path) -> None:
    """In the text and in the document, with the first one's reason; where there is none nothing is."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    found = harness.forecast(world, history=ran(tmp_path, *[5.0] * 60), futures=3, workers=1, now=_now())
    assert "ended_early" not in found.to_json()
    assert "ended early" not in text(found)
    one, *others = found.futures
    early = replace(found, futures=(one, *(each._replace(stopped="it goes nowhere") for each in others)))
    assert early.to_json()["ended_early"] == {"futures": 2, "why": "it goes nowhere"}
    assert "- 2 futures ended early: it goes nowhere" in text(early)
    once = replace(found, futures=(one, early.futures[1]))
    assert "- 1 future ended early: it goes nowhere" in text(once)


def test_one_job_more_waits_and_displaces(tmp_path: Path) -> None:
    """It is more important: it preempts `runs` at once, and `next` starts after both, 5 + 5 h from now."""
    world = cluster(queue("q", 4, **WITHIN), workload("runs", 4, since=2), workload("next", 4, hours=1))
    past = ran(tmp_path, *[5.0] * 60)
    job = workload("mine", 4, priority=5)
    found = harness.forecast(world, history=past, submit=job, futures=4, workers=1, now=_now())
    mine = found.submitted
    assert mine is not None
    assert mine.times[1] is not None
    assert mine.times[1] / HOUR == pytest.approx(0.01, abs=0.01)  # when its victim's grace period is over
    runs, late = sorted(found.displaced, key=lambda each: not each.running)
    assert (runs.name, runs.preempted, runs.preempted_more) == ("default/runs", 1.0, 1.0)
    assert (late.name, late.later, late.preempted) == ("default/next", 1.0, 0.0)
    assert late.delay is not None
    assert late.delay >= 2 * HOUR


def test_a_job_that_is_in_the_dump_already_is_noted(tmp_path: Path) -> None:
    """The forecast is about a second job."""
    world, past = cluster(queue("q", 4), workload("mine", 4, hours=1)), ran(tmp_path, *[5.0] * 60)
    job = workload("mine", 4)
    found = harness.forecast(world, history=past, submit=job, futures=2, workers=1, now=_now())
    there = (
        "Workload default/mine is in the dump already, as Workload default/mine, so the answer is about a "
    )
    assert any(each.startswith(there) for each in found.notes)


def test_a_field_of_a_submitted_job_that_is_not_modelled_is_noted(tmp_path: Path) -> None:
    """As it is for a Workload of the dump."""
    world, past = cluster(queue("q", 4)), ran(tmp_path, *[5.0] * 60)
    job = workload("mine", 4)
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    found = harness.forecast(world, history=past, submit=job, futures=2, workers=1, now=_now())
    said = "Workload default/mine: metadata.annotations.kueue.x-k8s.io/elastic-job is not modelled: "
    assert any(each.startswith(said) for each in found.notes)


def test_one_job_more_behind_all_others_displaces_nobody(tmp_path: Path) -> None:
    """It waits for both; all futures are the same as without it."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4, hours=1))
    past = ran(tmp_path, *[5.0] * 60)
    found = harness.forecast(
        world, history=past, submit=workload("mine", 4), futures=4, workers=1, now=_now()
    )
    mine = found.submitted
    assert mine is not None
    assert mine.times[1] == 8 * HOUR
    assert found.displaced == []
    assert "mine would start in 8h00m; it displaces no workload" in text(found)


@pytest.mark.parametrize(("cpu", "told"), [(8, "start now; it"), (4, "start later, but not before")])
def test_when_one_job_more_starts_is_said_in_words(cpu: int, told: str) -> None:
    """At once where there is room, and later where the horizon comes first."""
    limited = workload("mine", 4, limit=3600)
    world = cluster(queue("q", cpu), workload("next", 4, hours=1, limit=7200))
    found = harness.forecast(world, submit=limited, futures=2, workers=1, now=_now(), horizon="1h")
    assert f"mine would {told}" in text(found)


def test_who_plays_the_futures_does_not_matter(tmp_path: Path) -> None:
    """One process, two, or an executor; the seed does. Jobs come as on a day of the history."""
    world = cluster(queue("q", 8), *_many())
    past = ran(tmp_path, *[0.5 * number for number in range(1, 61)], ago=7)
    asked: dict[str, Any] = {"history": past, "futures": 6, "now": _now()}
    one = harness.forecast(world, workers=1, **asked)
    two = harness.forecast(world, workers=2, **asked)
    with ThreadPoolExecutor(2) as executor:
        other = harness.forecast(world, executor=executor, **asked)
    assert one.to_json() == two.to_json() == other.to_json()
    assert harness.forecast(world, workers=1, seed=1, **asked).to_json() != one.to_json()


def test_quantiles_leave_the_outcome_as_likely_as_they_say() -> None:
    """Of nine futures the first and the last are the p10 and the p90; what does not happen comes last."""
    assert [quantile([*range(1, 10)], share) for share in (0.1, 0.5, 0.9)] == [1, 5, 9]
    assert quantile([1, 2, None], 0.9) is None
    assert quantile([1, 2, None], 0.5) == 2


def _now() -> int:
    return round(NOON.timestamp()) * 1_000_000


def _many() -> list[Manifest]:
    running = [workload(f"runs{number}", 4, since=number + 1) for number in range(2)]
    return [*running, *(workload(f"waits{number}", 4, hours=0.5 * number) for number in range(5))]


# --- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of a live cluster of which one job waits."""
    file = tmp_path / "dump.yaml"
    parts = manifests(queue("q", 4, **WITHIN), workload("runs", 4, since=2), workload("next", 4, hours=1))
    file.write_text(yaml.safe_dump_all(parts))
    return file


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """What a command answers: its exit code, stdout and stderr."""
    code = called(list(args))
    out, err = capsys.readouterr()
    return code, out, err


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "mine", "labels": {"kueue.x-k8s.io/queue-name": "q-jobs"}},
    "spec": {
        "parallelism": 2,
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
    },
}


def test_the_command_prints_tables_that_fit_a_terminal(
    tmp_path: Path, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Starts, preemptions, what one job more does, and what run times are drawn from."""
    past, job = ran(tmp_path, *[5.0] * 60), tmp_path / "job.yaml"
    job.write_text(yaml.safe_dump(JOB))
    args = ["--cluster", dump, "--history", past.path, "--futures", "3", "--workers", "1"]
    code, out, err = printed(capsys, "forecast", *map(str, args), "--submit", str(job))
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("no interval, because harness tested no forecast against the history: ")
    head = "1 workload waits and 1 runs at 2026-01-05T11:00:00Z; 3 simulated futures of at most 7d00h; "
    assert f"{head}starts are times from now" in lines
    assert any(line.startswith("mine would start in 9h00m") for line in lines)
    assert any(line.split()[:3] == ["next", "q", "quota"] for line in lines)
    assert "without mine, no workload is preempted in any future" in lines
    assert all(
        len(line) <= 80 for line in lines if not line.startswith(("-", "no interval", "1 workload", "mine"))
    )


def test_one_future_is_said_as_one(tmp_path: Path, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not as 1 futures."""
    past = ran(tmp_path, *[5.0] * 60)
    args = ["--cluster", dump, "--history", past.path, "--futures", "1", "--workers", "1"]
    code, out, err = printed(capsys, "forecast", *map(str, args))
    assert code == 0, err
    assert "1 simulated future of at most 7d00h; starts are times from now" in out
    assert "1 simulated futures" not in out


def test_the_document_has_the_same_for_dashboards(
    tmp_path: Path, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times in seconds from now and as dates."""
    past = ran(tmp_path, *[5.0] * 60)
    args = ["--cluster", dump, "--history", past.path, "--futures", "3", "--workers", "1", "--json"]
    code, out, err = printed(capsys, "forecast", *map(str, args), "--now", "2026-01-05T12:00:00Z")
    assert code == 0, err
    found = json.loads(out)
    (start,) = found["waiting"]
    assert (start["p50_seconds"], start["p50"]) == (3 * 3600, "2026-01-05T15:00:00Z")
    assert (found["now"], found["futures"], found["running"]) == ("2026-01-05T12:00:00Z", 3, 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"queue": "nowhere"}, "there is no LocalQueue 'nowhere' in namespace default"),
        ({"cpu": "99"}, "it can never start"),
        ({"kind": "DaemonSet"}, "kind 'DaemonSet' is not one of Job, Pod, JobSet"),
        ({"queue": None}, "kueue-classic does not schedule it"),
        ({"label": "soon"}, "max-exec-time-seconds: must be a whole number, not 'soon'"),
        ({"deadline": [1]}, "spec.activeDeadlineSeconds: must be a whole number"),
        ({"parallelism": 0}, "spec: parallelism or completions is 0, so there is no pod that could start"),
        ({"parallelism": "many"}, "spec.parallelism"),
        ({"template": None}, "spec.template.spec.containers: there are none, so there is no pod that"),
        ({"least": "2"}, "must be a whole number above 0 and less than the number of its pods, 2, not '2'"),
        (
            {"least": "some"},
            "metadata.annotations.kueue.x-k8s.io/job-min-parallelism: must be a whole number",
        ),
    ],
)
def test_a_job_that_cannot_be_submitted_is_refused(
    tmp_path: Path, dump: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], said: str
) -> None:
    """With what is wrong, and no forecast."""
    job = json.loads(json.dumps(JOB))
    job["kind"] = changed.get("kind", "Job")
    if "queue" in changed:
        named = changed["queue"]
        job["metadata"]["labels"] = {} if named is None else {"kueue.x-k8s.io/queue-name": named}
    if "label" in changed:
        job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = changed["label"]
    if "least" in changed:
        job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": changed["least"]}
    if "parallelism" in changed:
        job["spec"]["parallelism"] = changed["parallelism"]
    if "deadline" in changed:
        job["spec"]["activeDeadlineSeconds"] = changed["deadline"]
    if "template" in changed:
        job["spec"]["template"] = changed["template"]
    if "cpu" in changed:
        requests = job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = changed["cpu"]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    past = ran(tmp_path, *[5.0] * 60)
    code, _, err = printed(
        capsys, "forecast", "--cluster", str(dump), "--history", str(past.path), "--submit", str(file)
    )
    assert (code, said in err) == (2, True), err


def test_a_job_may_begin_with_fewer_pods(tmp_path: Path) -> None:
    """As many as its annotation says: of 8 pods 4 fit when `runs` has ended; without it none ever would."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2))
    past = ran(tmp_path, *[5.0] * 60)
    job = json.loads(json.dumps(JOB))
    job["spec"] |= {"parallelism": 8}
    asked: dict[str, Any] = {"history": past, "futures": 2, "workers": 1, "now": _now()}
    with pytest.raises(InputError, match="it can never start"):
        harness.forecast(world, submit=job, **asked)
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "3"}
    found = harness.forecast(world, submit=job, **asked).submitted
    assert found is not None
    assert found.times == (3 * HOUR, 3 * HOUR, 3 * HOUR)


def test_what_cannot_be_forecast_is_said(tmp_path: Path) -> None:
    """Nothing waits; nothing is known of run times; a plugin that begins empty; a time that is over."""
    past = ran(tmp_path, *[5.0] * 60)
    running, waiting = workload("runs", 4, since=2), workload("next", 4, hours=1)

    def ask(world: Cluster, **asked: Any) -> None:
        harness.forecast(world, futures=1, workers=1, **asked)

    with pytest.raises(InputError, match="no Workload or Pod waits"):
        ask(cluster(queue("q", 4), running), history=past)
    with pytest.raises(InputError, match="the run time of default/next is unknown"):
        ask(cluster(queue("q", 4), running, waiting))
    with pytest.raises(
        OptionError, match="recorded does not take over the running jobs of a cluster"
    ) as refused:
        ask(cluster(queue("q", 4), running, waiting), history=past, plugin="recorded")
    assert "has running=" in (refused.value.hint or "")
    with pytest.raises(OptionError, match="contain a later event"):
        ask(cluster(queue("q", 4), running, waiting), history=past, now=_now() - 3 * HOUR)


@pytest.mark.parametrize("stopped", ["ClusterQueue", "LocalQueue"])
def test_a_history_of_stopped_queues_has_run_times(tmp_path: Path, stopped: str) -> None:
    """A queue may resume, and nobody forgets how long its jobs ran. They arrive, but do not start."""
    past, closed = ran(tmp_path, *[5.0] * 60), queue("q", 4)
    next(each for each in closed if each["kind"] == stopped)["spec"]["stopPolicy"] = "Hold"
    running, waiting = workload("runs", 4, queue="r", since=2), workload("next", 4, queue="r", hours=1)
    world = cluster(closed, queue("r", 4), running, waiting)
    found = harness.forecast(world, history=past, futures=2, workers=1, now=_now())
    assert found.starts[0].times == (3 * HOUR, 3 * HOUR, 3 * HOUR)


def test_a_history_of_an_inactive_queue_has_run_times(tmp_path: Path) -> None:
    """Its AdmissionCheck may come back; until then, a job of the queue waits, and the others start."""
    past, closed = ran(tmp_path, *[5.0] * 60), queue("q", 4)
    spec = next(each for each in closed if each["kind"] == "ClusterQueue")["spec"]
    spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": "gone"}]}
    check = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "other"}}
    running, waiting = workload("runs", 4, queue="r", since=2), workload("next", 4, queue="r", hours=1)
    world = cluster(closed, queue("r", 4), running, waiting, [{**check, "spec": {"controllerName": "c"}}])
    found = harness.forecast(world, history=past, futures=2, workers=1, now=_now())
    assert found.starts[0].times == (3 * HOUR, 3 * HOUR, 3 * HOUR)


def test_who_fits_only_on_a_cordoned_node_does_not_keep_futures_going(tmp_path: Path) -> None:
    """The node may return, but nobody knows when. Its start is not known, and the reason names the node."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": name == "away"},
            "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
        }
        for name, cpu in (("here", "4"), ("away", "8"))
    ]
    world = cluster(queue("q", 16), nodes, workload("large", 8), workload("small", 4))
    past = ran(tmp_path, *[5.0] * 60)
    found = harness.forecast(world, history=past, futures=2, workers=1, now=_now())
    assert {future.end for future in found.futures} == {0}
    large, small = found.to_json()["waiting"]
    assert (large["waits_for"], small["waits_for"]) == ("nodes", "starts")
    assert "never" not in large
    shown = text(found)
    assert re.search(r"^large +q +nodes .* unknown", shown, re.MULTILINE)
    assert re.search(r"large can start only later: .*; it may fit when away can run pods again", shown)
    job = json.loads(json.dumps(JOB))
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    with pytest.raises(InputError, match=r"it can start only later: .* when away can run pods again"):
        harness.forecast(world, submit=job, history=past, futures=2, workers=1, now=_now())


def test_who_can_never_start_is_told_and_does_not_keep_futures_going(tmp_path: Path) -> None:
    """It asks for more than all quotas: the reason is there; futures end with the other one's start."""
    world = cluster(queue("q", 4), workload("runs", 4, since=2), workload("next", 4), workload("giant", 40))
    found = harness.forecast(world, history=ran(tmp_path, *[5.0] * 60), futures=2, workers=1, now=_now())
    assert [each.name for each in found.starts if each.never] == ["default/giant"]
    assert {future.end for future in found.futures} == {3 * HOUR}
    assert "default/giant can never start" in text(found)
    assert found.unstarted == 0


def test_pods_that_wait_for_a_node_are_forecast_too(tmp_path: Path) -> None:
    """Without ClusterQueues kube-scheduler schedules: the pod starts when the one on the node has ended."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    started = (NOON - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def pod(name: str, **more: Any) -> Manifest:
        status = {"phase": "Running", "startTime": started} if "nodeName" in more else {"phase": "Pending"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "q-jobs"},
            "spec": {**spec, **more},
            "status": status,
        }

    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    world = cluster(node, pod("runs", nodeName="n"), pod("next"))
    found = harness.forecast(world, history=ran(tmp_path, *[5.0] * 60), futures=2, workers=1, now=_now())
    assert found.world.settings.plugin == "default-preemption"
    assert quantiles(found, "q-jobs/next")[1] == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("known", [{"creationTimestamp": "2026-01-05T13:00:00Z"}, {}])
def test_now_is_the_last_time_that_a_pod_that_waits_knows_of(known: Manifest) -> None:
    """When it was created, since when it waits, or when it found no node; an earlier now is refused."""
    node, runs, waits = yaml.safe_load_all(PODS)
    waits["metadata"].update(known)
    failed = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-05T13:00:00Z"}
    waits["status"] = {"phase": "Pending", **({} if known else {"conditions": [failed]})}
    found = harness.forecast(cluster(node, runs, waits), futures=1, workers=1)
    assert found.world.now.at == _now() + HOUR
    (start,) = found.starts
    assert start.waited == (0 if known else None)
    with pytest.raises(OptionError, match="the manifests contain a later event"):
        harness.forecast(cluster(node, runs, waits), futures=1, workers=1, now=_now())


def ended(count: int, hours: float = 5) -> list[Manifest]:
    """Workloads that ran so long each, one an hour, the last one until noon."""
    found = []
    for number in range(count):
        each = workload(f"ended-{number}", 4, since=hours + number)
        end = (NOON - timedelta(hours=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        finished = {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": end}
        each["status"]["conditions"].append(finished)
        found.append(each)
    return found


THERE = [workload("runs", 4, since=2), workload("next", 4, hours=1)]


@pytest.mark.parametrize("given", ["a file", "several files", "a folder", "a cluster"])
def test_jobs_of_the_dump_that_have_ended_are_the_history_without_another(tmp_path: Path, given: str) -> None:
    """25 ran 5 h each, the last one until noon: what has run 2 h by then ends in 3 h."""
    parts = [manifests(queue("q", 4)), [*ended(25), *THERE]]
    if given == "a file":
        parts = [[*parts[0], *parts[1]]]
    files = [tmp_path / f"part{number}.yaml" for number in range(len(parts))]
    for file, part in zip(files, parts, strict=True):
        file.write_text(yaml.safe_dump_all(part))
    several = {"a folder": tmp_path, "a cluster": cluster(queue("q", 4), *ended(25), *THERE)}
    found = harness.forecast(
        several.get(given, ",".join(map(str, files))), futures=3, workers=1, plugin="kueue-classic"
    )
    assert quantiles(found)[1] == 3
    assert "history: the 25 jobs of the manifests that have ended" in found.notes


def test_a_history_whose_jobs_could_never_start_gives_run_times_alone() -> None:
    """The jobs that ended were larger than the queue is now. They ran 5 h, so the last one ends in 3 h."""
    world = cluster(queue("q", 3), workload("runs", 3, since=2), workload("next", 3, hours=1), *ended(30))
    found = harness.forecast(world, futures=4, workers=1, now=_now())
    assert quantiles(found) == (3.0, 3.0, 3.0)
    assert any("none of its jobs could ever start" in note for note in found.notes)
    assert "no job of the history could ever start on this cluster" in found.past.lacks


def test_a_history_of_which_nothing_has_ended_yet_leaves_the_limits(tmp_path: Path) -> None:
    """Without a limit, the run time is unknown, and the reason is named."""
    past = history(tmp_path, [("now", NOON - timedelta(hours=1), 5.0, 1)])
    both = [("runs", 2.0), ("next", None)]
    limited = cluster(queue("q", 4), *(workload(name, 4, since=since, limit=14400) for name, since in both))
    found = harness.forecast(limited, history=past, futures=2, workers=1, now=_now())
    assert quantiles(found) == (2.0, 2.0, 2.0)
    with pytest.raises(InputError, match=r"no history.*none of its jobs had ended by now"):
        harness.forecast(cluster(queue("q", 4), *THERE), history=past, futures=2, workers=1, now=_now())


def test_why_there_is_no_history_is_said(tmp_path: Path) -> None:
    """Nothing has ended, or what has is malformed, which is named; as a note where a limit is enough."""
    limited = [workload("runs", 4, since=2, limit=6 * 3600), workload("next", 4, limit=3600)]
    reason = "live: holds no job that has ended (1 that have not ended, so their run times are unknown; "
    found = harness.forecast(cluster(queue("q", 4), *limited), futures=1, workers=1, now=_now())
    (note,) = [each for each in found.notes if "there is no history" in each]
    assert note.startswith(f"there is no history ({reason}")
    with pytest.raises(InputError, match="the run time of default/next is unknown") as error:
        harness.forecast(cluster(queue("q", 4), *THERE), futures=1, workers=1)
    assert f"there is no limit (maximumExecutionTimeSeconds), and no history ({reason}" in str(error.value)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "broken", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": []}}},
        "status": {"startTime": "yesterday"},
    }
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all([job, *manifests(queue("q", 4), *ended(3), *THERE)]))
    with pytest.raises(
        InputError, match=f"no history .{file}: Job default/broken.*'yesterday' is not a time"
    ):
        harness.forecast(file, futures=1, workers=1)


def test_a_history_in_which_nothing_took_time_is_named(tmp_path: Path) -> None:
    """It is there, and says nothing of how long anything runs."""
    with pytest.raises(InputError, match="and all 4 jobs of the history that had ended by now took no time"):
        harness.forecast(cluster(queue("q", 4), *THERE), history=ran(tmp_path, *[0.0] * 4), now=_now())


def test_workloads_whose_queue_is_not_there_are_named() -> None:
    """That they wait for a queue that the manifests lack, and not for another scheduler."""
    queues = queue("q", 4)
    lost, none = workload("lost", 4, hours=1, limit=3600), workload("none", 4, hours=1)
    lost["spec"]["queueName"] = "nowhere"
    del none["spec"]["queueName"]
    named = (
        "Workloads of the manifests that wait in a LocalQueue that is not in the manifests: 1 (default/lost "
        "in nowhere); they are left out; add what"
    )
    nameless = "Workloads of the manifests that name no queue: 1 (default/none); they are left out"
    with pytest.raises(InputError) as told:
        harness.forecast(cluster(queues, lost, none), futures=1, workers=1)
    assert named in str(told.value)
    assert nameless in str(told.value)
    assert told.value.hint is None
    beside = workload("next", 4, hours=1, limit=3600)
    found = harness.forecast(cluster(queues, lost, none, beside), futures=1, workers=1)
    assert [each.name for each in found.starts] == ["default/next"]
    for part in (named, nameless):
        assert len([note for note in found.notes if note.startswith(part)]) == 1


def test_workloads_without_queues_are_asked_for_their_queues() -> None:
    """A dump without ClusterQueues is incomplete; it does not show that nobody waits."""
    world = cluster(workload("runs", 4, since=2), workload("next", 4, hours=1))
    for plugin in (None, "default-preemption", "kueue-classic"):
        with pytest.raises(InputError) as told:
            harness.forecast(world, plugin=plugin, futures=1, workers=1, now=_now())
        assert "holds 2 Workloads of Kueue that have not ended, and no ClusterQueue" in str(told.value)
        assert "clusterqueues" in str(told.value.hint)
    with pytest.raises(InputError, match="holds 1 Workload of Kueue that has not ended, and no ClusterQueue"):
        harness.forecast(cluster(workload("lost", 4, hours=1)), futures=1, workers=1)


def test_names_that_begin_alike_are_whole_or_differ() -> None:
    """Whole where the terminal is wide enough or there is none; else shortened where they are the same."""
    names = [f"job-resnet-ablation-{end}" for end in ("q2cd9-abcde", "q2cd9-fghij", "x7wpl-abcde")]
    waiting = [workload(name, 4, hours=1, limit=3600) for name in names]
    world = cluster(queue("q", 4), workload("runs", 4, since=2, limit=6 * 3600), *waiting)
    found = harness.forecast(world, futures=1, workers=1, now=_now())
    for width in (None, 200):
        assert all(name in text(found, width) for name in names)
    firsts = [line.split()[0] for line in text(found, 64).split("\n") if line.startswith("job-")]
    assert len(set(firsts)) == 3
    assert all("…" in each for each in firsts)


NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "pods": "10"}},
}


def pod(name: str, cpu: int, of: str, node: str = "", since: float = 0) -> Manifest:
    """A Pod of a Workload; with `node` it has run there for so many hours."""
    status: Manifest = {"phase": "Pending"}
    if node:
        status = {"phase": "Running", "startTime": time_of(NOON - timedelta(hours=since))}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": {"kueue.x-k8s.io/workload": of}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": status,
    }


def test_a_terminating_pod_holds_its_node_until_it_is_gone(tmp_path: Path) -> None:
    """As in an answer about now. It has no run time, and a drawn one would be longer."""
    path = tmp_path / "dump.yaml"
    leaving = 'metadata: {name: runs, namespace: d, deletionTimestamp: "2026-01-05T14:00:00Z"}'
    path.write_text(PODS.replace("metadata: {name: runs, namespace: d}", leaving))
    found = harness.forecast(path, futures=2, workers=1)  # now is 11:00, when the pod started
    assert found.starts[0].times == (3 * HOUR, 3 * HOUR, 3 * HOUR)
    assert not any("harness treats them as gone" in each for each in found.notes)


def half_bound() -> Cluster:
    """Of two that hold quota one has the node for five hours more, and the other has none."""
    runs = workload("runs", 4, since=1, limit=6 * 3600)
    half = workload("half", 4, since=0.25, limit=12 * 3600)
    late = {"type": "PodsReady", "status": "False", "reason": "WaitForStart"}
    late["lastTransitionTime"] = time_of(NOON - timedelta(hours=0.25))
    half["status"]["conditions"].append(late)
    pods = [pod("runs-0", 4, "runs", "n", since=1), pod("half-0", 4, "half")]
    return cluster(NODE, queue("q", 8), runs, half, *pods)


def test_who_holds_quota_alone_waits_for_nodes() -> None:
    """It counts as one that waits, and the forecast says when its pod gets a node."""
    options = {"featureGates": "DisableWaitForPodsReady=true"}
    found = harness.forecast(half_bound(), futures=1, workers=1, now=_now(), options=options)
    assert "\n1 workload waits and 1 runs at" in text(found)
    assert quantiles(found, "default/half")[1] == 5


def test_a_time_out_is_named_where_others_are_preempted() -> None:
    """Fifteen minutes after now its pod has had no node for half an hour."""
    found = harness.forecast(half_bound(), futures=2, workers=1, now=_now())
    (risk,) = found.risks
    assert (risk.name, risk.share, risk.median) == ("default/half", 1.0, HOUR / 4)
    assert [tuple(each) for each in risk.by] == [("PodsReadyTimeout", 1.0)]
    assert "PodsReadyTimeout (100%)" in text(found)
