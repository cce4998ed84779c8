"""The worked examples of Kubernetes' design document on pod preemption, and the rules that it states."""

from __future__ import annotations

from kube_worlds import HOSTNAME, World, budget, job, node

ALL = {"cpu": 10}
HALF = {"cpu": 5}


def test_only_the_pod_of_priority_2_is_preempted() -> None:
    """On a node with pods {0: 3, 1: 1, 2: 5, 3: 1} a pod of 5 takes the place of the one that is enough."""
    world = World(
        [node("n1")],
        job("a", {"cpu": 3}, priority=0),
        job("b", {"cpu": 1}, priority=1),
        job("c", {"cpu": 5}, priority=2),
        job("d", {"cpu": 1}, priority=3),
        job("p", {"cpu": 5}, priority=10, at=1),
    )
    assert world.about("preempt") == ["1 preempt c by p on n1"]


def test_example_1_a_nominated_pod_is_not_overtaken_by_a_less_important_one() -> None:
    """Victims leave after 60 and 30 seconds; meanwhile a small pod of low priority may not take the room."""
    world = World(
        [node("n1")],
        job("a", HALF, priority=100, runs=1000, grace=60),
        job("b", HALF, priority=100, runs=1000, grace=30),
        job("c", ALL, priority=1000, at=10, runs=500),
        job("d", {"cpu": 2}, priority=50, at=10, runs=500),
        until=100,
    )
    assert world.lines == [
        "0 bind a on n1",
        "0 bind b on n1",
        "10 preempt a by c on n1",
        "10 preempt b by c on n1",
        "10 nominate c on n1",
        "40 gone b",
        "70 gone a",
        "70 bind c on n1",
    ]


def test_example_2_a_node_freed_elsewhere_is_taken_and_the_victims_are_bound_again() -> None:
    """The nomination is only a hint: a pod of another node ends first, and the preemptor goes there."""
    world = World(
        [node("n1"), node("n2")],
        job("e", ALL, priority=2000, runs=25),
        job("a", HALF, priority=100, at=1, grace=60),
        job("b", HALF, priority=100, at=1, grace=30),
        job("c", ALL, priority=1000, at=10, runs=500),
        job("d", {"cpu": 2}, priority=50, at=10),
        until=100,
    )
    assert world.lines[3:] == [
        "10 preempt a by c on n2",
        "10 preempt b by c on n2",
        "10 nominate c on n2",
        "25 finish e",
        "25 bind c on n1",
        "40 gone b",
        "40 bind b-r1 on n2",
        "70 gone a",
        "70 bind a-r1 on n2",
    ]


def test_example_3_a_less_important_pod_goes_where_nobody_is_nominated() -> None:
    """The room that is kept for the preemptor is on its nominated node alone."""
    world = World(
        [node("n1"), node("n2")],
        job("e", {"cpu": 8}, priority=2000, runs=25, nodeSelector={HOSTNAME: "n2"}),
        job("a", HALF, priority=100, at=1, grace=60, nodeSelector={HOSTNAME: "n1"}),
        job("b", HALF, priority=100, at=1, grace=30, nodeSelector={HOSTNAME: "n1"}),
        job("c", ALL, priority=1000, at=10, runs=500),
        job("d", {"cpu": 2}, priority=50, at=10, runs=500),
        until=100,
    )
    assert world.lines[3:] == [
        "10 preempt a by c on n1",
        "10 preempt b by c on n1",
        "10 nominate c on n1",
        "10 bind d on n2",
        "25 finish e",
        "40 gone b",
        "70 gone a",
        "70 bind c on n1",
    ]


def test_example_4_a_more_important_pod_takes_the_room_that_another_one_made() -> None:
    """F finds its victims leaving, so it evicts nobody; C loses its nomination when it is tried next."""
    world = World(
        [node("n1")],
        job("a", HALF, priority=100, grace=60),
        job("b", HALF, priority=100, grace=30),
        job("c", ALL, priority=1000, at=10),
        job("f", ALL, priority=3000, at=20, runs=500),
        until=100,
    )
    assert world.lines[2:] == [
        "10 preempt a by c on n1",
        "10 preempt b by c on n1",
        "10 nominate c on n1",
        "20 nominate f on n1",
        "40 gone b",
        "70 gone a",
        "70 bind f on n1",
        "70 unnominate c",
    ]


def test_a_budget_is_respected_where_that_is_possible() -> None:
    """Of two nodes the one is chosen whose pod may go, although its pod is the more important one.

    An eviction that was approved before the replay changes nothing (`buildDisruptedPodMap`).
    """
    web = budget("web", {"app": "web"}, minAvailable=1)
    web["status"] = {"disruptedPods": {"w": "2026-01-01T00:00:00Z"}}
    world = World(
        [node("n1"), node("n2"), web],
        job("w", ALL, priority=1, grace=30, labels={"app": "web"}),
        job("x", ALL, priority=2, grace=30),
        job("p", ALL, priority=10, at=1),
        until=10,
    )
    assert world.about("preempt") == ["1 preempt x by p on n1"]
    assert world.details[0]["criterion"] == "fewest PDB violations"
    assert world.details[0]["pdb_violations"] == 0


