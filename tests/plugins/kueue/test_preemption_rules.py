"""The rules of Kueue's page on preemption, classic preemption alone, each on a small cluster."""

from __future__ import annotations

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, manifest, queue, quota

RECLAIM = {"reclaimWithinCohort": "Any"}
WITHIN = {"withinClusterQueue": "LowerPriority"}


def with_borrowing(threshold: int | None = None) -> Manifest:
    """Policies that let a job preempt others of the cohort even while its queue borrows."""
    borrow = {"policy": "LowerPriority"}
    more = {} if threshold is None else {"maxPriorityThreshold": threshold}
    return {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {**borrow, **more}}


# --- who is a candidate -----------------------------------------------------------------------------------


def test_by_default_nothing_is_preempted() -> None:
    """Both policies are Never."""
    jobs = Jobs().add("low", "q", 4).add("high", "q", 4, at=5, priority=9)
    assert Happened(cluster(queue("q", cpu=4)), jobs).preemptions == []


@pytest.mark.parametrize(
    ("policy", "priority", "victims"),
    [
        ("LowerPriority", 1, ["first", "old"]),
        ("LowerPriority", 0, []),
        ("LowerOrNewerEqualPriority", 0, ["new"]),
    ],
)
def test_within_cluster_queue(policy: str, priority: int, victims: list[str]) -> None:
    """Lower priority; or equal priority and created later than the preemptor.

    `mine` asks for 3 of 4 cores while older jobs hold all. `new` passes it when 2 become free, and may be
    preempted when one more does.
    """
    where = cluster(queue("q", cpu=4, preemption={"withinClusterQueue": policy}))
    jobs = Jobs().add("old", "q", 1).add("first", "q", 2, seconds=5).add("second", "q", 1, seconds=8)
    jobs.add("mine", "q", 3, at=1, priority=priority).add("new", "q", 2, at=2)
    assert sorted(Happened(where, jobs, until=9).victims) == victims


def test_reclaiming_takes_from_borrowers_alone() -> None:
    """`b` borrows and loses; `c` keeps to its quota and is left alone, however unimportant."""
    where = cluster(queue("a", cpu=4, preemption=RECLAIM), queue("b", cpu=2), queue("c", cpu=2))
    jobs = Jobs().add("b0", "b", 2, priority=9).add("b1", "b", 4, priority=9).add("c0", "c", 2)
    happened = Happened(where, jobs.add("mine", "a", 4, at=5))
    assert happened.preemptions == ["b1 by mine: InCohortReclamation"]


def test_reclaiming_lower_priority_spares_equal_and_higher_priority() -> None:
    """Unlike Any."""
    for policy, priority, victims in (("LowerPriority", 0, 0), ("LowerPriority", 1, 1), ("Any", -1, 1)):
        where = cluster(queue("a", cpu=4, preemption={"reclaimWithinCohort": policy}), queue("b", cpu=0))
        jobs = Jobs().add("b0", "b", 4).add("mine", "a", 4, at=5, priority=priority)
        assert len(Happened(where, jobs, until=6).victims) == victims


def test_victims_need_not_have_a_say() -> None:
    """The policies of the victims' queue do not matter, only the preemptor's."""
    never = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
    where = cluster(queue("a", cpu=4, preemption=RECLAIM), queue("b", cpu=0, preemption=never))
    jobs = Jobs().add("b0", "b", 4).add("mine", "a", 4, at=5)
    assert Happened(where, jobs, until=6).victims == ["b0"]


def test_who_uses_nothing_of_what_is_lacking_is_no_candidate() -> None:
    """Here `b` borrows memory and cores, and cores are lacking."""
    flavors = {"f": {"cpu": 4, "memory": 8}}
    where = cluster(
        queue("a", flavors=flavors, preemption=RECLAIM), queue("b", flavors={"f": {"cpu": 0, "memory": 0}})
    )
    jobs = Jobs().add("memory", "b", memory=4).add("cores", "b", 4).add("mine", "a", 4, at=5)
    assert Happened(where, jobs, until=6).victims == ["cores"]


# --- whom first -------------------------------------------------------------------------------------------


def test_other_queues_lose_before_the_own_queue() -> None:
    """Although the job of the own queue is less important."""
    where = cluster(queue("a", cpu=8, preemption={**RECLAIM, **WITHIN}), queue("b", cpu=0))
    jobs = Jobs().add("own", "a", 4, priority=-9).add("theirs", "b", 4).add("mine", "a", 4, at=5, priority=1)
    assert Happened(where, jobs, until=6).preemptions == ["theirs by mine: InCohortReclamation"]


