"""Answers of Prometheus with taints and conditions of nodes, as tables of events.

The answers are built, since no recorded one has these metrics. Names and labels are those of
docs/metrics/cluster/node-metrics.md in kubernetes/kube-state-metrics. Prometheus drops labels that are empty.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called

from harness.base.units import MINUTE, SECOND
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from

BEGIN = 1_795_318_800
SAMPLES = 30
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
NODES = ("gpu-0", "gpu-1", "gpu-2")
CORDON, LOST, FULL = (5, 10), (12, 18), (20, 22)
"""Minutes, without the last, in which gpu-0 is cordoned, gpu-1 is lost, and the disk of gpu-2 is full."""

UNREACHABLE, PRESSURE = "node.kubernetes.io/unreachable", "node.kubernetes.io/disk-pressure"
Minutes = tuple[int, int]
ALWAYS = (0, SAMPLES)


def series(
    metric: str, node: str, minutes: Iterable[int], amount: str = "1", **labels: str
) -> dict[str, Any]:
    """A series as an answer has it, with a sample at each of some minutes."""
    scraped = {"instance": "10.0.0.7:8080", "job": "kube-state-metrics"}
    samples = [[BEGIN + 60 * minute, amount] for minute in minutes]
    return {
        "metric": {"__name__": f"kube_node_{metric}", "node": node, **scraped, **labels},
        "values": samples,
    }


def within(span: Minutes) -> list[str]:
    """A gauge that is 1 within some minutes, and 0 at all others."""
    return [str(int(span[0] <= minute < span[1])) for minute in range(SAMPLES)]


def gauge(metric: str, node: str, values: list[str], **labels: str) -> dict[str, Any]:
    """A series with a sample a minute."""
    made = series(metric, node, range(SAMPLES), **labels)
    made["values"] = [[time, value] for (time, _), value in zip(made["values"], values, strict=True)]
    return made


def conditions(node: str) -> Iterator[dict[str, Any]]:
    """Three series for each condition of a node: of a lost node, all are unknown."""
    for name in CONDITIONS:
        usual, other = ("true", "false") if name == "Ready" else ("false", "true")
        odd = FULL if (node, name) == ("gpu-2", "DiskPressure") else (0, 0)
        lost = LOST if node == "gpu-1" else (0, 0)
        found = {"unknown": within(lost), other: within(odd)}
        found[usual] = [str(1 - int(a) - int(b)) for a, b in zip(*found.values(), strict=True)]
        for status, values in sorted(found.items()):
            yield gauge("status_condition", node, values, condition=name, status=status)


def taints() -> Iterator[dict[str, Any]]:
    """A series for each taint, while a node has it."""
    yield series("spec_taint", "gpu-2", range(SAMPLES), key="dedicated", value="gpu", effect="NoSchedule")
    for node, span, key, effect in (
        ("gpu-0", CORDON, "node.kubernetes.io/unschedulable", "NoSchedule"),
        ("gpu-1", LOST, UNREACHABLE, "NoSchedule"),
        ("gpu-1", LOST, UNREACHABLE, "NoExecute"),
        ("gpu-2", FULL, PRESSURE, "NoSchedule"),
    ):
        yield series("spec_taint", node, range(*span), key=key, effect=effect)


def answers(*, with_taints: bool) -> str:
    """An answer for each metric, one after the other, as curl writes them."""
    metrics = [
        [
            series("status_allocatable", node, range(SAMPLES), value, resource=resource, unit=unit)
            for node in NODES
            for resource, value, unit in (("cpu", "32", "core"), ("nvidia_com_gpu", "8", "integer"))
        ],
        [gauge("spec_unschedulable", node, within(CORDON if node == "gpu-0" else (0, 0))) for node in NODES],
        [each for node in NODES for each in conditions(node)],
        list(taints()) if with_taints else [],
    ]
    return "\n".join(
        json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
        for result in metrics
    )


@pytest.mark.parametrize("with_taints", [True, False])
def test_taints_and_conditions_of_nodes_become_events(
    with_taints: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taints as they were; without them those of nodes that are not ready. A cordon's own taint is no row."""
    path = tmp_path / "answers.json"
    path.write_text(answers(with_taints=with_taints))
    assert called(["cluster", "events", str(path)]) == 0
    told = capsys.readouterr()
    found = []
    for row in csv.DictReader(io.StringIO(told.out)):
        times = [datetime.fromisoformat(row[name]) if row[name] else None for name in ("time", "until")]
        span = [None if time is None else (int(time.timestamp()) - BEGIN) / 60 for time in times]
        found.append((*span, row["name"], row["field"], row["value"]))
    lost = [(*LOST, "gpu-1", "taint", f"{UNREACHABLE}:{effect}") for effect in ("NoExecute", "NoSchedule")]
    dedicated = (0, None, "gpu-2", "taint", "dedicated=gpu:NoSchedule")
    pressure = (*FULL, "gpu-2", "taint", f"{PRESSURE}:NoSchedule")
    cordon = (*CORDON, "gpu-0", "cordon", "")
    assert found == ([dedicated, cordon, *lost, pressure] if with_taints else [cordon, *lost])
    assert "a change has the time of the first sample that shows it, which is up to 1m00s late" in told.err

    table = tmp_path / "found.csv"
    table.write_text(told.out)
    amounts = {"cpu": 32, "nvidia.com/gpu": 8, "pods": 110}
    base = cluster_from(
        [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": amounts},
            }
            for name in NODES
        ],
        "test",
    )
    made = unrolled(base.patched(table), BEGIN * SECOND)
    nodes = {
        (at // MINUTE, edit.name): (edit.after.unschedulable, sorted(each.key for each in edit.after.taints))
        for at, edits in made.changes
        for edit in edits
        if edit.name in ("gpu-0", "gpu-1")
    }
    assert nodes[12, "gpu-1"] == (False, [UNREACHABLE, UNREACHABLE])
    assert nodes[18, "gpu-1"] == (False, [])
    assert nodes[5, "gpu-0"][0]
    assert nodes[10, "gpu-0"] == (False, [])
