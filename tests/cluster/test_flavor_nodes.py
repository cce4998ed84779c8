"""Rules of quotas beside the nodes of their flavors, as `harness cluster check` tells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from harness.cli.cluster import cluster as command
from harness.cluster.flavor_nodes import Room, rooms
from harness.cluster.load import cluster_from
from harness.cluster.model import UNLIMITED, Cluster

KUEUE = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"


def node(name: str, gpus: int, *, taint: str = "", **spec: Any) -> dict[str, Any]:
    """A node with a label `pool`: its name without the number; a taint is called `KEY:EFFECT`."""
    key, _, effect = taint.partition(":")
    taints = {"taints": [{"key": key, "effect": effect}]} if taint else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": name.partition("-")[0]}},
        "spec": {**taints, **spec},
        "status": {"allocatable": {"cpu": "7900m", GPU: str(gpus)}},
    }


def flavor(name: str, pool: str = "", **spec: Any) -> dict[str, Any]:
    """A flavor of the nodes of a pool; of all nodes by default."""
    labels = {"nodeLabels": {"pool": pool}} if pool else {}
    return {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {**labels, **spec},
    }


def owner(kind: str, name: str, **quotas: dict[str, Any]) -> dict[str, Any]:
    """A ClusterQueue or Cohort with quotas: flavor -> resource -> nominal quota."""
    resources = list(next(iter(quotas.values())))
    flavors = [
        {"name": each, "resources": [{"name": key, "nominalQuota": value} for key, value in amounts.items()]}
        for each, amounts in quotas.items()
    ]
    spec = {"resourceGroups": [{"coveredResources": resources, "flavors": flavors}]}
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}


def world(*manifests: dict[str, Any]) -> Cluster:
    """The cluster of manifests."""
    return cluster_from(list(manifests), "test")


def test_quotas_of_queues_and_cohorts_are_held_against_the_flavor_s_own_nodes() -> None:
    """Two queues and a cohort give 8 + 4 + 8 of a pool that has 16; the other pool's nodes do not help."""
    found = rooms(
        world(
            *(node(f"a-{number}", 8) for number in range(2)),
            node("b-0", 8),
            flavor("fa", "a"),
            flavor("fb", "b"),
            owner("ClusterQueue", "x", fa={GPU: 8}, fb={GPU: 8}),
            owner("ClusterQueue", "y", fa={GPU: 4}),
            owner("Cohort", "c", fa={GPU: 8}),
        )
    )
    assert found == [Room(("fa",), GPU, 20, 16, 2, 0), Room(("fb",), GPU, 8, 8, 1, 0)]
    assert [room.over for room in found] == [4, 0]


def test_a_node_is_a_flavor_s_where_its_pods_tolerate_the_node_s_taints() -> None:
    """By the flavor's own taints or tolerations; a taint that keeps nobody out does not matter."""
    nodes = [
        node("a-0", 1, taint="gpu:NoSchedule"),
        node("a-1", 2, taint="team:NoExecute"),
        node("a-2", 4, taint="old:PreferNoSchedule"),
        node("a-3", 8, taint="master:NoSchedule"),
    ]
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    tolerations = [{"key": "team", "operator": "Exists"}]
    (room,) = rooms(
        world(
            *nodes,
            flavor("fa", "a", nodeTaints=taints, tolerations=tolerations),
            owner("ClusterQueue", "x", fa={GPU: 8}),
        )
    )
    assert (room.allocatable, room.nodes, room.over) == (7, 3, 1)


def test_nodes_that_are_cordoned_or_not_ready_count_and_are_told() -> None:
    """They come back, and quota is given for the time when they do."""
    unwell = node("a-2", 8, taint="node.kubernetes.io/not-ready:NoExecute")
    nodes = [node("a-0", 8), node("a-1", 8, unschedulable=True), unwell]
    (room,) = rooms(world(*nodes, flavor("fa", "a"), owner("ClusterQueue", "x", fa={GPU: 24})))
    assert (room.allocatable, room.nodes, room.idle) == (24, 3, 2)


def test_flavors_that_share_nodes_are_held_against_them_together() -> None:
    """Each fits alone, together they do not; one that shares no node is by itself."""
    found = rooms(
        world(
            node("a-0", 8),
            node("b-0", 8),
            flavor("spot", "a"),
            flavor("other", "b"),
            flavor("reserved", "a"),
            owner("ClusterQueue", "x", spot={GPU: 8}, reserved={GPU: 6}, other={GPU: 8}),
        )
    )
    assert [(room.flavors, room.over) for room in found] == [
        (("spot",), 0),
        (("other",), 0),
        (("reserved",), 0),
        (("spot", "reserved"), 6),
    ]


def test_quota_without_end_exceeds_all_nodes() -> None:
    """Kueue takes what does not fit 64 bits for no end."""
    (room,) = rooms(world(node("a-0", 8), flavor("f"), owner("ClusterQueue", "x", f={GPU: "100E"})))
    assert room.nominal == UNLIMITED
    assert room.over > 0


def test_nothing_is_said_without_nodes() -> None:
    """Quotas are all that there is then."""
    assert rooms(world(flavor("f"), owner("ClusterQueue", "x", f={GPU: 8}))) == []


def test_check_says_where_quotas_exceed_nodes_and_by_how_much(tmp_path: Path) -> None:
    """A table of what exceeds, and sentences of shared and of idle nodes; JSON has every flavor."""
    path = tmp_path / "cluster.json"
    manifests = [
        node("a-0", 8, unschedulable=True),
        node("a-1", 8),
        flavor("spot", "a"),
        flavor("any"),
        owner("ClusterQueue", "x", spot={"cpu": 16, GPU: 16}, any={"cpu": 1, GPU: "100E"}),
    ]
    path.write_text("\n".join(map(json.dumps, manifests)))
    out = CliRunner().invoke(command, ["check", str(path)], catch_exceptions=False).stdout
    assert (
        "quota exceeds nodes  of nodes  resource            quota  nodes have  exceeds "
        "by\n───────────────────  ────────  ──────────────  ─────────  ──────────  "
        "──────────\nspot                        2  cpu                    16      15800m        "
        "200m\nany                         2  nvidia.com/gpu  unlimited          16\nspot, "
        "any                   2  cpu                    17      15800m       1200m\nspot, "
        "any                   2  nvidia.com/gpu  unlimited          16\n1 of 2 nodes of flavor spot is "
        "cordoned or not ready; their capacity still counts\n1 of 2 nodes of flavor any is cordoned or not "
        "ready; their capacity still counts\nflavors spot, any share nodes, so the sum of their quotas is "
        "compared with 2 nodes, each counted once\n"
    ) in out
    content = json.loads(CliRunner().invoke(command, ["check", "--json", str(path)]).stdout)
    assert content["flavor_nodes"][0] == {
        "flavors": ["spot"],
        "resource": "cpu",
        "nominal": 16_000,
        "allocatable": 15_800,
        "nodes": 2,
        "idle": 1,
        "over": 200,
    }
    assert len(content["flavor_nodes"]) == 6


def test_check_says_that_no_quota_exceeds_nodes(tmp_path: Path) -> None:
    """Silence could mean that nobody looked."""
    path = tmp_path / "cluster.json"
    manifests = [node("a-0", 8), flavor("f"), owner("ClusterQueue", "x", f={GPU: 8})]
    path.write_text("\n".join(map(json.dumps, manifests)))
    out = CliRunner().invoke(command, ["check", str(path)], catch_exceptions=False).stdout
    assert "\nno quota exceeds the capacity of its flavors' nodes\n" in out
