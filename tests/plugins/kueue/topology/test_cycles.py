"""Topologies in admission cycles: what quota and room decide together, on a few hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kueue_worlds import flavor, local_queue, manifest, node, queue

from harness_plugins.kueue.conformance.cycles import answer

Manifest = dict[str, Any]

HOST = "kubernetes.io/hostname"
RECOMPUTE = "TASRecomputeAssignmentWithinSchedulingCycle"
TOPOLOGY = manifest("Topology", "t", levels=[{"nodeLabel": "rack"}, {"nodeLabel": HOST}])
ONE = {"required": HOST}
LOWER = {"withinClusterQueue": "LowerPriority"}


def host(name: str, cpu: int, **labels: str) -> Manifest:
    """A node of rack r with the label of its name."""
    found = node(name, cpu, rack="r", **labels)
    found["metadata"]["labels"][HOST] = name
    return found


def arriving(
    name: str, *pod_sets: Manifest, second: int = 0, queue: str = "q", priority: int = 0
) -> Manifest:
    """A workload that runs for 10 s."""
    metadata = {"name": name, "namespace": "default", "uid": name}
    metadata["creationTimestamp"] = f"2025-01-01T00:00:{second:02}Z"
    spec = {"queueName": queue, "priority": priority, "podSets": list(pod_sets)}
    return {"workload": {"metadata": metadata, "spec": spec}, "duration": 10}


def pods(count: int, cpu: int, name: str = "main", **request: Any) -> Manifest:
    """Pods of so many cores each, and what they ask of the topology."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu} if cpu else {}}}
    found = {"name": name, "count": count, "template": {"spec": {"containers": [container]}}}
    return {**found, "topologyRequest": request} if request else found


def requesting_0(**request: Any) -> Manifest:
    """A leader that requests 0 cores, which is more than requesting nothing."""
    found = pods(1, 0, "leader", **request)
    found["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": 0}
    return found


def decisions(*things: Manifest, **gates: bool) -> Sequence[Mapping[str, Any]]:
    """What is decided on workloads beside objects; flavor f has the topology."""
    objects = [each for each in things if "kind" in each]
    case = {
        "id": "case",
        "config": {"featureGates": gates},
        "objects": [TOPOLOGY, flavor(topologyName="t"), *objects],
        "given": {"workloads": [each for each in things if "workload" in each], "until": 60},
        "expect": {"decisions": []},
    }
    found: Sequence[Mapping[str, Any]] = answer(case)["decisions"]
    return found


def told(*things: Manifest, **gates: bool) -> list[str]:
    """The same in words, such as `0 admit a f: x 2`."""
    words = []
    for decision in decisions(*things, **gates):
        action = next(each for each in ("admit", "preempt", "finish") if each in decision)
        flavors = {name for found in decision.get("flavors", {}).values() for name in found.values()}
        places = [
            f"{'/'.join(domain['values'])} {domain['count']}"
            for placed in decision.get("topology", {}).values()
            for domain in placed["domains"]
        ]
        what = f" {'+'.join(sorted(flavors))}: {', '.join(places)}" if flavors else ""
        words.append(f"{decision['t']} {action} {decision[action]}{what}")
    return words


def test_quota_is_not_enough_where_no_domain_has_room() -> None:
    """Two hosts of 2 cores have quota for 4; a pod of 3 cores never runs, one of 2 waits for a whole host."""
    world = (host("x", 2), host("y", 2), queue("q", cpu=4))
    assert told(*world, arriving("a", pods(1, 3, **ONE))) == []
    assert told(
        *world,
        arriving("a", pods(2, 1, unconstrained=True)),
        arriving("b", pods(1, 1, required=HOST), second=1),
        arriving("c", pods(1, 2, **ONE), second=2),
    ) == [
        "0 admit a f: x 2",
        "1 admit b f: y 1",
        "10 finish a",
        "10 admit c f: x 1",
        "11 finish b",
        "20 finish c",
    ]


