"""Nodes come, go and change while pods run, terminate and wait; the rules are those of recorded cases."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import World, crowd, job, node
from more_examples import examples

from harness.base.units import SECOND
from harness.models.kube import _blocks as blocks
from harness.models.kube import queue

NEVER = 10**9


def tainted(name: str, *, effect: str = "NoExecute", **amounts: Any) -> dict[str, Any]:
    return node(name, spec={"taints": [{"key": "broken", "value": "x", "effect": effect}]}, **amounts)


def tolerates(seconds: int | None) -> dict[str, Any]:
    toleration: dict[str, Any] = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return {"tolerations": [toleration]}


def test_pods_of_a_deleted_node_are_gone_at_once_by_name_and_are_made_anew() -> None:
    """Whatever their grace period is; their ends do not happen, and what they did is lost."""
    jobs = [job(name, {"cpu": 5}, runs=100, grace=30) for name in ("b", "a")]
    world = World([node("n1")], *jobs, then=[(10, "n1"), (20, node("n1"))])
    assert world.lines == [
        "0 bind b on n1",
        "0 bind a on n1",
        "10 evict a on n1",
        "10 gone a",
        "10 evict b on n1",
        "10 gone b",
        "20 bind a-r1 on n1",
        "20 bind b-r1 on n1",
        "120 finish a-r1",
        "120 finish b-r1",
    ]


def test_a_pod_that_terminates_is_gone_with_its_node_before_its_grace_is_over() -> None:
    """And its preemptor is tried elsewhere in the same second; the nomination was to a node that is gone."""
    low, high = job("low", {"cpu": 10}, grace=30), job("high", {"cpu": 10}, priority=9, at=5, runs=10)
    world = World([node("n1")], low, high, then=[(9, node("n2")), (9, "n1")])
    assert world.about("preempt", "gone", "bind") == [
        "0 bind low on n1",
        "5 preempt low by high on n1",
        "9 gone low",
        "9 bind high on n2",
        "19 bind low-r1 on n2",
    ]


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_a_cordon_and_other_taints_leave_pods_where_they_are(effect: str) -> None:
    """They run to their end, and so do those of a node that has less than they hold."""
    then = [
        (10, node("n1", spec={"unschedulable": True})),
        (20, tainted("n1", effect=effect)),
        (30, node("n1", cpu=1)),
    ]
    world = World([node("n1")], job("a", {"cpu": 10}), then=then)
    assert world.lines == ["0 bind a on n1", "100 finish a"]


def test_a_no_execute_taint_evicts_who_does_not_tolerate_it_now_or_when_the_toleration_ends() -> None:
    """Grace periods hold; a second change of taints does not begin a timer anew."""
    jobs = [
        job("now", {"cpu": 1}, grace=5),
        job("later", {"cpu": 1}, **tolerates(30)),
        job("never", {"cpu": 1}, **tolerates(None)),
    ]
    other = tainted("n1")
    other["spec"]["taints"].append({"key": "broken", "value": "y", "effect": "NoSchedule"})
    world = World([node("n1")], *jobs, then=[(10, tainted("n1")), (25, other)], until=100)
    assert world.about("evict", "gone") == [
        "10 evict now on n1",
        "15 gone now",
        "40 evict later on n1",
        "40 gone later",
    ]


def test_a_timer_ends_with_the_taint_and_begins_again_where_the_pod_is_bound_again() -> None:
    """The successor tolerates the taint for as long once more."""
    world = World(
        [node("n1")],
        job("a", {"cpu": 1}, **tolerates(20)),
        then=[(10, tainted("n1")), (20, node("n1")), (50, tainted("n1"))],
        until=95,
    )
    assert world.about("bind", "evict") == [
        "0 bind a on n1",
        "70 evict a on n1",
        "70 bind a-r1 on n1",
        "90 evict a-r1 on n1",
        "90 bind a-r2 on n1",
    ]


def test_without_any_node_attempts_back_off_and_a_new_node_does_not_end_that() -> None:
    """Tried at 0, 2 and 5, the pod waits for its next attempt at 10 although there is room from 6 on."""
    world = World([node("n1")], job("a", {"cpu": 1}, runs=5), then=[(0, "n1"), (6, node("n1"))])
    assert world.about("bind", "finish") == ["10 bind a on n1", "15 finish a"]


def test_a_job_that_fits_no_node_yet_waits_for_the_one_that_comes() -> None:
    """One that fits none of those that come either is rejected when it arrives."""
    jobs = [job("large", {"cpu": 20}, runs=5), job("gpu", {"nvidia.com/gpu": 1}), job("huge", {"cpu": 99})]
    then = [(60, node("n2", cpu=32)), (90, node("n3", **{"nvidia.com/gpu": 8}))]
    world = World([node("n1")], *jobs, then=then)
    assert world.about("bind") == ["60 bind large on n2", "90 bind gpu on n3"]
    assert [line.split(":")[0] for line in world.about("reject")] == ["0 reject huge"]


def test_a_node_that_goes_and_returns_while_nothing_runs_or_waits_costs_nothing() -> None:
    """And a node that fails twice with nothing to do in between has failed once, for longer."""
    first, second = job("a", {"cpu": 9}, runs=10), job("b", {"cpu": 9}, at=100, runs=10)
    nodes = [node("n1"), node("n2")]
    plain = World(nodes, first, second)
    assert World(nodes, first, second, then=[(50, "n1"), (60, node("n1"))]).lines == plain.lines
    crowded = [job(f"c{number}", {"cpu": 9}, runs=40) for number in range(6)]
    twice = [(50, "n2"), (60, node("n2", cpu=0)), (60, "n2"), (90, node("n2"))]
    once = [(50, "n2"), (90, node("n2"))]
    assert World(nodes, *crowded, then=twice).lines == World(nodes, *crowded, then=once).lines


def test_a_node_that_is_removed_is_as_if_it_had_never_been_to_who_comes_later() -> None:
    """To an idle cluster; with preemptions and more pods than there is room for."""
    later = [
        job(f"j{number}", {"cpu": 4}, at=100 + number, priority=number % 3, runs=20) for number in range(9)
    ]
    removed = World([node("n1"), node("n2", cpu=8)], *later, then=[(50, "n2")])
    assert removed.lines == World([node("n1")], *later).lines
    assert removed.about("preempt")


def test_what_ran_once_is_not_given_up_when_its_node_is_gone_for_good() -> None:
    """It waits until the replay ends; only a job that arrives may be rejected."""
    jobs = [job("ran", {"cpu": 9}, runs=50), job("new", {"cpu": 9}, at=20), job("small", {"cpu": 1}, runs=60)]
    world = World([node("n1"), node("n2", cpu=1)], *jobs, then=[(10, "n1")])
    assert world.states == {"ran": "pending", "new": "rejected", "small": "finished"}


def test_the_scheduler_knows_at_once_what_was_on_a_node_that_is_gone() -> None:
    """However long an eviction takes; also of a pod that was preempted before and is gone."""
    low, high = job("low", {"cpu": 10}, grace=5), job("high", {"cpu": 10}, priority=9, at=5, runs=10)
    then = [(12, node("n2")), (12, "n1")]
    world = World([node("n1")], low, high, then=then, latency=20 * SECOND, until=60)
    assert world.about("preempt", "gone", "bind", "evict") == [
        "0 bind low on n1",
        "5 preempt low by high on n1",
        "10 gone low",
        "12 bind high on n2",
        "22 bind low-r1 on n2",
    ]
    alone = World([node("n1")], job("a", {"cpu": 1}), then=then, latency=20 * SECOND)
    assert alone.about("bind") == ["0 bind a on n1", "12 bind a-r1 on n2"]


def changes(rng: random.Random) -> list[tuple[int, str | dict[str, Any]]]:
    """Nodes of `crowd` that go, return, are cordoned, tainted, relabelled or resized."""
    there = {"n0", "n1", "n2"}
    found: list[tuple[int, str | dict[str, Any]]] = []
    at = 0
    for _ in range(rng.randint(1, 8)):
        at += rng.choice((0, 3, 10, 30))
        name = rng.choice(("n0", "n1", "n2", "n3"))
        if name in there and rng.random() < 0.4:
            there.remove(name)
            found.append((at, name))
            continue
        there.add(name)
        effect = rng.choice(("NoExecute", "NoSchedule", "PreferNoSchedule"))
        spec = rng.choice(({}, {}, {"unschedulable": True}, {"taints": [{"key": "k", "effect": effect}]}))
        labels = {"size": "large"} if rng.random() < 0.5 else {}
        found.append((at, node(name, labels=labels, spec=spec, cpu=rng.choice((1, 4, 8)), pods=3)))
    return found


@pytest.mark.parametrize("preempts", [False, True])
@given(seed=st.integers(0, 10**9))
@examples(100, "KUBE_FUZZ")
def test_shortcuts_change_nothing_where_nodes_change(preempts: bool, seed: int) -> None:
    """In blocks, where refusals stand, and with every pod tried by itself: the same decisions and figures."""

    def played() -> World:
        rng = random.Random(seed)
        nodes, jobs = crowd(rng)
        return World(nodes, *jobs, then=changes(rng), until=600, disablePreemption=not preempts)

    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "FEW", seed % 2 * blocks.FEW)
        together = played()
    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "OFTEN", NEVER)
        context.setattr(queue, "_fails_again", lambda pod, peers, version: False)
        singly = played()
    assert together.lines == singly.lines
    assert together.refused == singly.refused
    assert together.policy.scheduler.attempts == singly.policy.scheduler.attempts
