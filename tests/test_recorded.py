"""The plugin `recorded`: what a trace says happened, as a run; and the loop of a replay's own outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cli_environment import called
from live_worlds import manifests, queue
from older_runs import as_schema_2
from small_clusters import queues
from test_closed_loop import cluster_of, trace_of

import harness
from harness.base.errors import OptionError, TraceError
from harness.base.units import SECOND
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.runs.outcome import outcome_of
from harness.runs.recorded import notes_of
from harness.runs.run import Run
from harness.testing import pool
from harness.trace.calibration import Calibration
from harness.trace.write import write_trace

PLUGINS = load()


def trace(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A trace of durations; times in seconds, jobs of one cpu that are submitted at 0 and run for 10 s."""
    base = {"submit_time": 0, "duration": 10, "queue": "default", "request.cpu": 1, "recorded_runs": None}
    frame = pl.DataFrame(
        [{**base, "job_id": f"j{number}", **row} for number, row in enumerate(rows)],
        schema_overrides={"recorded_runs": pl.String},
    )
    times = ["submit_time", "duration", "recorded_start", "recorded_end"]
    frame.with_columns((pl.col(times) * SECOND).cast(pl.Duration("us"))).write_parquet(path)
    return path


def runs(*spans: tuple[int, int | None, str]) -> str:
    """A cell of `recorded_runs`; times in seconds."""
    return json.dumps(
        [
            {"start": start * SECOND, "end": None if end is None else end * SECOND, "state": state}
            for start, end, state in spans
        ]
    )


def played(tmp_path: Path, rows: list[dict[str, Any]], cpu: int = 8, **how: Any) -> Run:
    path = trace(tmp_path / "t.parquet", rows)
    return harness.replay(path, plugin="recorded", cluster=pool(cpu=cpu), output=tmp_path / "runs", **how)


def times(run: Run) -> dict[str, tuple[float | None, float | None, str, int]]:
    """Job -> start, end (seconds), state and evictions."""
    jobs = run.micros("jobs").select("job_id", "start_time", "finish_time", "state", "preemptions").collect()
    return {
        name: (start and start / SECOND, end and end / SECOND, state, evicted)
        for name, start, end, state, evicted in jobs.iter_rows()
    }


def test_jobs_start_and_end_as_recorded_whatever_the_duration_says(tmp_path: Path) -> None:
    run = played(
        tmp_path,
        [
            {"recorded_start": 3, "recorded_end": 5},
            {"recorded_start": 4, "recorded_end": 60, "duration": 20},
            {"recorded_start": None, "recorded_end": None},
            {"recorded_start": 7, "recorded_end": None},
        ],
    )
    assert times(run) == {
        "j0": (3, 5, "finished", 0),
        "j1": (4, 60, "finished", 0),
        "j2": (None, None, "pending", 0),
        "j3": (7, None, "running", 0),
    }
    assert run.info["policy"]["record"] is True
    assert list(notes_of(run.info)) == [
        "1 job never started, or the record does not say when, so they wait until the end",
        "1 job had not ended when the record was made, so they run until the end",
    ]


@pytest.mark.parametrize(("model", "lost"), [("restart", 20), ("resume", 0), ("checkpoint=8s", 4 + 0)])
def test_runs_in_between_end_as_evictions_with_the_word_of_the_record(
    tmp_path: Path, model: str, lost: int
) -> None:
    """The first run is longer than the last; what it loses is what the loss model says."""
    cell = runs((2, 22, "PREEMPTED"), (30, 35, "COMPLETED"))
    run = played(
        tmp_path,
        [{"recorded_start": 2, "recorded_end": 35, "recorded_runs": cell}],
        on_preemption=model,
        grace_period="30s",
    )
    assert times(run) == {"j0": (2, 35, "finished", 1)}
    (hit,) = run.decisions.filter(pl.col("action").is_in(["preempt", "evict"])).iter_rows(named=True)
    assert (hit["action"], hit["reason"], hit["by"]) == ("preempt", "PREEMPTED", None)
    assert run.jobs["progress_lost"].dt.total_seconds().to_list() == [lost]
    held = run.micros("stints").select("start", "end").collect().sort("start").rows()
    assert held == [(2 * SECOND, 22 * SECOND), (30 * SECOND, 35 * SECOND)]


