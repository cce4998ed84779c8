"""`--idle-causes`: each run once more, judged once, and a line for each cause that is shown first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from small_clusters import queues

FIVE = ["no_demand", "reserved", "quota", "fragmented", "policy"]


def _trace(write_trace: Callable[..., Path]) -> Path:
    jobs = (
        {"queue": "ab"[number % 2], "submit_time": number, "request.cpu": 2000, "duration": 100}
        for number in range(6)
    )
    trace = write_trace(*jobs)
    (trace.parent / "trace.cluster.yaml").write_text(queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}}))
    return trace


def test_what_is_idle_is_told_by_cause(harness: Callable, write_trace: Callable[..., Path]) -> None:
    """Asked again nothing is replayed."""
    trace = _trace(write_trace)
    command = ("replay", trace, "-p", "none", "-p", "kueue-classic", "--idle-causes")
    first = harness(*command)
    assert first.code == 0, first.err
    told = "idle causes: 2 runs are replayed once more to find out why jobs wait; stored runs are not"
    assert told in first.err
    lines = [line.split()[0] for line in first.out.split("\n") if line.startswith("idle.")]
    assert lines == [f"idle.{name}" for name in FIVE]
    again = harness(*command)
    assert again.out == first.out
    assert "idle causes" not in again.err


def test_twins_are_judged_and_measured_alone_too(harness: Callable, write_trace: Callable[..., Path]) -> None:
    """With `--shake` and `--isolated`, both are done of every twin, and nothing is made twice."""
    trace = _trace(write_trace)
    options = ("--isolated", "--idle-causes", "--shake", "2", "--json")
    command = ("replay", trace, "-p", "none", "-p", "kueue-classic", *options)
    first = harness(*command)
    assert first.code == 0, first.err
    assert "with the jobs of every quota alone, each once more to find out why jobs wait" in first.err
    rows = {(row["metric"], row["resource"]): row for row in json.loads(first.out)["metrics"]}
    assert None not in rows["idle.no_demand", "cpu"]["values"].values()
    assert None not in rows["fairness.sharing_violations", ""]["values"].values()
    again = harness(*command)
    assert again.out == first.out
    assert "shaking" not in again.err
