"""What a comparison shows and judges: headlines that lost work cannot flatter."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from older_runs import as_before_goodput
from policies import scripted
from small_clusters import queues

import harness
from harness.analysis.comparison.changes import Ground, Verdict
from harness.analysis.comparison.headlines import HEADLINES, SHOWN, UNSEEN
from harness.analysis.metrics.idle import METRICS as IDLE
from harness.analysis.report.material import Material
from harness.analysis.report.sections.metrics import cells

POOL = queues({"a": {"cpu": "2"}})
CALM = {0: [("admit", "x")], 10: [("admit", "y")]}
ROUGH = {0: [("admit", "x")], 5: [("preempt", "x", "y"), ("admit", "y")], 15: [("admit", "x")]}


@pytest.fixture
def pair(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., list[harness.Run]]:
    """A job after the other, and the same with a preemption that throws 5 s of work away."""
    jobs = [{"job_id": name, "queue": "a", "grace_period": 0, "request.cpu": 2000} for name in "xy"]
    path, trace = tmp_path / "cluster.yaml", write_trace(*jobs)
    path.write_text(POOL)

    def replayed() -> list[harness.Run]:
        return [
            harness.replay(
                trace, plugin=scripted(steps), cluster=path, label=label, output=tmp_path / "r", until="20s"
            )
            for label, steps in (("calm", CALM), ("rough", ROUGH))
        ]

    return replayed


def verdict(comparison: harness.Comparison, metric: str) -> Verdict:
    """What is said of the second run in a metric."""
    (row,) = comparison.rows(metric)
    return row.changes[0].verdict


def test_headlines_are_shown_and_measured(pair: Callable[..., list[harness.Run]]) -> None:
    """Every metric of the family stands in the table, in its order, and every run has it."""
    comparison = harness.compare(pair())
    lines = comparison.table().split("\n")
    shown = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in SHOWN]
    told = [name for name in shown if f"{name} does not show {UNSEEN[name]}" in lines]
    assert set(told) == set(shown), "each row has a clause that says what its metric does not show"
    pages = comparison._repr_html_(), harness.make_report(comparison).markdown().replace("\\", "")
    for page in pages:
        assert [name for name in told if f"{name} does not show" not in page] == []
    of_json = {row["metric"]: row["does_not_see"] for row in comparison.to_json()["metrics"]}
    assert {name: of_json[name] for name in told} == {name: UNSEEN[name] for name in told}
    assert of_json["makespan"] is None
    shown = shown[: len(shown) - len(set(shown))]
    on_request = (*IDLE, "fairness.sharing_violations", "jobs.at_start", "disruption.lost_before")
    assert shown == [name for name in SHOWN if not name.endswith(".hours") and name not in on_request]
    assert set(HEADLINES) <= set(shown)
    assert not any("allocated" in name and not name.startswith("goodput.") for name in SHOWN)


def test_what_jobs_that_never_start_have_waited_is_the_least(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A run leaves them unfinished as it ends: they go on to wait until the other one ends."""
    jobs = [{"job_id": name, "queue": "a", "request.cpu": 2000} for name in "xy"]
    path, trace = tmp_path / "cluster.yaml", write_trace(*jobs)
    path.write_text(POOL)
    calm, never = (
        harness.replay(
            trace, plugin=scripted(steps), cluster=path, label=label, output=tmp_path / "r", until="20s"
        )
        for label, steps in (("calm", CALM), ("never", {}))
    )
    comparison = harness.compare([calm, never])
    (line,) = (row for row in comparison.table("wait.first_start.p95").split("\n") if row.startswith("wait."))
    end = calm.window.end / 1_000_000
    assert never.window.end < calm.window.end
    assert line.split()[2:4] == ["≥", f"{end:.0f}s"]
    (own,) = (row for row in comparison.table("wait.first_start.p95").split("\n") if "over its own" in row)
    assert own.startswith("never ")
    assert re.search(r": wait\.first_start\.p95 ≥ \w+$", own)
    frontier = "never: wait of 95 of 100 jobs ≥ "
    assert frontier in unescape(harness.make_report(comparison).markdown())
    (row,) = comparison.to_json("wait.first_start.p95")["metrics"]
    assert row["values"]["never"] == end
    assert row["at_least"] == {"calm": False, "never": True}


