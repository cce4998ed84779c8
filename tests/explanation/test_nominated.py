"""Explanations of a pod that waits for a node which other pods have to leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import harness
from harness.runs.run import Run

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "9"}}
"""


def nominated_behind_another(write_trace: Callable[..., Path], folder: Path) -> Run:
    """`second` fits beside `first` once the victim that `first` preempts is gone."""
    trace = write_trace(
        {"job_id": "victim", "request.cpu": 2000, "duration": 3600},
        {"job_id": "first", "request.cpu": 1000, "priority": 9, "submit_time": 60, "duration": 90},
        {"job_id": "second", "request.cpu": 1000, "priority": 9, "submit_time": 61, "duration": 90},
    )
    cluster = folder / "cluster.yaml"
    cluster.write_text(NODE)
    return harness.replay(trace, cluster=cluster, output=folder / "results", plugin="default-preemption")


def test_a_pod_whose_victims_another_preempts_waits_until_they_are_gone(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """It preempts none itself, but the run knows why it waits, and so do its story and the instant."""
    run = nominated_behind_another(write_trace, tmp_path)
    told = harness.explain(run, "second").text()
    sentence = "n is being freed for 1 pod; it waits until victim is gone"
    assert sentence in told
    assert "recorded no reason" not in told
    assert f"latest reason, from 0d 00:01:01: {sentence}" in harness.explain(run, "second", at="65s").text()
    instant = harness.explain(run, at="65s").text().split("\n")
    assert f"  second since 0d 00:01:01 (4s): at 0d 00:01:01 {sentence}" in instant


def test_the_victims_of_a_pods_own_preemption_come_first(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """The preemption explains more than the nomination that it led to."""
    run = nominated_behind_another(write_trace, tmp_path)
    assert ": it preempts job victim" in harness.explain(run, "first", at="65s").text()
    instant = harness.explain(run, at="65s").text()
    assert "first since 0d 00:01:00 (5s): at 0d 00:01:00 it preempts job victim (Preemption" in instant


def test_a_reason_of_kube_scheduler_is_not_a_sentence_of_its_own(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Its text ends with a full stop, although the explanation goes on."""
    trace = write_trace(
        {"job_id": "first", "request.cpu": 2000, "duration": 60},
        {"job_id": "meek", "request.cpu": 2000, "priority": 9, "priority_class": "meek", "submit_time": 1},
    )
    meek = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: meek}, value: 9"
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{NODE}---\n{meek}, preemptionPolicy: Never}}\n")
    run = harness.replay(trace, cluster=cluster, output=tmp_path / "results", plugin="default-preemption")
    told = "preemption: not eligible due to preemptionPolicy=Never; most cpu is held by"
    assert told in harness.explain(run, "meek").text()