def test_a_budget_is_violated_where_nothing_else_helps() -> None:
    """A budget is a wish: with one node the protected pod has to go, and the record says so."""
    world = World(
        [node("n1"), budget("web", {"app": "web"}, minAvailable=1)],
        job("w", ALL, priority=1, labels={"app": "web"}),
        job("p", ALL, priority=10, at=1),
    )
    assert world.about("preempt") == ["1 preempt w by p on n1"]
    assert world.details[0]["pdb_violations"] == 1
    assert world.details[0]["victims"] == {"w": 1}


def test_no_pod_of_another_node_is_preempted() -> None:
    """A pod whose anti-affinity meets a pod of the same zone on another node cannot make that one leave."""
    zone = {"zone": "z1"}
    far = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
            ]
        }
    }
    world = World(
        [node("n1", labels=zone), node("n2", labels=zone)],
        job("x", {"cpu": 1}, priority=1, labels={"app": "x"}, nodeSelector={HOSTNAME: "n1"}),
        job("p", ALL, priority=10, at=1, affinity=far, nodeSelector={HOSTNAME: "n2"}),
        until=50,
    )
    assert world.lines == ["0 bind x on n1"]
    assert world.states["p"] == "pending"


def test_affinity_to_a_less_important_pod_makes_its_node_infeasible() -> None:
    """Once all less important pods are taken away the affinity fails, so the node is no candidate."""
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "friend"}}, "topologyKey": HOSTNAME}
            ]
        }
    }
    world = World(
        [node("n1")],
        job("f", {"cpu": 1}, priority=1, labels={"app": "friend"}),
        job("x", {"cpu": 9}, priority=1),
        job("p", {"cpu": 9}, priority=10, at=1, affinity=near),
        until=50,
    )
    assert world.about("preempt") == []
    assert world.states["p"] == "pending"


def test_a_pod_that_never_preempts_is_tried_first_all_the_same() -> None:
    """With `preemptionPolicy: Never` a pod waits for room, ahead of less important ones."""
    world = World(
        [node("n1")],
        job("a", ALL, priority=1, runs=20),
        job("low", ALL, priority=5, at=1),
        job("never", ALL, priority=10, at=2, preempts=False),
        until=30,
        disablePreemption=False,
    )
    assert "1 preempt a by low on n1" in world.lines
    assert "2 preempt" not in "\n".join(world.lines)


def test_a_pod_that_never_preempts_is_ahead_in_the_queue() -> None:
    """When room becomes free by itself the more important pod gets it."""
    world = World(
        [node("n1")],
        job("a", ALL, priority=20, runs=20),
        job("low", ALL, priority=5, at=1),
        job("never", ALL, priority=10, at=2, preempts=False),
        until=30,
    )
    assert world.about("bind") == ["0 bind a on n1", "20 bind never on n1"]


def test_a_pod_that_never_preempts_can_be_preempted() -> None:
    """The policy is about what a pod does to others, not about what others do to it."""
    world = World(
        [node("n1")], job("never", ALL, priority=10, preempts=False), job("p", ALL, priority=11, at=1)
    )
    assert world.about("preempt") == ["1 preempt never by p on n1"]


def test_equal_priority_never_preempts() -> None:
    """Not even a pod that is older, larger or without a budget."""
    world = World([node("n1")], job("a", ALL, priority=7), job("b", ALL, priority=7, at=1))
    assert world.about("preempt") == []
    assert world.about("bind") == ["0 bind a on n1", "100 bind b on n1"]


def test_a_pod_without_requests_is_not_preempted_for_resources() -> None:
    """It holds nothing that the preemptor is short of, so it is always put back."""
    world = World(
        [node("n1")], job("zero", priority=0), job("a", ALL, priority=1), job("p", ALL, priority=10, at=1)
    )
    assert world.about("preempt") == ["1 preempt a by p on n1"]


def test_a_pod_without_requests_may_be_preempted_for_anti_affinity() -> None:
    """Then it is in the way by being there."""
    far = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "zero"}}, "topologyKey": HOSTNAME}
            ]
        }
    }
    world = World(
        [node("n1")],
        job("zero", priority=0, grace=5, labels={"app": "zero"}),
        job("p", {"cpu": 1}, priority=10, at=1, affinity=far),
        until=1,
    )
    assert world.about("preempt") == ["1 preempt zero by p on n1"]


def test_the_nominated_node_is_tried_before_all_others() -> None:
    """Both nodes are free at one instant: the pod goes where its victim was."""
    world = World(
        [node("n1"), node("n2")],
        job("e", ALL, priority=2000, runs=40),
        job("a", ALL, priority=100, at=1, runs=1000, grace=30),
        job("c", ALL, priority=1000, at=10, runs=500),
        until=50,
    )
    assert world.lines[2:4] == ["10 preempt a by c on n2", "10 nominate c on n2"]
    assert "40 bind c on n2" in world.lines


def test_the_qos_class_chooses_no_victim() -> None:
    """Of two of one priority the later one goes, whichever of both is guaranteed its resources."""
    sure = [{"name": "main", "resources": {each: {"cpu": 5, "memory": 1} for each in ("requests", "limits")}}]
    for first, second in (({}, {"containers": sure}), ({"containers": sure}, {})):
        world = World(
            [node("n1")],
            job("a", HALF, priority=1, at=1, runs=1000, **first),
            job("b", HALF, priority=1, at=2, runs=1000, **second),
            job("c", HALF, priority=2, at=3, runs=10),
            until=5,
        )
        assert world.about("preempt") == ["3 preempt b by c on n1"]