def test_lower_priority_loses_first() -> None:
    """Then the job that was admitted last, then the smaller UID."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("low", "q", 2).add("lower", "q", 2, priority=-1).add("mine", "q", 2, at=5, priority=1)
    assert Happened(where, jobs, until=6).victims == ["lower"]


def test_among_equals_the_last_admitted_loses_first() -> None:
    """Not the one that was created last: `late` was created first, and waited for its quota."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN, queueingStrategy="BestEffortFIFO"))
    jobs = Jobs().add("short", "q", 2, seconds=5).add("late", "q", 3, at=1, seconds=1000)
    jobs.add("early", "q", 1, at=2).add("mine", "q", 3, at=8, priority=1)
    happened = Happened(where, jobs, until=9)
    assert happened.lines("admit")[:3] == ["0 admit short", "2 admit early", "5 admit late"]
    assert happened.victims == ["late"]


def test_admission_times_are_whole_seconds() -> None:
    """Within one second the smaller UID loses first, although the other one was admitted later."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("first", "q", 2, at=1.1).add("second", "q", 2, at=1.9)
    assert jobs["first"].uid < jobs["second"].uid
    happened = Happened(where, jobs.add("mine", "q", 2, at=5, priority=1), until=6)
    assert happened.victims == ["first"]


# --- the four heuristics, and the final step --------------------------------------------------------------


def test_candidates_of_the_own_queue_alone_may_go_for_a_job_that_borrows() -> None:
    """First heuristic: above the nominal quota, up to the borrowing limit."""
    for limit, victims in ((2, ["low"]), (1, [])):
        where = cluster(queue("a", cpu=quota(4, borrow=limit), preemption=WITHIN), queue("b", cpu=4))
        jobs = Jobs().add("high", "a", 3, priority=9).add("low", "a", 2).add("mine", "a", 3, at=5, priority=1)
        assert Happened(where, jobs, until=6).victims == victims


def test_with_borrow_within_cohort_others_may_go_for_a_job_that_borrows() -> None:
    """Second heuristic; without the policy nobody goes."""
    policies: list[tuple[Manifest, list[str]]] = [
        (with_borrowing(), ["theirs by mine: InCohortReclaimWhileBorrowing"]),
        ({"reclaimWithinCohort": "LowerPriority"}, []),
    ]
    for policy, preemptions in policies:
        where = cluster(queue("a", cpu=2, preemption=policy), queue("b", cpu=2), queue("c", cpu=4))
        jobs = Jobs().add("theirs", "b", 8).add("mine", "a", 4, at=5, priority=1)
        assert Happened(where, jobs, until=6).preemptions == preemptions


@pytest.mark.parametrize(("threshold", "victims"), [(None, 1), (5, 1), (4, 0)])
def test_borrow_within_cohort_spares_what_is_above_its_threshold(threshold: int | None, victims: int) -> None:
    """A priority at the threshold is not above it."""
    where = cluster(queue("a", cpu=2, preemption=with_borrowing(threshold)), queue("b", cpu=6))
    jobs = Jobs().add("theirs", "b", 8, priority=5).add("mine", "a", 4, at=5, priority=9)
    assert len(Happened(where, jobs, until=6).victims) == victims


def test_below_its_quota_a_queue_takes_back_without_borrowing() -> None:
    """Third heuristic: what is above the threshold may go while the preemptor's queue does not borrow."""
    where = cluster(queue("a", cpu=4, preemption=with_borrowing(4)), queue("b", cpu=4))
    jobs = Jobs().add("theirs", "b", 8, priority=5).add("mine", "a", 4, at=5, priority=9)
    assert Happened(where, jobs, until=6).preemptions == ["theirs by mine: InCohortReclamation"]


def test_what_reclaiming_cannot_give_the_own_queue_does() -> None:
    """Fourth heuristic: the own queue's job goes; the borrower's may only without borrowing."""
    where = cluster(
        queue("a", cpu=4, preemption={**WITHIN, "reclaimWithinCohort": "LowerPriority"}),
        queue("b", cpu=0),
        queue("c", cpu=4),
    )
    jobs = Jobs().add("high", "a", 3, priority=9).add("own", "a", 3).add("theirs", "b", 2)
    jobs.add("mine", "a", 3, at=5, priority=1)
    assert Happened(where, jobs, until=6).preemptions == ["own by mine: InClusterQueue"]


