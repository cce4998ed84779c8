"""The rules and examples of Kueue's page on ClusterQueues, each on a small cluster."""

from __future__ import annotations

import pytest
from kueue_worlds import (
    GI,
    Happened,
    Jobs,
    Manifest,
    Quota,
    cluster,
    flavor,
    local_queue,
    manifest,
    pod_set,
    queue,
    quota,
)

from harness import Cluster

TEAM_A = "team-a"
TEAM_B = "team-b"


def teams(a: Quota = 9, b: Quota = 12, **fields: object) -> Cluster:
    """The page's two teams in one cohort, here with cpu alone."""
    return cluster(queue(TEAM_A, cpu=a, **fields), queue(TEAM_B, cpu=b, **fields))


def test_a_queue_borrows_all_that_its_cohort_leaves_unused() -> None:
    """Team A has 9 CPUs and 36Gi, team B 12 and 48Gi: together 21 CPUs and 84Gi, and not a byte more."""
    quotas = [{"f": {"cpu": 9, "memory": "36Gi"}}, {"f": {"cpu": 12, "memory": "48Gi"}}]
    where = cluster(queue(TEAM_A, groups=quotas[:1]), queue(TEAM_B, groups=quotas[1:]))
    jobs = Jobs().many("a", 21, TEAM_A, 1, memory=4 * GI).add("core", TEAM_A, 1)
    happened = Happened(where, jobs.add("byte", TEAM_A, memory=1))
    assert happened.admitted == [f"a{number}" for number in range(21)]
    assert happened.row("admit", "a8").detail == {"borrowing": 0}
    assert happened.row("admit", "a9").detail == {
        "borrowing": 1,
        "lenders": {"f/cpu": "all", "f/memory": "all"},
    }


def test_a_borrowing_limit_of_1_makes_9_cpus_10() -> None:
    """However much is unused elsewhere."""
    happened = Happened(teams(quota(9, borrow=1)), Jobs().many("a", 12, TEAM_A, 1))
    assert len(happened.admitted) == 10


def test_a_borrowing_limit_of_0_is_a_limit() -> None:
    """Unlike one that is absent."""
    happened = Happened(teams(quota(9, borrow=0)), Jobs().many("a", 12, TEAM_A, 1))
    assert len(happened.admitted) == 9


def test_a_lending_limit_of_1_makes_9_cpus_10_for_the_other_queue() -> None:
    """Team B keeps 11 of its 12 CPUs to itself."""
    jobs = Jobs().many("a", 12, TEAM_A, 1).many("b", 12, TEAM_B, 1, at=1)
    happened = Happened(teams(9, quota(12, lend=1)), jobs)
    assert sum(name.startswith("a") for name in happened.admitted) == 10
    assert sum(name.startswith("b") for name in happened.admitted) == 11


def test_quota_is_met_before_anyone_borrows() -> None:
    """Both heads wait for the same free quota: team B's is within its own and goes first."""
    jobs = Jobs().add("first", TEAM_A, 21, seconds=10).add("a", TEAM_A, 12, at=1).add("b", TEAM_B, 12, at=2)
    happened = Happened(teams(), jobs)
    assert happened.lines("admit") == ["0 admit first", "10 admit b"]


def test_a_queue_without_cohort_has_its_own_quota_alone() -> None:
    """There is nobody to borrow from."""
    where = cluster(queue(TEAM_A, cpu=9, cohort=""), queue(TEAM_B, cpu=12))
    assert len(Happened(where, Jobs().many("a", 12, TEAM_A, 1)).admitted) == 9


# --- queueing strategies ----------------------------------------------------------------------------------


def test_best_effort_fifo_admits_a_later_job_where_the_first_one_waits() -> None:
    """The older one goes on waiting, and is admitted when it fits."""
    jobs = Jobs().add("holds", "q", 3, seconds=10).add("large", "q", 4, at=1).add("small", "q", 1, at=2)
    where = cluster(queue("q", cpu=4))
    happened = Happened(where, Jobs.add(jobs, "tiny", "q", 1, at=3, seconds=5), until=2000)
    assert happened.lines("admit") == ["0 admit holds", "2 admit small", "10 admit tiny", "1002 admit large"]


