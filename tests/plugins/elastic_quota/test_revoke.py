"""Koordinator's over-use revoke: when a quota is seen to use too much, and who has to go."""

from __future__ import annotations

from quota_worlds import Happened, Jobs, Manifest, budget, cluster, flat, leaf, node, tree

from harness.base.units import SECOND
from harness.models.elastic.runtime_quotas import RuntimeQuotas
from harness.models.elastic.tree import QuotaTree
from harness.models.kube.cache import Cache
from harness.models.kube.preemption.budgets import Budgets
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.revoke import Revocation

TWO = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))


def revoked(jobs: Jobs, *manifests: Manifest, cpu: int = 10, **options: str) -> list[str]:
    """Who is evicted when within 200 s, on one node with 10 of memory."""
    there = cluster(node("n", cpu, amounts={"memory": 10}), *manifests)
    happened = Happened(there, jobs, until=200, semantics="koordinator", **options)
    return happened.lines("evict")


def test_a_quota_is_seen_to_use_too_much_when_its_runtime_is_worked_out_again() -> None:
    """All are asked each 10 s, from the replay's first second on, and the time counts from then."""
    jobs = Jobs().add("low", "b", 10).add("mine", "a", 5, at=13)
    assert revoked(jobs, TWO, revokeAfter="30s") == ["50 evict low"]


def test_or_when_one_of_its_own_pods_is_tried() -> None:
    """Then its runtime is worked out too."""
    jobs = Jobs().add("low", "b", 10).add("mine", "a", 5, at=13).add("more", "b", 1, at=14)
    assert revoked(jobs, TWO, revokeAfter="30s") == ["44 evict low"]


def test_it_is_looked_at_once_a_second() -> None:
    """The first second after which more than the time has passed since the last one that was good."""
    jobs = Jobs().add("low", "b", 10).add("mine", "a", 5, at=13).add("more", "b", 1, at=14.5)
    assert revoked(jobs, TWO, revokeAfter="30s") == ["45 evict low"]
    assert revoked(jobs, TWO, revokeAfter="30.5s") == ["45 evict low"]


def test_the_time_begins_anew_where_a_quota_was_within_its_runtime_at_a_whole_second() -> None:
    """What is between two seconds nobody sees."""
    where = cluster(node("n", 10), TWO)
    runtimes = RuntimeQuotas(where.elastic_quotas, {"cpu": 10_000})
    quotas = QuotaTree(where.elastic_quotas, hierarchical=True, runtimes=runtimes)
    a, b = quotas.leaves["a"], quotas.leaves["b"]
    cache = Cache(where)
    watched = Revocation(QuotaUsage(where, quotas), 30 * SECOND, True, cache, Budgets((), live=True))

    def due(at: float) -> int | None:
        watched.refresh(round(at * SECOND))
        due = watched.watch(round(at * SECOND))
        return None if due is None else due // SECOND

    quotas.ask(b, {"cpu": 10_000})
    quotas.charge(b, {"cpu": 10_000})
    assert due(0) is None
    quotas.ask(a, {"cpu": 5_000})
    assert due(10) == 40
    quotas.charge(b, {"cpu": 10_000}, -1)
    assert due(25.2) is None
    quotas.charge(b, {"cpu": 10_000})
    assert due(25.8) == 40
    quotas.charge(b, {"cpu": 10_000}, -1)
    assert due(30) is None
    quotas.charge(b, {"cpu": 10_000})
    assert due(32) == 62


def test_no_eviction_breaks_a_budget_and_a_refused_one_is_tried_again() -> None:
    """The Eviction API refuses it; the next one is after the delay."""
    jobs = Jobs().add("kept", "b", 5, labels={"app": "web"}).add("other", "b", 5, priority=1)
    jobs.add("mine", "a", 5, at=10)
    assert revoked(jobs, TWO, revokeAfter="30s") == ["40 evict kept"]
    assert revoked(jobs, TWO, budget({"app": "web"}, minAvailable=1), revokeAfter="30s") == []


