"""What is in a topology when a replay begins: pods of Workloads that hold quota, and pods of nobody's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, flavor, manifest, node, queue

from harness.base.pod_set import TopologyRequest
from harness.cluster.model import Cluster
from harness.policy import PodSet

HOST = "kubernetes.io/hostname"
SLICES = {
    "slices": [{"domainCount": 1, "podCounts": {"universal": 2}, "valuesPerLevel": [{"universal": "n1"}]}]
}
DOMAINS = {"domains": [{"values": ["n1"], "count": 2}]}
REPLACEMENT = (
    "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast",
    "TASReplaceNodeOnPodTermination",
)
TAS = {"kueue.x-k8s.io/podset-required-topology": "rack"}


def held(assignment: Manifest, *, limit: int = 60) -> Manifest:
    """A Workload of two pods of 2 cores each that holds quota of flavor f for some seconds more."""
    container = {"name": "c", "resources": {"requests": {"cpu": 2}}}
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": [container]}}}
    given = {"name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 4}, **assignment}
    since = {"status": "True", "reason": "Made", "lastTransitionTime": "2026-01-01T02:00:00Z"}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "w",
            "namespace": "default",
            "uid": "w",
            "creationTimestamp": "2026-01-01T01:00:00Z",
        },
        "spec": {"queueName": "q", "maximumExecutionTimeSeconds": limit, "podSets": [pod_set]},
        "status": {
            "admission": {"clusterQueue": "q", "podSetAssignments": [given]},
            "conditions": [{"type": kind, **since} for kind in ("QuotaReserved", "Admitted")],
        },
    }


def pod(on: str, *, annotations: Manifest | None = None, **more: Any) -> Manifest:
    """A pod of 3 cores that runs on a node."""
    found = manifest(
        "Pod", "p", nodeName=on, containers=[{"name": "c", "resources": {"requests": {"cpu": 3}}}]
    )
    found["apiVersion"] = "v1"
    found["metadata"] |= {"namespace": "default", "annotations": annotations or {}, **more}
    return found


def world(*others: Manifest) -> Cluster:
    """Two nodes of 4 cores in a rack."""
    nodes = [node(f"n{number}", 4, rack="r", **{HOST: f"n{number}"}) for number in range(2)]
    levels = manifest("Topology", "t", levels=[{"nodeLabel": "rack"}, {"nodeLabel": HOST}])
    return cluster(levels, flavor(topologyName="t"), *nodes, queue("q", cpu=100), *others, flavors=False)


def gang(count: int, cpu: int) -> tuple[PodSet, ...]:
    """Pods of so many cores each in one rack."""
    return (PodSet("main", count, count, {"cpu": cpu * 1000}, topology=TopologyRequest(required="rack")),)


@pytest.mark.parametrize("assignment", [{"levels": [HOST], **SLICES}, {"levels": [HOST], **DOMAINS}])
def test_pods_of_a_workload_hold_their_domain_until_it_is_gone(assignment: Manifest) -> None:
    """They run where the admission says, in either version, and what needs their node waits for it."""
    where = world(held({"topologyAssignment": assignment}))
    jobs = Jobs().add("beside", "q", pod_sets=gang(1, 4), at=1).add("both", "q", pod_sets=gang(1, 4), at=2)
    happened = Happened(where, jobs, until=200)
    nodes = {row.pod: row.node for row in happened.decisions.of("bind")}
    assert nodes["default/w-0"] == nodes["default/w-1"] == nodes["both"] == "n1"
    assert nodes["beside"] == "n0"
    starts = happened.decisions.starts()
    assert starts["beside"] == 1
    assert starts["both"] > 60


def test_a_domain_of_other_levels_holds_nothing() -> None:
    """The topology may have got other levels since the pods were admitted."""
    gone = {"levels": ["host"], "domains": [{"values": ["n1"], "count": 2}]}
    jobs = Jobs().add("a", "q", pod_sets=gang(2, 4), at=1)
    assert "1 admit a" in Happened(world(held({"topologyAssignment": gone})), jobs).lines("admit")


@pytest.mark.parametrize(
    ("taken", "gates", "told"),
    [
        (1, "", ["0 mark default/w", "1 replace default/w", "1 bind default/w", "1 bind default/w"]),
        (2, "", ["0 mark default/w", "1 evict default/w: NodeFailures"]),
        (1, ",".join(f"{gate}=false" for gate in REPLACEMENT), []),
    ],
)
def test_pods_on_a_node_that_is_not_there_get_another_node(taken: int, gates: str, told: list[str]) -> None:
    """Kueue's node controller marks a node that it doesn't find. Without the gate, the pods wait for it."""
    gone = {"levels": [HOST], "domains": [{"values": ["n7"], "count": 2}]}
    jobs = Jobs().add("a", "q", pod_sets=gang(taken, 4))
    happened = Happened(world(held({"topologyAssignment": gone})), jobs, until=20, featureGates=gates)
    lines = happened.lines("mark", "replace", "evict", "bind")
    assert [line for line in lines if " default/w" in line] == told


def test_pods_that_the_manifests_lack_do_not_wait_for_a_cordoned_node() -> None:
    """They run there in the real cluster. The replay binds them elsewhere."""
    where = world(held({"topologyAssignment": {"levels": [HOST], **DOMAINS}}))
    cordoned = replace(where, nodes={**where.nodes, "n1": replace(where.nodes["n1"], unschedulable=True)})
    happened = Happened(cordoned, Jobs(), until=20)
    assert happened.lines("bind") == ["0 bind default/w", "0 bind default/w"]


@pytest.mark.parametrize(
    ("other", "starts"),
    [
        (pod("n1"), False),
        (pod("n1", annotations=TAS), True),
        (pod("n1", deletionTimestamp="2026-01-01T02:00:00Z"), False),
    ],
    ids=["of nobody", "of Kueue", "terminating"],
)
def test_pods_that_kueue_did_not_place_take_room_for_the_whole_replay(
    other: Manifest, *, starts: bool
) -> None:
    """Those that it placed take it with their Workload; what is terminating has not ended, and counts."""
    happened = Happened(world(other), Jobs().add("a", "q", pod_sets=gang(2, 4)))
    assert bool(happened.lines("admit")) is starts