def test_targets_that_turn_out_not_to_be_needed_are_spared() -> None:
    """Final step: the small job is taken first, and stays once the large one goes too."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("large", "q", 3).add("small", "q", 1, priority=-1)
    happened = Happened(where, jobs.add("mine", "q", 3, at=5, priority=1), until=6)
    assert happened.preemptions == ["large by mine: InClusterQueue"]


def test_nobody_goes_where_it_would_not_suffice() -> None:
    """All or nothing."""
    where = cluster(queue("q", cpu=4, preemption=WITHIN))
    jobs = Jobs().add("low", "q", 2).add("equal", "q", 2, priority=1).add("mine", "q", 3, at=5, priority=1)
    happened = Happened(where, jobs)
    assert happened.preemptions == []
    assert happened.lines("refuse") == ["5 refuse mine: PreemptionNoCandidates"]


def test_a_borrower_is_taken_from_until_its_queue_does_not_borrow_any_more() -> None:
    """`b` keeps its nominal 2 of 6 cores."""
    where = cluster(queue("a", cpu=6, preemption=RECLAIM), queue("b", cpu=2))
    jobs = Jobs().many("b", 8, "b", 1).add("mine", "a", 6, at=5)
    assert len(Happened(where, jobs, until=6).victims) == 6


def test_a_strict_fifo_head_that_may_preempt_does() -> None:
    """A first one that cannot be helped keeps those behind it from preempting, not only from admission."""
    for first, victims in ((4, ["low"]), (5, [])):
        where = cluster(queue("q", cpu=4, preemption=WITHIN, queueingStrategy="StrictFIFO"))
        jobs = Jobs().add("low", "q", 4).add("first", "q", first, at=2, priority=9)
        assert Happened(where, jobs.add("behind", "q", 4, at=3, priority=5), until=6).victims == victims


def test_a_hierarchy_of_cohorts_lends_across_its_branches() -> None:
    """Quota of the root cohort itself is everybody's; what a branch keeps back is not seen from outside."""
    cohorts = [
        manifest("Cohort", "root", resourceGroups=_cohort_quota(2)),
        manifest("Cohort", "left", parentName="root"),
        manifest("Cohort", "right", parentName="root"),
    ]
    where = cluster(
        *cohorts,
        queue("a", cohort="left", cpu=1, preemption=RECLAIM),
        queue("b", cohort="right", cpu=quota(3, lend=2)),
    )
    happened = Happened(where, Jobs().many("a", 8, "a", 1))
    assert len(happened.admitted) == 5
    assert happened.row("admit", "a4").detail == {"borrowing": 2, "lenders": {"f/cpu": "root"}}
    jobs = Jobs().many("b", 6, "b", 1).add("mine", "a", 1, at=5)
    assert Happened(where, jobs, until=6).preemptions == ["b0 by mine: InCohortReclamation"]


def _cohort_quota(cpu: int) -> list[Manifest]:
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}]


# --- what the record says ---------------------------------------------------------------------------------


def test_the_record_has_kueues_message_and_the_figures_that_allowed_it() -> None:
    """The message of the conditions, and what both queues used and had."""
    where = cluster(queue("a", cpu=4, preemption=RECLAIM), queue("b", cpu=2))
    jobs = Jobs().add("theirs", "b", 6).add("mine", "a", 4, at=5)
    happened = Happened(where, jobs, until=6)
    assert happened.row("preempt", "theirs").detail == {
        "message": (
            "Preempted to accommodate a workload (UID: 000001, JobUID: mine) due to reclamation within the "
            "cohort; preemptor path: /all/a; preemptee path: /all/b"
        ),
        "queue": "a",
        "request": {"f/cpu": 4000},
        "usage": {"a": {"f/cpu": 0}, "b": {"f/cpu": 6000}},
        "quota": {"a": {"f/cpu": 4000}, "b": {"f/cpu": 2000}},
    }


@pytest.mark.parametrize(
    ("preemption", "priority", "words"),
    [
        (WITHIN, 1, "due to prioritization in the ClusterQueue"),
        (RECLAIM, 0, "due to reclamation within the cohort"),
        (with_borrowing(), 1, "due to reclamation within the cohort while borrowing"),
    ],
)
def test_reasons_are_in_kueues_words(preemption: Manifest, priority: int, words: str) -> None:
    """As the condition of the victim has them."""
    borrowing = "borrowWithinCohort" in preemption
    where = cluster(queue("a", cpu=2 if borrowing else 4, preemption=preemption), queue("b", cpu=2))
    home = "a" if preemption is WITHIN else "b"
    jobs = Jobs().add("theirs", home, 4 if borrowing else 6).add("mine", "a", 4, at=5, priority=priority)
    detail = Happened(where, jobs, until=6).decisions.of("preempt")[0].detail
    assert detail is not None
    assert words in detail["message"]
