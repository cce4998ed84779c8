"""A `-` in a table is explained below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_clusters import queues

import harness
from harness.comparison.figures import Key, key_of
from harness.comparison.missing import lack_of
from harness.errors import RunError
from harness.metrics.measurement import Measurement


def compared(write_trace: Callable[..., Path], tmp_path: Path, until: str | None) -> harness.Comparison:
    """Ten jobs of 10 s for one core, one after the other; without capacity for memory."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    jobs = ({"queue": "a", "duration": 10} for _ in range(10))
    run = harness.replay(
        write_trace(*jobs), cluster=tmp_path / "c.yaml", until=until, output=tmp_path / "results"
    )
    return harness.compare([run])


def test_a_percentile_that_is_not_reached_is_told(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """After 35 s four of ten jobs have started: half of the waits are known to be longer, and no more."""
    found = compared(write_trace, tmp_path, "35s")
    told = (
        "- of wait.first_start.p50, wait.first_start.p95: not reached, since too many jobs had not come so "
        "far when the replay ended; wait.never_started and jobs.unfinished say how many"
    )
    assert told in found.table("wait.first_start.p*5*").split("\n")
    assert told.replace("_", "\\_") in found.markdown("wait.first_start.p*5*")
    assert "\n- of " not in found.table("wait.first_start.mean")


def test_a_condition_on_it_says_so_too(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Its denominator is not what is missing."""
    found = compared(write_trace, tmp_path, "35s")
    with pytest.raises(RunError, match=r"p95 has no value in \S+: not reached, since too many") as caught:
        found.check("wait.first_start.p95 > 1m", values=True)
    assert caught.value.hint.startswith("ask for a lower percentile")


def test_other_absent_values_are_told_as_such(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Nothing was preempted, so nothing was restarted, though all jobs finished."""
    found = compared(write_trace, tmp_path, None)
    told = "- of disruption.time_to_restart.p50: there was no such job or event, or it was not measured"
    assert told in found.table("disruption.time_to_restart.p50").split("\n")
    assert "- of" not in found.table()


def test_a_queue_without_jobs_has_reached_nothing_that_it_could_miss() -> None:
    """That jobs of other queues are not finished is no reason for its `-`."""

    def replay(never: float | None) -> dict[Key, Measurement]:
        rows = (
            Measurement("wait.first_start.p95", None, "s", "lower", "queue=a"),
            Measurement("wait.never_started", never, "ratio", "lower", "queue=a"),
            Measurement("jobs.unfinished", 3, "count", "lower"),
        )
        return {key_of(row): row for row in rows}

    key = ("wait.first_start.p95", "queue=a", "")
    assert lack_of(key, [replay(None), replay(0.5), {}]) == (1, 2, 3, "twins")
