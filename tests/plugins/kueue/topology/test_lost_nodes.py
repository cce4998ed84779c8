"""Replays on nodes that fail under placed workloads: their pods go on elsewhere, and the others stay."""

from __future__ import annotations

from typing import Any

from kueue_worlds import Happened, Jobs, flavor, manifest, node, queue

from harness.base.pod_set import TopologyRequest
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.policy import PodSet

HOST = "kubernetes.io/hostname"
BROKEN = {"taints": [{"key": "broken", "effect": "NoExecute"}]}


def change(name: str, since: str, until: str | None = None, **content: Any) -> dict[str, Any]:
    """A document over a node, for a while."""
    times = {"harness/from": since} | ({"harness/until": until} if until else {})
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": times}, **content}


def hosts(*changes: dict[str, Any], nodes: int = 3, cpu: int = 4) -> Cluster:
    """Nodes n0, n1 and so on of one rack, and a queue whose flavor knows them."""
    manifests = [node(f"n{number}", cpu, rack="r", **{HOST: f"n{number}"}) for number in range(nodes)]
    topology = manifest("Topology", "t", levels=[{"nodeLabel": "rack"}, {"nodeLabel": HOST}])
    manifests += [topology, flavor(topologyName="t"), queue("q", cpu=100), *changes]
    return unrolled(cluster_from(manifests, "the test"), None)


def jobs(seconds: int = 100, pods: int = 3, cpu: int = 2, grace: int = 0, **others: Any) -> Jobs:
    """A gang of job a that may be anywhere."""
    wanted = (PodSet("main", pods, pods, {"cpu": cpu * 1000}, topology=TopologyRequest(unconstrained=True)),)
    return Jobs().add("a", "q", pod_sets=wanted, seconds=seconds, grace=grace, **others)


def told(happened: Happened, *actions: str) -> list[str]:
    """What happened to pods and workloads, such as `3 mark a n0`."""
    return [
        f"{row.time / 10**6:g} {row.action} {row.pod or row.job} {row.node or row.reason or ''}".strip()
        for row in happened.decisions.of(*actions)
    ]


def test_the_pods_of_a_deleted_node_run_elsewhere_a_second_later_and_the_others_stay() -> None:
    """Two pods were on n0; that on n1 is idle meanwhile, and the gang goes on when all run."""
    happened = Happened(hosts(change("n0", "10s", **{"$patch": "delete"})), jobs())
    assert told(happened, "mark", "replace", "bind") == [
        "0 bind a-0 n0",
        "0 bind a-1 n0",
        "0 bind a-2 n1",
        "10 mark a n0",
        "11 replace a n0",
        "11 bind a-0-r1 n2",
        "11 bind a-1-r1 n2",
    ]
    assert told(happened, "evict") == ["10 evict a-0 n0", "10 evict a-1 n0"]


def test_without_another_node_the_workload_is_evicted_and_starts_when_the_node_is_back() -> None:
    """It is evicted for the node by name; all queues hear of its return a second later."""
    happened = Happened(hosts(change("n0", "10s", "30s", **{"$patch": "delete"}), nodes=2), jobs(pods=4))
    assert told(happened, "mark", "admit") == ["0 admit a", "10 mark a n0", "31 admit a"]
    (whole,) = [row for row in happened.decisions.of("evict") if row.pod is None]
    assert (whole.time, whole.reason, whole.detail["failed"]) == (11 * 10**6, "NodeFailures", ["n0"])


def test_a_taint_that_pods_do_not_tolerate_moves_them_when_they_are_gone() -> None:
    """They take their grace period of 5 s, and the mark comes a tenth of a second later."""
    happened = Happened(hosts(change("n0", "10s", spec=BROKEN)), jobs(grace=5))
    assert told(happened, "evict")[0] == "10 evict a-0 n0"
    assert told(happened, "mark", "replace") == ["10.1 mark a n0", "11.1 replace a n0"]
    assert [each for each in told(happened, "bind") if not each.startswith("0 ")] == [
        "15 bind a-0-r1 n2",
        "15 bind a-1-r1 n2",
    ]


def test_a_node_that_is_only_not_ready_or_cordoned_keeps_its_pods() -> None:
    """No pod is lost, nobody is marked, and nothing new goes there."""
    down = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    for what in (down, {"spec": {"unschedulable": True}}):
        happened = Happened(hosts(change("n0", "10s", **what)), jobs())
        assert told(happened, "mark", "evict") == []
        assert happened.decisions.jobs["a"].finish == 100 * 10**6


def test_a_node_that_fails_and_returns_where_nothing_runs_costs_nothing() -> None:
    """All that is decided on jobs is the same."""
    away = change("n2", "10s", "20s", **{"$patch": "delete"})
    first, second = (
        Happened(hosts(*changes), jobs(pods=2).add("b", "q", 1, at=40)) for changes in ((), (away,))
    )
    rows = [
        [(row.time, row.action, row.job, row.pod, row.node) for row in each.decisions.rows]
        for each in (first, second)
    ]
    assert rows[0] == rows[1]


def test_whoever_waits_is_tried_a_second_after_a_node_came() -> None:
    """Nothing else happens that would have it tried."""
    happened = Happened(hosts(change("n1", "0s", "7s", **{"$patch": "delete"}), nodes=2), jobs(pods=4))
    assert told(happened, "admit") == ["8 admit a"]
