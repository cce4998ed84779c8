"""Instants of the timer that are played in a row: the same cycles, attempts and decisions as one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_worlds import node
from more_examples import examples

from harness.base.options import resolve
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.models.kube.policy import PodPolicy
from harness.policy import View
from harness.testing import Decisions, Script, replayed
from harness_plugins.elastic_quota.options import OPTIONS as QUOTA_OPTIONS
from harness_plugins.elastic_quota.policy import elastic_quota
from harness_plugins.kube.policy import OPTIONS
from harness_plugins.kube_scheduler import kube_scheduler

TOGETHER = {"gang": "all-or-nothing"}
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "none": (kube_scheduler, OPTIONS, {"disablePreemption": True}),
    "none, gangs": (kube_scheduler, OPTIONS, {"disablePreemption": True, **TOGETHER}),
    "default-preemption": (kube_scheduler, OPTIONS, {}),
    "default-preemption, gangs": (kube_scheduler, OPTIONS, TOGETHER),
    "elasticquota": (elastic_quota, QUOTA_OPTIONS, {}),
}


def world() -> Cluster:
    """Two nodes, and a quota that may use all but one of their cpus."""
    spec = {"min": {"cpu": "3m"}, "max": {"cpu": "5m"}}
    quota = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota"}
    about = {"metadata": {"name": "q", "namespace": "default"}, "spec": spec}
    return cluster_from([node("n1", cpu="4m"), node("n2", cpu="2m"), {**quota, **about}], "test")


def crowd(rng: random.Random) -> Script:
    """Jobs that wait for long, and now and then for a while nothing happens."""
    jobs, at = Script(), 0
    for number in range(rng.randint(3, 30)):
        at += rng.choice((0, 1, 30, 200, 3000))
        jobs.job(
            f"j{number}",
            at=at,
            cpu=rng.choice((1, 2, 4, 4)),
            pods=rng.choice((1, 1, 1, 2)),
            seconds=rng.choice((5, 330, 400, 4000, 9000)),
            priority=rng.choice((0, 0, 0, 5)),
            grace=rng.choice((0, 20)),
        )
    return jobs


def played(kind: str, seed: int, *, asleep: bool) -> tuple[Decisions, int, int]:
    """What happened, how many attempts there were, and how many cycles were played in a row."""
    rng, (make, declared, options) = random.Random(seed), KINDS[kind]
    policies: list[PodPolicy] = []
    dozed = 0

    def made(cluster: Cluster, view: View, options: Mapping[str, Any]) -> PodPolicy:
        policies.append(make(cluster, view, options))
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
        set_ = resolve(declared, options, owner=kind)
        kept = replayed(made, crowd(rng), world(), options=set_, until=until)
    return kept, policies[0].scheduler.attempts, dozed


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**9))
@examples(40)
def test_instants_of_the_timer_in_a_row_are_as_one_by_one(kind: str, seed: int) -> None:
    """Everything that is recorded, with the number of its cycle, and the counts of cycles and attempts."""
    (in_a_row, attempts, _), (singly, expected, none) = (
        played(kind, seed, asleep=each) for each in (True, False)
    )
    assert none == 0
    assert in_a_row == singly
    assert attempts == expected


@pytest.mark.parametrize("kind", KINDS)
def test_many_of_them_are_played_in_a_row(kind: str) -> None:
    """Else the test above would say little."""
    found = [played(kind, seed, asleep=True) for seed in range(20)]
    cycles = [kept.outcome.cycles for kept, _, _ in found if kept.outcome is not None]
    assert sum(dozed for *_, dozed in found) > sum(cycles) / 4
