"""What a dry run found is found again without one, and only where a dry run would find it again."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quota_worlds import Happened, Jobs, budget, cluster, leaf, node, tree

from harness.cluster.model import Cluster
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Status
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.kept_dry_runs import Answers, KeptDryRuns
from harness_plugins.elastic_quota.policy import auto, elastic_quota
from harness_plugins.elastic_quota.search import QuotaSearch

CAPACITY = 24
QUEUES = ("q0", "q1", "q2", "q3", "no-quota")
APART = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
SPREAD = {
    "containers": [{"name": "c", "image": "i"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}},
}


def crowd(rng: random.Random) -> tuple[Cluster, Jobs]:
    """Eight nodes, four quotas in groups or not, and jobs that preempt each other for what there is.

    Quotas allow less than nodes hold, as much, or more.
    """
    total = rng.choice((CAPACITY * 2 // 3, CAPACITY, CAPACITY * 2))
    quotas = [
        leaf(f"q{number}", rng.randint(0, total // 4), rng.choice([total // 2, total])) for number in range(4)
    ]
    if rng.random() < 0.5:
        least = [sum(each["min"]["cpu"] for each in pair) for pair in (quotas[:2], quotas[2:])]
        quotas = [
            leaf("a", least[0], total, children=quotas[:2]),
            leaf("b", least[1], total, children=quotas[2:]),
        ]
    jobs, at, grace = Jobs(), 0, rng.choice((0, 2))
    for number in range(rng.randint(20, 60)):
        at += rng.choice((0, 0, 1, 4))
        apart = rng.random() < 0.05
        cpu = rng.choice((1, 1, 2, 3))
        jobs.add(
            f"j{number}",
            rng.choice(QUEUES),
            cpu,
            labels={"app": "web"} if apart or rng.random() < 0.1 else None,
            spec=_with_cpu(cpu) if apart else None,
            at=at,
            seconds=rng.randint(1, 60),
            pods=rng.choice((1, 1, 1, 2, 3)),
            gang=rng.random() < 0.5,
            priority=rng.choice((0, 0, 0, 7)),
            grace=grace,
        )
    nodes = [node(f"n{number}", 3, spec={"unschedulable": number == 7}) for number in range(8)]
    budgets = [budget({"app": "web"}, minAvailable=rng.randint(0, 3))] if rng.random() < 0.2 else []
    return cluster(*nodes, tree(total, *quotas), *budgets), jobs


def _with_cpu(cpu: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {**SPREAD, "containers": [container]}


def watched(context: pytest.MonkeyPatch) -> list[bool]:
    """Have every answer that is kept compared with a dry run; tells of each answer whether it was kept."""
    told: list[bool] = []
    asked = QuotaSearch._as_equals

    def answer(
        self: QuotaSearch, failure: Failure, where: NodeInfo, kept: KeptDryRuns, equals: Answers
    ) -> Candidate | Status:
        before = equals.get(where.position)
        found = asked(self, failure, where, kept, equals)
        told.append(before is not None and before[1] is found)
        anew = self._dry_run(failure, where)
        assert in_words(found) == in_words(anew)
        return found

    context.setattr(QuotaSearch, "_as_equals", answer)
    return told


def in_words(answer: Candidate | Status) -> object:
    """All that counts of an answer."""
    if isinstance(answer, Status):
        return answer.code, answer.plugin, answer.reasons
    return answer.node.name, [pod.name for pod in answer.victims], answer.violations, answer.budgeted


@pytest.mark.parametrize("options", [{}, {"gang": "pods"}, {"evictionLatency": "3s"}], ids=str)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_a_dry_run_would_find_what_is_kept(options: dict[str, Any], seed: int) -> None:
    """Whatever comes and goes between: gangs, nominations, groups of quotas, budgets, affinities."""
    where, jobs = crowd(random.Random(seed))
    with pytest.MonkeyPatch.context() as context:
        watched(context)
        for plugin in (elastic_quota, auto):
            Happened(where, jobs, plugin=plugin, **options)


def test_most_answers_are_kept_where_many_wait() -> None:
    """Else the above would say nothing."""
    with pytest.MonkeyPatch.context() as context:
        told = watched(context)
        for seed in range(12):
            Happened(*crowd(random.Random(seed)))
    assert sum(told) > len(told) // 3