def test_strict_fifo_lets_nobody_pass_the_first_one() -> None:
    """Although the small one would fit at once."""
    jobs = Jobs().add("holds", "q", 3, seconds=10).add("large", "q", 4, at=1, seconds=5)
    where = cluster(queue("q", cpu=4, queueingStrategy="StrictFIFO"))
    happened = Happened(where, jobs.add("small", "q", 1, at=2))
    assert happened.lines("admit") == ["0 admit holds", "10 admit large", "15 admit small"]


def test_a_queue_serves_higher_priority_first_then_earlier_creation() -> None:
    """Also under StrictFIFO, where first means first in this order."""
    for strategy in ("StrictFIFO", "BestEffortFIFO"):
        jobs = Jobs().add("holds", "q", 4, seconds=10)
        jobs.add("old", "q", 4, at=1, seconds=5).add("new", "q", 4, at=3, seconds=5)
        jobs.add("high", "q", 4, at=4, priority=1, seconds=5)
        happened = Happened(cluster(queue("q", cpu=4, queueingStrategy=strategy)), jobs)
        assert happened.admitted == ["holds", "high", "old", "new"]


def test_jobs_created_within_one_second_are_ordered_by_uid() -> None:
    """Creation times are whole seconds in Kueue, however fine the trace is."""
    jobs = Jobs().add("holds", "q", 4, seconds=10)
    jobs.add("b", "q", 4, at=1.2, uid="2").add("a", "q", 4, at=1.9, uid="1")
    assert Happened(cluster(queue("q", cpu=4)), jobs).lines("admit") == ["0 admit holds", "10 admit a"]


def test_what_is_inadmissible_is_requeued_when_quota_is_freed_anywhere_in_its_tree() -> None:
    """The job of team A waits for quota that team B lends; an unrelated queue changes nothing."""
    where = cluster(queue(TEAM_A, cpu=1), queue(TEAM_B, cpu=1), queue("other", cpu=1, cohort=""))
    jobs = Jobs().add("b", TEAM_B, 1, seconds=10).add("other", "other", 1, seconds=5)
    happened = Happened(where, jobs.add("a", TEAM_A, 2, at=1))
    assert happened.lines("admit", "finish") == [
        "0 admit b",
        "0 admit other",
        "5 finish other",
        "10 finish b",
        "10 admit a",
    ]


# --- flavors ----------------------------------------------------------------------------------------------

SPOT, DEMAND = "spot", "on-demand"


def two_flavors(
    spot: Quota,
    demand: Quota,
    *,
    version: str = "v1beta2",
    fungibility: Manifest | None = None,
    **fields: object,
) -> Cluster:
    """Team A with two flavors, and team B whose quota it may borrow."""
    if fungibility is not None:
        fields["flavorFungibility"] = fungibility
    flavors = {SPOT: {"cpu": spot}, DEMAND: {"cpu": demand}}
    lender = queue(TEAM_B, flavors={SPOT: {"cpu": 4}, DEMAND: {"cpu": 0}})
    return cluster(
        flavor(SPOT), flavor(DEMAND), queue(TEAM_A, flavors=flavors, version=version, **fields), lender
    )


def test_flavors_are_tried_in_the_order_of_the_queue() -> None:
    """The first one that fits is taken."""
    happened = Happened(two_flavors(4, 4), Jobs().add("a", TEAM_A, 4))
    assert happened.flavors("a") == [SPOT]


@pytest.mark.parametrize(
    ("version", "value", "taken"),
    [
        ("v1beta2", None, SPOT),
        ("v1beta2", "MayStopSearch", SPOT),
        ("v1beta2", "TryNextFlavor", DEMAND),
        ("v1beta1", "Borrow", SPOT),
        ("v1beta1", "TryNextFlavor", DEMAND),
    ],
)
def test_when_can_borrow(version: str, value: str | None, taken: str) -> None:
    """Borrow in the first flavor, or go on to the next one, which fits without borrowing."""
    fungibility = {} if value is None else {"whenCanBorrow": value}
    where = two_flavors(2, 4, version=version, fungibility=fungibility)
    assert Happened(where, Jobs().add("a", TEAM_A, 4)).flavors("a") == [taken]


