"""Where two runs part, and who gains or loses: rules on small runs, and books kept by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_clusters import queues

import harness
from harness.analysis import difference as difference_module
from harness.analysis.difference import Difference
from harness.base.errors import RunError
from harness.runs.run import Run

WriteTrace = Callable[..., Path]
TWO = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}


@pytest.fixture
def runs(write_trace: WriteTrace, tmp_path: Path) -> tuple[Run, Run]:
    """`none` lets the borrower finish at 100 s; `kueue-classic` preempts it at 60 s for the queue's owner."""
    trace = write_trace(
        {"job_id": "early", "queue": "a", "request.cpu": 1000, "duration": 5},
        {"job_id": "theirs", "queue": "b", "request.cpu": 4000, "submit_time": 10, "duration": 90},
        {"job_id": "mine", "queue": "a", "request.cpu": 2000, "submit_time": 60, "duration": 50},
    )
    (tmp_path / "cluster.yaml").write_text(queues(TWO))

    def run(plugin: str) -> Run:
        return harness.replay(
            trace, cluster=tmp_path / "cluster.yaml", plugin=plugin, output=tmp_path / "results"
        )

    return run("none"), run("kueue-classic")


def test_runs_part_at_the_first_decision_that_is_not_alike(runs: tuple[Run, Run]) -> None:
    """The preemption at 60 s, with its sentence; refusals before it do not count."""
    found = Difference(*runs)
    parting = found.parting
    assert str(found) == found.text()
    assert parting is not None
    assert parting.time == 60_000_000
    assert parting.alike == 5  # two submissions and admissions, one end
    assert parting.first == []
    (sentence,) = parting.second
    assert sentence.startswith(
        "job theirs of queue b: preempted by job mine of queue a (InCohortReclamation)"
    )


def test_where_runs_part_is_told_in_the_time_zone_of_the_trace(runs: tuple[Run, Run], tmp_path: Path) -> None:
    """As `explain` does, which can be asked for that instant."""
    frame = pl.read_parquet(tmp_path / "trace.parquet")
    morning = pl.datetime(2024, 5, 1, 9, time_unit="us", time_zone="Asia/Tokyo")
    frame.with_columns(submit_time=morning + pl.col("submit_time")).write_parquet(tmp_path / "zoned.parquet")
    zoned = [
        harness.replay(
            tmp_path / "zoned.parquet",
            cluster=tmp_path / "cluster.yaml",
            plugin=plugin,
            output=tmp_path / "results",
        )
        for plugin in ("none", "kueue-classic")
    ]
    assert " diverge at 2024-05-01 09:01:00+09:00, " in Difference(*zoned).text()


def test_changes_of_jobs_and_queues_are_exact(runs: tuple[Run, Run]) -> None:
    """`mine` starts at 91 s, after grace and latency, instead of 100 s; `theirs` runs anew when it ended."""
    difference = Difference(*runs)
    first, second = (
        {row["job_id"]: row for row in run.micros("jobs").collect().rows(named=True)} for run in runs
    )
    for row in difference.jobs.iter_rows(named=True):
        before, after = first[row["job_id"]], second[row["job_id"]]
        assert row["first_start"] == after["start_time"] - before["start_time"]
        assert row["finish"] == after["finish_time"] - before["finish_time"]
        assert row["lost"] == after["progress_lost"] - before["progress_lost"]
    by_queue = {row["queue"]: row for row in difference.queues.iter_rows(named=True)}
    assert by_queue["b"]["lost"] == 50_000_000
    assert (by_queue["a"]["earlier"], by_queue["a"]["later"]) == (1, 0)
    gained, lost = difference.extremes()
    assert (gained["job_id"].to_list(), lost["job_id"].to_list()) == (["mine"], ["theirs"])


def test_a_run_against_its_like_decides_alike_to_the_end(runs: tuple[Run, Run], tmp_path: Path) -> None:
    """The same policy under another label."""
    again = harness.replay(
        tmp_path / "trace.parquet",
        cluster=tmp_path / "cluster.yaml",
        label="again",
        output=tmp_path / "results",
    )
    difference = Difference(runs[0], again)
    assert difference.parting is None
    same = "again\n  the same plugin, options, settings, trace and cluster\n\n"
    assert difference.text() == f"{same}none and again make the same decisions to the end"


