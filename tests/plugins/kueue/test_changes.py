"""Queues and cohorts that change while a replay goes on: what follows from it, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, local_queue, manifest, queue

from harness import Cluster, View
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.changes.over_time import unrolled
from harness.plugins import load
from harness.testing import replayed
from harness_plugins.kueue.factory import classic
from harness_plugins.kueue.policy import KueuePolicy


def at(second: int, document: Manifest, until: int | None = None, **spec: Any) -> Manifest:
    """A patch over a document that holds from a second on."""
    annotations = {"harness/from": f"{second}s"}
    if until is not None:
        annotations["harness/until"] = f"{until}s"
    metadata = document["metadata"] | {"annotations": annotations}
    return {name: document[name] for name in ("apiVersion", "kind")} | {"metadata": metadata, "spec": spec}


def cpu(amount: int) -> list[Manifest]:
    """Resource groups with a nominal quota of cpu."""
    return [{"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": amount}]}]}]


def changing(*manifests: Manifest) -> Cluster:
    """A cluster of manifests, some with a time."""
    return unrolled(cluster(*manifests), None)


def _messages(happened: Happened, second: int) -> dict[str, str]:
    """Why jobs are refused at a time."""
    rows = [row for row in happened.decisions.of("refuse") if row.time == second * SECOND]
    return {row.job: (row.detail or {})["message"] for row in rows}


def test_quota_below_usage_evicts_nobody_and_lets_nobody_in_until_usage_has_come_down() -> None:
    """The queue falls from 4 to 1 at 5 s while it uses 4; the next one waits for the end at 20 s."""
    alone = queue("q", cohort="", cpu=4)
    jobs = Jobs().add("first", "q", 4, seconds=20).add("second", "q", 1, at=6, seconds=5)
    happened = Happened(changing(alone, at(5, alone, resourceGroups=cpu(1))), jobs)
    assert happened.lines("admit", "finish", "evict") == [
        "0 admit first",
        "20 finish first",
        "20 admit second",
        "25 finish second",
    ]


def test_more_quota_wakes_whoever_is_inadmissible_in_the_tree_at_once() -> None:
    """A cohort mate gets 3 more at 7 s, which the waiting job borrows."""
    mine, other = queue("mine", cpu=1), queue("other", cpu=0)
    jobs = Jobs().add("large", "mine", 3, seconds=5)
    happened = Happened(changing(mine, other, at(7, other, resourceGroups=cpu(3))), jobs)
    assert happened.lines("admit") == ["7 admit large"]


def test_a_weight_wakes_the_tree_too_though_nothing_is_free() -> None:
    """With fair sharing a lower weight makes a borrower's share large enough to preempt it."""
    low = {"reclaimWithinCohort": "Any"}
    rich = queue("rich", cpu=0, fairSharing={"weight": 9}, preemption=low)
    poor = queue("poor", cpu=0, preemption=low)
    lender = queue("lender", cpu=4)
    jobs = Jobs().many("r", 4, "rich", 1, grace=0, seconds=50).add("p", "poor", 1, at=1, seconds=5)
    before = Happened(changing(rich, poor, lender), jobs, plugin="fairsharing", until=40)
    assert before.lines("preempt") == []
    changed = at(10, rich, fairSharing={"weight": "100m"})
    after = Happened(changing(rich, poor, lender, changed), jobs, plugin="fairsharing", until=40)
    assert after.lines("preempt")[0].startswith("10 preempt r")


def test_a_drained_queue_evicts_by_name_and_its_workloads_wait_until_it_restarts() -> None:
    """They keep their creation time, so that who came while it was stopped comes after them."""
    one = queue("q", cpu=4)
    jobs = Jobs().add("b", "q", 1, grace=0, seconds=30).add("a", "q", 1, at=1, grace=0, seconds=30)
    jobs.add("late", "q", 4, at=11, seconds=5)
    happened = Happened(changing(one, at(10, one, until=20, stopPolicy="HoldAndDrain")), jobs)
    assert happened.lines("admit", "evict") == [
        "0 admit b",
        "1 admit a",
        "10 evict a: ClusterQueueStopped",
        "10 evict b: ClusterQueueStopped",
        "20 admit b",
        "20 admit a",
        "50 admit late",
    ]


