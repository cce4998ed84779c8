"""Nodes that fail under workloads: marks, other places and evictions, on a few hosts and a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kueue_worlds import flavor, manifest, node, queue

from harness_plugins.kueue.conformance.cycles import answer
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts

Manifest = dict[str, Any]

HOST = "kubernetes.io/hostname"
TOPOLOGY = manifest("Topology", "t", levels=[{"nodeLabel": "rack"}, {"nodeLabel": HOST}])
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
BROKEN = {"key": "broken", "effect": "NoExecute"}


def host(name: str, cpu: int = 2, *taints: Manifest, ready: bool = True, **spec: Any) -> Manifest:
    """A node with the label of its name."""
    found = node(name, cpu, rack="r")
    found["metadata"]["labels"][HOST] = name
    found["spec"] = {**spec, "taints": list(taints)}
    found["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
    return found


def job(name: str, cpu: int = 2, *, second: int = 0, priority: int = 0, **template: Any) -> Manifest:
    """A workload of one pod that may be anywhere, and runs for 20 s."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **template}
    pod_set = {"name": "main", "count": 1, "template": {"spec": spec}}
    pod_set["topologyRequest"] = {"unconstrained": True}
    metadata = {"name": name, "namespace": "default", "uid": name}
    metadata["creationTimestamp"] = f"2025-01-01T00:00:{second:02}Z"
    content = {"queueName": "q", "priority": priority, "podSets": [pod_set]}
    return {"workload": {"metadata": metadata, "spec": content}, "duration": 20}


def told(
    *things: Manifest,
    at: Sequence[tuple[float, Manifest | str]],
    tolerated: int = 300,
    fair: bool = False,
    **gates: bool,
) -> list[str]:
    """What is decided on nodes and workloads of one queue, such as `1 mark a x`, ends left out."""
    events = [
        {"at": time, "delete": what} if isinstance(what, str) else {"at": time, "object": what}
        for time, what in at
    ]
    case = {
        "id": "case",
        "config": {"featureGates": gates, **({"fairSharing": {}} if fair else {})},
        "objects": [TOPOLOGY, flavor(topologyName="t"), queue("q", cpu=9)]
        + [each for each in things if "kind" in each],
        "given": {
            "workloads": [each for each in things if "workload" in each],
            "until": 60,
            "events": events,
            "tolerationSeconds": tolerated,
        },
        "expect": {"decisions": []},
    }
    found = answer(case)
    assert found == answer(case, Shortcuts.none())
    words = []
    for each in found["decisions"]:
        places = " ".join(
            domain["values"][0] for where in each.get("topology", {}).values() for domain in where["domains"]
        )
        if "unhealthy" in each and "replace" not in each:
            words.append(f"{each['t']} mark {each['unhealthy']} {each['node']}")
        elif "healthy" in each:
            words.append(f"{each['t']} unmark {each['healthy']} {each['node']}")
        else:
            action = next(word for word in ("admit", "replace", "evict", "preempt", "finish") if word in each)
            if action != "finish":
                words.append(f"{each['t']} {action} {each[action]} {places}".strip())
    return words


A, B = host("x"), host("y")


def test_a_deleted_node_marks_at_once_and_a_second_later_the_pods_have_other_places() -> None:
    """The mark is of the instant at which the node goes."""
    assert told(A, B, job("a"), at=[(3, "x")]) == ["0 admit a x", "3 mark a x", "4 replace a y"]


def test_without_another_place_the_workload_is_evicted() -> None:
    """It waits then, and is admitted a second after the node is back, when all queues hear of it."""
    evicted = ["0 admit a x", "3 mark a x", "4 evict a"]
    assert told(A, job("a"), at=[(3, "x")]) == evicted
    assert told(A, job("a"), at=[(3, "x"), (9.5, A)]) == [*evicted, "10.5 admit a x"]


def test_without_failing_fast_it_is_tried_again_after_1_2_and_4_seconds() -> None:
    """The node y is there from second 8 on, between the third try and the fourth."""
    found = told(A, job("a"), at=[(3, "x"), (8, B)], TASFailedNodeReplacementFailFast=False)
    assert found == ["0 admit a x", "3 mark a x", "10 replace a y"]


def test_without_failing_fast_others_are_preempted_for_it() -> None:
    """Job b of lower priority has the only other node, and takes it again before the next try of a."""
    policy = {"withinClusterQueue": "LowerPriority"}
    world = [A, B, queue("p", cpu=9, preemption=policy), job("a", priority=1), job("b")]
    for each in world[3:]:
        each["workload"]["spec"]["queueName"] = "p"
    found = told(*world, at=[(3, "x")], TASFailedNodeReplacementFailFast=False)
    assert found[:5] == ["0 admit a x", "0 admit b y", "3 mark a x", "4 preempt b", "4 admit b y"]
    assert found[5:7] == ["6 preempt b", "6 admit b y"]


