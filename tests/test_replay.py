"""Replays from file to run folder: the account that adds up, determinism, and what a run holds."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from policies import AtRandom, Greedy, PodByPod, Priority

import harness
from harness import Decision, Refuse
from harness.analysis.difference import Difference
from harness.analysis.metrics.resource_time import resource_time
from harness.base.errors import DecisionError, OptionError, PolicyError, RunError, TraceError
from harness.base.tables import schemas
from harness.base.tables.parquet import TIMES
from harness.base.units import SECOND
from harness.cluster.load import load_cluster
from harness.plugins import load
from harness.plugins.measurement import Window
from harness.runs.run import TABLES

WriteTrace = Callable[..., Path]
NODES = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec:
  count: 2
  template:
    status: {allocatable: {cpu: 4, memory: 8Gi, pods: 30}}
"""
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}, {name: memory, nominalQuota: 8Gi}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}, {name: memory, nominalQuota: 8Gi}]}]
"""

ROW = st.fixed_dictionaries(
    {
        "submit_time": st.integers(0, 30),
        "duration": st.integers(0, 12),
        "queue": st.sampled_from("ab"),
        "request.cpu": st.integers(0, 2000),
        "request.memory": st.integers(0, 2**31),
        "pods": st.integers(1, 3),
        "gang": st.booleans(),
        "grace_period": st.integers(0, 3),
        "priority": st.integers(0, 2),
    }
)


UNMEASURED = load(block=["metrics"])
"""For runs whose tables matter, and no metric."""


def cluster_file(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def assert_account_adds_up(run: harness.Run, window: Window | None = None) -> None:
    """Allocated, from the timeline, equals what became of it, from the stints."""
    for resource in run.resources:
        parts = resource_time(run, window or run.window, resource)
        assert parts.allocated == parts.useful + parts.lost + parts.idle_held + parts.unfinished
        assert parts.demanded is None or parts.allocated <= parts.demanded


@pytest.mark.early
@examples(40, fixtures=True)
@given(
    rows=st.lists(ROW, min_size=1, max_size=10),
    losses=st.sampled_from(["restart", "resume", "checkpoint=2s,restore=1s"]),
    seed=st.integers(0, 999),
    until=st.none() | st.integers(1, 50),
    on_nodes=st.booleans(),
)
def test_the_utilization_account_adds_up_to_the_microsecond(
    rows: list[dict[str, Any]],
    losses: str,
    seed: int,
    until: int | None,
    on_nodes: bool,
    write_trace: WriteTrace,
    tmp_path: Path,
) -> None:
    """Under random preemption, every loss model, gangs, grace periods and any limit; also over any part."""
    run = harness.replay(
        write_trace(*rows),
        plugin=PodByPod if on_nodes else AtRandom,
        cluster=cluster_file(tmp_path, NODES if on_nodes else QUEUES),
        options={},
        on_preemption=losses,
        until=None if until is None else until * SECOND,
        output=tmp_path / "results",
        force=True,
        plugins=UNMEASURED,
    )
    assert_account_adds_up(run)
    middle = (run.window.start + run.window.end) // 2
    assert_account_adds_up(run, Window(run.window.start, middle))
    times = run.micros("jobs").collect()
    finished = times.filter(pl.col("state") == "finished")
    assert (finished["finish_time"] - finished["start_time"] >= finished["duration"]).all()


def timeline_at(
    run: harness.Run, queue: str, resource: str = "cpu"
) -> list[tuple[float, int, int, int, int]]:
    """A queue's timeline as (time, allocated, pending, running jobs, pending jobs)."""
    rows = (
        run.micros("timeline").filter((pl.col("queue") == queue) & (pl.col("resource") == resource)).collect()
    )
    return [
        (row["time"] / SECOND, row["allocated"], row["pending"], row["running_jobs"], row["pending_jobs"])
        for row in rows.iter_rows(named=True)
    ]