def test_a_held_queue_goes_on_lending_and_its_workloads_run_on_and_cannot_be_preempted() -> None:
    """Its 4 cores serve the mate, which finds no candidate in it afterwards."""
    held = queue("held", cpu=4)
    mate = queue("mate", cpu=0, preemption={"reclaimWithinCohort": "Any"})
    jobs = Jobs().add("mine", "held", 2, seconds=40).add("borrows", "mate", 2, at=6, seconds=10)
    jobs.add("waits", "held", 1, at=7, seconds=5)
    happened = Happened(changing(held, mate, at(5, held, until=30, stopPolicy="Hold")), jobs)
    assert happened.lines("admit", "preempt", "evict") == [
        "0 admit mine",
        "6 admit borrows",
        "30 admit waits",
    ]


def test_hold_is_not_the_end_of_a_drain() -> None:
    """Evicted workloads wait on while the queue is held, and the drain evicts whom a hold has left."""
    one = queue("q", cpu=4)
    jobs = Jobs().add("a", "q", 1, grace=0, seconds=30)
    changes = [
        at(5, one, until=10, stopPolicy="Hold"),
        at(10, one, until=15, stopPolicy="HoldAndDrain"),
        at(15, one, until=20, stopPolicy="Hold"),
    ]
    happened = Happened(changing(one, *changes), jobs)
    assert happened.lines("admit", "evict") == ["0 admit a", "10 evict a: ClusterQueueStopped", "20 admit a"]


def test_one_that_reserved_and_waits_for_checks_loses_its_reservation_when_its_queue_is_held() -> None:
    """It was not admitted yet; one whose checks are ready runs on."""
    one = queue("q", cpu=4, admissionChecksStrategy={"admissionChecks": [{"name": "slow"}]})
    check = manifest("AdmissionCheck", "slow", controllerName="x")
    jobs = Jobs().add("ready", "q", 1, seconds=50).add("not-yet", "q", 1, at=12, seconds=50)
    where = changing(check, one, at(15, one, until=20, stopPolicy="Hold"))
    happened = Happened(where, jobs, admissionCheckDelay="10s")
    assert happened.lines("admit", "evict") == [
        "0 admit ready",
        "12 admit not-yet",
        "15 evict not-yet: Inadmissible",
        "20 admit not-yet",
    ]


def test_a_stopped_local_queue_keeps_its_jobs_out_until_it_restarts() -> None:
    """A drain of the LocalQueue evicts only the workloads that came through it.

    Kueue tries all that were pending as the LocalQueue restarts. One that was evicted is queued like a new
    one, and so it is inadmissible like its equal at 1 s, until quota becomes free.
    """
    one, door, other = queue("q", cpu=4), local_queue("door", "q"), local_queue("other", "q")
    jobs = Jobs().add("a", "door", 2, grace=0, seconds=30).add("b", "other", 2, seconds=30)
    jobs.add("c", "door", 2, at=1, seconds=5)
    happened = Happened(changing(one, door, other, at(10, door, until=20, stopPolicy="HoldAndDrain")), jobs)
    assert happened.lines("admit", "evict") == [
        "0 admit a",
        "0 admit b",
        "10 evict a: LocalQueueStopped",
        "20 admit c",
        "25 admit a",
    ]


def test_a_queue_that_moves_takes_its_quota_and_its_usage_to_the_other_cohort() -> None:
    """Until 10 s the idle lender's 4 cores serve one side, from then on the other."""
    lender = queue("lender", cohort="left", cpu=4)
    left, right = queue("left", cohort="left", cpu=0), queue("right", cohort="right", cpu=0)
    jobs = Jobs().many("l", 3, "left", 2, seconds=30).many("r", 3, "right", 2, seconds=30)
    happened = Happened(changing(lender, left, right, at(10, lender, cohortName="right")), jobs)
    assert happened.lines("admit") == [
        "0 admit l0",
        "0 admit l1",
        "10 admit r0",
        "10 admit r1",
        "40 admit r2",
    ]