@pytest.mark.parametrize("older", [False, True])
def test_more_allocated_is_not_better(older: bool, pair: Callable[..., list[harness.Run]]) -> None:
    """Work that is thrown away and done again allocates no less: only goodput tells; so too in older runs."""
    runs = pair()
    if older:
        for run in runs:
            as_before_goodput(run.path)
        runs = [harness.Run.open(run.path) for run in runs]
    comparison = harness.compare(runs, baseline="rough")
    (row,) = comparison.rows("goodput.of_allocated")
    assert row.measured.better == "higher"
    assert (row.changes[0].difference or 0) > 0
    for metric in ("utilization.allocated", "utilization.allocated.hours"):
        (row,) = comparison.rows(metric)
        assert row.measured.better == ""
    assert all(row["better"] == "" for row in _of(runs[0], "utilization.allocated"))


def test_a_change_of_what_is_allocated_has_no_colour(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """In the table it has no sign, in the report no judgement."""
    jobs = [{"job_id": name, "queue": "a", "request.cpu": 2000} for name in "xy"]
    path, trace = tmp_path / "cluster.yaml", write_trace(*jobs)
    path.write_text(queues({"a": {"cpu": "4"}}))
    steps = {"idle": {0: [("admit", "x")]}, "busy": {0: [("admit", "x"), ("admit", "y")]}}
    runs = [
        harness.replay(
            trace, plugin=scripted(each), cluster=path, label=label, output=tmp_path / "r", until="10s"
        )
        for label, each in steps.items()
    ]
    comparison = harness.compare(runs)
    assert verdict(comparison, "utilization.allocated") is Verdict.OPEN
    table = comparison.table("utilization.allocated")
    assert "+100.0 %" in table
    assert not set(table.split("\n")[4]) & set("▲▼△▽~")
    lines = {line.measured.metric: line for line in Material(comparison).table}
    assert "utilization.allocated" not in lines
    assert cells(lines["goodput.of_capacity"])[1][1].verdict == "open"


def _of(run: harness.Run, metric: str) -> list[dict[str, Any]]:
    return run.metrics.filter(metric=metric).to_dicts()


@pytest.mark.parametrize(("other", "ground"), [("20s", Ground.FEW), ("8s", Ground.CUT)])
def test_lost_work_of_runs_that_were_cut_at_different_times_is_not_judged(
    other: str, ground: Ground, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Where arrivals differ the longer one loses more by itself; the table says what to do."""
    jobs = [
        {"job_id": name, "queue": "a", "grace_period": 0, "request.cpu": 2000, "submit_time": at}
        for name, at in (("x", 0), ("y", 0), ("z", 4))
    ]
    path, trace = tmp_path / "cluster.yaml", write_trace(*jobs)
    path.write_text(POOL)
    steps = {**ROUGH, 12: [("preempt", "y", "x")]}
    runs = [
        harness.replay(
            trace,
            plugin=scripted(steps),
            cluster=path,
            label=label,
            output=tmp_path / "r",
            until=until,
            scale_arrivals=scale,
        )
        for label, until, scale in (("whole", "20s", 1), ("cut", other, 2))
    ]
    comparison = harness.compare(runs)
    (row,) = comparison.rows("disruption.lost")
    assert row.changes[0].ground is ground
    if ground is Ground.CUT:
        assert row.changes[0].verdict is Verdict.OPEN
        assert row.changes[0].difference
        assert "give both the same --until" in comparison.table("disruption.lost")