@pytest.mark.parametrize(
    ("version", "value", "victims", "taken"),
    [
        ("v1beta2", None, [], DEMAND),
        ("v1beta2", "TryNextFlavor", [], DEMAND),
        ("v1beta2", "MayStopSearch", ["low"], SPOT),
        ("v1beta1", "TryNextFlavor", [], DEMAND),
        ("v1beta1", "Preempt", ["low"], SPOT),
    ],
)
def test_when_can_preempt(version: str, value: str | None, victims: list[str], taken: str) -> None:
    """Preempt in the first flavor, or go on to the next one, which fits without."""
    fungibility = {} if value is None else {"whenCanPreempt": value}
    where = two_flavors(
        quota(4, borrow=0),
        4,
        version=version,
        fungibility=fungibility,
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    jobs = Jobs().add("low", TEAM_A, 4).add("a", TEAM_A, 4, at=5, priority=1)
    happened = Happened(where, jobs)
    assert (happened.victims, happened.flavors("a")) == (victims, [taken])


NEXT = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
GATE = "FlavorFungibilityImplicitPreferenceDefault=true"


@pytest.mark.parametrize(
    ("preference", "gates", "victims", "taken"),
    [
        ("", "", [], SPOT),
        ("BorrowingOverPreemption", "", [], SPOT),
        ("PreemptionOverBorrowing", "", ["low"], DEMAND),
        ("", GATE, ["low"], DEMAND),
        ("BorrowingOverPreemption", GATE, [], SPOT),
    ],
)
def test_preference_between_borrowing_and_preempting(
    preference: str, gates: str, victims: list[str], taken: str
) -> None:
    """One flavor fits by borrowing, the other one by preempting: the preference decides.

    Without one it is BorrowingOverPreemption; the gate, which 0.16.9 still has, makes it
    PreemptionOverBorrowing where `whenCanBorrow` is TryNextFlavor.
    """
    fungibility = {**NEXT, "preference": preference} if preference else NEXT
    low = pod_set("main", 1, 4, node_selector={"kind": DEMAND})
    labelled = [flavor(SPOT, nodeLabels={"kind": SPOT}), flavor(DEMAND, nodeLabels={"kind": DEMAND})]
    where = cluster(
        *labelled,
        queue(
            TEAM_A,
            flavors={SPOT: {"cpu": 2}, DEMAND: {"cpu": 4}},
            flavorFungibility=fungibility,
            preemption={"withinClusterQueue": "LowerPriority"},
        ),
        queue(TEAM_B, flavors={SPOT: {"cpu": 4}, DEMAND: {"cpu": 0}}),
    )
    jobs = Jobs().add("low", TEAM_A, pod_sets=(low,)).add("a", TEAM_A, 4, at=5, priority=1)
    happened = Happened(where, jobs, featureGates=gates, kueueVersion="v0.16" if gates else "")
    assert (happened.victims, happened.flavors("a")) == (victims, [taken])


@pytest.mark.parametrize(
    ("preference", "victims"), [("BorrowingOverPreemption", ["low"]), ("PreemptionOverBorrowing", [])]
)
def test_a_flavor_may_fit_as_a_whole_although_a_resource_of_it_does_not(
    preference: str, victims: list[str]
) -> None:
    """A flavor stands as its worst resource does: by the second preference that is the one that borrows.

    It fits, so nobody is preempted for the other one, as in Kueue; the job waits until quota is free.
    """
    where = cluster(
        queue(
            TEAM_A,
            flavors={"f": {"cpu": 4, "memory": "4Gi"}},
            flavorFungibility={**NEXT, "preference": preference},
            preemption={"withinClusterQueue": "LowerPriority"},
        ),
        queue(TEAM_B, flavors={"f": {"cpu": 0, "memory": "4Gi"}}),
    )
    jobs = Jobs().add("low", TEAM_A, 4).add("a", TEAM_A, 4, memory=6 * GI, at=5, priority=1)
    happened = Happened(where, jobs)
    assert happened.victims == victims
    assert ("a" in happened.admitted) == bool(victims)


def test_a_flavor_whose_labels_a_job_does_not_select_is_skipped() -> None:
    """A selector on a label that the flavor lacks does not count."""
    where = cluster(
        flavor(SPOT, nodeLabels={"kind": SPOT}),
        flavor(DEMAND, nodeLabels={"kind": DEMAND}),
        queue("q", flavors={SPOT: {"cpu": 4}, DEMAND: {"cpu": 4}}),
    )
    chosen = pod_set("main", 1, 1, node_selector={"kind": DEMAND, "zone": "x"})
    assert Happened(where, Jobs().add("a", "q", pod_sets=(chosen,))).flavors("a") == [DEMAND]


def test_a_flavor_with_a_taint_is_only_for_jobs_that_tolerate_it() -> None:
    """The flavor may tolerate it on their behalf."""
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    toleration = {"key": "spot", "operator": "Exists"}
    quotas = {SPOT: {"cpu": 4}, DEMAND: {"cpu": 4}}
    for tolerations, taken in (([], DEMAND), ([toleration], SPOT)):
        where = cluster(
            flavor(SPOT, nodeTaints=[taint], tolerations=tolerations),
            flavor(DEMAND),
            queue("q", flavors=quotas),
        )
        assert Happened(where, Jobs().add("a", "q", 1)).flavors("a") == [taken]
    tolerant = pod_set("main", 1, 1, tolerations='[{"key": "spot", "operator": "Exists"}]')
    where = cluster(flavor(SPOT, nodeTaints=[taint]), flavor(DEMAND), queue("q", flavors=quotas))
    assert Happened(where, Jobs().add("a", "q", pod_sets=(tolerant,))).flavors("a") == [SPOT]


def test_resource_groups_take_their_flavors_independently() -> None:
    """All resources of one group come from one flavor, those of another group from another one."""
    groups = [
        {SPOT: {"cpu": 1, "memory": "8Gi"}, DEMAND: {"cpu": 8, "memory": "8Gi"}},
        {"p100": {"nvidia.com/gpu": 4}},
    ]
    where = cluster(flavor(SPOT), flavor(DEMAND), flavor("p100"), queue("q", groups=groups))
    happened = Happened(where, Jobs().add("a", "q", 2, memory=GI, gpu=1))
    assert happened.row("admit", "a").flavors == {
        "main": {"cpu": DEMAND, "memory": DEMAND, "nvidia.com/gpu": "p100"}
    }


def test_pod_sets_are_admitted_together_each_with_its_own_flavor() -> None:
    """What earlier pod sets take counts for later ones; a job of which one does not fit waits as a whole."""
    where = cluster(flavor(SPOT), flavor(DEMAND), queue("q", flavors={SPOT: {"cpu": 4}, DEMAND: {"cpu": 4}}))
    fits = (pod_set("leader", 1, 3), pod_set("workers", 2, 2))
    large = (pod_set("leader", 1, 3), pod_set("workers", 3, 2))
    happened = Happened(where, Jobs().add("fits", "q", pod_sets=fits).add("large", "q", pod_sets=large))
    assert happened.admitted == ["fits"]
    assert happened.row("admit", "fits").flavors == {"leader": {"cpu": SPOT}, "workers": {"cpu": DEMAND}}


def test_pods_are_a_resource_where_the_queue_covers_them() -> None:
    """Each pod counts as one, whatever it requests."""
    where = cluster(queue("q", flavors={"f": {"cpu": 100, "pods": 5}}))
    happened = Happened(where, Jobs().add("three", "q", 1, pods=3).add("more", "q", 1, pods=3, at=1))
    assert happened.admitted == ["three"]


def test_a_resource_that_the_queue_does_not_cover_keeps_a_job_out() -> None:
    """It is never admitted, and the record says why."""
    happened = Happened(cluster(queue("q", cpu=4)), Jobs().add("a", "q", 1, gpu=1))
    assert happened.admitted == []
    assert happened.lines("reject") == ["0 reject a: ClusterQueue q has no quota for nvidia.com/gpu"]


def test_partial_admission_takes_the_most_pods_that_fit() -> None:
    """Of 10 pods at least 2; 6 fit. With the gate off the job waits."""
    jobs = Jobs().add("a", "q", pod_sets=(pod_set("main", 10, 1, least=2),))
    where = cluster(queue("q", cpu=6))
    assert Happened(where, jobs).row("admit", "a").pods == 6
    assert Happened(where, jobs, featureGates="PartialAdmission=false").admitted == []


# --- who may use a queue ----------------------------------------------------------------------------------


def test_a_namespace_that_the_selector_does_not_match_is_not_admitted() -> None:
    """Not even in an empty queue; under StrictFIFO its jobs do not block those of others."""
    labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "in", "labels": {"team": "a"}}}
    for strategy in ("StrictFIFO", "BestEffortFIFO"):
        selector = {"matchLabels": {"team": "a"}}
        where = cluster(labelled, queue("q", cpu=4, namespaceSelector=selector, queueingStrategy=strategy))
        jobs = Jobs().add("out", "q", 1, namespace="out").add("in", "q", 1, namespace="in", at=1)
        assert Happened(where, jobs).admitted == ["in"]


