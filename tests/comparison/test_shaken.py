"""Comparisons over twins: every metric has an interval, of the same twins for every run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from policies import Greedy

import harness
from harness.analysis.comparison.changes import Ground, Verdict
from harness.analysis.comparison.family import Family
from harness.analysis.comparison.headlines import HEADLINES
from harness.analysis.comparison.statistics.bounded import of_bounded_pairs
from harness.analysis.comparison.statistics.significance import of_pairs
from harness.base.errors import OptionError, RunError

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Callable[..., harness.Run]:
    """Runs of a small trace on two nodes, on which jobs wait."""
    rows = ({"submit_time": 60 + 9 * n, "duration": 40, "priority": n % 3} for n in range(30))
    trace = write_trace(*rows)
    (tmp_path / "c.yaml").write_text(POOL)

    def run(label: str, plugin: Any = "none", **choices: Any) -> harness.Run:
        choices = {"trace": trace, "output": tmp_path / "results", **choices}
        return harness.replay(plugin=plugin, label=label, cluster=tmp_path / "c.yaml", **choices)

    return run


def twins_of(run: harness.Run) -> list[Path]:
    """The folders of its twins."""
    return sorted((run.path.parent / ".twins" / run.path.name).iterdir())


def test_every_metric_has_an_interval_over_twins(replayed: Callable[..., harness.Run]) -> None:
    """Values are means over the twins, and intervals of the paired differences, as worked out aside."""
    runs = [replayed("base"), replayed("first", "default-preemption")]
    comparison = harness.compare(runs, shake="4@2")
    assert [len(twins_of(run)) for run in runs] == [4, 4]
    tables = [
        [
            harness.Run.open(path)
            for path in sorted(twins_of(run), key=lambda p: harness.Run.open(p).info["settings"]["twin"])
        ]
        for run in runs
    ]
    for metric in ("wait.first_start.mean", "disruption.preemptions", "makespan"):
        (row,) = comparison.rows(metric)
        values = [
            [twin.metrics.filter(metric=metric, scope="all")["value"].item() for twin in of] for of in tables
        ]
        ratio = all(value > 0 for of in values for value in of)
        wanted = of_pairs(*values, ratio=True) if ratio else of_bounded_pairs(*values)
        assert row.changes[0].interval == wanted
        mean = sum(values[1]) / 4
        assert row.values[1] == pytest.approx(mean, rel=1e-12 if not ratio else 0.1)
        assert row.changes[0].ground is Ground.TWINS
    table = comparison.table()
    assert "values: means over 4 twins (arrivals ±30s; seed 2)" in table
    assert comparison.to_json()["twins"] == "4@2,arrivals=30s"


SLOWER = [{"submit_time": 5 * number, "duration": 40, "priority": number % 3} for number in range(20)]


def test_twins_of_one_number_share_a_window(
    replayed: Callable[..., harness.Run], write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """What is relative to capacity is what a comparison of the two twins alone has; both values are told."""
    trace = write_trace(*SLOWER, name="slower.parquet")
    choices = [{"label": "base"}, {"label": "late", "plugin": "default-preemption", "grace_period": "50s"}]
    runs = [replayed(trace=trace, **choice) for choice in choices]
    comparison = harness.compare(runs, shake="2,arrivals=5s")
    folders = [path for run in runs for path in twins_of(run)]
    assert {harness.Run.open(path).kept for path in folders} == {"metrics"}
    names = ("utilization.allocated", "goodput.of_capacity", "fairness.share_deviation")
    alone: dict[tuple[str, str], list[list[float | None]]] = {}
    for number in (1, 2):
        both = [replayed(trace=trace, twin=f"{number},arrivals=5s", **choice) for choice in choices]
        assert len({run.window.end for run in both}) == 2
        for row in harness.compare(both).rows(*names):
            alone.setdefault((row.measured.metric, row.measured.resource), []).append(row.values)
    for row in comparison.rows(*names):
        values = list(zip(*alone[row.measured.metric, row.measured.resource], strict=True))
        ratio = all(0 < value < 1 for of_run in values for value in of_run)
        wanted = of_pairs(*values, ratio=True) if ratio else of_bounded_pairs(*values)
        assert row.changes[0].interval == wanted
    table = comparison.table()
    said = "for each twin, all values except waits of ended jobs cover the window that all runs share"
    assert said in table
    assert "late over its twins' own windows: utilization.useful cpu " in table
    assert harness.compare(runs, shake="2,arrivals=5s").table() == table
    assert {harness.Run.open(path).kept for path in folders} == {"all"}, "what was kept on purpose is gone"


def test_another_run_may_share_another_window(replayed: Callable[..., harness.Run]) -> None:
    """Then twins are replayed again, once, and what is said of the first two stays what it was."""
    slow = [replayed(label, "default-preemption", grace_period=time) for label, time in
            (("late", "90s"), ("later", "150s"))]  # fmt: skip
    first = harness.compare(slow, shake=2).table()
    assert all(harness.Run.open(path).kept == "metrics" for run in slow for path in twins_of(run))
    harness.compare([replayed("base"), *slow], shake=2)
    made = {path: path.stat().st_mtime_ns for run in slow for path in twins_of(run)}
    assert harness.compare(slow, shake=2).table() == first
    harness.compare([replayed("base"), *slow], shake=2)
    assert {path: path.stat().st_mtime_ns for path in made} == made


def test_twins_that_arrive_at_other_times_have_windows_of_their_own(
    replayed: Callable[..., harness.Run],
) -> None:
    """Nothing is shared where one run has twice as many jobs an hour."""
    runs = [replayed("base"), replayed("dense", scale_arrivals=2)]
    table = harness.compare(runs, shake=2).table()
    assert "arrivals differ, so each twin is measured over its own window" in table
    assert "own windows of its twins" not in table


def test_twins_that_are_there_are_not_made_again(replayed: Callable[..., harness.Run]) -> None:
    """More of them begin with the same ones; opened runs find them too, and what is damaged is replaced."""
    runs = [replayed("base"), replayed("first", "default-preemption")]
    first = harness.compare(runs, shake=2).table()
    made = {path: path.stat().st_mtime_ns for run in runs for path in twins_of(run)}
    harness.compare([run.path for run in runs], shake=3)
    assert all(path.stat().st_mtime_ns == time for path, time in made.items())
    assert [len(twins_of(run)) for run in runs] == [3, 3]
    broken = next(iter(made))
    (broken / "metrics.parquet").write_bytes(b"")
    assert harness.compare([run.path for run in runs], shake=2).table() == first
    assert (broken / "metrics.parquet").stat().st_size > 0


def test_a_run_that_cannot_be_replayed_says_so(replayed: Callable[..., harness.Run], tmp_path: Path) -> None:
    """Its trace is gone, or it is of a class in memory; with its twins beside it all is well."""
    run, other = replayed("base"), replayed("first")
    kept = harness.compare([run, other], shake=2).table()
    (tmp_path / "trace.parquet").unlink()
    opened = [harness.Run.open(each.path) for each in (run, other)]
    assert harness.compare(opened, shake=2).table() == kept
    with pytest.raises(RunError, match="has 2 of 3 twins, and cannot be replayed") as refused:
        harness.compare(opened, shake=3)
    assert "shake" in (refused.value.hint or "")
    with pytest.raises(RunError, match="has no twins, and cannot be replayed"):
        harness.compare(opened, shake="3@1")


def test_a_class_in_memory_is_shaken_in_its_process(replayed: Callable[..., harness.Run]) -> None:
    """What was asked for is still known there."""
    comparison = harness.compare([replayed("base"), replayed("mine", Greedy)], shake=2, workers=1)
    assert comparison.names == ["base", "mine"]
    (row,) = comparison.rows("disruption.preemptions")
    assert row.changes[0].ground is Ground.TWINS


def test_runs_of_other_jobs_are_not_shaken(replayed: Callable[..., harness.Run]) -> None:
    """Their twins have no jobs in common that could be looked at."""
    from harness.trace.calibration import Calibration

    part = replayed("part", calibration=Calibration.parse(sample="0.6"))
    whole = replayed("whole")
    with pytest.raises(RunError, match="twins can be compared only if all runs have the same jobs"):
        harness.compare([whole, part], shake=2)
    assert not (whole.path.parent / ".twins").exists(), "refused before anything is replayed"
    with pytest.raises(OptionError, match="priorities cannot vary"):
        harness.compare([replayed("whole")], shake="2,priorities")


def test_a_single_run_is_shown_without_scipy(replayed: Callable[..., harness.Run]) -> None:
    """It takes half a second to import, and there is nothing to test."""
    code = (
        "import sys; from harness.analysis.comparison import Comparison; import harness.cli.replay; "
        "Comparison.of(sys.argv[1:]).table(); print('scipy' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(replayed("alone").path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_equal_runs_differ_by_nothing_and_count_once(replayed: Callable[..., harness.Run]) -> None:
    """Whatever they are called: a run that equals the baseline is not tested, and two equal ones are once."""
    runs = [replayed("base"), replayed("same"), replayed("first", "default-preemption")]
    several = harness.compare(runs, shake=2)
    assert {row.changes[0].verdict for row in several.rows()} <= {Verdict.SAME, Verdict.UNKNOWN}
    twice = harness.compare([*runs, replayed("again", "default-preemption")], shake=2)
    once = harness.compare([runs[0], runs[2]], shake=2)
    assert several.to_json()["tests"] == twice.to_json()["tests"] == once.to_json()["tests"] > 0


def test_what_is_shown_does_not_change_what_is_said(replayed: Callable[..., harness.Run]) -> None:
    """The family is declared: one metric alone has the same p as in the whole table."""
    comparison = harness.compare([replayed("base"), replayed("first", "default-preemption")], shake=3)
    every = {(row.measured.metric, row.measured.resource): row for row in comparison.rows()}
    for metric in ("wait.first_start.p95", "wait.total.p90", "disruption.preemptions"):
        (row,) = comparison.rows(metric)
        assert row == every[metric, ""]
    in_family = [row for row in every.values() if row.measured.metric in HEADLINES]
    assert comparison.to_json()["tests"] <= len(in_family)


def test_a_family_is_corrected_as_one_and_what_is_beside_it_alone() -> None:
    """Two tests of one run, which another run equals: Holm's 0.02 and 0.04; beside them twice as large."""
    wait, lost, other = (("wait", "all", ""), ("lost", "all", "cpu"), ("wait", "queue=a", ""))
    family = Family({(wait, 1): 0.01, (lost, 1): 0.04}, [0, 1, 1])
    assert family.size == 2
    for run in (1, 2):
        assert family.corrected(wait, run, 0.01) == pytest.approx(0.02)
        assert family.corrected(lost, run, 0.04) == pytest.approx(0.04)
        assert family.corrected(other, run, 0.01) == pytest.approx(0.02)
    assert Family({}, [0]).corrected(wait, 0, 0.3) == 0.3