def test_a_queue_that_leaves_a_cohort_wakes_nobody_in_it() -> None:
    """Its 4 borrowed cores are free in the cohort from 10 s; who waits is tried when one ends there."""
    guest, lender = queue("guest", cohort="left", cpu=0), queue("lender", cohort="left", cpu=4)
    small = queue("small", cohort="left", cpu=1)
    jobs = Jobs().add("borrows", "guest", 4, seconds=90).add("runs", "small", 1, seconds=30)
    jobs.add("waits", "lender", 4, at=1, seconds=5)
    happened = Happened(changing(guest, lender, small, at(10, guest, cohortName="right")), jobs)
    assert happened.lines("admit") == ["0 admit runs", "0 admit borrows", "30 admit waits"]


def test_who_was_pending_as_a_local_queue_restarts_is_tried_though_equal_ones_are_inadmissible() -> None:
    """It is older than the running job, so it preempts that one, which its equal at 5 s could not."""
    one = queue("q", cpu=2, preemption={"withinClusterQueue": "LowerOrNewerEqualPriority"})
    door, other = local_queue("door", "q", stopPolicy="Hold"), local_queue("other", "q")
    jobs = Jobs().add("old", "door", 2, seconds=5).add("runs", "other", 2, at=1, grace=0, seconds=60)
    jobs.add("equal", "other", 2, at=5, seconds=5)
    happened = Happened(changing(one, door, other, at(20, door, stopPolicy="None")), jobs)
    assert happened.lines("admit", "preempt") == [
        "1 admit runs",
        "20 preempt runs by old: InClusterQueue",
        "21 admit old",
        "26 admit runs",
        "86 admit equal",
    ]


def test_an_equal_job_that_arrives_after_a_local_queue_restarts_is_inadmissible_until_a_requeue() -> None:
    """Its quota is free since 10 s, but that woke nobody; the end at 60 s does. The older one comes first."""
    doors = [local_queue("door", "q"), local_queue("held", "q", stopPolicy="Hold"), local_queue("other", "q")]
    jobs = Jobs().add("ends", "door", 6, seconds=10).add("runs", "other", 1, seconds=60)
    jobs.add("waits", "other", 3, at=1, seconds=90).add("restarts", "held", 3, at=2, seconds=90)
    jobs.add("equal", "other", 3, at=25, seconds=5)
    stop, restart = at(5, doors[0], stopPolicy="Hold"), at(20, doors[1], stopPolicy="None")
    happened = Happened(changing(queue("q", cpu=7), *doors, stop, restart), jobs)
    assert happened.lines("admit")[2:] == ["20 admit restarts", "60 admit waits"]


@pytest.mark.parametrize(
    ("strategies", "first"),
    [(("BestEffortFIFO", "StrictFIFO"), "sticks"), (("StrictFIFO", "BestEffortFIFO"), "higher")],
)
def test_a_preemptor_is_sticky_or_not_as_its_queue_was_when_it_preempted(
    strategies: tuple[str, str], first: str
) -> None:
    """The strategy changes as its victim is gone and a job of higher priority arrives."""
    within = {"withinClusterQueue": "LowerPriority"}
    one = queue("q", cpu=4, queueingStrategy=strategies[0], preemption=within)
    jobs = Jobs().add("victim", "q", 4, grace=30, seconds=90).add("sticks", "q", 4, at=1, priority=1)
    jobs.add("higher", "q", 4, at=31, priority=2)
    where = changing(one, at(31, one, queueingStrategy=strategies[1]))
    happened = Happened(where, jobs, until=31, evictionLatency="0s")
    assert happened.lines("admit")[1] == f"31 admit {first}"


