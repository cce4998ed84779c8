"""`--isolated`: each quota alone too, replayed once, and a line that says how many are worse off together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from small_clusters import queues, quota_tree


def test_who_is_worse_off_together_is_told(harness: Callable, write_trace: Callable[..., Path]) -> None:
    """Asked again nothing is replayed."""
    jobs = ({"queue": "ab"[number % 2], "submit_time": number, "request.cpu": 2000} for number in range(6))
    trace = write_trace(*jobs)
    (trace.parent / "trace.cluster.yaml").write_text(queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}}))
    first = harness("replay", trace, "-p", "none", "-p", "kueue-classic", "--isolated")
    assert first.code == 0
    assert "isolated: 4 runs, each with the jobs of one quota alone; stored runs are not" in first.err
    (line,) = (line for line in first.out.split("\n") if line.startswith("fairness.sharing_violations"))
    assert line.split()[1:4] == ["0.0", "%", "0.0"]
    again = harness("replay", trace, "-p", "none", "-p", "kueue-classic", "--isolated")
    assert again.out == first.out


def test_a_cluster_for_all_six_plugins_has_queues_and_elastic_quotas_of_one_name(
    harness: Callable, write_trace: Callable[..., Path]
) -> None:
    """Four of them keep to quotas on nodes and are measured; of the others it is said why not."""
    jobs = ({"queue": "ab"[number % 2], "submit_time": number, "request.cpu": 2000} for number in range(6))
    trace = write_trace(*jobs)
    halves = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}
    both = queues(halves, nodes=2) + quota_tree(halves, {"cpu": "8"})
    (trace.parent / "trace.cluster.yaml").write_text(both)
    keep = ("kueue-classic", "fairsharing", "elasticquota", "auto")
    names = [part for name in (*keep, "none", "default-preemption") for part in ("-p", name)]
    ended = harness("replay", trace, *names, "--isolated", "--json")
    assert ended.code == 0, ended.err
    rows = json.loads(ended.out)["metrics"]
    (row,) = (each for each in rows if each["metric"] == "fairness.sharing_violations")
    assert {name for name, value in row["values"].items() if value is not None} == {*keep}


@pytest.mark.nightly
def test_twins_are_measured_so_too(harness: Callable, write_trace: Callable[..., Path]) -> None:
    """With `--shake` every line has an interval, also that of who is worse off; nothing is made twice."""
    jobs = ({"queue": "ab"[number % 2], "submit_time": number, "request.cpu": 2000} for number in range(6))
    trace = write_trace(*jobs)
    (trace.parent / "trace.cluster.yaml").write_text(queues({"a": {"cpu": "2"}, "b": {"cpu": "2"}}))
    command = ("replay", trace, "-p", "none", "-p", "kueue-classic", "--isolated", "--shake", "2")
    first = harness(*command)
    assert first.code == 0
    assert "4 replays of 2 twins (arrivals ±30s; seed 0), each also with the jobs of every" in first.err
    (line,) = (line for line in first.out.split("\n") if line.startswith("fairness.sharing_violations"))
    assert line.split()[-1] in "=~▲▼△▽"
    again = harness(*command)
    assert again.out == first.out
    assert "shaking" not in again.err
