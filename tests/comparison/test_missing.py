"""A `-` in a table is explained below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from small_clusters import queues

import harness


def compared(write_trace: Callable[..., Path], tmp_path: Path, until: str | None) -> harness.Comparison:
    """Ten jobs of 10 s for one core, one after the other; without capacity for memory."""
    (tmp_path / "c.yaml").write_text(queues({"a": {"cpu": "1"}}))
    jobs = ({"queue": "a", "duration": 10} for _ in range(10))
    run = harness.replay(
        write_trace(*jobs), cluster=tmp_path / "c.yaml", until=until, output=tmp_path / "results"
    )
    return harness.compare([run])


def test_other_absent_values_are_told_as_such(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Nothing was preempted, so nothing was restarted, though all jobs finished."""
    found = compared(write_trace, tmp_path, None)
    told = (
        "- means no value (disruption.time_to_restart.p50): "
        "the run has no such job or event, or did not measure it"
    )
    assert told in found.table("disruption.time_to_restart.p50").split("\n")
    assert "- means no value (disruption" not in found.table()
