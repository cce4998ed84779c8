"""Instants of the timer that are played in a row: the same cycles, attempts and decisions as one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cluster.model import Cluster
from harness.models.kube.policy import PodPolicy
from harness.policy import View
from harness.testing import Decisions, Script, nodes, replayed
from harness_plugins.kube.policy import default_preemption


def crowd(rng: random.Random) -> Script:
    """Jobs that wait for long, and now and then for a while nothing happens."""
    jobs, at = Script(), 0
    for number in range(rng.randint(3, 30)):
        at += rng.choice((0, 1, 30, 200, 3000))
        jobs.job(
            f"j{number}", at=at, cpu=rng.choice((1, 2, 4, 4)), seconds=rng.choice((5, 330, 400, 4000, 9000))
        )
    return jobs


def played(seed: int, *, asleep: bool) -> tuple[Decisions, int, int]:
    """What happened, how many attempts there were, and how many cycles were played in a row."""
    rng = random.Random(seed)
    policies: list[PodPolicy] = []
    dozed = 0

    def made(cluster: Cluster, view: View, options: Mapping[str, Any]) -> PodPolicy:
        policies.append(default_preemption(cluster, view, {"disablePreemption": True}))
        return policies[0]

    doze = PodPolicy.doze

    def counted(self: PodPolicy, at: int, before: int) -> tuple[int, int]:
        nonlocal dozed
        passed, due = doze(self, at, before) if asleep else (0, at)
        dozed += passed
        return passed, due

    with pytest.MonkeyPatch.context() as context:
        context.setattr(PodPolicy, "doze", counted)
        until = rng.choice((None, 2000, 6000.25, 9000))
        kept = replayed(made, crowd(rng), nodes(n1={"cpu": 4}, n2={"cpu": 2}), until=until)
    return kept, policies[0].scheduler.attempts, dozed


@given(seed=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_instants_of_the_timer_in_a_row_are_as_one_by_one(seed: int) -> None:
    """Everything that is recorded, with the number of its cycle, and the counts of cycles and attempts."""
    (in_a_row, attempts, _), (singly, expected, none) = (played(seed, asleep=each) for each in (True, False))
    assert none == 0
    assert in_a_row == singly
    assert attempts == expected


def test_most_of_them_are_played_in_a_row() -> None:
    """Else the test above would say little."""
    found = [played(seed, asleep=True) for seed in range(20)]
    cycles = [kept.outcome.cycles for kept, _, _ in found if kept.outcome is not None]
    assert sum(dozed for *_, dozed in found) > sum(cycles) / 2
