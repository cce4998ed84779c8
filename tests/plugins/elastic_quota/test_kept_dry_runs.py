"""What a dry run found is found again without one, and only where a dry run would find it again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quota_worlds import (
    LONG_ENOUGH,
    Happened,
    Jobs,
    budget,
    cluster,
    fuzz,
    grouped,
    leaf,
    node,
    spread,
    tree,
    varied,
    with_daemons,
)

from harness.base.build import is_compiled
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis
from harness.models.kube.placement.status import Status
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate
from harness.policy import PolicyFactory
from harness_plugins.elastic_quota.ack import AckRules
from harness_plugins.elastic_quota.attempt import Planned
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.policy import auto, elastic_quota
from harness_plugins.elastic_quota.protection import Protection
from harness_plugins.elastic_quota.quota_request import Nominated, quota_request
from harness_plugins.elastic_quota.scheduler import QuotaScheduler
from harness_plugins.elastic_quota.search import DryRun, QuotaSearch, Tries, on_each
from harness_plugins.elastic_quota.shortcuts.kept_dry_runs import KeptDryRuns


def watched(context: pytest.MonkeyPatch) -> list[bool]:
    """Have every answer that is kept compared with a dry run; tells of each answer whether it was kept."""
    told: list[bool] = []
    asked = KeptDryRuns.__call__

    def answers(
        self: KeptDryRuns, tries: Tries, nodes: Sequence[NodeInfo], dry_run: DryRun
    ) -> dict[int, Candidate | Status]:
        equals = self.of_equals(tries.failure, tries.exceeded.back, reclaims=tries.reclaims)
        before: dict[int, Candidate | Status] = {}
        if equals is not None:
            several = {position: answer for position, (_, answer) in equals.of_several.items()}
            before = several | equals.of_any
        found = asked(self, tries, nodes, dry_run)
        for position, answer in on_each(tries, nodes, dry_run).items():
            told.append(before.get(position) is found[position])
            assert in_words(found[position]) == in_words(answer)
        return found

    context.setattr(KeptDryRuns, "__call__", answers)
    return told


def in_words(answer: Candidate | Status) -> object:
    """All that counts of an answer."""
    if isinstance(answer, Status):
        return answer.code, answer.plugin, answer.reasons
    return answer.node.name, [pod.name for pod in answer.victims], answer.violations, answer.budgeted


@pytest.mark.skipif(is_compiled(), reason="compiled classes let no method be replaced")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gang": "pods"},
        {"evictionLatency": "3s"},
        {"claims": "usage", "cordonedNodes": "tried"},
        {"claims": "usage", "gang": "pods", "evictDaemonSets": True},
    ],
    ids=str,
)
@given(seed=st.integers(0, 10**9), plugin=st.sampled_from((elastic_quota, auto)))
@fuzz(12)
def test_a_dry_run_would_find_what_is_kept(options: dict[str, Any], seed: int, plugin: PolicyFactory) -> None:
    """Whatever comes and goes between: gangs, nominations, groups of pods and quotas, budgets, affinities."""
    with pytest.MonkeyPatch.context() as context:
        watched(context)
        for worlds in (varied, grouped):
            where, jobs = worlds(random.Random(seed))
            jobs, _ = with_daemons(jobs, random.Random(seed))
            Happened(where, jobs, plugin=plugin, until=LONG_ENOUGH, **options)


@pytest.mark.skipif(is_compiled(), reason="compiled classes let no method be replaced")
def test_most_answers_are_kept_where_many_wait() -> None:
    """Else the above would say nothing."""
    with pytest.MonkeyPatch.context() as context:
        told = watched(context)
        for seed in range(12):
            Happened(*varied(random.Random(seed)), until=LONG_ENOUGH)
    assert sum(told) > len(told) // 3


def asked(happened: Happened, pod: PodInfo) -> tuple[KeptDryRuns, Failure]:
    """What would be asked about a pod that waits, as things stand."""
    scheduler = happened.scheduler
    found = scheduler.scheduling.schedule(pod)
    state = found.state if isinstance(found, Diagnosis) else scheduler.scheduling.pre_filter(pod)
    others = Nominated(scheduler.usage, scheduler.cache).besides([pod])
    request = quota_request(pod, scheduler.usage, others)
    return KeptDryRuns(scheduler.usage, scheduler.cache), Failure(request, state, scheduler.cache, None)


def waiting(like: PodInfo, priority: int = 5) -> PodInfo:
    """A pod like another one that waits and is not known to anybody yet."""
    return PodInfo("new", like.template, priority, preempts=True, job=like.job, pod=like.pod)


def bound(scheduler: QuotaScheduler) -> PodInfo:
    """The first pod of the first node."""
    return next(iter(scheduler.cache.nodes[0].pods))


def test_answers_are_kept_for_equal_pods_whose_quotas_lack_the_same() -> None:
    """Another priority is another question, and so is another quota's use."""
    jobs = Jobs().add("a", "q0", 2).add("b", "q0", 2, at=1, seconds=5)
    world = cluster(node("n0", 2), node("n1", 2), tree(4, leaf("q0", 2, 4), leaf("q1", 2, 4)))
    full, less = Happened(world, jobs, until=3), Happened(world, jobs, until=8)
    kept, failure = asked(full, waiting(bound(full.scheduler)))
    tree_of_quotas = full.scheduler.usage.tree
    excesses = failure.request.excesses(tree_of_quotas)
    answers = kept.of_equals(failure, excesses, reclaims=False)
    assert answers is not None
    assert kept.of_equals(failure, list(excesses), reclaims=False) is answers
    assert kept.of_equals(failure, excesses, reclaims=True) is not answers
    more = failure.request._replace(in_quota={"cpu": 4000}).excesses(tree_of_quotas)
    assert kept.of_equals(failure, more, reclaims=False) is not answers
    other = failure._replace(request=failure.request._replace(pod=waiting(bound(full.scheduler), 6)))
    assert kept.of_equals(other, excesses, reclaims=False) is not answers
    _, roomy = asked(less, waiting(bound(less.scheduler)))
    assert roomy.request.excess is None


