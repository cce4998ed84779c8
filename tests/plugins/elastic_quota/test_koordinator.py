"""Koordinator's semantics: runtime by weighted fair share, and over-use that is revoked."""

from __future__ import annotations

from quota_worlds import KOORDINATOR, Happened, Jobs, Manifest, cluster, flat, leaf, node, tree

from harness.models.elastic.runtime_quotas import RuntimeQuotas
from harness.models.elastic.tree import QuotaTree

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


def test_a_pod_of_a_parent_quota_is_refused() -> None:
    """`ValidateAddPod` in pkg/webhook/elasticquota/pod_check.go."""
    quotas = flat("p", 5, 10, is_parent="true"), flat("a", 5, 10, parent="p")
    where = cluster(node("n", 10), *quotas)
    jobs = Jobs().add("mine", "a", 5).add("theirs", "a", 5, labels={f"{KOORDINATOR}name": "p"})
    happened = Happened(where, jobs, until=10)
    assert happened.lines("bind", "reject") == ["0 reject theirs", "0 bind mine on n"]
    (row,) = happened.decisions.of("reject")
    assert row.reason == "p is a parent, and Koordinator's webhook refuses its pods"


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
    manifests = cluster(flat("a", 0, 8, amounts={"gpu": 8})).elastic_quotas
    runtimes = RuntimeQuotas(manifests, {"cpu": 8000, "gpu": 8})
    quotas = QuotaTree(manifests, hierarchical=True, runtimes=runtimes)
    quotas.ask(quotas.leaves["a"], {"cpu": 8000, "gpu": 8})
    quotas.take_outside(quotas.counted(None, {"cpu": 1000, "gpu": 4}))
    assert quotas.runtime(quotas.leaves["a"]) == {"cpu": 7000, "gpu": 8}


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


FIRM = {f"{KOORDINATOR}preemptible": "false"}


def played(jobs: Jobs, *manifests: Manifest, cpu: int, memory: int = 100, **options: object) -> Happened:
    """What happens in 20 s on one node."""
    there = cluster(node("n", cpu, amounts={"memory": memory}), *manifests)
    return Happened(there, jobs, until=20, semantics="koordinator", **options)


def refused(happened: Happened, job: str) -> str:
    """What was first said of a job that waits."""
    return str(next(row.detail for row in happened.decisions.of("refuse") if row.job == job))


def test_whoever_is_still_refused_evicts_all_the_same() -> None:
    """A dry run asks the quota only as victims are put back, not when all are gone."""
    jobs = Jobs().add("low", "a", 5).add("high", "a", 5, priority=5).add("mine", "a", 8, at=5, priority=1)
    happened = played(jobs, flat("a", 0, 10), cpu=20)
    assert happened.preemptions[0] == "low by mine"
    assert "mine" not in {row.job for row in happened.decisions.of("bind")}
    assert played(jobs, flat("a", 0, 10), cpu=20, quirks="off").preemptions == []


def test_a_victim_is_taken_away_twice_where_node_and_quota_both_refuse_it() -> None:
    """The second time fails, and with it the node."""
    jobs = Jobs().add("low", "a", 5).add("high", "a", 5, priority=5).add("mine", "a", 8, at=5, priority=1)
    happened = played(jobs, flat("a", 0, 10), cpu=14)
    assert happened.preemptions == []
    assert "no corresponding pod low in pods of node n" in refused(happened, "mine")
    settled = played(jobs, flat("a", 0, 10), cpu=14, quirks="off")
    assert settled.preemptions == []
    assert "global quota max exceeded" in refused(settled, "mine")


def test_victims_are_put_back_by_requested_resources_and_pods_let_in_by_all() -> None:
    """A quota that is over its runtime in memory refuses a pod of cpu, for which nobody has to go."""
    quotas = [
        flat(name, 0, 20, amounts={"memory": 10}, least_amounts={"memory": least})
        for name, least in (("a", 0), ("b", 5))
    ]
    jobs = Jobs().add("low", "a", 1, amounts={"memory": 8}).add("theirs", "b", 1, at=3, amounts={"memory": 5})
    jobs.add("mine", "a", 1, at=5, priority=1)
    happened = played(jobs, *quotas, cpu=20, memory=10)
    assert happened.preemptions == []
    assert "quota a would use more memory than its runtime" in refused(happened, "mine")
    assert played(jobs, *quotas, cpu=20, memory=10, quirks="off").preemptions == ["low by mine"]


def test_pods_that_must_not_be_preempted_are_bounded_by_min() -> None:
    """Others may use more; where the node is full such a pod preempts although that does not help it."""
    jobs = Jobs().add("firm", "a", 4, labels=FIRM).add("low", "a", 2)
    jobs.add("mine", "a", 2, at=5, priority=1, labels=FIRM)
    assert played(jobs, flat("a", 4, 20), cpu=20).preemptions == []
    happened = played(jobs, flat("a", 4, 20), cpu=6)
    assert happened.preemptions[0] == "low by mine"
    settled = played(jobs, flat("a", 4, 20), cpu=6, quirks="off")
    assert settled.preemptions == []
    assert "pods that must not be preempted would exceed their quota's min" in refused(settled, "mine")
    large = Jobs().add("large", "a", 5, labels=FIRM)
    (never,) = played(large, flat("a", 4, 20), cpu=20).decisions.of("reject")
    assert "pods of quota a that must not be preempted would use more cpu than its min" in str(never.reason)


def test_pods_without_a_quota_preempt_nobody_and_are_not_preempted() -> None:
    """`disableDefaultQuotaPreemption` is on by default."""
    jobs = Jobs().add("low", "none", 5).add("mine", "none", 5, at=5, priority=1)
    jobs.add("theirs", "a", 5, at=5, priority=2)
    assert played(jobs, flat("a", 0, 10), cpu=5).preemptions == []


def test_quotas_above_are_asked_where_that_is_switched_on() -> None:
    """They may use more than their runtime since it has fallen, while one below them is within its own."""
    quotas = [
        flat("group", 2, 20, is_parent="true"),
        flat("x", 0, 20, parent="group"),
        flat("y", 2, 20, parent="group"),
        flat("z", 5, 20, is_parent="false"),
    ]
    jobs = Jobs().add("large", "x", 8).add("theirs", "z", 6, at=3).add("mine", "y", 2, at=5)
    assert "5 bind mine on n" in played(jobs, *quotas, cpu=10).lines("bind")
    happened = played(jobs, *quotas, cpu=10, enableCheckParentQuota="true")
    assert "quota group would use more cpu than its runtime" in refused(happened, "mine")


def test_a_resource_that_only_siblings_name_spoils_dry_runs() -> None:
    """Quota `a` names no gpu, so its runtime of gpu is 0, which dry runs ask when a victim is put back.

    `low` does not fit beside `mine`, so it is removed twice, and the node is no candidate.
    """
    quotas = flat("a", 5, 10), flat("b", 5, 10, amounts={"gpu": 4})
    where = cluster(node("n", 10, amounts={"gpu": 4}), *quotas)
    jobs = Jobs().add("low", "a", 8).add("mine", "a", 4, at=10, priority=1, amounts={"gpu": 1})
    assert Happened(where, jobs, until=100).preemptions == []
    assert Happened(where, jobs, until=100, quirks=False).preemptions == ["low by mine"]
    without = Jobs().add("low", "a", 8).add("mine", "a", 4, at=10, priority=1)
    assert Happened(where, without, until=100).preemptions == ["low by mine"]
