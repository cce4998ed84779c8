"""Rules of the cluster that is assumed for a trace without manifests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.derive import Demand, derive_cluster, find_cluster
from harness.cluster.model import Preemption

GI = 2**30
CORES = Demand(largest=64_000, mean=191_234)


def nominal(queues: list[str], **demands: Demand) -> dict[str, dict[str, int]]:
    """Queue -> resource -> nominal quota of the derived cluster."""
    cluster = derive_cluster(queues, demands, source="t")
    return {
        queue.name: {
            name: quota.nominal for name, quota in queue.resource_groups[0].flavors[0].resources.items()
        }
        for queue in cluster.cluster_queues.values()
    }


def test_queues_share_one_cohort() -> None:
    """One ClusterQueue a queue by name; what others leave idle can be borrowed and taken back."""
    cluster = derive_cluster(["b", "a", "b"], {"cpu": CORES}, source="t.parquet")
    assert list(cluster.cluster_queues) == ["a", "b"]
    assert list(cluster.cohorts) == ["all"]
    for queue in cluster.cluster_queues.values():
        assert queue.cohort == "all"
        assert queue.preemption == Preemption("LowerPriority", "Any")
        assert queue.namespace_selector is not None
        assert cluster.missing_flavors(queue) == ()
    assert cluster.nodes == {}
    assert cluster.warnings == ()
    assert cluster.source == "assumed for t.parquet"


def test_one_queue_needs_no_cohort() -> None:
    """There is nobody to share with."""
    cluster = derive_cluster(["a"], {"cpu": CORES}, source="t")
    assert cluster.cohorts == {}
    assert cluster.cluster_queues["a"].preemption == Preemption("LowerPriority", "Never")


@pytest.mark.parametrize(
    ("resource", "demand", "capacity"),
    [
        ("cpu", Demand(1000, 191_234), 240_000),
        ("cpu", Demand(1000, 800), 1000),
        ("cpu", Demand(500, 1), 1000),
        ("cpu", Demand(1000, 1_000_000_000), 1_300_000_000),
        ("cpu", Demand(130_500, 1), 140_000),
        ("cpu", Demand(1000, 5, 7500), 7500),
        ("cpu", Demand(1000, 191_234, recorded=77_000), 77_000),
        ("cpu", Demand(9000, 191_234, recorded=7000), 9000),
        ("cpu", Demand(1000, 191_234, 7500, recorded=77_000), 7500),
        ("nvidia.com/gpu", Demand(8, 3), 8),
        ("nvidia.com/gpu", Demand(1, 460), 580),
        ("memory", Demand(GI, 56 * GI + 5), 71 * GI),
        ("memory", Demand(GI, 1000 * GI), 1300 * GI),
        ("memory", Demand(3 * 2**20, 1), 3 * 2**20),
        ("memory", Demand(100, 1), 100),
    ],
)
def test_capacity_keeps_the_mean_demand_at_80_percent(resource: str, demand: Demand, capacity: int) -> None:
    """Rounded up to two digits of a usual unit, at least the largest job; or the traced machine's or peak."""
    assert nominal(["a"], **{resource: demand}) == {"a": {resource: capacity}}


def test_quota_is_split_equally() -> None:
    """In whole units; what does not divide goes to the first queues."""
    assert nominal(["c", "a", "b"], cpu=Demand(1, 1, 8000)) == {
        "a": {"cpu": 3000},
        "b": {"cpu": 3000},
        "c": {"cpu": 2000},
    }
    assert nominal(["a", "b"], cpu=Demand(1, 1, 3500)) == {"a": {"cpu": 2500}, "b": {"cpu": 1000}}
    assert nominal(["a", "b", "c"], gpu=Demand(1, 1, 2)) == {
        "a": {"gpu": 1},
        "b": {"gpu": 1},
        "c": {"gpu": 0},
    }


def test_resource_that_nobody_asks_for_gets_no_quota() -> None:
    """A column of zeros is no demand."""
    assert nominal(["a"], cpu=CORES, gpu=Demand(0, 0)) == {"a": {"cpu": 240_000}}


def test_what_was_assumed_is_said_with_figures() -> None:
    """A sentence about the queues, and one for each resource."""
    demands = {"cpu": CORES, "memory": Demand(71 * GI, 8 * GI), "nvidia.com/gpu": Demand(10, 1, 9)}
    assert derive_cluster(["a", "b"], demands, source="t").assumed == (
        (
            "2 ClusterQueues, one for each queue, in the cohort 'all'. Each borrows idle quota of the "
            "others, takes back its own quota from any borrower, and lets a job preempt jobs of lower "
            "priority"
        ),
        "cpu 240: the mean demand of 191.2 at 80 % utilization, rounded up; split equally as nominal quotas",
        "memory 71Gi: the largest job requests 71Gi; split equally as nominal quotas",
        (
            "nvidia.com/gpu 9: the size of the machine that was traced; "
            "the largest job requests 10 and can never run; split equally as nominal quotas"
        ),
    )
    recorded = {"cpu": Demand(1000, 191_234, recorded=77_000)}
    (_, of_record) = derive_cluster(["a"], recorded, source="t").assumed
    assert of_record == "cpu 77: the peak usage of the recorded runs"
    assert derive_cluster(["a"], {"cpu": CORES}, source="t").assumed == (
        "one ClusterQueue, a, without a cohort; a job may preempt jobs of lower priority",
        "cpu 240: the mean demand of 191.2 at 80 % utilization, rounded up",
    )


def test_trace_without_jobs_has_an_empty_cluster() -> None:
    """No queue, no quota, no error."""
    cluster = derive_cluster([], {}, source="t")
    assert cluster.cluster_queues == {}
    assert cluster.assumed == ("no queue, because the trace has no queues",)


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), min_size=1, max_size=9, unique=True
    ),
    st.sampled_from(["cpu", "memory", "gpu"]),
    st.integers(1, 2**50),
    st.integers(0, 2**50),
)
def test_any_demand_fits_its_derived_cluster(
    queues: list[str], resource: str, largest: int, mean: int
) -> None:
    """Shares add up to the capacity, which holds the largest job and the mean demand, and little more."""
    cluster = derive_cluster(queues, {resource: Demand(largest, mean)}, source="t")
    capacity = cluster.capacity[resource]
    wanted = max(largest, mean * 5 / 4)
    unit = {"cpu": 1000, "memory": 2**30, "gpu": 1}[resource]
    assert wanted <= capacity <= 1.2 * wanted + unit
    assert list(cluster.cluster_queues) == sorted(queues)


@pytest.mark.parametrize("trace", ["philly.parquet", "philly.swf", "philly.swf.gz", "philly"])
def test_manifests_beside_a_trace_are_found(tmp_path: Path, trace: str) -> None:
    """Whatever the trace's format."""
    assert find_cluster(tmp_path / trace) is None
    (tmp_path / "philly.cluster.yaml").touch()
    assert find_cluster(tmp_path / trace) == tmp_path / "philly.cluster.yaml"
    assert find_cluster(tmp_path / "other.parquet") is None


def test_only_the_last_suffix_is_the_format(tmp_path: Path) -> None:
    """A name may hold dots of its own."""
    (tmp_path / "2023.09.cluster.yaml").touch()
    assert find_cluster(tmp_path / "2023.09.parquet") == tmp_path / "2023.09.cluster.yaml"