def test_runs_that_were_preempted_are_preemptions_and_others_are_not(tmp_path: Path) -> None:
    """Slurm's and Kueue's word for it, or what a run's record says beside a rule; a failed node is none.

    Whoever took the place is not known: nothing is counted by preemptor, and nobody hits back.
    """
    cells = [
        runs((2, 4, "PREEMPTED"), (6, 8, "Preempted"), (9, 10, "COMPLETED")),
        runs((2, 5, "NODE_FAIL"), (6, 9, "COMPLETED")),
        json.dumps([{"start": 1, "end": 3, "state": "InCohort", "preempted": True}, {"start": 4, "end": 5}]),
    ]
    rows = [
        {"recorded_start": 2, "recorded_end": 10, "recorded_runs": cells[0]},
        {"recorded_start": 2, "recorded_end": 9, "recorded_runs": cells[1]},
        {"recorded_start": 1, "recorded_end": 5, "recorded_runs": cells[2]},
    ]
    run = played(tmp_path, rows)
    found = run.metrics.filter(pl.col("scope") == "all")
    values = dict(found.select("metric", "value").iter_rows())
    assert values["disruption.preemptions"] == 3
    assert values["disruption.preempted_jobs"] == 2
    assert values["disruption.victims_per_preemptor.max"] is None
    assert values["disruption.rework"] == values["disruption.thrash"] == values["disruption.ping_pong"] == 0
    assert "preempted (PREEMPTED)" in harness.explain(run, "j0").text()
    write_trace(outcome_of(run, PLUGINS), tmp_path / "again.parquet")
    again = pl.read_parquet(tmp_path / "again.parquet")
    assert again["recorded_preemptions"].to_list() == [2, 0, 1]
    assert again["recorded_restarts"].to_list() == [2, 1, 1]


def test_what_contradicts_itself_is_played_as_near_as_can_be_and_counted(tmp_path: Path) -> None:
    run = played(
        tmp_path,
        [
            {"submit_time": 5, "recorded_start": 3, "recorded_end": 9},
            {"recorded_start": 6, "recorded_end": 4},
            {
                "recorded_start": 1,
                "recorded_end": 12,
                "recorded_runs": runs((1, 8, "A"), (6, 12, "B"), (12, 12, "C")),
            },
        ],
    )
    found = times(run)
    assert found["j0"][:2] == (5, 9)
    assert found["j1"][:2] == (6, 6)
    assert found["j2"][:3] == (1, 12, "finished")
    assert list(notes_of(run.info)) == [
        "1 job started before they were submitted, so they start when they are submitted",
        "1 job ended before they started, so their run time is 0",
        "1 job had runs that overlap, so the later run starts when the earlier run has ended",
    ]


def test_more_than_the_cluster_has_is_measured_and_said(tmp_path: Path) -> None:
    """Three jobs of 2 cpu (in millicores: 2) at once from 4 to 10 of 20 s, on 4."""
    rows = [{"recorded_start": start, "recorded_end": end} for start, end in ((0, 10), (2, 12), (4, 20))]
    run = played(tmp_path, [{**row, "request.cpu": 2} for row in rows], cpu=4)
    assert run.info["record"]["beyond"] == [
        {
            "resource": "cpu",
            "capacity": 4,
            "most": 6,
            "at": 4 * SECOND,
            "time": 6 * SECOND,
            "span": 20 * SECOND,
        }
    ]
    (sentence,) = notes_of(run.info)
    assert sentence == (
        "the record uses more cpu than the cluster has: up to 6m of 4m, and above capacity for 6s "
        "(30.0% of the time)"
    )