@pytest.mark.parametrize(("stop", "ends"), [("Hold", "20 finish ends"), ("HoldAndDrain", "10 evict ends")])
def test_workloads_of_a_stopped_local_queue_wake_nobody_as_they_end(stop: str, ends: str) -> None:
    """Kueue finds no LocalQueue for them; who waits is tried when a workload of another one ends."""
    one, door, other = queue("q", cpu=4), local_queue("door", "q"), local_queue("other", "q")
    jobs = Jobs().add("ends", "door", 3, grace=0, seconds=20).add("runs", "other", 1, seconds=40)
    jobs.add("waits", "other", 3, at=1, seconds=5).add("comes", "other", 2, at=25, seconds=5)
    happened = Happened(changing(one, door, other, at(10, door, stopPolicy=stop)), jobs)
    assert ends in [line.split(":")[0] for line in happened.lines("finish", "evict")]
    assert happened.lines("admit") == ["0 admit ends", "0 admit runs", "25 admit comes", "30 admit waits"]
    why = f"LocalQueue default/door is inactive: its stopPolicy is {stop}"
    if stop == "Hold":
        assert _messages(happened, 20) == {
            "waits": f"quota is free, but Kueue requeued no job when it became free, because {why}"
        }


def test_who_fits_since_a_release_that_woke_nobody_is_told_once_and_again_why_it_is_refused() -> None:
    """Two jobs end in silence, at 20 s and 22 s; the end at 30 s wakes all, but a job at 30 s is first."""
    one, door, other = queue("q", cpu=4), local_queue("door", "q"), local_queue("other", "q")
    jobs = Jobs().add("ends", "door", 2, seconds=20).add("too", "door", 1, seconds=22)
    jobs.add("runs", "other", 1, seconds=30).add("waits", "other", 2, at=1, seconds=5)
    jobs.add("first", "other", 3, at=30, priority=1, seconds=9)
    happened = Happened(changing(one, door, other, at(10, door, stopPolicy="Hold")), jobs)
    told = [(row.time // SECOND, row.reason) for row in happened.decisions.of("refuse") if row.job == "waits"]
    assert told == [(1, "PreemptionNoCandidates"), (20, "Inadmissible"), (30, "PreemptionNoCandidates")]
    assert happened.lines("admit")[-1] == "39 admit waits"


@pytest.mark.parametrize("change", [{"stopPolicy": "Hold"}, {"$patch": "delete"}])
def test_who_is_pending_as_its_queue_is_closed_is_told_why_it_waits(change: Manifest) -> None:
    """When the queue is open again, it hears again why it has no quota."""
    one = queue("q", cpu=4)
    patch = at(10, one, until=20)
    if "$patch" in change:
        patch |= change
    else:
        patch["spec"] = change
    jobs = Jobs().add("runs", "q", 4, seconds=30).add("waits", "q", 4, at=1, seconds=5)
    happened = Happened(changing(one, patch), jobs)
    told = [(row.time // SECOND, row.reason) for row in happened.decisions.of("refuse")]
    assert told == [(1, "PreemptionNoCandidates"), (10, "Inadmissible"), (20, "PreemptionNoCandidates")]
    assert _messages(happened, 10)["waits"].startswith("ClusterQueue q is inactive: it")


def test_a_deleted_local_queue_keeps_its_jobs_out_until_there_is_one_again() -> None:
    """Who runs goes on and wakes nobody as it ends; who is pending waits, and so does who arrives."""
    one, door, other = queue("q", cpu=4), local_queue("door", "q"), local_queue("other", "q")
    jobs = Jobs().add("ends", "door", 3, seconds=20).add("runs", "other", 1, seconds=30)
    jobs.add("waits", "door", 2, at=1, seconds=5).add("mate", "other", 3, at=2, seconds=40)
    jobs.add("arrives", "door", 1, at=15, seconds=5)
    gone = at(10, door, until=80) | {"$patch": "delete"}
    happened = Happened(changing(one, door, other, gone), jobs)
    assert happened.lines("admit", "evict", "reject")[2:] == [
        "30 admit mate",
        "80 admit waits",
        "80 admit arrives",
    ]
    assert _messages(happened, 10) == {"waits": "LocalQueue default/door is inactive: it was deleted"}


def test_one_that_reserved_loses_its_reservation_when_its_local_queue_is_deleted() -> None:
    """Its checks would be ready at 20 s, but its quota is free at 10 s."""
    check: Manifest = {"version": "v1beta1", "admissionChecks": ["check"]}
    one, door, other = queue("q", cpu=4, **check), local_queue("door", "q"), local_queue("other", "q")
    jobs = Jobs().add("reserved", "door", 4).add("next", "other", 4, at=12)
    happened = Happened(
        changing(one, door, other, at(10, door) | {"$patch": "delete"}),
        jobs,
        admissionCheckDelay="20s",
        evictionLatency="0s",
    )
    assert happened.lines("admit", "evict") == [
        "0 admit reserved",
        "10 evict reserved: Inadmissible",
        "12 admit next",
    ]


def test_a_deleted_queue_lends_until_its_last_workload_is_over_and_takes_nobody() -> None:
    """The finalizer of ClusterQueues keeps it; then its quota is gone, and its jobs wait for ever."""
    gone, mate = queue("gone", cpu=4), queue("mate", cpu=0)
    jobs = Jobs().add("last", "gone", 1, seconds=20).add("waits", "gone", 4, at=1, seconds=5)
    jobs.add("borrows", "mate", 3, at=12, seconds=5).add("too-late", "mate", 1, at=21, seconds=5)
    removed = at(10, gone) | {"$patch": "delete"}
    happened = Happened(changing(gone, mate, removed), jobs)
    assert happened.lines("admit") == ["0 admit last", "12 admit borrows"]


def test_a_deleted_queue_of_which_nobody_holds_quota_is_gone_at_once() -> None:
    """It lends nothing to a mate that comes after it."""
    gone, mate = queue("gone", cpu=1), queue("mate", cpu=3)
    mate["metadata"]["annotations"] = {"harness/from": "4s"}
    jobs = Jobs().many("j", 4, "mate", 1, at=4, seconds=20)
    happened = Happened(changing(gone, mate, at(2, gone) | {"$patch": "delete"}), jobs)
    assert happened.lines("admit") == ["4 admit j0", "4 admit j1", "4 admit j2", "24 admit j3"]


def test_a_deleted_queue_lends_also_what_nobody_holds_of_a_resource() -> None:
    """All of its cpu is lent while its last workload holds memory."""
    shapes = {"gone": {"cpu": 2, "memory": 1}, "mate": {"cpu": 0, "memory": 0}}
    gone, mate = (queue(name, flavors={"f": amounts}) for name, amounts in shapes.items())
    jobs = Jobs().add("last", "gone", 0, memory=1, seconds=20)
    jobs.add("borrows", "mate", 2, at=12, seconds=5)
    happened = Happened(changing(gone, mate, at(10, gone) | {"$patch": "delete"}), jobs)
    assert happened.lines("admit") == ["0 admit last", "12 admit borrows"]


def test_a_queue_takes_what_it_borrowed_to_another_cohort_where_more_than_all_quotas_may_be_used() -> None:
    """Whoever lent it has all of its own again, as soon as the borrower has moved."""
    guest, lender = queue("guest", cohort="left", cpu=0), queue("lender", cohort="left", cpu=4)
    jobs = Jobs().add("borrows", "guest", 4, seconds=20).add("own", "lender", 4, at=11, seconds=5)
    happened = Happened(changing(guest, lender, at(10, guest, cohortName="right")), jobs)
    assert happened.lines("admit") == ["0 admit borrows", "11 admit own"]


def test_who_comes_back_as_its_queue_restarts_is_not_said_to_wait_for_that() -> None:
    """The drained job is gone at 13 s; the queue restarts at the same instant, and admits it."""
    one = queue("q", cpu=1)
    jobs = Jobs().add("j", "q", 1, grace=3, seconds=30)
    where = changing(one, at(10, one, until=13, stopPolicy="HoldAndDrain"))
    happened = Happened(where, jobs, evictionLatency="0s")
    assert happened.lines("admit", "refuse") == ["0 admit j", "13 admit j"]


def test_a_queue_that_is_there_again_takes_up_who_waited_in_it() -> None:
    """A job that arrives while there is no such queue waits for it, too."""
    gone = queue("q", cpu=4)
    jobs = Jobs().add("runs", "q", 3, seconds=20).add("waits", "q", 2, at=1, seconds=5)
    jobs.add("arrives", "q", 1, at=15, seconds=5)
    happened = Happened(changing(gone, at(10, gone, until=40) | {"$patch": "delete"}), jobs)
    assert happened.lines("admit", "reject") == ["0 admit runs", "40 admit waits", "40 admit arrives"]


def test_a_job_that_can_start_once_something_changes_is_not_rejected() -> None:
    """8 cores come at 60 s; one that never fits is given up at its arrival."""
    small = queue("q", cohort="", cpu=4)
    jobs = Jobs().add("fits-later", "q", 8, seconds=5).add("never", "q", 9)
    jobs.add("too-late", "q", 8, at=85)
    where = changing(small, at(60, small, until=80, resourceGroups=cpu(8)))
    happened = Happened(where, jobs)
    assert happened.lines("admit", "reject")[1:] == ["60 admit fits-later", happened.lines("reject")[1]]
    assert [row.job for row in happened.decisions.of("reject")] == ["never", "too-late"]


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_a_flavor_that_is_new_is_tried_and_numbers_of_flavors_stay_with_who_holds_them(plugin: str) -> None:
    """The new one comes before the old one, in the queue and by name; its holder gives the old one back."""
    flavors = [manifest("ResourceFlavor", "a"), manifest("ResourceFlavor", "f")]
    one = queue("q", cohort="", cpu=2)
    two = queue("q", cohort="", flavors={"a": {"cpu": 2}, "f": {"cpu": 2}})
    jobs = Jobs().add("old", "q", 2, seconds=20).add("next", "q", 2, at=1, seconds=30)
    jobs.add("third", "q", 2, at=2, seconds=5)
    groups = [{"$patch": "replace"}, *two["spec"]["resourceGroups"]]
    where = unrolled(cluster(*flavors, one, at(10, one, resourceGroups=groups), flavors=False), None)
    happened = Happened(where, jobs, plugin=plugin)
    assert happened.lines("admit") == ["0 admit old", "10 admit next", "20 admit third"]
    assert [happened.flavors(job) for job in ("old", "next", "third")] == [["f"], ["a"], ["f"]]


def cycles(where: Cluster, jobs: Jobs) -> int:
    """How many cycles Kueue runs."""
    made: list[KueuePolicy] = []

    def make(where: Cluster, view: View, options: Any) -> KueuePolicy:
        made.append(classic(where, view, resolve(load().policy("kueue-classic").options, {}, owner="")))
        return made[0]

    replayed(make, jobs, where, until=40)
    return made[0].scheduler.cycles


def test_an_equal_spec_wakes_nobody_and_another_one_of_equal_meaning_wakes_the_tree() -> None:
    """Whoever is inadmissible is tried once more: one cycle that is not idle, and three that are none."""
    one = queue("q", cohort="", cpu=2)
    jobs = Jobs().add("runs", "q", 2, seconds=50).add("waits", "q", 1, at=1, seconds=5)
    still = cycles(changing(one), jobs)
    assert cycles(changing(one, at(10, one, stopPolicy="None")), jobs) == still
    assert cycles(changing(one, at(10, one, fairSharing={"weight": 1})), jobs) == still + 1
