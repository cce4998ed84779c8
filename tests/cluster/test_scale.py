"""A cluster of another size keeps its proportions."""

from __future__ import annotations

from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from small_clusters import queues

from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.cluster.shares import largest_remainder

POOLS = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: big}
spec: {count: 6, template: {allocatable: {cpu: 8}}}
---
apiVersion: harness/v1
kind: NodePool
metadata: {name: small}
spec: {count: 3, template: {allocatable: {cpu: 2}}}
---
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: t}
spec:
  root:
    name: root
    min: {cpu: 9, memory: 1Ti}
    max: {cpu: 9, memory: 1Ti}
    children:
    - {name: a, namespaces: [a], min: {cpu: 5, memory: 0}, max: {cpu: 9, memory: 1Ti}}
    - {name: b, namespaces: [b], min: {cpu: 4, memory: 0}, max: {cpu: 7, memory: 1Ti}}
"""


def cluster(text: str) -> Cluster:
    return cluster_from(yaml.safe_load_all(text), "test")


def nominal(scaled: Cluster) -> dict[str, int]:
    return {
        name: queue.resource_groups[0].flavors[0].resources["cpu"].nominal
        for name, queue in scaled.cluster_queues.items()
    }


def test_fewer_nodes_keep_their_mix() -> None:
    """A third of two pools is a third of each."""
    scaled = scaled_cluster(cluster(POOLS), Fraction(1, 3))
    assert sorted(node.allocatable["cpu"] for node in scaled.nodes.values()) == [2000, 8000, 8000]
    assert scaled.scale == Fraction(1, 3)


def test_more_nodes_are_copies_with_names_of_their_own() -> None:
    """Every node twice; a copy's hostname is its own name."""
    scaled = scaled_cluster(cluster(POOLS), Fraction(2))
    assert len(scaled.nodes) == 18
    assert scaled.capacity["cpu"] == 2 * cluster(POOLS).capacity["cpu"]
    assert all(node.labels["kubernetes.io/hostname"] == name for name, node in scaled.nodes.items())


def test_one_node_always_stays() -> None:
    """A cluster without nodes would mean something else."""
    assert len(scaled_cluster(cluster(POOLS), Fraction(1, 1000)).nodes) == 1


def test_quotas_are_divided_by_largest_remainder() -> None:
    """Half of three times five cores is 7.5 cores, no millicore more or less."""
    scaled = scaled_cluster(cluster(queues({name: {"cpu": "5001m"} for name in "abc"})), Fraction(1, 2))
    assert nominal(scaled) == {"a": 2501, "b": 2500, "c": 2500}


def test_elastic_quotas_are_scaled_with_their_tree() -> None:
    """Minimum and maximum alike; children never get more than their parent."""
    quotas = scaled_cluster(cluster(POOLS), Fraction(1, 2)).elastic_quotas
    assert {name: (quota.min_of("cpu"), quota.max_of("cpu")) for name, quota in quotas.items()} == {
        "root": (4500, 4500),
        "a": (2500, 4500),
        "b": (2000, 3500),
    }


def test_another_size_is_another_cluster() -> None:
    """The digest tells them apart, so that runs on both are not compared."""
    whole = cluster(queues({"a": {"cpu": "4"}}))
    assert scaled_cluster(whole, Fraction(2)).digest != whole.digest


@given(st.integers(0, 10**15), st.dictionaries(st.text(max_size=3), st.integers(0, 10**9), min_size=1))
def test_shares_are_whole_and_add_up(total: int, weights: dict[str, int]) -> None:
    """Nothing is lost, and nobody is further than one from an exact share."""
    if not any(weights.values()):
        return
    shares = largest_remainder(total, weights)
    assert sum(shares.values()) == total
    whole = sum(weights.values())
    assert all(abs(shares[name] - Fraction(total) * weight / whole) < 1 for name, weight in weights.items())


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1, 7)])
def test_a_lending_limit_stays_within_its_quota(scale: Fraction) -> None:
    """What the webhook demands of the whole cluster holds of the scaled one."""
    text = queues({"a": {"cpu": "5"}, "b": {"cpu": "4"}}).replace(
        "nominalQuota: '5'", "nominalQuota: '5'\n        lendingLimit: '5'"
    )
    quota = scaled_cluster(cluster(text), scale).cluster_queues["a"].resource_groups[0].flavors[0]
    assert quota.resources["cpu"].lending_limit == quota.resources["cpu"].nominal
