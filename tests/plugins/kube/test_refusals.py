"""Why pods wait: recorded once for each new reason, with what the nodes lack."""

from __future__ import annotations

from typing import Any

import pytest
from kube_worlds import HOSTNAME, World, job, node

from harness.base.options import resolve
from harness.testing import Decisions, Script, nodes, replayed
from harness_plugins.kube.policy import OPTIONS, default_preemption


def replay(jobs: Script, **options: Any) -> Decisions:
    """Two nodes of 4 and 2 cpu."""
    return replayed(
        default_preemption,
        jobs,
        nodes(n1={"cpu": 4}, n2={"cpu": 2}),
        options=resolve(OPTIONS, options, owner="default-preemption"),
    )


def test_a_waiting_pod_is_refused_with_the_nodes_reasons_and_what_is_free_at_most() -> None:
    """1 cpu is free on each node; both lack it, and nobody is less important."""
    jobs = Script().job("a", cpu=3, seconds=9).job("b", cpu=1, seconds=9).job("c", at=1, cpu=2, seconds=1)
    (row,) = replay(jobs).of("refuse")
    assert (row.job, row.reason) == ("c", "Unschedulable")
    assert row.detail == {
        "request": {"cpu": 2},
        "nodes": {"Insufficient cpu": {"count": 2}},
        "most_free": {"cpu": 1},
        "preemption": "no node can be freed for it",
    }


def test_a_pod_that_is_not_tried_because_an_equal_one_failed_is_refused_too() -> None:
    """Each job once, at its first failure, and not again at every retry."""
    jobs = Script().job("a", cpu=4, seconds=9).job("b", cpu=2, seconds=3)
    for name in ("c", "d", "e"):
        jobs.job(name, at=1, cpu=4, pods=2, gang=False, seconds=1)
    refused = replay(jobs).of("refuse")
    assert [row.job for row in refused] == ["c", "d", "e"]
    assert [row.detail["pod"] for row in refused if row.detail] == ["c-0", "d-0", "e-0"]


def test_equal_pods_are_refused_with_the_figures_of_their_own_instants() -> None:
    """What is free changes while they wait, and what was said of one is not said of the next by mistake."""
    jobs = Script().job("a", cpu=3, seconds=9).job("b", cpu=1, seconds=2)
    jobs.job("c", at=1, cpu=4, seconds=1).job("d", at=1, cpu=4, seconds=1).job("e", at=3, cpu=4, seconds=1)
    refused = replay(jobs, disablePreemption=True).of("refuse")
    assert [(row.job, row.detail and row.detail["most_free"]) for row in refused] == [
        ("c", {"cpu": 1}),
        ("d", {"cpu": 1}),
        ("e", {"cpu": 2}),
    ]


@pytest.mark.parametrize("ends", [0, 6])
def test_equal_pods_are_all_refused_anew_when_other_filters_reject_them(ends: int) -> None:
    """They waited for cpu, and have failed often or not; then a pod comes that keeps its node from them."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOSTNAME}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    jobs = [job("full", {"cpu": 3}, runs=9, priority=9)]
    jobs += [job(f"short-{number}", {"cpu": 0}, runs=number) for number in range(2, 2 + ends)]
    jobs += [job(name, {"cpu": 2}, at=1, labels={"app": "x"}) for name in ("a", "b", "c")]
    jobs.append(job("alone", {"cpu": 1}, at=9, priority=9, affinity=apart))
    world = World([node("n1", cpu=4)], *jobs, until=20)
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert [(time, name, list(detail["nodes"])) for time, name, detail in world.refused if detail] == [
        *((1, name, ["Insufficient cpu"]) for name in ("a", "b", "c")),
        *((9, name, [existing]) for name in ("a", "b", "c")),
    ]


def test_where_nobody_is_preempted_the_refusal_says_so() -> None:
    """The option turns preemption off."""
    jobs = Script().job("a", cpu=4, seconds=9).job("b", at=1, cpu=4, seconds=9, priority=5)
    (row,) = replay(jobs, disablePreemption=True).of("refuse")
    assert row.detail is not None
    assert row.detail["preemption"] == "nobody is preempted"


def test_what_is_short_only_with_nominated_pods_in_place_is_a_reason_too() -> None:
    """The node's memory is promised to the preemptor, whose victim still holds the cpu."""
    world = World(
        [node("n1", cpu=4, memory="8Gi")],
        job("victim", {"cpu": 4}, grace=30),
        job("preemptor", {"cpu": 1, "memory": "8Gi"}, at=1, priority=9),
        job("waits", {"cpu": 2, "memory": "1Gi"}, at=2, priority=5),
        until=20,
    )
    ((time, name, detail),) = world.refused
    assert (time, name, detail and detail["nodes"]) == (
        2,
        "waits",
        {"Insufficient cpu": {"count": 1}, "Insufficient memory": {"count": 1}},
    )


@pytest.mark.parametrize("others", [0, 3])
def test_a_reason_that_comes_back_is_recorded_again_and_one_that_stays_is_not(others: int) -> None:
    """Cpu, a pod that keeps its node from others of its app, and cpu while another pod is there, thrice.

    Of six returns the first and fourth are recorded.
    """
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOSTNAME}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    jobs = [job("full", {"cpu": 3}, runs=9, priority=9)]
    waiting = [f"w{number}" for number in range(1 + others)]
    jobs += [job(name, {"cpu": 2}, at=1, labels={"app": "x"}) for name in waiting]
    jobs.append(job("alone", {"cpu": 1}, at=9, runs=9999, priority=9, affinity=apart))
    # What other pods reject is only tried again by the timer while these stay.
    jobs += [job(f"full-{at}", {"cpu": 3}, at=at, runs=700, priority=9) for at in (12, 812, 1612)]
    world = World([node("n1", cpu=4)], *jobs, until=2600)
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    said = [(time, name, list(detail["nodes"])) for time, name, detail in world.refused if detail]
    assert said[: 2 * len(waiting)] == [
        *((1, name, ["Insufficient cpu"]) for name in waiting),
        *((9, name, [existing]) for name in waiting),
    ]
    for name in waiting:
        told = [nodes for _, of, nodes in said if of == name]
        assert told == 2 * [["Insufficient cpu"], [existing]]


def test_a_pod_whose_room_another_takes_is_refused_then() -> None:
    """While its victim leaves it is not; what was done for it is in the record."""
    world = World(
        [node("n1", cpu=4)],
        job("victim", {"cpu": 4}, grace=60),
        job("p", {"cpu": 4}, at=1, priority=5),
        job("high", {"cpu": 4}, at=2, priority=9, runs=900),
        until=800,
    )
    assert [time for time, name, _ in world.refused if name == "p"] == [61]


def test_what_is_nominated_since_an_equal_pod_failed_counts() -> None:
    """Memory is promised to a preemptor when the second one comes, and was not when the first one did."""
    world = World(
        [node("n1", cpu=4, memory="8Gi")],
        job("victim", {"cpu": 4}, grace=30),
        job("short", {"cpu": 0}, runs=3),
        job("first", {"cpu": 2, "memory": "1Gi"}, at=1),
        job("preemptor", {"cpu": 1, "memory": "8Gi"}, at=2, priority=9),
        job("second", {"cpu": 2, "memory": "1Gi"}, at=3),
        until=20,
    )
    assert [(name, list(detail["nodes"])) for _, name, detail in world.refused if detail] == [
        ("first", ["Insufficient cpu"]),
        ("second", ["Insufficient cpu", "Insufficient memory"]),
    ]