def test_nothing_is_kept_for_a_pod_with_a_nomination_or_with_rules_about_others() -> None:
    """Of equal pods only that one counts on room that is made for it."""
    jobs = Jobs().add("a", "q0", 2).add("b", "q0", 2, at=1, labels={"app": "web"}, spec=spread(2))
    world = cluster(node("n0", 2), node("n1", 2), tree(4, leaf("q0", 2, 4)))
    happened = Happened(world, jobs, until=3)
    pod = waiting(bound(happened.scheduler))
    kept, failure = asked(happened, pod)
    assert kept.of_equals(failure, (), reclaims=False) is not None
    happened.scheduler.cache.nominate(pod, "n0")
    assert kept.of_equals(failure, (), reclaims=False) is None
    apart = waiting(next(iter(happened.scheduler.cache.nodes[1].pods)))
    kept, failure = asked(happened, apart)
    assert kept.of_equals(failure, (), reclaims=False) is None


def test_nothing_is_kept_of_a_node_with_pods_of_the_same_job_or_of_a_budget() -> None:
    """A job takes nothing from itself, and what a budget allows changes elsewhere."""
    jobs = Jobs().add("a", "q0", 2, pods=2, gang=False).add("b", "q0", 2, at=1, labels={"app": "web"})
    world = cluster(*(node(f"n{number}", 2) for number in range(3)), tree(6, leaf("q0", 6, 6)))
    happened = Happened(world, jobs, until=3)
    usage, cache = happened.scheduler.usage, happened.scheduler.cache
    mate = waiting(bound(happened.scheduler))
    other = waiting(next(iter(cache.nodes[2].pods)))
    kept = KeptDryRuns(usage, cache)
    assert kept.moment(mate, cache.nodes[0], {}) is None
    assert kept.moment(other, cache.nodes[0], {}) is not None
    assert kept.keeps(cache.nodes[2])
    covered = Happened(
        cluster(
            *(node(f"n{number}", 2) for number in range(3)), tree(6, leaf("q0", 6, 6)), budget({"app": "web"})
        ),
        jobs,
        until=3,
    ).scheduler
    kept = KeptDryRuns(covered.usage, covered.cache)
    assert not kept.keeps(covered.cache.nodes[2])


def test_how_far_others_borrow_counts_as_far_as_they_hold_it_there() -> None:
    """With 2 of the 3 cores that it borrows on a node, a quota borrows when they are gone, as with 2 of 4."""
    jobs = Jobs().add("a", "q1", 2)
    world = cluster(node("n0", 4), node("n1", 4), tree(8, leaf("q0", 8, 8), leaf("q1", 0, 8)))
    scheduler = Happened(world, jobs, until=3).scheduler
    claimant, borrower = (scheduler.usage.tree.leaves[name] for name in ("q0", "q1"))
    (there,) = (place for place in scheduler.cache.nodes if place.pods)
    pod = waiting(next(iter(there.pods)))
    kept, moments = KeptDryRuns(scheduler.usage, scheduler.cache), []
    for _ in range(3):
        moments.append(kept.moment(pod, there, kept.borrowed_from(claimant)))
        scheduler.usage.tree.charge(borrower, {"cpu": 1000})
    assert moments[0] != moments[1] == moments[2]
    assert kept.moment(pod, there, {}) == (there.generation,)


def test_room_that_is_kept_from_more_pods_changes_a_node() -> None:
    """A more important pod raises its group, of which another pod is nominated to a node."""
    member = {"scheduling.x-k8s.io/pod-group": "g"}
    manifest = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 1},
    }
    jobs = Jobs().add("low", "q0", 2, grace=100).add("first", "q0", 2, at=1, priority=1, labels=member)
    happened = Happened(cluster(node("n0", 2), tree(2, leaf("q0", 2, 2)), manifest), jobs, until=5)
    scheduler, expecting = happened.scheduler, happened.scheduler.cache.nodes[0]
    (first,) = expecting.nominated
    before = expecting.generation
    assert first.job is not None
    raised = PodInfo("second", first.template, 9, preempts=True, job=_of_priority(9, member), pod=0)
    scheduler.add(raised)
    assert first.keeps == 9
    assert expecting.generation > before


def test_room_that_is_kept_from_everyone_from_now_on_changes_a_node() -> None:
    """A pod that is nominated to its node anew, now to take back its guarantee, keeps it from more pods."""
    jobs = Jobs().add("low", "q0", 2, grace=100).add("first", "q0", 2, at=1, priority=1)
    happened = Happened(cluster(node("n0", 2), tree(2, leaf("q0", 2, 2))), jobs, until=5)
    scheduler, there = happened.scheduler, happened.scheduler.cache.nodes[0]
    (first,) = there.nominated
    usage, budgets = scheduler.usage, Budgets((), live=True)
    reclaims = {usage.quota_of(first): True}
    search = QuotaSearch(
        scheduler.scheduling, budgets, usage, AckRules(usage, budgets, Protection()), reclaims
    )
    before = there.generation
    assert first.keeps == 1
    list(scheduler._preempt(first, Planned({first: there}, [], search, frozenset()), frozenset()))
    assert first.keeps > 1
    assert there.generation > before


def _of_priority(priority: int, labels: dict[str, str]) -> Any:
    return Jobs().add("second", "q0", 2, priority=priority, labels=labels).arrivals()[0][0]
