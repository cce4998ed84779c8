"""How long unfinished work of a dump runs in a replay, and what is said where nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live_worlds import MONDAY, cluster, history, queue, workload

import harness
from harness import Cluster
from harness.base.errors import OptionError, RunError, SpecError
from harness.base.units import HOUR
from harness.runs.run import Run
from harness.trace.trace import Trace

Manifest = dict[str, Any]
KEPT = "they keep their resources for the whole replay"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Forty jobs of four cores, an hour after each other, that ran from 1 to 40 hours."""
    jobs = [(f"past{n:02}", MONDAY - timedelta(days=9) + timedelta(hours=n), n + 1.0, 4) for n in range(40)]
    return history(tmp_path, jobs)


@pytest.fixture
def replay(trace: Trace, tmp_path: Path) -> Callable[..., Run]:
    """Replays the jobs from a dump on, with Kueue."""

    def run(where: Cluster, **how: Any) -> Run:
        asked = {"trace": trace, "plugin": "kueue-classic", "output": tmp_path / "results", **how}
        return harness.replay(asked.pop("trace"), cluster=where, at_start="dump", **asked)

    return run


def world(*more: Manifest, cpu: int = 400) -> Cluster:
    """`next` waits, and room for all."""
    return cluster(queue("q", cpu), workload("next", 4, hours=1), *more)


def durations(run: Run) -> dict[str, float | None]:
    """How long each job of the manifests runs, hours."""
    jobs = run.micros("jobs").filter(pl.col("job_id").str.starts_with("default/"))
    rows = jobs.select("job_id", "duration").collect().rows()
    return {name: None if time is None else time / HOUR for name, time in rows}


def test_run_times_are_those_of_a_forecast(replay: Callable[..., Run], trace: Trace) -> None:
    """Twin 3 has the run times of future 3, the run itself those of future 0; the seed gives others."""
    where = world(workload("other", 4, hours=2), workload("third", 4, hours=3))
    drawn = harness.forecast(where, history=trace, futures=1, workers=1).world
    for seed, twin in ((0, None), (0, "3"), (7, "1")):
        future = 0 if twin is None else int(twin)
        expected = {
            each.job.id: draws.drawn(seed, future, each.job.id) / HOUR
            for each, draws in zip(drawn.now.present, drawn.draws, strict=True)
        }
        run = replay(where, seed=seed, twin=twin)
        assert durations(run) == expected
        assert set(run.jobs["state"]) == {"finished"}
    assert len({tuple(durations(replay(where, twin=str(n))).values()) for n in range(1, 5)}) == 4


def test_one_line_says_what_was_done_with_how_many(replay: Callable[..., Run]) -> None:
    """It is kept with the run, and so are the choice and its seed."""
    run = replay(world(workload("other", 4, hours=2)))
    assert run.info["unfinished"] == {
        "said": "unfinished draw: run times of 2 Workloads are drawn from jobs of the same queue and "
        "size (2); seed 0"
    }
    assert (run.info["settings"]["unfinished"], run.info["settings"]["seed"]) == ("draw", 0)
    given = replay(world(), unfinished="90m", seed=3)
    assert given.info["unfinished"]["said"] == "unfinished 1h30m: run times of 1 Workload"
    assert given.info["settings"]["unfinished"] == "1h30m"
    assert "seed" not in given.info["settings"]


def test_what_has_ended_of_the_dump_is_drawn_from_as_well(replay: Callable[..., Run], tmp_path: Path) -> None:
    """The trace is of another queue: the twenty jobs of the dump that ended in 7 h are nearer."""
    ended = []
    for number in range(20):
        done = workload(f"done-{number}", 4, queue="r", hours=30, since=29)
        begun, over = ((MONDAY + timedelta(hours=12 - ago)) for ago in (29, 22))
        conditions = done["status"]["conditions"]
        for each in conditions:
            each["lastTransitionTime"] = f"{begun:%Y-%m-%dT%H:%M:%SZ}"
        conditions.append(
            {
                "type": "Finished",
                "status": "True",
                "reason": "Succeeded",
                "lastTransitionTime": f"{over:%Y-%m-%dT%H:%M:%SZ}",
            }
        )
        ended.append(done)
    where = cluster(queue("q", 400), queue("r", 40), workload("next", 4, queue="r", hours=1), *ended)
    assert durations(replay(where)) == {"default/next": 7.0}


def test_limits_are_taken_where_they_are_told(replay: Callable[..., Run]) -> None:
    """The Workload's own or its pods' deadline, the shorter one; of one without any nobody knows."""
    pods = workload("pods", 4, hours=1, limit=9 * 3600)
    pods["spec"]["podSets"][0]["template"]["spec"]["activeDeadlineSeconds"] = 2 * 3600
    run = replay(world(workload("own", 4, hours=1, limit=3 * 3600), pods), unfinished="limit")
    assert durations(run) == {"default/own": 3, "default/pods": 2, "default/next": None}
    unknown = (
        "the run times of 1 Workload of the manifests are not known: they have neither "
        "maximumExecutionTimeSeconds nor activeDeadlineSeconds"
    )
    said = f"unfinished limit: run times of 2 Workloads are their limits; {unknown}; {KEPT}"
    assert run.info["unfinished"] == {"said": said, "unknown": unknown}
    states = dict(run.jobs.select("job_id", "state").rows())
    assert [states[f"default/{name}"] for name in ("own", "pods", "next")] == [
        "finished",
        "finished",
        "running",
    ]


