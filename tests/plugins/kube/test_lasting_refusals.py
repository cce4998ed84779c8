"""Refusals that stand where nobody can be preempted: they spare attempts, and change nothing else."""

from __future__ import annotations

import random
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import World, crowd, job, node
from more_examples import examples

from harness.models.kube import _blocks as blocks
from harness.models.kube import queue
from harness.models.kube.queue import SchedulingQueue

NEVER = 10**9
fuzz = partial(examples, variable="KUBE_FUZZ")
"""A 24th of so many examples; KUBE_FUZZ=20 runs twenty times the number."""


@pytest.mark.parametrize(
    ("preempts", "own"),
    [
        (True, True),
        (False, False),
        *(pytest.param(each, not each, marks=pytest.mark.nightly) for each in (False, True)),
    ],
)
@given(seed=st.integers(0, 10**9))
@fuzz(40)
def test_nothing_changes_where_every_pod_is_tried_by_itself(preempts: bool, own: bool, seed: int) -> None:
    """In blocks, where refusals stand, and without: the same decisions, refusals and figures."""

    def played() -> World:
        nodes, jobs = crowd(random.Random(seed), own=own)
        return World(nodes, *jobs, disablePreemption=not preempts)

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


@given(seed=st.integers(0, 10**9))
@fuzz(40)
def test_nor_is_anything_said_otherwise_of_pods_that_fail_because_equal_ones_have(seed: int) -> None:
    """Pods that are jobs of their own are refused when, and as, they are if each of them is tried."""
    together, singly = _played(seed), _played_singly(seed)
    assert together.lines == singly.lines
    one, other = (
        [row for row in world.refused if row[2] is not None and "pod" not in row[2]]
        for world in (together, singly)
    )
    assert one == other
    assert {row[:2] for row in together.refused} == {row[:2] for row in singly.refused}


def _played(seed: int) -> World:
    nodes, jobs = crowd(random.Random(seed))
    return World(nodes, *jobs)


def _played_singly(seed: int) -> World:
    pop, versions = SchedulingQueue.pop, count(2)  # of which no pod has ever failed at one
    with pytest.MonkeyPatch.context() as context:
        context.setattr(blocks, "OFTEN", NEVER)
        context.setattr(queue, "_fails_again", lambda pod, peers, version: False)
        context.setattr(SchedulingQueue, "pop", lambda self, version: pop(self, -next(versions)))
        return _played(seed)


def test_a_pod_that_waits_is_bound_as_soon_as_its_node_has_room() -> None:
    """Ten ends leave too little room for it; the eleventh frees enough."""
    jobs = [job(f"short-{number}", {"cpu": 1}, runs=number) for number in range(1, 12)]
    jobs += [job(f"large-{number}", {"cpu": 11}, at=1, runs=5) for number in range(3)]
    world = World([node("n1", cpu=11, pods=110)], *jobs, disablePreemption=True)
    assert world.about("bind")[-3:] == [
        "11 bind large-0 on n1",
        "16 bind large-1 on n1",
        "21 bind large-2 on n1",
    ]
    assert [(time, name) for time, name, _ in world.refused] == [
        (1, f"large-{number}") for number in range(3)
    ]
