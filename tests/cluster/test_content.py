"""What a run keeps of its cluster: every field that is modelled, in few bytes whatever the size."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_clusters import queues

from harness.cluster.content import MOST_OBJECTS, content, default_of
from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.model import AdmissionCheck, Cluster, ClusterQueue, Node
from harness.cluster.node_kinds import MOST_KINDS

TRACES = Path(__file__).parents[2] / "traces"


def of(text: str) -> dict[str, Any]:
    return content(cluster_from(list(yaml.safe_load_all(text)), "test"))


def nodes(several: Iterable[Node]) -> Cluster:
    """A cluster of nodes alone."""
    return Cluster(nodes={node.name: node for node in several})


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": {"cpu": cpu}}}


def test_objects_are_told_in_the_words_of_manifests_without_what_is_usual() -> None:
    """Quotas by flavor and resource; fields that have their defaults are not there."""
    found = of(queues({"a": {"cpu": "4", "memory": "8Gi"}}, weights={"a": "2"}))
    assert found["objects"] == {
        "ClusterQueue": {
            "a": {
                "cohort": "all",
                "nominalQuota f/cpu": "4",
                "nominalQuota f/memory": "8Gi",
                "weight": "2",
                "preemption.withinClusterQueue": "LowerPriority",
                "preemption.reclaimWithinCohort": "Any",
            }
        },
        "Cohort": {"all": {}},
        "ResourceFlavor": {"f": {}},
    }
    assert default_of("ClusterQueue", "weight") == default_of("Cohort", "weight") == "1"
    assert default_of("ClusterQueue", "preemption.reclaimWithinCohort") == "Never"
    assert default_of("ClusterQueue", "nominalQuota f/gpu") == default_of("ClusterQueue", "cohort") == "none"


def test_equal_nodes_are_counted_whatever_their_names_and_host_names() -> None:
    """Two kinds, told apart by a label; a hash says which nodes they are."""
    documents = [node(f"n{number}", zone="ab"[number % 2]) for number in range(6)]
    found = content(cluster_from(documents, "test"))
    first, second = found["nodes"]
    assert (first["count"], first["first"], first["last"], first["labels"]) == (3, "n0", "n4", {"zone": "a"})
    assert (second["count"], second["allocatable"]) == (3, {"cpu": "4"})
    renamed = content(cluster_from([node("x", zone="a"), *documents[1:]], "test"))
    assert renamed["nodes"][0]["names"] != first["names"]
    assert renamed["nodes"][1] == second


def test_the_size_does_not_follow_the_number_of_nodes() -> None:
    """10,000 nodes with labels of their own take less than 3 kB; those that all differ less than 20 kB."""
    found = content(
        nodes(
            Node(
                name,
                {"cpu": 4000},
                {HOSTNAME: name, "rack": f"r{number // 16}", "zone": f"z{number % 3}", "serial": name},
            )
            for number, name in enumerate(f"n{number}" for number in range(10_000))
        )
    )
    assert len(json.dumps(found, indent=2)) < 3_000
    assert [kind["labels"] for kind in found["nodes"]] == [{"zone": f"z{number}"} for number in range(3)]
    assert {key: each["count"] for key, each in found["labels"].items()} == {"rack": 625, "serial": 10_000}
    found = content(nodes(Node(f"n{number}", {"cpu": 4000 + number}) for number in range(1_000)))
    assert len(json.dumps(found, indent=2)) < 20_000
    assert len(found["nodes"]) == MOST_KINDS
    assert sum(kind["count"] for kind in found["nodes"]) == 1_000
    assert found["nodes"][-1]["kinds"] == 1_000 - MOST_KINDS + 1


def test_objects_beyond_the_first_thousand_are_counted_and_hashed() -> None:
    """A change in the last of very many still shows."""
    many = {name: ClusterQueue(name) for name in (f"q{number:05}" for number in range(MOST_OBJECTS + 10))}
    found = content(Cluster(cluster_queues=many))
    assert len(found["objects"]["ClusterQueue"]) == MOST_OBJECTS
    (rest,) = found["counted"].values()
    assert rest["count"] == 10
    last = max(many)
    other = content(Cluster(cluster_queues={**many, last: ClusterQueue(last, weight=Fraction(2))}))
    assert other["objects"] == found["objects"]
    assert other["counted"] != found["counted"]


@pytest.mark.parametrize("name", ["philly", "hpc2n", "mix", "openb"])
def test_the_bundled_clusters_are_kept_in_a_few_kilobytes(name: str) -> None:
    """It is JSON, and the same however often it is made."""
    cluster = load_cluster(TRACES / f"{name}.cluster.yaml")
    text = json.dumps(content(cluster))
    assert json.loads(text) == content(cluster)
    assert len(text) < 12_000


def test_what_runs_already_is_counted_and_hashed() -> None:
    """Pods may be there in any number; another state of one of them is another hash."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "x"}}
    pod |= {"spec": {"nodeName": "n", "containers": [{"name": "c"}]}, "status": {"phase": "Running"}}
    found = content(cluster_from([node("n"), pod], "test"))["counted"]["pods"]
    assert found["count"] == 1
    pending = {**pod, "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}}
    assert content(cluster_from([node("n"), pending], "test"))["counted"]["pods"] != found


def test_everything_that_a_cluster_models_is_in_its_content() -> None:
    """A field that is added to the model of a queue, or a kind that is added to the cluster, is told."""
    changed = {
        "cohort": "c", "weight": 2, "queueing_strategy": "StrictFIFO", "namespace_selector": None,
        "stop_policy": "Hold", "by_usage": True, "inactive": "by a check",
        "checks": (AdmissionCheck("a"), AdmissionCheck("b", ("f", "g"))),
    }  # fmt: skip
    nested = {"name", "resource_groups", "preemption", "fungibility"}
    assert {item.name for item in fields(ClusterQueue)} == {*changed, *nested}
    for name, value in changed.items():
        queue = ClusterQueue("q", **{name: value})  # type: ignore[arg-type]
        assert content(Cluster(cluster_queues={"q": queue}))["objects"]["ClusterQueue"]["q"], name
    rules = {"name": "q", "checks": (AdmissionCheck("a"), AdmissionCheck("b", ("f", "g")))}
    found = content(Cluster(cluster_queues={"q": ClusterQueue(**rules)}))  # type: ignore[arg-type]
    assert found["objects"]["ClusterQueue"]["q"] == {"admissionChecks": "a, b on f or g"}
    told_elsewhere = {
        "warnings",
        "assumed",
        "source",
        "files",
        "manifests",
        "scale",
        "as_of",
        "timed",
        "changes",
    }
    known = {
        "nodes", "namespaces", "priority_classes", "workload_priority_classes", "flavors", "cluster_queues",
        "cohorts", "local_queues", "workloads", "pods", "disruption_budgets", "pod_groups", "elastic_quotas",
        "scheduler", "kueue", "topologies", "custom_resources", "scheduling_groups", "kueue_controller",
        "claim_templates", "runtime_classes", "limit_ranges",
    }  # fmt: skip
    assert {item.name for item in fields(Cluster)} == {*known, *told_elsewhere}