def test_a_node_that_is_only_not_ready_keeps_its_pods_and_fails_nobody() -> None:
    """With the taint of the node controller pods leave after their tolerated seconds, and then it does."""
    assert told(A, B, job("a"), at=[(3, host("x", ready=False))]) == ["0 admit a x"]
    found = told(A, B, job("a"), at=[(3, host("x", 2, NOT_READY, ready=False))], tolerated=4)
    assert found == ["0 admit a x", "7.1 mark a x", "8.1 replace a y"]


def test_the_taint_taken_away_in_time_leaves_the_pods_where_they_are() -> None:
    """They would leave at second 7."""
    events = [(3, host("x", 2, NOT_READY, ready=False)), (6, A)]
    assert told(A, B, job("a"), at=events, tolerated=4) == ["0 admit a x"]


def test_one_pod_that_tolerates_the_taint_keeps_the_others_from_failing() -> None:
    """Kueue asks whether any pod of the namespace is there; when b has ended, a is marked."""
    world = [host("x", 4), job("a"), job("b", tolerations=[{"operator": "Exists"}])]
    world[2]["duration"] = 9
    found = told(*world, at=[(1, B), (3, host("x", 4, BROKEN))])
    assert found == ["0 admit a x", "0 admit b x", "9.1 mark a x", "10.1 replace a y"]


def test_a_mark_taken_back_stops_no_second_pass() -> None:
    """The node returns within the second, and has no room for a second copy: the workload moves, or goes."""
    events: list[tuple[float, Manifest | str]] = [(3, "x"), (3.5, A)]
    assert told(A, B, job("a"), at=events)[1:] == ["3 mark a x", "3.5 unmark a x", "4 replace a y"]
    assert told(A, job("a"), at=events)[1:4] == ["3 mark a x", "3.5 unmark a x", "4 evict a"]


def test_a_second_node_that_fails_while_the_first_is_marked_evicts_at_once() -> None:
    """A job of two pods loses both nodes within a second."""
    both = job("a")
    both["workload"]["spec"]["podSets"][0]["count"] = 2
    found = told(A, B, both, at=[(3, "x"), (3.5, "y")])
    assert found == ["0 admit a x y", "3 mark a x", "3.5 evict a"]


def test_without_waiting_for_pods_a_taint_fails_at_once_and_not_ready_after_30_seconds() -> None:
    """Gate TASReplaceNodeOnPodTermination off; a cordon without a taint fails nobody."""
    off = {"TASReplaceNodeOnPodTermination": False}
    slow = [A, B, job("a")]
    slow[2]["duration"] = 50
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert told(*slow, at=[(3, host("x", 2, cordon))], **off)[1] == "3 mark a x"
    assert told(*slow, at=[(3, host("x", ready=False))], **off)[1:] == ["33 mark a x", "34 replace a y"]
    assert told(*slow, at=[(3, host("x", unschedulable=True))], **off) == ["0 admit a x"]


def test_not_ready_for_30_seconds_fails_whatever_pods_are_there_where_the_gate_says_so() -> None:
    """It takes another cause to notice, and its pods take the mark back at once."""
    gate = {"TASReplaceNodeDueToNotReadyOverFixedTime": True}
    slow = [A, B, job("a")]
    slow[2]["duration"] = 50
    cordon = {**NOT_READY, "effect": "NoSchedule"}
    events = [(3, host("x", ready=False)), (40, host("x", 2, cordon, ready=False))]
    assert told(*slow, at=events, **gate)[1:] == ["40 mark a x", "40 unmark a x", "41 replace a y"]


def test_without_replacement_of_failed_nodes_a_deletion_marks_nobody() -> None:
    """The usage of the lost node counts again when it is back: b finds no room."""
    found = told(
        A,
        job("a"),
        job("b", second=5),
        at=[(3, "x"), (4, A)],
        TASFailedNodeReplacement=False,
        TASFailedNodeReplacementFailFast=False,
        TASReplaceNodeOnPodTermination=False,
    )
    assert found == ["0 admit a x", "20 admit b x"]


def test_in_fair_sharing_a_head_keeps_the_second_pass_of_its_queue_waiting() -> None:
    """Job b, which fits no node, is tried again at second 4, when all hear of the node: a has to wait."""
    world = [A, B, job("a"), job("b", 3, second=1)]
    assert told(*world, at=[(3, "x")])[1:] == ["3 mark a x", "4 replace a y"]
    assert told(*world, at=[(3, "x")], fair=True)[1:] == ["3 mark a x", "6 replace a y"]


def test_whoever_waits_hears_of_a_node_a_second_later_and_events_share_that_second() -> None:
    """Two nodes come 0.4 s apart: both jobs are admitted a second after the first one."""
    waiting = [host("x", 1), job("a"), job("b")]
    found = told(*waiting, at=[(3.5, B), (3.9, host("z"))])
    assert found == ["4.5 admit a y", "4.5 admit b z"]