def test_a_trace_without_a_record_and_scaled_arrivals_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`trace check` finds wrong cells, too; dates are wrong in a trace of durations."""
    path = trace(tmp_path / "t.parquet", [{"recorded_start": None, "recorded_end": None}])
    with pytest.raises(TraceError, match="a replay of the recorded runs needs them"):
        harness.replay(path, plugin="recorded", cluster=pool(cpu=1), output=tmp_path)
    rows: list[dict[str, Any]] = [{"recorded_start": 1, "recorded_end": 2}]
    with pytest.raises(OptionError, match="arrivals cannot be scaled"):
        played(tmp_path, rows, scale_arrivals=2)
    dates = '[{"start": "2026-10-01T00:00:00", "end": "2026-10-01T01:00:00"}]'
    wrong = ("[]", "[1]", '[{"end": 1}]', '[{"start": "soon"}]', '{"start": 1}', '[{"start": 1.5}]', dates)
    for cell in ("x", *wrong):
        with pytest.raises(TraceError, match=r"row 1, job j0: .* is not a list of runs"):
            played(tmp_path, [{**rows[0], "recorded_runs": cell}])
        assert called(["trace", "check", str(tmp_path / "t.parquet")]) == 2
        assert "row 1, job j0: " in capsys.readouterr().err


CASES = [("kueue-classic", False), ("fairsharing", False), ("kueue-classic", True)]


@pytest.mark.parametrize("kind", ["timestamp", "duration"])
@pytest.mark.parametrize(("plugin", "nodes"), CASES)
def test_the_record_of_a_replay_is_that_replay(tmp_path: Path, plugin: str, nodes: bool, kind: str) -> None:
    """Every start, end and eviction is the same, in a trace of timestamps and in one of durations."""
    rows = trace_of(40, seed=2)
    if kind == "duration":
        rows = rows.with_columns(pl.col("submit_time") - pl.col("submit_time").min())
    rows.write_parquet(tmp_path / "first.parquet")
    cluster = cluster_of(nodes=nodes)
    first = harness.replay(tmp_path / "first.parquet", plugin=plugin, cluster=cluster, output=tmp_path)
    write_trace(outcome_of(first, PLUGINS), tmp_path / "record.parquet")
    again = harness.replay(
        tmp_path / "record.parquet", plugin="recorded", cluster=cluster, output=tmp_path / "again"
    )
    columns = ("job_id", "submit_time", "start_time", "finish_time", "state")
    assert again.jobs.select(columns).rows() == first.jobs.select(columns).rows()
    if not nodes:  # a gang that waits on its nodes for its last pod holds what the record does not know of
        held = [run.metrics.filter(metric="utilization.allocated") for run in (first, again)]
        assert held[1].equals(held[0])
    evicted = again.jobs["preemptions"].sum()
    assert 0 < evicted <= first.jobs["preemptions"].sum()  # some were evicted before they made any progress
    hits = [run.decisions.filter(pl.col("action") == "preempt").height for run in (first, again)]
    assert 0 < hits[1] <= hits[0]
    assert not list(notes_of(again.info))


HIT = runs((20, 22, "PREEMPTED"), (30, 35, "COMPLETED"))
"""Jobs that are submitted at 0, 15 and 16 s; the second has two runs."""

WINDOWED: list[dict[str, Any]] = [
    {"recorded_start": 1, "recorded_end": 3},
    {"submit_time": 15, "recorded_start": 20, "recorded_end": 35, "recorded_runs": HIT},
    {"submit_time": 16, "recorded_start": 21, "recorded_end": 36},
]


def test_a_window_of_durations_keeps_when_several_runs_were(tmp_path: Path) -> None:
    """Simulated time begins with the window; the record, and the run's tables, count as the trace does."""
    run = played(tmp_path, WINDOWED, calibration=Calibration.parse(window="10s.."))
    assert run.info["trace"]["origin_us"] == 15 * SECOND
    held = run.stints.select(pl.col("start", "end").dt.total_seconds()).sort("start").rows()
    assert held == [(20, 22), (21, 36), (30, 35)]
    assert not list(notes_of(run.info))


