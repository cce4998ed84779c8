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
from harness.models.kube.placement.status import NO_VICTIMS, Status
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate
from harness.policy import PolicyFactory
from harness_plugins.elastic_quota.ack import AckRules, Protection
from harness_plugins.elastic_quota.attempt import Planned
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.policy import auto, elastic_quota
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
        performed: dict[int, Candidate | Status] = {}

        def noted(tries: Tries, node: NodeInfo) -> Candidate | Status:
            found = performed[node.position] = dry_run(tries, node)
            return found

        found = asked(self, tries, nodes, noted)
        for position, answer in on_each(tries, nodes, dry_run).items():
            told.append(position not in performed)
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
        pytest.param({"evictionLatency": "3s"}, marks=pytest.mark.nightly),
        pytest.param({"claims": "usage", "cordonedNodes": "tried"}, marks=pytest.mark.nightly),
        {"claims": "usage", "gang": "pods", "evictDaemonSets": True},
        {"semantics": "capacity-scheduling"},
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


def asked(happened: Happened, pod: PodInfo, *, reclaims: bool = False) -> Tries:
    """What would be asked about a pod that waits, as things stand."""
    scheduler = happened.scheduler
    found = scheduler.scheduling.schedule(pod)
    state = found.state if isinstance(found, Diagnosis) else scheduler.scheduling.pre_filter(pod)
    others = Nominated(scheduler.usage, scheduler.cache).besides([pod])
    request = quota_request(pod, scheduler.usage, others)
    excesses = request.excesses(scheduler.usage.tree)
    rules = AckRules(scheduler.usage, scheduler.budgets, Protection())
    return Tries(
        Failure(request, state, scheduler.cache, None),
        rules.claim(request.quota, reclaims=reclaims).eligible_pods,
        Exceeded(excesses, excesses),
        scheduler.scheduling.shape_nodes(pod.template.shape),
        reclaims,
    )


def kept_of(happened: Happened) -> KeptDryRuns:
    """Nothing is kept yet."""
    return KeptDryRuns(happened.scheduler.usage, happened.scheduler.cache)


def performed(kept: KeptDryRuns, tries: Tries) -> list[int]:
    """The positions of the nodes whose results are not known."""
    nodes: list[int] = []

    def dry_run(tries: Tries, node: NodeInfo) -> Status:
        nodes.append(node.position)
        return NO_VICTIMS

    kept(tries, tries.failure.cache.nodes, dry_run)
    return nodes


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
    kept, tries = kept_of(full), asked(full, waiting(bound(full.scheduler)))
    assert performed(kept, tries) == [0, 1]
    assert performed(kept, tries) == []
    assert performed(kept, tries._replace(reclaims=True)) == [0, 1]
    failure = tries.failure
    more = failure.request._replace(in_quota={"cpu": 4000}).excesses(full.scheduler.usage.tree)
    assert performed(kept, tries._replace(exceeded=Exceeded(more, more))) == [0, 1]
    assert performed(kept, asked(full, waiting(bound(full.scheduler), 6))) == [0, 1]
    assert asked(less, waiting(bound(less.scheduler))).failure.request.excess is None


def test_a_kept_answer_names_the_pod_that_asks() -> None:
    """Capacity scheduling says of each node for whom it has no victims."""
    world = cluster(node("n0", 2), node("n1", 2), tree(4, leaf("q0", 2, 4)))
    happened = Happened(world, Jobs().add("a", "q0", 2).add("b", "q0", 2, at=1), until=3)
    scheduler, like = happened.scheduler, bound(happened.scheduler)
    search = QuotaSearch(
        scheduler.scheduling,
        scheduler.budgets,
        CapacityRules(scheduler.usage),
        {scheduler.usage.quota_of(like): False},
        KeptDryRuns(scheduler.usage, scheduler.cache),
    )
    for name in ("first", "second"):
        pod = PodInfo(name, like.template, like.priority, preempts=True, job=like.job, pod=like.pod)
        failure = asked(happened, pod).failure
        said = [status.reasons[0] for status in search.candidates(failure, [failure]).rejected.values()]
        assert said == [f"No victims found on node n{each} for preemptor pod {name}" for each in (0, 1)]


