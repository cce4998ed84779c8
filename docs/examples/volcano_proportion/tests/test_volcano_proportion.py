"""Decisions of the approximation of Volcano's proportion plugin, on small clusters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from volcano_proportion import proportion
from volcano_proportion.cluster_queues import of_cluster_queues, with_queues
from volcano_proportion.queue import KIND, Queue
from volcano_proportion.shares import deserved_shares

import harness
from harness import Cluster, ClusterError, InputError
from harness.models.cluster import ResourceQuota
from harness.models.manifests import cluster_from, convert
from harness.testing import Script, replayed


def queue(name: str, **spec: Any) -> Mapping[str, Any]:
    """Return the manifest of a Queue."""
    version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def cluster(*queues: Mapping[str, Any], nodes: int = 2, cpu: int = 4) -> Cluster:
    """Return a cluster of equal nodes with queues."""
    pool = {"count": nodes, "template": {"allocatable": {"cpu": str(cpu)}}}
    node_pool = {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "n"}, "spec": pool}
    return cluster_from([node_pool, *queues], "test")


def shares(asked: Mapping[str, int], **weights: int) -> dict[str, int]:
    """Return the deserved shares of queues for 12 cores."""
    queues = {name: Queue(name, weight, {}) for name, weight in weights.items()}
    requests = {name: {"cpu": asked.get(name, 0)} for name in weights}
    return {name: found["cpu"] for name, found in deserved_shares(queues, {"cpu": 12}, requests).items()}


def test_queues_that_ask_for_all_deserve_it_by_weight() -> None:
    """Weights of 1 and 3 give 3 and 9 cores."""
    assert shares({"a": 12, "b": 12}, a=1, b=3) == {"a": 3, "b": 9}


def test_what_a_queue_does_not_ask_for_goes_to_the_others_by_weight() -> None:
    """Queue b leaves 4 of its 6 cores; a gets a third of them and c two thirds, rounded down."""
    assert shares({"a": 12, "b": 2, "c": 12}, a=1, b=3, c=2) == {"a": 3, "b": 2, "c": 6}
    assert shares({"a": 12}, a=1, b=3) == {"a": 12, "b": 0}


def test_nobody_deserves_more_than_its_capability() -> None:
    """The other queue gets all remaining cores."""
    queues = {"a": Queue("a", 3, {"cpu": 2}), "b": Queue("b", 1, {})}
    requests = {"a": {"cpu": 12}, "b": {"cpu": 12}}
    assert deserved_shares(queues, {"cpu": 12}, requests) == {"a": {"cpu": 2}, "b": {"cpu": 10}}


def one_each(*queues: tuple[str, float, int]) -> Script:
    """Return jobs of one core: for each queue a number of jobs at a time."""
    jobs = Script()
    for name, at, count in queues:
        for number in range(count):
            jobs.job(f"{name}{number}", at=at, cpu=1000, seconds=100, queue=name)
    return jobs


def test_a_queue_takes_back_what_it_deserves() -> None:
    """Queue a holds all 8 cores; b deserves half of them, and preempts no more."""
    decisions = replayed(proportion, one_each(("a", 0, 8), ("b", 10, 8)), cluster(queue("a"), queue("b")))
    preempted = decisions.of("preempt")
    assert [(row.job[0], row.by and row.by[0], row.time) for row in preempted] == [("a", "b", 10_000_000)] * 4
    assert [row.reason for row in preempted] == ["Reclaimed"] * 4


def test_what_is_not_reclaimable_stays() -> None:
    """The other queue waits until the pods end."""
    where = cluster(queue("a", reclaimable=False), queue("b"))
    decisions = replayed(proportion, one_each(("a", 0, 8), ("b", 10, 8)), where)
    assert not decisions.of("preempt")
    assert decisions.starts()["b0"] == 100


def test_a_gang_is_placed_as_a_whole_or_not_at_all() -> None:
    """With 5 of 8 cores free 3 pods of 2 cores do not fit, and a later job does not wait for them."""
    jobs = Script().job("first", cpu=3000, seconds=50, queue="a")
    jobs.job("gang", at=1, cpu=2000, pods=3, seconds=10, queue="a").job("z", at=2, cpu=1000, queue="a")
    decisions = replayed(proportion, jobs, cluster(queue("a")))
    assert decisions.starts() == {"first": 0, "z": 2, "gang": 50}


def test_a_job_that_its_queue_does_not_deserve_holds_back_no_equal_one_of_another() -> None:
    """Queue a holds 3 of its deserved 4 cores, b 6 of 8: only b may start another job of 2 cores."""
    jobs = Script().job("a0", cpu=3000, seconds=100, queue="a").job("b0", cpu=6000, seconds=100, queue="b")
    jobs.job("a1", at=10, cpu=2000, queue="a").job("b1", at=10, cpu=2000, queue="b")
    where = cluster(queue("a", weight=1), queue("b", weight=2), nodes=1, cpu=12)
    assert replayed(proportion, jobs, where).starts() == {"a0": 0, "b0": 0, "b1": 10, "a1": 11}


def test_a_gang_that_loses_a_pod_loses_all() -> None:
    """The remaining pods would be of no use; the gang starts again when the other jobs end."""
    jobs = Script().job("gang", cpu=2000, pods=4, seconds=100, queue="a", grace=5)
    jobs.job("small", at=10, cpu=2000, seconds=20, queue="b")
    decisions = replayed(proportion, jobs, cluster(queue("a"), queue("b")))
    assert [row.pods for row in decisions.of("preempt")] == [1, 1, 1, 1]
    assert [(row.job, row.node) for row in decisions.of("nominate")] == [("small", "n-0")]
    assert decisions.starts()["small"] == 15


def cluster_queue(name: str, **quotas: str) -> Mapping[str, Any]:
    """Return a ClusterQueue of Kueue with a nominal quota for each resource."""
    flavor = {
        "name": "f",
        "resources": [{"name": each, "nominalQuota": most} for each, most in quotas.items()],
    }
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": [*quotas], "flavors": [flavor]}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_cluster_queues_become_queues_by_their_quotas() -> None:
    """Queue a has a quarter of the cores and half of the memory, and c has nothing."""
    kinds = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
        "spec": {},
    }
    quotas = {"a": ("2", "4"), "b": ("6", "4"), "c": ("0", "0")}
    made = [cluster_queue(name, cpu=cpu, memory=memory) for name, (cpu, memory) in quotas.items()]
    where = cluster(kinds, *made)
    assert with_queues(where).custom_resources[KIND] == {
        "a": Queue("a", 500), "b": Queue("b", 750), "c": Queue("c", 1)
    }  # fmt: skip
    decisions = replayed(of_cluster_queues, one_each(("a", 0, 8), ("b", 10, 8)), where)
    assert [row.job[0] for row in decisions.of("preempt")] == ["a"] * 4
    with pytest.raises(InputError, match="the cluster has none"):
        replayed(of_cluster_queues, Script().job("a", cpu=1000), cluster())


def converted(given: Cluster, to: str) -> Cluster:
    """Return the cluster with its quotas converted, as `harness cluster convert` does."""
    return cluster_from(convert(given, to).manifests, "converted")


def test_quotas_of_other_kinds_become_queues_and_back() -> None:
    """Weights follow guarantees; shares of 8 cores become nominal quotas in one cohort, weights stay."""
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
    given = cluster(flavor, cluster_queue("a", cpu="2"), cluster_queue("b", cpu="6"))
    queues = converted(given, KIND)
    assert queues.custom_resources[KIND] == {
        "a": Queue("a", 250, {"cpu": 2000}),
        "b": Queue("b", 750, {"cpu": 6000}),
    }
    assert not queues.cluster_queues
    back = converted(cluster(queue("a", weight=1, capability={"cpu": "4"}), queue("b", weight=3)), "kueue")
    cpu = {
        name: each.resource_groups[0].flavors[0].resources["cpu"]
        for name, each in back.cluster_queues.items()
    }
    assert cpu == {"a": ResourceQuota(2000, 2000), "b": ResourceQuota(6000)}
    assert {each.cohort for each in back.cluster_queues.values()} == {"all-queues"}
    assert back.cluster_queues["b"].weight == 3
    tree = converted(cluster(queue("a"), queue("b")), "elasticquota").elastic_quotas
    assert {name: (each.parent, each.min_of("cpu"), each.max_of("cpu")) for name, each in tree.items()} == {
        "all-queues": ("", 8000, 8000),
        "a": ("all-queues", 4000, 8000),
        "b": ("all-queues", 4000, 8000),
    }


def test_metrics_measure_jobs_against_the_shares_of_queues(tmp_path: Path) -> None:
    """Queue a is guaranteed 2 of 8 cores by weight, and b 3 by capability; no policy matters for this."""
    where = cluster(queue("a", weight=1), queue("b", weight=3, capability={"cpu": "3"}))
    jobs = pl.DataFrame(
        {
            "job_id": [str(number) for number in range(16)],
            "queue": ["a", "b"] * 8,
            "submit_time": [timedelta(0)] * 16,
            "duration": [timedelta(seconds=100)] * 16,
            "request.cpu": [1000] * 16,
        }
    )
    trace = tmp_path / "trace.parquet"
    jobs.write_parquet(trace)
    for plugin in ("none", "volcano-proportion"):
        run = harness.replay(trace, plugin=plugin, cluster=where, output=tmp_path / plugin)
        quotas = run.info["cluster"]["queues"]
        assert {name: each["nominal"]["cpu"] for name, each in quotas.items()} == {"a": 2000, "b": 3000}
        assert run.info["cluster"]["quota_of"] == {"a": "a", "b": "b"}
        assert not run.metrics.filter(metric="fairness.guarantee_deficit", scope="quota=b").is_empty()


def test_manifests_are_checked_and_queues_are_needed() -> None:
    """Like manifests of built-in kinds."""
    with pytest.raises(ClusterError, match=r"spec\.weight"):
        cluster(queue("a", weight=0))
    read = cluster(queue("a", weight=2, capability={"cpu": "3"}, guarantee={"resource": {"cpu": "1"}}))
    assert read.custom_resources[KIND]["a"] == Queue("a", 2, {"cpu": 3000})
    assert read.warnings == ("Queue a: spec.guarantee is not modelled: nothing is reserved for a queue",)
    with pytest.raises(InputError, match="the cluster has none"):
        replayed(proportion, Script().job("a", cpu=1000), cluster())
    (rejected,) = replayed(proportion, Script().job("a", cpu=1000, queue="b"), cluster(queue("a"))).of(
        "reject"
    )
    assert rejected.reason == "no Queue b"