def test_a_node_that_is_not_ready_has_no_room() -> None:
    """Its condition says so."""
    broken = host("x", 2)
    broken["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert told(broken, queue("q", cpu=4), arriving("a", pods(1, 1, **ONE))) == []


def test_who_asks_for_no_topology_gets_a_flavor_without_one_if_the_queue_has_any() -> None:
    """And the other way round; in a queue of nothing else all are placed, asked or not."""
    both = queue("q", flavors={"plain": {"cpu": 4}, "f": {"cpu": 4}})
    plain = flavor("plain")
    assert told(host("x", 4), plain, both, arriving("a", pods(1, 1)))[0] == "0 admit a plain: "
    assert told(host("x", 4), plain, both, arriving("a", pods(1, 1, **ONE)))[0] == "0 admit a f: x 1"
    assert told(host("x", 4), queue("q", cpu=4), arriving("a", pods(1, 1)))[0] == "0 admit a f: x 1"
    absent = pods(1, 1, required="zone")
    assert told(host("x", 4), plain, both, arriving("a", absent)) == []


def test_the_next_flavor_is_tried_in_the_next_cycle() -> None:
    """Quota alone ends the scan; that h has no host of 3 cores is found after it."""
    other = flavor("g", topologyName="t", nodeLabels={"pool": "g"})
    near = flavor("h", topologyName="t", nodeLabels={"pool": "h"})
    two = queue("q", flavors={"h": {"cpu": 8}, "g": {"cpu": 8}})
    hosts = (host("x", 2, pool="h"), host("y", 3, pool="g"))
    found = decisions(*hosts, other, near, two, arriving("a", pods(1, 3, **ONE)))
    assert (found[0]["cycle"], found[0]["flavors"]) == (2, {"main": {"cpu": "g"}})


def test_who_loses_a_place_within_the_cycle_is_placed_anew_in_it() -> None:
    """Both were nominated for x, the first of equal hosts; without the gate b waits for its next cycle."""
    world = (host("x", 1), host("y", 1), queue("q", cpu=2), queue("p", cpu=2))
    asked = (arriving("a", pods(1, 1, **ONE)), arriving("b", pods(1, 1, **ONE), queue="p"))
    for gate, cycle in ((True, 1), (False, 2)):
        first, second = decisions(*world, *asked, **{RECOMPUTE: gate})[:2]
        assert (first["admit"], second["admit"], first["cycle"], second["cycle"]) == ("a", "b", 1, cycle)


def test_room_is_preempted_for_although_quota_is_free() -> None:
    """One of lower priority goes from the only host; one of the same priority stays."""
    world = (host("x", 2), queue("q", cpu=8, preemption=LOWER))
    low, high = arriving("low", pods(2, 1)), arriving("high", pods(1, 2, **ONE), second=1, priority=1)
    assert told(*world, low, high)[:3] == ["0 admit low f: x 2", "1 preempt low", "1 admit high f: x 1"]
    equal = arriving("high", pods(1, 2, **ONE), second=1)
    assert told(*world, low, equal)[:2] == ["0 admit low f: x 2", "10 finish low"]


def test_room_that_another_tree_holds_is_waited_for_in_vain_until_the_own_tree_wakes() -> None:
    """When p's workload leaves, nobody wakes q's; when q's own does, it finds the room."""
    world = (host("x", 2), host("y", 2), queue("q", cohort="", cpu=8), queue("p", cohort="", cpu=8))
    found = told(
        *world,
        arriving("own", pods(2, 1), second=5),
        arriving("other", pods(1, 2, **ONE), queue="p"),
        arriving("late", pods(1, 2, **ONE), second=6),
    )
    assert found == [
        "0 admit other f: x 1",
        "5 admit own f: y 2",
        "10 finish other",
        "15 finish own",
        "15 admit late f: x 1",
        "25 finish late",
    ]


def test_flavors_over_the_same_hosts_share_them() -> None:
    """What g's workload holds of x is not f's to give; with the gate off f does not know."""
    other = flavor("g", topologyName="t")
    world = (host("x", 2), other, queue("q", cpu=4), queue("p", flavors={"g": {"cpu": 4}}))
    asked = (arriving("a", pods(1, 2, **ONE), queue="p"), arriving("b", pods(1, 2, **ONE), second=1))
    assert told(*world, *asked) == ["0 admit a g: x 1", "10 finish a", "10 admit b f: x 1", "20 finish b"]
    blind = told(*world, *asked, TASHandleOverlappingFlavors=False)
    assert blind[:2] == ["0 admit a g: x 1", "1 admit b f: x 1"]


def test_a_search_for_targets_does_not_count_pods() -> None:
    """Who borrows goes first, and all cores fit then; that two pods do not is found after the search.

    So it goes in every cycle until nobody borrows and `low` is the first to go.
    """
    reclaims = {**LOWER, "reclaimWithinCohort": "Any"}
    counted = queue("q", flavors={"f": {"cpu": 8, "pods": 2}}, preemption=reclaims)
    found = told(
        host("x", 8),
        counted,
        queue("p", flavors={"f": {"cpu": 0}}),
        arriving("borrower", pods(1, 1), queue="p"),
        arriving("low", pods(2, 1), second=5),
        arriving("high", pods(2, 1), second=6, priority=1),
    )
    assert found[:5] == [
        "0 admit borrower f: x 1",
        "5 admit low f: x 2",
        "10 finish borrower",
        "10 preempt low",
        "10 admit high f: x 2",
    ]


def test_pod_sets_of_one_group_get_one_flavor_that_suits_all() -> None:
    """The leader does not tolerate h's taint, so its workers do not get h either."""
    near = flavor("h", topologyName="t", nodeTaints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    two = queue("q", flavors={"h": {"cpu": 8}, "f": {"cpu": 8}})
    workers = pods(2, 1, "workers", required=HOST, podSetGroupName="g")
    workers["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    leader = pods(1, 1, "leader", required=HOST, podSetGroupName="g")
    assert told(host("x", 8), near, two, arriving("a", workers, leader))[0] == "0 admit a f: x 2, x 1"
    alone = {**workers, "topologyRequest": ONE}
    assert told(host("x", 8), near, two, arriving("a", alone))[0] == "0 admit a h: x 2"


def test_a_leader_that_requests_0_of_a_resource_is_placed_with_its_workers() -> None:
    """It takes a slot for a pod."""
    workers = pods(2, 1, "workers", required=HOST, podSetGroupName="g")
    leader = requesting_0(required=HOST, podSetGroupName="g")
    found = told(host("x", 2), queue("q", cpu=8), arriving("a", workers, leader))
    assert found[0] == "0 admit a f: x 2, x 1"


def test_local_queues_and_kins_know_requests_apart() -> None:
    """Two workloads that ask for the same but of another level do not become inadmissible together."""
    world = (host("x", 2), host("y", 2), queue("q", cpu=8), local_queue("l", "q"))
    found = told(
        *world,
        arriving("a", pods(4, 1, **ONE), queue="l"),
        arriving("b", pods(4, 1, required="rack"), queue="l"),
    )
    assert found[0] == "0 admit b f: x 2, y 2"


def test_what_victims_of_other_trees_leave_counts_as_room() -> None:
    """Trees share hosts: a takes 4 of 5 cores from v, and b has room for one beside it in the same cycle."""
    world = (host("x", 5), queue("q", cpu=9, preemption=LOWER), queue("p", cpu=9))
    assert told(
        *world,
        arriving("v", pods(1, 4, **ONE)),
        arriving("a", pods(1, 4, **ONE), second=1, priority=1),
        arriving("b", pods(1, 1, **ONE), second=1, queue="p"),
    )[:4] == ["0 admit v f: x 1", "1 preempt v", "1 admit b f: x 1", "1 admit a f: x 1"]


def test_a_target_that_is_a_victim_already_makes_room_once() -> None:
    """With the gate off, b has the target that a took: of it no room is left, so b takes the other one."""
    reclaims = {"reclaimWithinCohort": "Any"}
    world = (
        *(host("x", 4), host("y", 4)),
        *(queue(name, cpu=8, cohort="all", preemption=reclaims) for name in ("q", "p")),
        queue("lent", cpu=0, cohort="all"),
    )
    asked = (
        *(arriving(name, pods(1, 4, **ONE), queue="lent") for name in ("v", "w")),
        arriving("a", pods(1, 4, **ONE), second=1),
        arriving("b", pods(1, 4, **ONE), second=1, queue="p"),
    )
    gate = {"RecomputeAssignmentUponPreemptionTargetsOverlap": False}
    found = [
        (each["cycle"], each["preempt"]) for each in decisions(*world, *asked, **gate) if "preempt" in each
    ]
    assert [victim for _, victim in found] == ["v", "w"]
    assert len({cycle for cycle, _ in found}) == 1


def test_what_a_group_takes_counts_for_those_between_its_members() -> None:
    """Of 5 cores of f the group takes 4, from its first member on, so m gets the other flavor."""
    other = flavor("g", topologyName="t", nodeLabels={"pool": "g"})
    hosts = (host("x", 9), host("y", 9, pool="g"))
    members = (
        pods(1, 1, "w", unconstrained=True, podSetGroupName="1"),
        pods(1, 2, "m", unconstrained=True),
        pods(1, 3, "l", unconstrained=True, podSetGroupName="1"),
    )
    for order in (members, members[::2] + members[1:2]):
        two = queue("q", flavors={"f": {"cpu": 5}, "g": {"cpu": 9}})
        (found, *_) = decisions(*hosts, other, two, arriving("a", *order))
        assert found["flavors"] == {"w": {"cpu": "f"}, "l": {"cpu": "f"}, "m": {"cpu": "g"}}


def test_a_search_for_targets_counts_for_each_pod_set_its_own_flavors() -> None:
    """The group needs 4 cores of f, so both go; by the places of pod sets it would need 3, and one."""
    other = flavor("g", topologyName="t", nodeLabels={"pool": "g"})
    members = (
        pods(1, 1, "w", unconstrained=True, podSetGroupName="1"),
        pods(1, 2, "m", unconstrained=True),
        pods(1, 3, "l", unconstrained=True, podSetGroupName="1"),
    )
    two = queue("q", flavors={"f": {"cpu": 5}, "g": {"cpu": 3}}, preemption=LOWER)
    asked = (
        arriving("old", pods(1, 3, **ONE)),
        arriving("new", pods(1, 2, **ONE), second=1),
        arriving("a", *members, second=2, priority=1),
    )
    found = decisions(host("x", 9), host("y", 9, pool="g"), other, two, *asked)
    assert [each["preempt"] for each in found if "preempt" in each] == ["new", "old"]


def test_too_little_quota_for_a_group_and_who_is_between_keeps_nobody_waiting() -> None:
    """All of a never fits: it is inadmissible, and b behind it runs."""
    members = (
        pods(1, 1, "w", unconstrained=True, podSetGroupName="1"),
        pods(1, 2, "m", unconstrained=True),
        pods(1, 3, "l", unconstrained=True, podSetGroupName="1"),
    )
    world = (host("x", 9), queue("q", cpu=5))
    assert told(*world, arriving("a", *members), arriving("b", pods(1, 1, **ONE), second=1)) == [
        "1 admit b f: x 1",
        "11 finish b",
    ]


def test_a_topology_without_nodes_takes_nothing() -> None:
    """Nor pods that make no whole slice."""
    broken = host("x", 9)
    broken["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    slices = {"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4}
    assert told(broken, queue("q", cpu=9), arriving("a", pods(3, 1, **slices))) == []


def test_pods_without_any_request_find_a_place_but_never_fit() -> None:
    """Kueue counts how often requests fit: without requests that is 0 times, whatever is free.

    A request of 0 fits as often as it likes.
    """
    world = (host("x", 2), queue("q", flavors={"f": {"cpu": 4, "pods": 9}}))
    assert told(*world, arriving("a", pods(1, 0, **ONE))) == []
    assert told(*world, arriving("a", requesting_0(**ONE)))[0] == "0 admit a f: x 1"
    group = {"podSetGroupName": "g", **ONE}
    led = pods(1, 0, "leader", **group), pods(1, 1, "workers", **group)
    assert told(*world, arriving("a", *led)) == []


def test_node_affinity_may_name_nodes() -> None:
    """`matchFields` of a required term counts beside its expressions."""
    wish = pods(1, 1, **ONE)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["y"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    wish["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    hosts = host("x", 2), host("y", 2)
    assert told(*hosts, queue("q", cpu=4), arriving("a", wish))[0] == "0 admit a f: y 1"


def test_a_node_without_a_label_has_it_with_an_empty_value() -> None:
    """So Kueue places pods also on nodes that lack a label of the flavor whose value is empty."""
    for value, found in (("", ["0 admit a g: x 1", "10 finish a"]), ("yes", [])):
        named = flavor("g", topologyName="t", nodeLabels={"gpu": value})
        where = queue("q", flavors={"g": {"cpu": 4}})
        assert told(host("x", 2), named, where, arriving("a", pods(1, 1, **ONE))) == found