def test_nothing_is_kept_for_a_pod_with_a_nomination_or_with_rules_about_others() -> None:
    """Of equal pods only that one counts on room that is made for it."""
    jobs = Jobs().add("a", "q0", 2).add("b", "q0", 2, at=1, labels={"app": "web"}, spec=spread(2))
    happened = Happened(cluster(node("n0", 2), node("n1", 2), tree(4, leaf("q0", 2, 4))), jobs, until=3)
    pod = waiting(bound(happened.scheduler))
    kept, tries = kept_of(happened), asked(happened, pod)
    assert (performed(kept, tries), performed(kept, tries)) == ([0, 1], [])
    happened.scheduler.cache.nominate(pod, "n0")
    assert performed(kept, asked(happened, pod)) == [0, 1]
    apart = asked(happened, waiting(next(iter(happened.scheduler.cache.nodes[1].pods))))
    assert (performed(kept, apart), performed(kept, apart)) == ([0, 1], [0, 1])


def test_pods_of_one_job_share_no_answer_with_others_and_nothing_is_kept_of_a_budget() -> None:
    """A job takes nothing from itself, and what a budget allows changes elsewhere."""
    jobs = Jobs().add("a", "q0", 2, pods=2, gang=False).add("b", "q0", 2, at=1, labels={"app": "web"})
    nodes = [node(f"n{number}", 2) for number in range(3)]
    happened = Happened(cluster(*nodes, tree(6, leaf("q0", 6, 6))), jobs, until=3)
    mate = asked(happened, waiting(bound(happened.scheduler)))
    other = asked(happened, waiting(next(iter(happened.scheduler.cache.nodes[2].pods))))
    kept = kept_of(happened)
    template, job = bound(happened.scheduler).template, other.failure.request.pod.job
    alike = asked(happened, PodInfo("alike", template, 5, preempts=True, job=job))
    for tries in (mate, alike, other):
        assert (performed(kept, tries), performed(kept, tries)) == ([0, 1, 2], [])
    covered = Happened(cluster(*nodes, tree(6, leaf("q0", 6, 6)), budget({"app": "web"})), jobs, until=3)
    other = asked(covered, waiting(next(iter(covered.scheduler.cache.nodes[2].pods))))
    kept = kept_of(covered)
    assert (performed(kept, other), performed(kept, other)) == ([0, 1, 2], [2])


def test_answers_are_kept_for_a_claim_while_the_quotas_of_a_node_borrow_as_much() -> None:
    """They may lose pods only while they borrow, and on a node no more than their pods use there."""
    jobs = Jobs().add("a", "q1", 2).add("b", "q0", 1)
    world = cluster(node("n0", 2), node("n1", 1), tree(8, leaf("q0", 8, 8), leaf("q1", 0, 8)))
    happened = Happened(world, jobs, until=3)
    usage = happened.scheduler.usage
    tries = asked(happened, waiting(next(iter(happened.scheduler.cache.nodes[1].pods))), reclaims=True)
    kept = kept_of(happened)
    assert (performed(kept, tries), performed(kept, tries)) == ([0, 1], [])
    usage.tree.charge(usage.tree.leaves["q1"], {"cpu": 1000})
    assert (performed(kept, tries), performed(kept, tries)) == ([0], [])
    usage.tree.charge(usage.tree.leaves["q1"], {"cpu": 1000})
    assert performed(kept, tries) == []


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
    search = QuotaSearch(scheduler.scheduling, budgets, AckRules(usage, budgets, Protection()), reclaims)
    before = there.generation
    assert first.keeps == 1
    list(scheduler._preempt(first, Planned({first: there}, [], search, frozenset()), frozenset()))
    assert first.keeps > 1
    assert there.generation > before


def _of_priority(priority: int, labels: dict[str, str]) -> Any:
    return Jobs().add("second", "q0", 2, priority=priority, labels=labels).arrivals()[0][0]
