"""`--shake`: twins of every run, made once, and a table in which every change is judged or equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Jobs that wait for each other on the node beside them."""
    path = write_trace(*({"submit_time": 60 + 5 * n, "duration": 30, "priority": n % 2} for n in range(20)))
    (path.parent / "trace.cluster.yaml").write_text(POOL)
    return path


def test_one_command_replays_twins_once(harness: Callable, trace: Path) -> None:
    """Asked again nothing is made; finished runs are compared over the same ones."""
    command = ("replay", trace, "-p", "none", "-p", "default-preemption")
    first = harness(*command, "--shake", "2")
    assert first.code == 0
    assert "shaking: 4 replays of 2 twins (arrivals ±30s; seed 0); each is kept" in first.err
    assert "values: means over 2 twins (arrivals ±30s; seed 0)" in first.out
    assert "0 outside its interval, and p < 0.05" in first.out or "[95 % interval]" not in first.out
    again = harness(*command, "--shake", "2")
    assert "shaking" not in again.err
    assert "none: 2 twins, none replayed, 2 stored before, kept in results/trace/.twins/none-" in again.err
    assert again.out == first.out
    runs = sorted(Path("results/trace").glob("[a-z]*"))
    assert len(runs) == 2
    compared = harness("compare", *runs, "--baseline", "none", "--shake", "3", "--json")
    assert "2 replays of 3 twins" in compared.err
    document = json.loads(compared.out)
    assert document["twins"] == "3@0,arrivals=30s"
    grounds = {change["ground"] for row in document["metrics"] for change in row["changes"].values()}
    assert grounds <= {"twins", "few"}


def test_without_twins_a_table_says_what_it_does_not_judge(harness: Callable, trace: Path) -> None:
    """In one line, and no sign stands beside a figure of the run as a whole."""
    ended = harness("replay", trace, "-p", "none", "-p", "default-preemption", "--scale-cluster", "1/2")
    assert ended.code == 0
    told = "no sign: with one replay of each, the difference may be luck; --shake 10 tells"
    assert ended.out.count(told) == 1
    assert "no chance" not in ended.out
    table = ended.out.split("▲")[0]
    assert not set(table) & set("▼△▽~")


def test_a_shake_that_cannot_be_is_refused_before_anything_is_read(harness: Callable) -> None:
    """Even the trace."""
    for text, said in (("1", "at least 2"), ("ten", "not understood"), ("5,jitter", "is called 'jitter'")):
        ended = harness("replay", "absent.parquet", "--shake", text)
        assert ended.code == 2
        assert said in ended.err


def test_priorities_are_shaken_from_what_the_trace_states(harness: Callable, trace: Path) -> None:
    """The command knows the trace before a share of its jobs had them."""
    share = ("--priority-share", "0.3:9@4", "-p", "default-preemption")
    ended = harness("replay", trace, *share, "--shake", "2,arrivals=0s,priorities")
    assert ended.code == 0, ended.err
    twins = list(Path("results/trace/.twins").glob("*/*/run.json"))
    assert len(twins) == 2
    refused = harness("replay", trace, "--shake", "2,priorities")
    assert refused.code == 2
    assert "no --priority-share gives them" in refused.err