def test_dropped_work_takes_no_part(replay: Callable[..., Run], trace: Trace, tmp_path: Path) -> None:
    """The jobs run as on the cluster without it; quotas can be isolated then."""
    done = workload("done", 4, since=2)
    done["status"]["conditions"].append({"type": "Finished", "status": "True"})
    where = world(workload("runs", 4, since=2), done, cpu=8)
    run = replay(where, unfinished="drop")
    empty = harness.replay(
        trace, plugin="kueue-classic", cluster=where, output=tmp_path / "results", at_start="empty"
    )
    assert run.jobs.equals(empty.jobs)
    assert run.info["unfinished"]["said"] == "unfinished drop: left out: 2 Workloads"
    (alone,) = harness.isolated([run], workers=1)
    assert alone.remarks == ()
    assert "unfinished" not in empty.info["settings"]


def test_pods_that_keep_themselves_alive_do_not_end(replay: Callable[..., Run], trace: Trace) -> None:
    """One of a DaemonSet is there to the end, also where all else is left out; a job's pod ends."""
    node: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": 400, "pods": 99}},
    }

    def pod(name: str, owner: str) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "creationTimestamp": "2026-01-05T01:00:00Z",
                "ownerReferences": [{"apiVersion": "x/v1", "kind": owner, "name": "o", "uid": "u"}],
            },
            "spec": {
                "nodeName": "n",
                "activeDeadlineSeconds": 36000,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": 4}}}],
            },
            "status": {"phase": "Running", "startTime": "2026-01-05T01:00:00Z"},
        }

    where = cluster(node, pod("agent", "DaemonSet"), pod("job", "Job"))
    how = {"plugin": "default-preemption"}
    assert durations(replay(where, unfinished="limit", **how)) == {"default/agent": None, "default/job": 10}
    run = replay(where, **how)
    assert run.info["unfinished"]["said"].endswith("; some never end, such as those of DaemonSets: 1 Pod")
    assert run.without_run_times == ""
    assert durations(replay(where, unfinished="drop", **how)) == {"default/agent": None}
    found = harness.forecast(
        cluster(node, pod("agent", "DaemonSet"), {**pod("waits", "Job"), "spec": _waits(), "status": {}}),
        history=trace,
        futures=1,
        workers=1,
    )
    assert found.drawn_from == {"all jobs": 1}
    assert found.world.now.running == []


def _waits() -> Manifest:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": 398}}}]}


def test_what_had_run_counts_and_jobs_at_start_are_jobs_of_the_metrics(replay: Callable[..., Run]) -> None:
    """It has run 2 of its 6 hours: it ends after 4 more, has not waited and is not late, nor is it early."""
    where = world(workload("runs", 4, since=2), workload("last", 4, hours=0))
    run = replay(where, unfinished="6h")
    rows = run.micros("jobs").select("job_id", "duration", "submit_time", "start_time", "finish_time")
    (found,) = [row for row in rows.collect().rows() if row[0] == "default/runs"]
    _, duration, submit, start, finish = found
    assert (duration, start - submit, finish - submit) == (6 * HOUR, 0, 4 * HOUR)
    figures = {row["metric"]: row["value"] for row in run.metrics.filter(scope="all").iter_rows(named=True)}
    assert figures["delay.mean"] == 0
    assert figures["wait.total.max"] == 0
    assert figures["jobs.finished"] == 43
    over = replay(where, unfinished="1h")
    assert (
        "1 of these end at once, because they have already run longer than that"
        in over.info["unfinished"]["said"]
    )
    assert set(over.jobs["state"]) == {"finished"}


def test_equal_choices_are_one_run(replay: Callable[..., Run]) -> None:
    """Other seeds and choices are others; without such work neither counts."""
    where = world()
    paths = {
        replay(where, **how).path
        for how in ({}, {"unfinished": "draw", "seed": 0}, {"seed": 1}, {"unfinished": "2h"}, {"seed": 1})
    }
    assert len(paths) == 3
    assert replay(where, unfinished="120m").path == replay(where, unfinished="2h", seed=9).path
    none = cluster(queue("q", 400))
    assert replay(none).path == replay(none, unfinished="2h", seed=4).path


def test_a_choice_that_is_none_is_refused() -> None:
    """With those that there are; a request keeps them in JSON."""
    for text in ("never", "", "0s", "-2h"):
        with pytest.raises(OptionError, match="unfinished"):
            harness.Request("trace.parquet", unfinished=text)
    request = harness.Request("trace.parquet", unfinished="2h", seed=3)
    assert harness.Request.from_json(request.to_json()) == request