def test_runs_of_different_traces_are_refused_with_what_differs(
    runs: tuple[Run, Run], write_trace: WriteTrace, tmp_path: Path
) -> None:
    """There is nothing to compare job by job."""
    other = write_trace({"job_id": "x", "queue": "a"}, name="other.parquet")
    run = harness.replay(other, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results")
    with pytest.raises(RunError, match="another trace: other"):
        Difference(runs[0], run)


@pytest.fixture
def alone(runs: tuple[Run, Run], tmp_path: Path) -> Callable[..., Run]:
    """Replays the same trace with `kueue-classic` under a label, with other choices."""

    def run(label: str, **choices: Any) -> Run:
        choices = {"cluster": tmp_path / "cluster.yaml", **choices}
        trace = tmp_path / "trace.parquet"
        return harness.replay(
            trace, plugin="kueue-classic", label=label, output=tmp_path / "results", **choices
        )

    return run


def test_runs_on_two_clusters_differ_under_the_head_of_their_comparison(
    alone: Callable[..., Run], tmp_path: Path, capsys: Any
) -> None:
    """What differs between the worlds stands first, in every format that has room for it."""
    from cli_environment import called

    (tmp_path / "pr.yaml").write_text(queues({**TWO, "b": {"cpu": "4"}}))
    base, pr = alone("base"), alone("pr", cluster=tmp_path / "pr.yaml")
    difference = Difference(base, pr)
    assert difference.text().startswith(
        "pr\n  ClusterQueue b: nominalQuota cpu 2 -> 4\n\nbase and pr diverge at "
    )
    assert difference.parting is not None
    assert difference.parting.time == 60_000_000
    _, second = difference.to_json()["runs"]
    assert [each["text"] for each in second["differences"]] == ["ClusterQueue b: nominalQuota cpu 2 -> 4"]
    assert called(["diff", str(base.path), str(pr.path), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith(
        "- pr\n  - ClusterQueue b: nominalQuota cpu 2 -&gt; 4\n\nbase and pr"
    )


def test_changes_are_since_the_submission_and_of_jobs_that_both_have(alone: Callable[..., Run]) -> None:
    """Nothing is early only because it was submitted so; of the other jobs nothing is told."""
    from harness.trace.calibration import Calibration

    base = alone("base")
    faster = alone("faster", scale_arrivals=2)
    difference = Difference(base, faster)
    waits = [
        dict(
            run.micros("jobs").select("job_id", pl.col("start_time") - pl.col("submit_time")).collect().rows()
        )
        for run in (base, faster)
    ]
    for row in difference.jobs.iter_rows(named=True):
        assert row["first_start"] == waits[1][row["job_id"]] - waits[0][row["job_id"]]
    assert "arrivals differ, so starts and ends are measured from each job's submission" in difference.text()
    part = alone("part", calibration=Calibration.parse(window="0s..30s"))
    difference = Difference(base, part)
    assert difference.jobs["job_id"].to_list() == ["early", "theirs"]
    assert difference.parting is not None
    assert not any(sentence.startswith("job mine") for sentence in difference.parting.first)
    assert difference.text().endswith("left out: jobs that only base has, 1"), "arrivals do not differ"
    assert [run["jobs_left_out"] for run in difference.to_json()["runs"]] == [1, 0]


@pytest.mark.parametrize("dated", [False, True])
def test_a_window_stands_against_the_whole_at_the_times_of_the_trace(
    runs: tuple[Run, Run], dated: bool, tmp_path: Path
) -> None:
    """They decide alike: its jobs arrive when they do in the whole trace, though its clock begins later."""
    from harness.trace.calibration import Calibration

    frame = pl.read_parquet(tmp_path / "trace.parquet")
    late = frame.with_columns(pl.col("job_id") + "-late", pl.col("submit_time") + pl.duration(hours=1))
    both = pl.concat([frame, late])
    if dated:
        midnight = pl.datetime(2024, 5, 1, time_unit="us")
        both = both.with_columns(submit_time=midnight + pl.col("submit_time"))
    both.write_parquet(tmp_path / "long.parquet")

    def run(plugin: str, window: str | None) -> Run:
        return harness.replay(
            tmp_path / "long.parquet",
            cluster=tmp_path / "cluster.yaml",
            plugin=plugin,
            output=tmp_path / "results",
            calibration=Calibration.parse(window=window),
        )

    whole, part = run("kueue-classic", None), run("kueue-classic", "1h..")
    for pair in ((whole, part), (part, whole)):
        difference = Difference(*pair)
        assert difference.parting is None
        left_out = f"left out: jobs that only {difference.names[pair.index(whole)]} has, 3"
        assert difference.text().endswith(f"make the same decisions to the end\n\n{left_out}")
        assert "arrivals differ" not in difference.text()
    difference = Difference(whole, run("none", "1h.."))
    parting = difference.parting
    assert parting is not None
    assert parting.time == 3660_000_000
    assert parting.first[0].startswith("job theirs-late of queue b: preempted by job mine-late of queue a")
    written = "2024-05-01 01:01:00" if dated else "0d 01:01:00"
    assert f" diverge at {written}, " in difference.text()
    assert "arrivals differ" not in difference.text()
    assert difference.jobs["job_id"].to_list() == ["early-late", "theirs-late", "mine-late"]


@pytest.mark.parametrize("layout", ["table", "markdown", "json", "csv"])
def test_every_format_names_the_jobs(layout: str, runs: tuple[Run, Run], capsys: Any) -> None:
    """Csv has all jobs, the others those that moved most."""
    from cli_environment import called

    assert called(["diff", str(runs[0].path), str(runs[1].path), "--format", layout]) == 0
    out = capsys.readouterr().out
    assert "mine" in out
    assert ("early" in out) == (layout == "csv")
    assert called(["diff", str(runs[0].path), str(runs[1].path), "--format", layout, "--most", "9" * 30]) == 0
    assert "mine" in capsys.readouterr().out
    if layout == "json":
        assert json.loads(out)["parting"]["time"] == 60_000_000
    if layout == "markdown":
        assert "| gain most | queue |" in out


def test_names_in_a_markdown_table_are_no_markup() -> None:
    """Jobs and queues are named by users."""
    rows = [["gain most", "queue", "wait"], ["[a](b)", "x_*y*", "1m"]]
    assert difference_module._table(rows, markdown=True, width=None).splitlines() == [
        "| gain most | queue | wait |",
        "| --- | --- | ---: |",
        r"| \[a\](b) | x\_\*y\* | 1m |",
    ]
