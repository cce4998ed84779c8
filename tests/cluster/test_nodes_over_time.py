"""Nodes with a time: what patches of nodes and pools come to, and which plugins refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.base.errors import HarnessError
from harness.base.units import HOUR
from harness.cluster.changes.over_time import unrolled
from harness.cluster.changes.patches import patched
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster

POOL: dict[str, Any] = {
    "apiVersion": "harness/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "count": 3,
        "template": {
            "metadata": {"labels": {"zone": "a"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "allocatable": {"cpu": 8},
        },
    },
}


def over(kind: str, name: str, begin: str, end: str | None = None, **content: Any) -> dict[str, Any]:
    """A patch with a time."""
    annotations = {"harness/from": begin, **({} if end is None else {"harness/until": end})}
    return {"kind": kind, "metadata": {"name": name, "annotations": annotations}, **content}


def changes(*patches: dict[str, Any]) -> list[tuple[int, str, Any]]:
    """At which hour which node changes, and what it is then."""
    cluster = unrolled(patched(cluster_from([POOL], "the test"), list(patches)), None)
    return [
        (instant.at // HOUR, edit.name, edit.after) for instant in cluster.changes for edit in instant.edits
    ]


def test_one_node_of_a_pool_goes_and_returns_as_it_was() -> None:
    """With the labels, taints and amounts of the pool."""
    gone, back = changes(over("Node", "gpu-1", "1h", "3h", **{"$patch": "delete"}))
    assert gone == (1, "gpu-1", None)
    node = cluster_from([POOL], "the test").nodes["gpu-1"]
    assert back == (3, "gpu-1", node)
    assert (node.labels["zone"], node.taints[0].key, node.allocatable["cpu"]) == ("a", "gpu", 8000)


@pytest.mark.parametrize(("count", "after"), [(12, 12), (9, 9), (120, 120)])
def test_a_pool_that_changes_its_size_keeps_the_nodes_that_it_had(count: int, after: int) -> None:
    """However many digits the numbers of its new size have: the last ones go, or others come behind them."""
    pool = {**POOL, "spec": {**POOL["spec"], "count": 11}}
    patch = over("NodePool", "gpu", "1h", "2h", spec={"count": count})
    cluster = unrolled(patched(cluster_from([pool], "the test"), patch), None)
    there, back = (
        {edit.name: edit.after is not None for edit in instant.edits} for instant in cluster.changes
    )
    names = [f"gpu-{number:02}" for number in range(*sorted((11, after)))]
    assert there == dict.fromkeys(names, after > 11)
    assert back == dict.fromkeys(names, after < 11)


def test_a_node_that_no_pool_has_is_an_error_that_names_the_nearest() -> None:
    """Also where all nodes are of pools."""
    with pytest.raises(HarnessError, match=r"there is no Node 'gpu-9'; did you mean 'gpu-[012]'\?"):
        changes(over("Node", "gpu-9", "1h", **{"$patch": "delete"}))


@pytest.mark.parametrize("order", [1, -1])
def test_a_patch_of_a_pool_and_of_one_of_its_nodes_is_an_error_that_says_so(order: int) -> None:
    """Whichever comes first: once a node is named, the pool is its nodes."""
    both = (
        over("Node", "gpu-1", "1h", **{"$patch": "delete"}),
        over("NodePool", "gpu", "2h", spec={"count": 2}),
    )
    with pytest.raises(HarnessError, match="change either the nodes or the pool, but not both"):
        changes(*both[::order])


def test_the_other_nodes_of_the_pool_are_as_before() -> None:
    """A pool of which one node is named is the same nodes."""
    plain = cluster_from([POOL], "the test")
    later = unrolled(patched(plain, [over("Node", "gpu-0", "1h", spec={"unschedulable": True})]), None)
    assert later.nodes == plain.nodes
    assert [edit.name for instant in later.changes for edit in instant.edits] == ["gpu-0"]


def test_a_pool_grows_and_shrinks_by_its_count() -> None:
    """The nodes that are not there before come, and go again."""
    found = changes(over("NodePool", "gpu", "2h", "4h", spec={"count": 5}))
    assert [(hour, name, node is None) for hour, name, node in found] == [
        (2, "gpu-3", False),
        (2, "gpu-4", False),
        (4, "gpu-3", True),
        (4, "gpu-4", True),
    ]


def test_a_node_becomes_another_one_in_each_of_its_fields() -> None:
    """Cordoned, tainted, relabelled and resized at one time."""
    ((_, _, node),) = changes(
        over(
            "Node",
            "gpu-2",
            "1h",
            spec={"unschedulable": True, "taints": [{"key": "broken", "effect": "NoExecute"}]},
            status={"allocatable": {"cpu": 4}},
        )
    )
    assert node.unschedulable
    assert "broken" in {taint.key for taint in node.taints}
    assert node.allocatable["cpu"] == 4000


def moving() -> Cluster:
    gone = over("Node", "gpu-1", "1h", **{"$patch": "delete"})
    return unrolled(patched(cluster_from([POOL], "the test"), [gone]), None)


def test_nodes_that_become_too_large_to_be_counted_together_are_a_fault() -> None:
    """As they are at first; a node that is read alone is no exception."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"memory": "5Ei"}},
        }
        for name in ("a", "b")
    ]
    nodes[1]["metadata"] = {"name": "b", "annotations": {"harness/from": "1h"}}
    with pytest.raises(HarnessError, match=r"Node b: memory of .* exceeds a 64-bit integer"):
        unrolled(cluster_from(nodes, "the test"), None)


def test_a_capacity_that_follows_an_edit_is_the_sum_over_nodes() -> None:
    """Also where the last node with a resource goes, or the first one comes."""
    gpu = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "g"}}
    gpu |= {"status": {"allocatable": {"cpu": 1, "nvidia.com/gpu": 8}}}
    patches = [
        over("Node", "g", "1h", "2h", **{"$patch": "delete"}),
        over("Node", "gpu-1", "3h", **{"$patch": "delete"}),
    ]
    cluster = unrolled(patched(cluster_from([POOL, gpu], "the test"), patches), None)
    for edit in (edit for instant in cluster.changes for edit in instant.edits):
        cluster = edit.on(cluster)
        summed: dict[str, int] = {}
        for node in cluster.nodes.values():
            for resource, amount in node.allocatable.items():
                summed[resource] = summed.get(resource, 0) + amount
        assert dict(cluster.capacity) == summed