def test_the_eviction_api_evicts_no_pod_that_several_budgets_cover() -> None:
    """`EvictPod` uses the eviction subresource, which fails for such a pod whatever the budgets allow."""
    jobs = Jobs().add("kept", "b", 5, labels={"app": "web", "tier": "front"}).add("other", "b", 5, priority=1)
    jobs.add("mine", "a", 5, at=10)
    one, other = (budget({key: value}, minAvailable=0) for key, value in (("app", "web"), ("tier", "front")))
    other["metadata"]["name"] = "other"
    assert revoked(jobs, TWO, one, revokeAfter="30s") == ["40 evict kept"]
    assert revoked(jobs, TWO, one, other, revokeAfter="30s") == []


def test_after_a_pod_was_taken_only_what_it_requests_is_looked_at() -> None:
    """Its quota is above its runtime in memory too, which a pod without memory does not give back.

    So the pod with memory goes only after the delay, counted from the first eviction.
    """
    memory = {"min": {"cpu": 0, "memory": 5}, "max": {"cpu": 20, "memory": 10}}
    quotas = leaf("a", 0, 20, **memory), leaf("b", 0, 20, **{**memory, "min": {"cpu": 0, "memory": 0}})
    top = tree(20, *quotas)
    top["spec"]["root"] |= {"min": {"cpu": 20, "memory": 10}, "max": {"cpu": 20, "memory": 10}}
    jobs = Jobs().add("plain", "b", 5).add("large", "b", 10, priority=1, amounts={"memory": 8})
    jobs.add("mine", "a", 10, at=10, amounts={"memory": 5})
    assert revoked(jobs, top, cpu=20, revokeAfter="30s") == ["40 evict plain", "71 evict large"]
    assert revoked(jobs, top, cpu=20, revokeAfter="30s", quirks="off") == ["40 evict large"]


def test_a_resource_that_was_dropped_counts_anew_when_pods_are_given_back() -> None:
    """After `plain` only cpu is left. Giving `large` back counts its memory alone, which is too much."""
    memory = {"min": {"cpu": 0, "memory": 10}, "max": {"cpu": 30, "memory": 10}}
    quotas = leaf("a", 0, 30, **memory), leaf("b", 0, 30, **{**memory, "min": {"cpu": 0, "memory": 0}})
    top = tree(30, *quotas)
    top["spec"]["root"] |= {"min": {"cpu": 30, "memory": 10}, "max": {"cpu": 30, "memory": 10}}
    jobs = Jobs().add("large", "b", 5, amounts={"memory": 6}).add("plain", "b", 20, priority=1)
    jobs.add("mine", "a", 15, at=10, amounts={"memory": 8})
    assert revoked(jobs, top, cpu=30, revokeAfter="30s") == ["40 evict plain", "40 evict large"]


def test_a_resource_that_only_a_sibling_names_has_a_runtime_of_0() -> None:
    """After `plain` only cpu is left. Giving `large` back counts its memory, which the max of `b` lacks."""
    quotas = flat("a", 15, 30, amounts={"memory": 10}), flat("b", 0, 30)
    jobs = Jobs().add("large", "b", 5, amounts={"memory": 6}).add("plain", "b", 20, priority=1)
    jobs.add("mine", "a", 15, at=10)
    assert revoked(jobs, *quotas, cpu=30, revokeAfter="30s") == ["40 evict plain", "40 evict large"]
    assert revoked(jobs, *quotas, cpu=30, revokeAfter="30s", quirks="off") == ["40 evict plain"]


def test_the_most_important_pod_that_must_go_uses_a_budget_first() -> None:
    """Pods that fit after all are put back from the most important on, and those that do not go in turn."""
    web = {"app": "web"}
    jobs = Jobs().add("low", "b", 3, labels=web).add("high", "b", 3, labels=web, priority=1)
    jobs.add("rest", "b", 4, priority=2).add("mine", "a", 5, at=10)
    assert revoked(jobs, TWO, revokeAfter="30s") == ["40 evict high", "40 evict low"]
    assert revoked(jobs, TWO, budget(web, minAvailable=1), revokeAfter="30s")[0] == "40 evict high"
