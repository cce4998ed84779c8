"""Koordinator's semantics: runtime by weighted fair share, and over-use that is revoked."""

from __future__ import annotations

from quota_worlds import Happened, Jobs, Manifest, cluster, leaf, node, tree

from harness_plugins.elastic_quota.koordinator import RuntimeTree

KOORDINATOR = "quota.scheduling.koordinator.sh/"
TWO = tree(10, leaf("a", 5, 10), leaf("b", 5, 10))


def fair(jobs: Jobs, **options: str) -> Happened:
    """A replay for 200 s on one node of 10 cores that two equal quotas share."""
    return Happened(cluster(node("n", 10), TWO), jobs, until=200, semantics="koordinator", **options)


def test_idle_guarantees_are_lent_and_over_use_is_revoked() -> None:
    """The owner asks again: nobody is preempted for it, but the borrower loses what is beyond its share."""
    jobs = Jobs().add("low", "b", 5).add("high", "b", 5, priority=3).add("mine", "a", 5, at=10)
    happened = Happened(
        cluster(node("n", 10), TWO), jobs, until=200, semantics="koordinator", revokeAfter="30s"
    )
    assert happened.lines("bind", "preempt", "evict") == [
        "0 bind high on n",
        "0 bind low on n",
        "40 evict low",
        "40 bind mine on n",
    ]
    (evicted,) = happened.decisions.of("evict")
    assert evicted.reason == "QuotaOveruse"
    assert happened.used == {"root": 10, "a": 5, "b": 5}


def test_what_need_not_go_is_given_back() -> None:
    """A small pod that was taken first stays if taking a larger one is enough."""
    jobs = Jobs().add("small", "b", 1).add("large", "b", 5, priority=1).add("rest", "b", 4, priority=2)
    jobs.add("mine", "a", 5, at=10)
    happened = fair(jobs)
    assert happened.lines("evict") == ["130 evict large"]


def test_pods_that_must_not_be_preempted_are_not_revoked() -> None:
    """By Koordinator's label; the next ones are."""
    never = {f"{KOORDINATOR}preemptible": "false"}
    jobs = (
        Jobs().add("kept", "b", 5, labels=never).add("other", "b", 5, priority=3).add("mine", "a", 5, at=10)
    )
    happened = fair(jobs)
    assert happened.lines("evict") == ["130 evict other"]


def test_preemption_stays_within_the_quota() -> None:
    """Lower priority of the own quota goes; another quota's pods do not, whatever their priority."""
    jobs = Jobs().add("own", "a", 5, priority=1).add("theirs", "b", 5).add("mine", "a", 5, at=10, priority=2)
    happened = fair(jobs)
    assert happened.preemptions == ["own by mine"]
    never = {f"{KOORDINATOR}preemptible": "false"}
    spared = (
        Jobs().add("own", "a", 5, labels=never).add("theirs", "b", 5).add("mine", "a", 5, at=10, priority=2)
    )
    assert fair(spared).preemptions == []


def test_what_pods_without_a_quota_hold_besides_cpu_and_memory_is_shared_all_the_same() -> None:
    """The quota that they are charged to names cpu and memory only."""
    quotas = RuntimeTree(cluster(flat("a", 0, 8, amounts={"gpu": 8})).elastic_quotas, {"cpu": 8000, "gpu": 8})
    quotas.ask(quotas.leaves["a"], {"cpu": 8000, "gpu": 8})
    quotas.take_outside(quotas.counted(None, {"cpu": 1000, "gpu": 4}))
    assert quotas.runtime(quotas.leaves["a"]) == {"cpu": 7000, "gpu": 8}


def flat(
    name: str, least: int, most: int, *, amounts: dict[str, int] | None = None, **labels: str
) -> Manifest:
    """A Koordinator ElasticQuota of cpu, and of other resources that its `max` may name."""
    given = {f"{KOORDINATOR}{key.replace('_', '-')}": value for key, value in labels.items()}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": name, "labels": given},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most, **(amounts or {})}},
    }


def test_koordinators_own_manifests_bound_only_what_max_names() -> None:
    """A quota that does not lend keeps its guarantee idle; nodes are the total."""
    where = cluster(
        node("n", 10),
        flat("a", 4, 10, tree_id="", allow_lent_resource="false"),
        flat("b", 0, 10, tree_id="", allow_lent_resource="true"),
    )
    jobs = Jobs().add("theirs", "b", 3, pods=3, gang=False)
    happened = Happened(where, jobs, until=100, semantics="koordinator")
    assert happened.lines("bind") == ["0 bind theirs-0 on n", "0 bind theirs-1 on n"]
    assert happened.used == {"a": 0, "b": 6}