def test_the_timeline_shows_each_queue_after_every_change(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Two queues, one job waits for the other, then both queues are empty."""
    trace = write_trace(
        {"queue": "a", "request.cpu": 6000, "request.memory": 0, "duration": 10},
        {"queue": "b", "request.cpu": 4000, "request.memory": 0, "duration": 5, "submit_time": 2},
    )
    run = harness.replay(trace, cluster=cluster_file(tmp_path, QUEUES), output=tmp_path / "results")
    assert timeline_at(run, "a") == [(0, 6000, 0, 1, 0), (10, 0, 0, 0, 0)]
    assert timeline_at(run, "b") == [(2, 0, 4000, 0, 1), (10, 4000, 0, 1, 0), (15, 0, 0, 0, 0)]
    assert run.timeline.filter(pl.col("queue") == "a")["share"].to_list()[0] == 6000 / 8000


def test_the_timeline_of_a_preempted_gang_counts_jobs_and_pods(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """A gang on nodes counts as one running job while any of its pods holds resources."""
    trace = write_trace({"request.cpu": 4000, "pods": 2, "gang": True, "duration": 5, "queue": "a"})
    run = harness.replay(trace, plugin=PodByPod, cluster=cluster_file(tmp_path, NODES), output=tmp_path / "r")
    assert timeline_at(run, "a") == [(0, 8000, 0, 1, 0), (5, 0, 0, 0, 0)]


def test_a_detail_that_contains_itself_is_an_error_of_the_policy(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """It has no text that could be recorded."""

    class Circular(Greedy):
        def cycle(self, now: int) -> Iterator[Decision]:
            detail: dict[str, Any] = {}
            detail["detail"] = [detail]
            yield Refuse(self.waiting[0], "no room", detail)

    trace = write_trace({})
    with pytest.raises(PolicyError, match=r"policy Circular made .* about job j0 at 0 .* recursion depth"):
        harness.replay(trace, plugin=Circular, output=tmp_path / "r")


def test_a_policy_whose_name_is_no_label_asks_for_one(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A run of a lambda would be called `<lambda>`."""
    trace = write_trace({})
    with pytest.raises(OptionError, match="the run has no label, and '<lambda>' cannot be a label") as caught:
        harness.replay(trace, plugin=lambda *of: Greedy(*of), output=tmp_path / "r")
    assert caught.value.hint == "give one: label='mine'"


def test_numbers_worked_by_hand(write_trace: WriteTrace, tmp_path: Path) -> None:
    """One pool of 1 core; low (10 s) is preempted at 4 s by high (2 s), restarts at 6 s and ends at 16 s.

    Allocated 16 of 16 core-seconds; useful 10 + 2 = 12; lost 4. Waiting: low starts at once, high at once;
    low's time without progress is 16 - 4 - 10 = 2 s, its slowdown 16 / 10, high's max(1, 2 / 10) = 1.
    """
    trace = write_trace(
        {"job_id": "low", "duration": 10, "grace_period": 0},
        {"job_id": "high", "duration": 2, "submit_time": 4, "priority": 1},
    )
    pool = QUEUES.replace("cpu, nominalQuota: 4", "cpu, nominalQuota: 500m").replace(
        "name: a}", "name: default}"
    )
    run = harness.replay(
        trace, plugin=Priority, cluster=cluster_file(tmp_path, pool), output=tmp_path / "results"
    )
    value = {
        (row["metric"], row["resource"]): row["value"]
        for row in run.metrics.filter(pl.col("scope") == "all").iter_rows(named=True)
    }
    parts = resource_time(run, run.window, "cpu")
    core_seconds = 1000 * SECOND
    assert (parts.allocated, parts.useful, parts.lost) == (
        16 * core_seconds,
        12 * core_seconds,
        4 * core_seconds,
    )
    assert value["utilization.allocated", "cpu"] == 1
    assert value["utilization.lost", "cpu"] == 4 / 16
    assert value["wait.first_start.max", ""] == 0
    assert value["wait.total.max", ""] == 2
    assert value["slowdown.bounded.mean", ""] == (1.6 + 1) / 2
    assert value["jct.mean", ""] == (16 + 2) / 2
    assert value["makespan", ""] == 16
    assert value["throughput", ""] == 2 / (16 / 3600)
    assert value["disruption.preemptions", ""] == 1
    assert value["disruption.preempted_jobs", ""] == 1
    assert value["disruption.max_preemptions_of_a_job", ""] == 1
    assert value["disruption.preemptions_per_1000_jobs", ""] == 1000 / 2
    assert value["disruption.lost", "cpu"] == 4 / 3600


def test_the_same_inputs_give_the_same_bytes_under_any_hash_seed(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Every file but the provenance is identical over repeats and values of PYTHONHASHSEED."""
    draw = random.Random(3)
    rows = [
        {
            "submit_time": draw.randrange(60),
            "queue": draw.choice("abcdef"),
            "request.cpu": draw.randrange(1, 9) * 500,
        }
        for _ in range(300)
    ]
    trace = write_trace(*rows)
    contents = []
    for seed in ("0", "1", "77"):
        output = tmp_path / f"results-{seed}"
        command = [
            sys.executable,
            "-m",
            "harness",
            "replay",
            str(trace),
            "-p",
            "none",
            "-o",
            str(output),
            "-q",
        ]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True)
        (folder,) = (output / "trace").iterdir()
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        info = json.loads(files.pop("run.json"))
        del info["provenance"]
        contents.append((folder.name, info, files))
    assert contents[0] == contents[1] == contents[2]
    assert sorted(contents[0][2]) == [f"{name}.parquet" for name in sorted(TABLES)]


def test_a_run_has_the_documented_tables(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Columns, types and the schema's version are as the schemas say; times have the trace's kind."""
    run = harness.replay(write_trace({"note": "kept", "user": "u"}), output=tmp_path / "results")
    time = pl.Duration("us")
    expected = {
        "jobs": schemas.jobs(["cpu"], {"note": pl.String()}),
        "decisions": schemas.DECISIONS,
        "stints": schemas.stints(["cpu"]),
        "timeline": schemas.TIMELINE,
        "metrics": schemas.METRICS,
    }
    for name, schema in expected.items():
        as_written = {column: time if column in TIMES else dtype for column, dtype in schema.items()}
        assert dict(run.scan(name).collect_schema()) == as_written, name
        metadata = pq.read_schema(run.path / f"{name}.parquet").metadata
        assert metadata[b"harness.run_schema"] == schemas.VERSION.encode()
    assert run.jobs["note"].to_list() == ["kept"]


def test_timestamps_stay_timestamps(tmp_path: Path) -> None:
    """A trace in wall-clock time gives a run in wall-clock time, counted from its first second."""
    frame = pl.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": ["2024-03-01T10:00:00.5", "2024-03-01T10:00:02"],
            "duration": [3, 1],
            "queue": "q",
            "request.cpu": [1000, 1000],
        }
    ).with_columns(
        pl.col("submit_time").str.to_datetime(time_unit="us"),
        (pl.col("duration") * 1_000_000).cast(pl.Duration("us")),
    )
    frame.write_parquet(tmp_path / "t.parquet")
    run = harness.replay(tmp_path / "t.parquet", output=tmp_path / "results")
    assert str(run.jobs["finish_time"][0]) == "2024-03-01 10:00:03.500000"
    assert run.window == Window(SECOND // 2, run.window.end)


def test_a_run_that_is_there_is_not_computed_again(write_trace: WriteTrace, tmp_path: Path) -> None:
    """The second replay answers the stored run, unless it is forced; other options are another run."""
    trace, output = write_trace({}), tmp_path / "results"
    first = harness.replay(trace, output=output)
    assert not first.stored
    assert harness.replay(trace, output=output).stored
    assert not harness.replay(trace, output=output, force=True).stored
    assert harness.replay(trace, output=output, options={"order": "fifo"}).path != first.path


class Tossing(Greedy):
    """Its order depends on more than its inputs. harness knows only the code of classes of a module."""

    def cycle(self, now: int) -> Any:
        if os.environ["TOSSED"] == "tails":
            self.waiting.reverse()
        yield from super().cycle(now)


def test_a_policy_that_decides_differently_is_named(
    write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """A policy that ignores its inputs gives two results the same name. Equal results need no word."""
    trace = write_trace({"job_id": "a"}, {"job_id": "b"})

    def warned(side: str) -> list[str]:
        recwarn.clear()
        monkeypatch.setenv("TOSSED", side)
        harness.replay(trace, plugin=Tossing, output=tmp_path, force=True)
        return [str(each.message) for each in recwarn]

    assert warned("heads") == []
    (said,) = warned("tails")
    assert said.startswith("Tossing: this replay decided differently from the stored run")
    assert warned("tails") == []


def test_a_replay_that_fails_leaves_nothing_behind(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Neither a wrong decision nor an interruption leaves a run folder, a part of one, or folders above."""

    class Wrong(Greedy):
        def cycle(self, now: int) -> Any:
            yield harness.Wake(0)

    class Interrupted(Greedy):
        def cycle(self, now: int) -> Any:
            raise KeyboardInterrupt

    for policy, error in ((Wrong, DecisionError), (Interrupted, KeyboardInterrupt)):
        with pytest.raises(error):
            harness.replay(write_trace({}), plugin=policy, output=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_arrivals_can_be_scaled_exactly(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Twice as fast halves the gaps between submissions; the first one stays."""
    trace = write_trace({"submit_time": 10}, {"submit_time": 13}, {"submit_time": 20})
    run = harness.replay(trace, scale_arrivals=2, output=tmp_path / "results")
    submits = run.micros("jobs").collect()["submit_time"].to_list()
    assert submits == [10 * SECOND, 11_500_000, 15 * SECOND]
    assert run.info["settings"]["scale_arrivals"] == "2"
    slow = harness.replay(trace, scale_arrivals=Fraction(1, 3), output=tmp_path / "results")
    assert slow.micros("jobs").collect()["submit_time"].to_list()[-1] == 40 * SECOND


@pytest.mark.parametrize("factor", [0, -1, "x", float("nan"), float("inf"), 1e9])
def test_a_wrong_scale_is_refused(factor: Any, write_trace: WriteTrace, tmp_path: Path) -> None:
    """Arrivals are scaled by a positive number within reason."""
    with pytest.raises(OptionError, match="cannot be scaled"):
        harness.replay(write_trace({}), scale_arrivals=factor, output=tmp_path / "results")


def test_a_job_that_can_never_run_is_refused_with_the_trace(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A request larger than the cluster is a fault of the trace, found before anything runs."""
    trace = write_trace({"request.cpu": 99_000, "queue": "a"})
    with pytest.raises(TraceError, match=r"request\.cpu"):
        harness.replay(trace, cluster=cluster_file(tmp_path, QUEUES), output=tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("until", "played"), [("59s", False), ("1m", True)])
def test_a_replay_that_ends_before_the_first_event_says_so(
    until: str, played: bool, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """So nobody takes two equal runs for a change without effect."""
    later = tmp_path / "later.yaml"
    later.write_text(
        "kind: ClusterQueue\nmetadata: {name: a, annotations: {harness/from: 1m}}\nspec: {stopPolicy: Hold}\n"
    )
    cluster = load_cluster(cluster_file(tmp_path, QUEUES)).patched(later)
    trace = write_trace({"submit_time": 0, "queue": "a"})
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=cluster, until=until, output=tmp_path / "results"
    )
    warning = (
        "no event happens until 59s, because the cluster first changes 1m00s after simulated time begins"
    )
    assert (warning in run.info["cluster"]["warnings"]) == (not played)


@pytest.mark.parametrize(("until", "jobs"), [("4s", 0), pytest.param("5s", 1, marks=pytest.mark.nightly)])
def test_a_replay_that_ends_before_or_with_the_first_arrival_is_a_run_like_others(
    until: str, jobs: int, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """It is measured, reported and explained, says if it is empty, and compares if it is not."""
    trace = write_trace({"submit_time": 5, "queue": "a"}, {"submit_time": 6, "queue": "b"})
    cluster = cluster_file(tmp_path, QUEUES)
    empty, other = (
        harness.replay(trace, plugin=plugin, cluster=cluster, until=until, output=tmp_path / "results")
        for plugin in ("none", "kueue-classic")
    )
    assert empty.window == Window(int(until[0]) * SECOND, int(until[0]) * SECOND)
    values = {row["metric"]: row["value"] for row in empty.metrics.filter(scope="all").to_dicts()}
    assert values["jobs.unfinished"] == jobs
    assert values["utilization.allocated"] is None
    assert values["jobs.finished"] == values["disruption.preemptions"] == 0
    warning = "nothing happens until 4s, because the first job is submitted 5s after simulated time begins"
    assert (warning in empty.info["cluster"]["warnings"]) == (jobs == 0)
    whole = harness.replay(trace, plugin="none", cluster=cluster, label="whole", output=tmp_path / "results")
    for pair in ([empty, other], [empty, whole], [whole, empty]):
        if jobs:
            assert harness.compare(pair).to_polars("jobs.finished").height == 1
            assert harness.make_report(pair).markdown()
        else:
            with pytest.raises(RunError, match="cannot be compared"):
                harness.compare(pair)
    assert harness.make_report([empty]).html()
    if jobs:
        assert Difference(empty, other).parting is None
        assert Difference(empty, whole).parting is not None
    assert harness.explain(empty, at=0).text().endswith("nothing had been submitted")


def test_a_policy_that_is_not_clairvoyant_does_not_see_durations(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Jobs tell their duration to policies that are registered for it, and to no others."""
    seen: list[int | None] = []

    class Curious(Greedy):
        def submit(self, job: harness.Job, pods: range, now: int) -> None:
            seen.append(job.duration)
            super().submit(job, pods, now)

    class Clairvoyant(Curious):
        clairvoyant = True

    for policy in (Curious, Clairvoyant):
        run = harness.replay(write_trace({"duration": 7}), plugin=policy, output=tmp_path / "results")
        assert run.info["policy"]["clairvoyant"] is (policy is Clairvoyant)
    assert seen == [None, 7 * SECOND]


def test_jobs_that_end_out_of_order_are_written_in_order_of_arrival(
    write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk of jobs waits for those before it, and the last one ends with the last job that arrived."""
    monkeypatch.setattr("harness.runs.recording.recorder._CHUNK", 3)
    monkeypatch.setattr("harness.runs.recording.job_results._AT_ONCE", 2)
    rows = [{"submit_time": number, "duration": 90 if number in (0, 4) else 2} for number in range(11)]
    run = harness.replay(write_trace(*rows), until="9500ms", output=tmp_path / "results")
    assert run.jobs["submit_time"].dt.total_seconds().to_list() == list(range(10))
    assert [number for number, state in enumerate(run.jobs["state"]) if state == "running"] == [0, 4, 8, 9]
    assert run.jobs["finish_time"].dt.total_seconds()[1] == 3


def test_chunks_do_not_show(write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However rows are cut into chunks, the tables are the same."""
    rows = [
        {"submit_time": number // 3, "queue": "ab"[number % 2], "request.memory": 5} for number in range(40)
    ]
    trace = write_trace(*rows)
    whole = harness.replay(trace, output=tmp_path / "whole")
    monkeypatch.setattr("harness.runs.recording.recorder._CHUNK", 7)
    parts = harness.replay(trace, output=tmp_path / "parts")
    for name in TABLES:
        assert parts.scan(name).collect().equals(whole.scan(name).collect()), name