def test_a_queue_without_selector_is_open_to_no_namespace() -> None:
    """As in Kueue, where `{}` opens it to all."""
    closed = queue("q", cpu=4)
    del closed["spec"]["namespaceSelector"]
    assert Happened(cluster(closed), Jobs().add("a", "q", 1)).admitted == []


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_admits_nothing_but_still_lends(policy: str) -> None:
    """Its quota stays in the cohort."""
    where = cluster(queue(TEAM_A, cpu=9), queue(TEAM_B, cpu=12, stopPolicy=policy))
    happened = Happened(where, Jobs().add("b", TEAM_B, 1).add("a", TEAM_A, 21, at=1))
    assert happened.admitted == ["a"]


def test_a_queue_whose_flavor_does_not_exist_is_inactive() -> None:
    """Kueue waits for the ResourceFlavor."""
    where = cluster(queue("q", flavors={"missing": {"cpu": 4}}))
    assert Happened(where, Jobs().add("a", "q", 1)).admitted == []


def test_queues_with_a_flavor_whose_topology_does_not_exist_are_inactive() -> None:
    """Kueue waits for the Topology (TopologyNotFound). Queues with other flavors go on."""
    mine, other = queue("q", flavors={"f": {"cpu": 4}, "racks": {"cpu": 4}}), queue("r", cpu=4)
    where = cluster(flavor("racks", topologyName="t"), mine, other)
    happened = Happened(where, Jobs().add("mine", "q", 1).add("other", "r", 8))
    assert happened.admitted == ["other"]
    why = "there is no Topology t, which ResourceFlavor racks names"
    assert happened.lines("reject") == [f"0 reject mine: ClusterQueue q is inactive: {why}"]
    told = "there is no Topology t, so Kueue keeps queues with this flavor inactive; add its manifest"
    assert where.warnings == (f"ResourceFlavor racks: {told}, or omit topologyName",)
    without = Happened(where, Jobs().add("mine", "q", 1), kueueVersion="v0.13")  # its gate is off
    assert without.admitted == ["mine"]


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_queues_below_a_cycle_of_cohorts_are_inactive_and_the_others_go_on(plugin: str) -> None:
    """`skipInactiveCQReason` in pkg/cache/scheduler/snapshot.go."""
    where = cluster(
        *(manifest("Cohort", name, parentName=above) for name, above in ("ab", "ba", "cb")),
        queue("q", cpu=4, cohort="c"),
        queue("r", cpu=4),
        queue("s", cpu=4),
    )
    happened = Happened(where, Jobs().add("mine", "q", 1).add("other", "r", 8), plugin=plugin)
    assert happened.admitted == ["other"]
    assert happened.lines("reject") == [
        "0 reject mine: ClusterQueue q is inactive: Cohort a is its own ancestor: a > b > a"
    ]


def test_a_job_of_a_queue_that_does_not_exist_is_rejected() -> None:
    """By name."""
    happened = Happened(cluster(queue("q", cpu=4)), Jobs().add("a", "nowhere", 1))
    neither = "there is neither a LocalQueue nowhere in namespace default nor a ClusterQueue nowhere"
    assert happened.lines("reject") == [f"0 reject a: {neither}"]


def test_a_job_of_a_local_queue_that_leads_nowhere_is_rejected() -> None:
    """The LocalQueue is there; what is not is named."""
    where = cluster(queue("q", cpu=4), local_queue("door", "gone"))
    leads = "LocalQueue default/door leads to ClusterQueue gone, which does not exist"
    assert Happened(where, Jobs().add("a", "door", 1)).lines("reject") == [f"0 reject a: {leads}"]