def test_the_record_of_a_window_of_durations_is_that_window(tmp_path: Path) -> None:
    """Each run has the time that `recorded_start` and `recorded_end` have, which are those of the trace."""
    run = played(tmp_path, WINDOWED, calibration=Calibration.parse(window="10s.."))
    write_trace(outcome_of(run, PLUGINS), tmp_path / "record.parquet")
    record = pl.read_parquet(tmp_path / "record.parquet")
    assert [cell["start"] // SECOND for cell in json.loads(record["recorded_runs"][0])] == [20, 30]
    assert [cell["end"] // SECOND for cell in json.loads(record["recorded_runs"][0])] == [22, 35]
    assert record["recorded_start"].dt.total_seconds().to_list() == [20, 21]
    again = harness.replay(
        tmp_path / "record.parquet", plugin="recorded", cluster=pool(cpu=8), output=tmp_path / "again"
    )
    columns = ("job_id", "submit_time", "start_time", "finish_time", "state", "preemptions")
    assert again.jobs.select(columns).rows() == run.jobs.select(columns).rows()
    assert again.stints.select("start", "end").rows() == run.stints.select("start", "end").rows()
    assert not list(notes_of(again.info))


def test_a_run_of_schema_2_has_no_recorded_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It does not record when jobs hold resources. Exports and forecasts say the same."""
    run = played(tmp_path, [{"recorded_start": 3, "recorded_end": 5}])
    as_schema_2(run.path)
    where = tmp_path / "cluster.json"
    where.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests(queue("q", 4))}))
    out = str(tmp_path / "out")
    for command in (
        ["trace", "from-run", str(run.path), f"{out}.parquet"],
        ["export", str(run.path), "--format", "perfetto", "-o", out],
        ["forecast", "--cluster", str(where), "--history", str(run.path), "--backtest", "1"],
    ):
        assert called(command) == 2
        said = capsys.readouterr().err
        assert "does not record when jobs hold resources: it has schema 2" in said
        assert "Hint: replay it again" in said


def test_from_run_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = played(tmp_path, [{"recorded_start": 3, "recorded_end": 5}])
    out = tmp_path / "out.parquet"
    assert called(["trace", "from-run", str(run.path), str(out)]) == 0
    named = tmp_path / "named.parquet"
    assert called(["trace", "from-run", str(run.path), "-o", str(named)]) == 0
    assert named.read_bytes() == out.read_bytes()
    assert called(["trace", "from-run", str(run.path)]) == 2
    assert "no output file is given" in capsys.readouterr().err
    frame = pl.read_parquet(out)
    assert frame.select("recorded_start", "recorded_state").rows()[0][1] == "finished"
    trace(tmp_path / "t.parquet", [{"recorded_start": 3, "recorded_end": 6}])
    assert called(["trace", "from-run", str(run.path), str(out)]) == 2
    assert "is not the trace of run" in capsys.readouterr().err
    scaled = harness.replay(out, plugin="none", cluster=pool(cpu=8), output=tmp_path, scale_arrivals=2)
    assert called(["trace", "from-run", str(scaled.path), str(tmp_path / "x.parquet")]) == 2
    assert "scaled arrivals" in capsys.readouterr().err


@pytest.mark.parametrize("until", [None, 2])
def test_from_run_counts_the_jobs_of_the_manifests(
    until: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are in the run, and the trace that was replayed does not have them.

    Jobs of the trace that arrive after the end of the run do not matter.
    """
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 8, "pods": 9}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": 1}}}]}}
    manifests = [{"apiVersion": "v1", "kind": kind, **each} for kind, each in (("Node", node), ("Pod", pod))]
    run = harness.replay(
        trace(tmp_path / "t.parquet", [{"recorded_start": 3, "recorded_end": 5}, {"submit_time": 3}]),
        plugin="default-preemption",
        cluster=cluster_from(manifests, "dump"),
        output=tmp_path / "runs",
        unfinished="10s",
        until=until,
    )
    assert called(["trace", "from-run", str(run.path), str(tmp_path / "out.parquet")]) == 0
    told = capsys.readouterr().out.splitlines()[1:]
    assert told == ["  left out: 1 job of the manifests, which the replayed trace lacks"]


def test_the_note_of_a_record_gives_options_as_users_write_them(tmp_path: Path) -> None:
    """Durations have units."""
    row = {"queue": "q", "recorded_start": 3, "recorded_end": 5}
    path = trace(tmp_path / "t.parquet", [row])
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(queues({"q": {"cpu": "8"}}))
    options = {"evictionLatency": "1s"}
    run = harness.replay(path, plugin="kueue-classic", cluster=cluster, output=tmp_path, options=options)
    assert " evictionLatency=1s " in outcome_of(run, PLUGINS).notes[-1]
