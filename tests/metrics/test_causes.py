"""Evictions by cause: each has one, and the causes add up to what there was in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from policies import scripted
from small_clusters import queues

import harness
from harness.analysis.metrics.causes import CAUSES
from harness.base.units import SECOND
from harness.cluster.load import load_cluster

Measured = Callable[..., Callable[..., float | None]]
NODES = queues({}, nodes=2)


def job(name: str, **fields: Any) -> dict[str, Any]:
    """A job of one core that is gone at once when it is evicted."""
    return {"job_id": name, "queue": "a", "grace_period": 0, "duration": 100, **fields}


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("DeletionByPodGC", "failure"),
        ("DeletionByTaintManager", "drain"),
        ("ClusterQueueStopped", "quota-stop"),
        ("LocalQueueStopped", "quota-stop"),
        ("PodsReadyTimeout", "time-out"),
        ("DeactivatedDueToRequeuingLimitExceeded", "time-out"),
        ("DeactivatedDueToMaximumExecutionTimeExceeded", "time-out"),
        ("Whatever", "other"),
    ],
)
def test_an_eviction_without_a_preemptor_has_the_cause_that_its_reason_names(
    reason: str, cause: str, measured: Measured
) -> None:
    """Beside a preemption: one core for 4 s is lost to the one, and one core for 6 s to the other."""
    steps = {
        0: [("bind", "x", 0, "n0"), ("bind", "y", 0, "n1")],
        4: [("preempt", "x", None, reason, 0)],
        6: [("preempt", "y", "x", "Priority", 0)],
    }
    value = measured(job("x"), job("y"), cluster=NODES, plugin=scripted(steps))
    for each, lost in ((cause, 4), ("preemption", 6)):
        assert value("disruption.evictions", f"reason={each}") == 1
        assert value("disruption.evicted_jobs", f"reason={each}") == 1
        assert value("disruption.lost", f"reason={each}", "cpu") == lost / 3600
    assert value("disruption.evictions") == value("disruption.evicted_jobs") == 2
    assert value("disruption.preemptions") == 1
    assert value("disruption.failures_per_1000_jobs") == (500 if cause == "failure" else 0)


def test_what_several_evictions_of_one_instant_throw_away_counts_once(measured: Measured) -> None:
    """A gang loses its work by the first; pods on their own lose each its own, which no queue gains twice."""
    steps = {
        0: [("bind", name, pod, f"n{pod}") for name in ("g", "v") for pod in (0, 1)],
        10: [
            *(("preempt", name, None, "DeletionByPodGC", 0) for name in ("g", "v")),
            *(("preempt", name, "b", "Priority", 1) for name in ("g", "v")),
        ],
    }
    jobs = (job("g", pods=2, gang=True), job("v", pods=2, gang=False), job("b", queue="b"))
    value = measured(*jobs, cluster=NODES, plugin=scripted(steps))
    assert value("disruption.lost", resource="cpu") == 40 / 3600
    assert value("disruption.lost", "reason=failure", "cpu") == 30 / 3600
    assert value("disruption.lost", "reason=preemption", "cpu") == 10 / 3600
    assert value("disruption.lost", "beneficiary=b", "cpu") == 10 / 3600
    assert value("disruption.evicted_jobs") == 2
    assert value("disruption.evicted_jobs", "reason=failure") == 2
    assert value("disruption.evicted_jobs", "reason=preemption") == 2


def over(kind: str, name: str, begin: int, end: int, **content: Any) -> dict[str, Any]:
    times = {"harness/from": f"{begin}s", "harness/until": f"{end}s"}
    return {"kind": kind, "metadata": {"name": name, "annotations": times}, **content}


CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Node", "n0", {"$patch": "delete"}),
    ("Node", "n1", {"$patch": "delete"}),
    ("Node", "n1", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}),
    ("Node", "n0", {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}}),
    ("ClusterQueue", "a", {"spec": {"stopPolicy": "HoldAndDrain"}}),
)


@examples(12)
@given(data=st.data())
def test_causes_add_up_to_the_totals(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """In random worlds of nodes that go, are emptied and stopped queues, with pods and with whole jobs."""
    folder = tmp_path_factory.mktemp("run")
    rows = [
        {
            "job_id": f"j{number}",
            "submit_time": data.draw(st.integers(0, 60)),
            "duration": data.draw(st.integers(1, 60)),
            "grace_period": data.draw(st.sampled_from([0, 3])),
            "queue": data.draw(st.sampled_from("ab")),
            "priority": data.draw(st.integers(0, 2)),
            "pods": data.draw(st.sampled_from([1, 2, 3])),
            "gang": data.draw(st.booleans()),
            "request.cpu": data.draw(st.sampled_from([500, 1000, 2000])),
        }
        for number in range(data.draw(st.integers(4, 14)))
    ]
    times = [(pl.col("submit_time", "duration", "grace_period") * SECOND).cast(pl.Duration("us"))]
    trace = folder / "t.parquet"
    pl.DataFrame(rows).with_columns(times).cast({"pods": pl.Int32, "priority": pl.Int32}).write_parquet(trace)
    patches = []
    for kind, name, content in data.draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=4)):
        begin = data.draw(st.integers(1, 80))
        patches.append(over(kind, name, begin, begin + data.draw(st.integers(1, 40)), **content))
    path = folder / "cluster.yaml"
    path.write_text(queues({"a": {"cpu": "3"}, "b": {"cpu": "3"}}, nodes=2))
    cluster = load_cluster(path).patched(patches)
    plugin = data.draw(st.sampled_from(["default-preemption", "kueue-classic", "none"]))
    run = harness.replay(trace, plugin=plugin, cluster=cluster, output=folder, until="300s")
    found = {(row["metric"], row["scope"], row["resource"]): row["value"] for row in run.metrics.to_dicts()}

    def causes(metric: str, resource: str = "") -> list[float]:
        return [
            found[metric, f"reason={cause}", resource]
            for cause in CAUSES
            if (metric, f"reason={cause}", resource) in found
        ]

    assert sum(causes("disruption.evictions")) == found["disruption.evictions", "all", ""]
    assert (
        found.get(("disruption.evictions", "reason=preemption", ""), 0)
        == found["disruption.preemptions", "all", ""]
    )
    lost = found["disruption.lost", "all", "cpu"]
    assert sum(causes("disruption.lost", "cpu")) == pytest.approx(lost, rel=1e-12)
    assert max(causes("disruption.evicted_jobs"), default=0) <= found["disruption.evicted_jobs", "all", ""]