def test_twins_have_draws_of_their_own_also_of_runs_from_folders(
    replay: Callable[..., Run], trace: Trace, tmp_path: Path
) -> None:
    """A run says what its twins are made of."""
    from harness.cluster.manifests import dump_yaml

    file = tmp_path / "dump.yaml"
    file.write_text(dump_yaml(list(world().manifests)))
    asked = {"plugin": "kueue-classic", "cluster": file, "output": tmp_path / "results", "at_start": "dump"}
    run = harness.replay(tmp_path / "history.parquet", seed=5, **asked)
    compared = harness.compare([Run.open(run.path)], shake=2, workers=1)
    (twins,) = compared.twins
    assert {twin.info["settings"]["seed"] for twin in twins} == {5}
    made = [harness.replay(tmp_path / "history.parquet", seed=5, twin=str(n), **asked) for n in (1, 2)]
    assert len({tuple(durations(each).values()) for each in made}) == 2
    assert [each.metrics.filter(metric="jct.mean", scope="all")["value"].item() for each in made] == [
        each.metrics.filter(metric="jct.mean", scope="all")["value"].item() for each in twins
    ]


@pytest.fixture
def unknown(replay: Callable[..., Run]) -> list[Run]:
    """A dump whose work has no limits, before and after a change."""
    return [
        replay(world(workload("runs", 4, since=2), cpu=cpu), unfinished="limit", label=f"c{cpu}")
        for cpu in (12, 16)
    ]


def test_the_reason_stands_where_the_verdict_would(unknown: list[Run]) -> None:
    """Of waits and losses; below the table it is told whole, and nothing is recommended."""
    comparison = harness.compare(unknown)
    table = comparison.table("wait.first_start.p95", "disruption.lost", "makespan")
    lines = {line.split()[0]: line for line in table.splitlines() if line}
    assert lines["wait.first_start.p95"].rstrip().endswith("run times unknown")
    assert lines["disruption.lost"].rstrip().endswith("run times unknown")
    assert "run times unknown" not in lines["makespan"]
    why = "the run times of 2 Workloads of the manifests are not known"
    assert f"c12: {why}" in table
    assert "waits and losses have no verdict" in table
    assert f"No recommendation: {why}" in comparison.table(brief=True)
    changes = comparison.changes("wait.first_start.p95", "delay.mean")
    assert set(changes.filter(run="c16")["ground"]) == {"run times"}
    assert set(changes.filter(run="c16")["verdict"]) == {"?"}


def test_a_gate_on_waits_without_run_times_cannot_be_decided(unknown: list[Run]) -> None:
    """Also of one run; conditions on other metrics can."""
    for runs in (unknown, unknown[:1]):
        with pytest.raises(
            RunError, match=r"cannot be decided: the run times of 2 Workloads of the manifests are not known"
        ):
            harness.compare(runs).check("wait.first_start.p95 > 4h", values=True)
        assert harness.compare(runs).check("jobs.rejected > 5", values=True)


def test_where_nothing_has_ended_nothing_is_drawn(replay: Callable[..., Run], trace: Trace) -> None:
    """A record of jobs that had not ended says nothing of run times; the reason is told."""
    from dataclasses import replace

    never = pl.lit(None, trace.frame["submit_time"].dtype)
    frame = trace.frame.with_columns(recorded_start=pl.col("submit_time"), recorded_end=never)
    run = replay(world(), trace=replace(trace, frame=frame))
    assert durations(run) == {"default/next": None}
    assert run.without_run_times.startswith(
        "the run times of 1 Workload of the manifests are not known: no job of the trace has ended; live: "
    )


def test_experiments_take_the_setting_and_refuse_unknown_run_times(trace: Trace, tmp_path: Path) -> None:
    """An item of which nobody knows how long it runs is refused before anything is replayed."""
    from harness.cluster.manifests import dump_yaml

    (tmp_path / "dump.yaml").write_text(dump_yaml(list(world().manifests)))
    spec: dict[str, Any] = {
        "experiment": "e",
        "trace": str(tmp_path / "history.parquet"),
        "cluster": str(tmp_path / "dump.yaml"),
        "plugins": ["kueue-classic"],
        "settings": {"at-start": "dump"},
        "vary": {"unfinished": ["2h", "30h", "draw"]},
    }
    found = harness.sweep(spec, output=tmp_path / "results", workers=1).to_polars()
    ends = found.filter(metric="jct.mean", scope="all").select("unfinished", "value").rows()
    assert len({value for _, value in ends}) == 3
    spec["vary"] = {"unfinished": ["2h", "limit"]}
    with pytest.raises(SpecError, match="the run times of 1 Workload of the manifests are not known"):
        harness.sweep(spec, output=tmp_path / "results", workers=1)
