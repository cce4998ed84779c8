"""Kueue's `waitForPodsReady`: time-outs, backoff, deactivation, places in the queue, blocked admission."""

from __future__ import annotations

from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, flavor, node, queue, quota

from harness.base.units import SECOND
from harness.cluster.kinds.kueue_releases import release_named
from harness.cluster.kinds.wait_for_pods_ready import WaitForPodsReady
from harness_plugins.kueue.factory import pods_ready
from harness_plugins.kueue.rules.feature_gates import gates_from
from harness_plugins.kueue.rules.wait_for_pods_ready import (
    FOR_RECOVERY,
    FOR_START,
    PodsReady,
    TimedOut,
    backoff,
)
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

WITHIN = {"withinClusterQueue": "LowerPriority"}


def waiting(timeout: str = "10s", *, block: bool = False, **strategy: Any) -> Manifest:
    """Kueue's Configuration with `waitForPodsReady`; the backoff begins with 20 s unless told otherwise."""
    section = {"timeout": timeout, "requeuingStrategy": {"backoffBaseSeconds": 20, **strategy}}
    return configuration(waitForPodsReady={**section, "blockAdmission": block})


def happened(jobs: Jobs, *manifests: Manifest, until: float | None = 100, **options: Any) -> Happened:
    """A replay in which it takes no time to evict."""
    return Happened(cluster(*manifests), jobs, until=until, **{"evictionLatency": "0s", **options})


def lines(found: Happened) -> list[str]:
    """Admissions, evictions of any kind, and ends."""
    return found.lines("admit", "preempt", "evict", "finish", "reject")


# --- time-outs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_a_workload_is_evicted_when_it_is_not_ready_in_time(plugin: str) -> None:
    """10 s after its admission; it comes back 20 s later, and what it held is free for others at once."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("other", "q", 4, at=1, seconds=30)
    found = happened(jobs, waiting(), queue("q", cpu=4), plugin=plugin, until=45)
    assert lines(found) == [
        "0 admit stuck",
        "10 evict stuck: PodsReadyTimeout",
        "10 admit other",
        "40 finish other",
        "40 admit stuck",
    ]
    assert found.row("evict", "stuck").detail == {
        "cause": FOR_START,
        "count": 1,
        "requeueAt": 30,
        "message": "time-out 1: not all pods were ready 10s after the admission; "
        "it stays out of its queue for 20s",
    }


@pytest.mark.parametrize(("startup", "seconds"), [(10, 5), (0, 10)])
def test_who_is_ready_or_done_at_the_very_time_out_is_not_evicted(startup: int, seconds: int) -> None:
    """Ends and readiness come before time-outs; the run time counts from when the pods are ready."""
    jobs = Jobs().add("slow", "q", 4, startup=startup, seconds=seconds)
    found = happened(jobs, waiting(), queue("q", cpu=4))
    assert lines(found) == ["0 admit slow", f"{startup + seconds} finish slow"]


OLDER = configuration() | {"apiVersion": "config.kueue.x-k8s.io/v1beta1"}
DISABLED = {"featureGates": "DisableWaitForPodsReady=true"}


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
@pytest.mark.parametrize(
    "given",
    [
        [],
        [configuration()],
        [configuration(waitForPodsReady=None)],
        [configuration(waitForPodsReady={"timeout": "0s"})],
        [configuration(waitForPodsReady={"timeout": "30m", "blockAdmission": False})],
    ],
    ids=["no Configuration", "no section", "null", "timeout of 0", "said"],
)
def test_by_default_pods_have_half_an_hour_to_be_ready(given: list[Any], plugin: str) -> None:
    """Since 0.19, where the Configuration of v1beta2 lacks the section, and where there is none at all."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("other", "q", 4, at=1, seconds=30)
    found = happened(jobs, *given, queue("q", cpu=4), plugin=plugin, until=2000)
    assert lines(found) == [
        "0 admit stuck",
        "1800 evict stuck: PodsReadyTimeout",
        "1800 admit other",
        "1830 finish other",
        "1860 admit stuck",
    ]
    assert found.row("evict", "stuck").detail["requeueAt"] == 1860


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([OLDER], {}),
        ([OLDER | {"waitForPodsReady": {"enable": False, "timeout": "10s"}}], {}),
        ([configuration(featureGates={"DisableWaitForPodsReady": True})], {}),
        ([configuration(featureGates={"DisableWaitForPodsReady": True}, waitForPodsReady={})], {}),
        ([], DISABLED),
        ([configuration(waitForPodsReady={"timeout": "10s"})], DISABLED),
    ],
    ids=["v1beta1", "v1beta1 off", "gate", "gate, section", "option", "option, section"],
)
def test_v1beta1_and_a_feature_gate_have_nobody_look_at_pods(given: list[Any], options: Any) -> None:
    """A job that never is ready holds its quota, and who starts up slowly ends later."""
    jobs = Jobs().add("stuck", "q", 2, startup=None).add("slow", "q", 2, startup=2000, seconds=5)
    assert lines(happened(jobs, *given, queue("q", cpu=4), until=2100, **options)) == [
        "0 admit stuck",
        "0 admit slow",
        "2005 finish slow",
    ]


def test_a_victim_of_preemption_has_neither_time_out_nor_backoff() -> None:
    """Its term ends with the eviction, and it is queued at once, although it has timed out before."""
    jobs = Jobs().add("low", "q", 4, startup=None).add("high", "q", 4, at=35, priority=1, seconds=3)
    found = happened(jobs, waiting(), queue("q", cpu=4, preemption=WITHIN), until=49)
    assert lines(found) == [
        "0 admit low",
        "10 evict low: PodsReadyTimeout",
        "30 admit low",
        "35 preempt low by high: InClusterQueue",
        "35 admit high",
        "38 finish high",
        "38 admit low",
        "48 evict low: PodsReadyTimeout",
    ]


def test_a_workload_times_out_whose_pods_find_no_room_on_the_nodes() -> None:
    """The quota suffices and no node does: nothing that Kueue looks at but readiness shows it."""
    jobs = Jobs().add("wide", "q", 3, pods=2)
    found = happened(jobs, waiting(), queue("q", cpu=8), node("n1", 4), node("n2", 2), until=15)
    assert found.lines("admit", "bind", "evict") == [
        "0 admit wide",
        "0 bind wide",
        "10 evict wide: PodsReadyTimeout",
    ]


def test_pods_that_ended_count_as_ready() -> None:
    """Two pods run one after the other on the one node with room: both were there within the time-out."""
    jobs = Jobs().add("two", "q", 3, pods=2, gang=False, seconds=6)
    found = happened(jobs, waiting(), queue("q", cpu=8), node("n1", 4))
    assert found.lines("evict", "finish") == ["6 finish two", "12 finish two"]
    slower = Jobs().add("two", "q", 3, pods=2, gang=False, seconds=11)
    found = happened(slower, waiting(), queue("q", cpu=8), node("n1", 4), until=11)
    assert found.lines("evict", "finish") == ["10 evict two: PodsReadyTimeout"]


def workload(name: str = "w") -> Workload:
    """A workload without a past."""
    found = Workload(name, name, 0, 0)
    found.cluster_queue = ClusterQueueState("q")
    return found


def test_pods_that_are_lost_have_the_recovery_timeout_to_come_back() -> None:
    """From the loss on, and with a cause of its own; who is back in time has no term any more."""
    ready, w = PodsReady(WaitForPodsReady(10 * SECOND, 3 * SECOND)), workload()
    ready.reserved(w, 1, 0)
    ready.started(w, range(1))
    assert ready.deadlines.next() is None
    ready.lost(w, 20 * SECOND)
    assert ready.deadlines.next() == 23 * SECOND
    ready.recovered(w)
    assert ready.deadlines.next() is None
    ready.lost(w, 40 * SECOND)
    assert list(ready.deadlines.due(43 * SECOND)) == [w]
    ready.told_to_go(w)
    assert ready.time_out(w, 43 * SECOND) == TimedOut(FOR_RECOVERY, 1, 103 * SECOND)


@pytest.mark.parametrize(
    ("release", "section", "limit"),
    [
        ("v0.15.8", {}, None),
        ("v0.15.8", {"recoveryTimeout": "10m"}, 600),
        ("v0.15.8", {"recoveryTimeout": "0s"}, 0),
        ("v0.16.0", {}, 600),
        ("v0.16.0", {"recoveryTimeout": "0s"}, None),
    ],
)
def test_before_0_16_lost_pods_had_no_time_limit_by_default(
    release: str, section: dict[str, str], limit: int | None
) -> None:
    """`SetDefaults_Configuration` fills in `recoveryTimeout` since PR 8493, which made 0s mean no limit."""
    found = cluster(queue("q", cpu=4), configuration(waitForPodsReady={"timeout": "10m", **section})).kueue
    assert found is not None
    ready, w = pods_ready(found, gates_from({}, release_named(release))), workload()
    assert ready is not None
    ready.reserved(w, 1, 0)
    ready.started(w, range(1))
    ready.lost(w, 20 * SECOND)
    assert ready.deadlines.next() == (None if limit is None else (20 + limit) * SECOND)


def test_a_loss_has_no_consequence_by_itself_where_recovery_has_no_timeout() -> None:
    """`recoveryTimeout: 0s`; yet the workload is not ready, which blocks others."""
    ready, w = PodsReady(WaitForPodsReady(10 * SECOND, None, block_admission=True)), workload()
    ready.reserved(w, 1, 0)
    ready.started(w, range(1))
    assert not ready.blocks
    ready.lost(w, 20 * SECOND)
    assert (ready.deadlines.next(), ready.blocks) == (None, True)


# --- limit and backoff ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "most", "waits"),
    [
        (60, 3600, [60, 120, 240, 480]),
        (20, 5, [20, 5, 5]),
        (10, 25, [10, 20, 25, 25]),
        (0, 5, [0, 0]),
        (5, 0, [5, 10, 20]),
    ],
)
def test_the_backoff_doubles_up_to_its_maximum_which_does_not_hold_for_the_first(
    base: int, most: int, waits: list[int]
) -> None:
    """wait(1) = base, wait(n) = min(base * 2^(n-1), max)."""
    settings = WaitForPodsReady(backoff_base=base * SECOND, backoff_max=most * SECOND)
    assert [backoff(settings, count + 1) // SECOND for count in range(len(waits))] == waits
    longest = most * SECOND or 2**62 // 1000  # half of Go's longest duration
    assert backoff(settings, 10**6) <= longest


@pytest.mark.parametrize(
    ("release", "most", "back_at"), [("v0.14", 5, 15), ("v0.14", 0, 10), ("v0.15", 5, 30)]
)
def test_before_0_15_the_maximum_holds_for_every_backoff(release: str, most: int, back_at: int) -> None:
    """There, 0 means no backoff. Since 0.15, a base of 20 s counts even beside a maximum of 5 s."""
    found = happened(
        Jobs().add("stuck", "q", 4, startup=None),
        waiting(backoffMaxSeconds=most),
        queue("q", cpu=4),
        until=40,
        kueueVersion=release,
    )
    assert lines(found)[1:3] == ["10 evict stuck: PodsReadyTimeout", f"{back_at} admit stuck"]


def test_a_workload_that_times_out_too_often_is_given_up() -> None:
    """With a limit of 1 the second time-out is the last: it is rejected, and its room is for others."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("other", "q", 4, at=31, seconds=5)
    found = happened(jobs, waiting(backoffLimitCount=1), queue("q", cpu=4), until=None)
    deactivated = "DeactivatedDueToRequeuingLimitExceeded"
    assert lines(found) == [
        "0 admit stuck",
        "10 evict stuck: PodsReadyTimeout",
        "30 admit stuck",
        f"40 evict stuck: {deactivated}",
        f"40 reject stuck: {deactivated}: its pods missed their time limit 2 times",
        "40 admit other",
        "45 finish other",
    ]


def test_a_limit_of_0_gives_up_at_the_first_time_out() -> None:
    """After the grace period, when its pods are gone."""
    jobs = Jobs().add("stuck", "q", 4, startup=None, grace=7)
    found = happened(jobs, waiting(backoffLimitCount=0), queue("q", cpu=4), until=None)
    deactivated = "DeactivatedDueToRequeuingLimitExceeded"
    assert lines(found) == [
        "0 admit stuck",
        f"10 evict stuck: {deactivated}",
        f"17 reject stuck: {deactivated}: its pods missed their time limit once",
    ]


def test_a_deactivated_workload_frees_its_quota_and_blocks_nobody_while_its_pods_end() -> None:
    """Kueue forgets it at once; another job gets its quota, and starts when its pods are gone.

    That frees nothing more: the last job waits for the end of the other one.
    """
    jobs = Jobs().add("stuck", "q", 4, startup=None, grace=7)
    jobs.add("next", "q", 4, at=1, seconds=5).add("last", "q", 4, at=18, seconds=5)
    found = happened(jobs, waiting(block=True, backoffLimitCount=0), queue("q", cpu=4), until=None)
    told = found.lines("admit", "evict", "start", "finish", "reject")
    assert [line.partition(":")[0] for line in told] == [
        "0 admit stuck",
        "10 evict stuck",
        "10 admit next",
        "17 start next",
        "17 reject stuck",
        "22 finish next",
        "22 admit last",
        "27 finish last",
    ]


def test_neither_being_ready_nor_a_backoff_resets_the_count() -> None:
    """The third time-out waits 4 times as long as the first."""
    jobs = Jobs().add("stuck", "q", 4, startup=None)
    found = happened(jobs, waiting(), queue("q", cpu=4), until=179)
    details = [row.detail or {} for row in found.decisions.of("evict")]
    assert [(each["count"], each["requeueAt"]) for each in details] == [(1, 30), (2, 80), (3, 170)]
    ready, w = PodsReady(WaitForPodsReady(10 * SECOND, 3 * SECOND)), workload()
    for count in (1, 2):
        ready.reserved(w, 1, 0)
        ready.started(w, range(1))
        ready.lost(w, 0)
        ready.told_to_go(w)
        assert ready.time_out(w, 3 * SECOND).times == count
        ready.gone(w)


def test_the_end_of_a_backoff_wakes_nobody() -> None:
    """It is an arrival like any other; the eviction itself woke the tree."""
    jobs = Jobs().add("stuck", "a", 3, startup=None).add("large", "b", 4, at=1, seconds=5)
    found = happened(jobs, waiting(), queue("a", cpu=3), queue("b", cpu=1), until=31)
    assert lines(found) == [
        "0 admit stuck",
        "10 evict stuck: PodsReadyTimeout",
        "10 admit large",
        "15 finish large",
        "30 admit stuck",
    ]


def test_a_workload_in_backoff_does_not_block_a_strict_queue() -> None:
    """It is not in it, although it is the oldest."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("next", "q", 4, at=1, seconds=12)
    strict = queue("q", cpu=4, queueingStrategy="StrictFIFO")
    found = happened(jobs.add("last", "q", 4, at=2, seconds=8), waiting(), strict, until=31)
    assert found.lines("admit") == ["0 admit stuck", "10 admit next", "22 admit last", "30 admit stuck"]


def test_an_eviction_may_take_longer_than_the_backoff() -> None:
    """It queues when both are over."""
    jobs = Jobs().add("stuck", "q", 4, startup=None, grace=30)
    found = happened(jobs, waiting(backoffBaseSeconds=5), queue("q", cpu=4), until=41)
    assert found.lines("admit", "evict") == [
        "0 admit stuck",
        "10 evict stuck: PodsReadyTimeout",
        "40 admit stuck",
    ]


def test_a_workload_that_comes_back_for_ever_ends_the_replay() -> None:
    """Without a limit, once nothing else gets on: after 30 simulated days, and in words."""
    found = happened(Jobs().add("stuck", "q", 4, startup=None), waiting(), queue("q", cpu=4), until=None)
    assert found.decisions.outcome is not None
    stopped = str(found.decisions.outcome.stopped)
    assert stopped == "1,001 evictions brought no progress: job stuck (evicted 1,001 times)"


# --- the place in the queue -------------------------------------------------------------------------------


@pytest.mark.parametrize(("timestamp", "first"), [("Eviction", "later"), ("Creation", "stuck")])
def test_a_time_out_moves_a_workload_behind_those_that_came_before_it(timestamp: str, first: str) -> None:
    """By `Eviction` it queues by the time of its time-out, by `Creation` where it was."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("long", "q", 4, at=1, seconds=30)
    found = happened(
        jobs.add("later", "q", 4, at=2), waiting(timestamp=timestamp), queue("q", cpu=4), until=41
    )
    assert found.admitted == ["stuck", "long", first]


def test_an_admission_ends_the_new_place_in_the_queue() -> None:
    """Who timed out, was admitted and then preempted is back at its creation, before `later`."""
    jobs = Jobs().add("stuck", "q", 4, startup=None).add("later", "q", 4, at=31)
    jobs.add("high", "q", 4, at=35, priority=1, seconds=2)
    found = happened(jobs, waiting(), queue("q", cpu=4, preemption=WITHIN), until=38)
    assert found.lines("admit") == ["0 admit stuck", "30 admit stuck", "35 admit high", "37 admit stuck"]


# --- blocked admission ------------------------------------------------------------------------------------

BLOCKED = {"block": True, "timeout": "30s"}


def test_nothing_is_admitted_before_all_that_are_admitted_are_ready() -> None:
    """Of any ClusterQueue; each is admitted at the instant at which the one before is ready, in one cycle.

    The record names the one before.
    """
    jobs = Jobs().add("a", "a", 1, startup=4).add("b", "b", 1, startup=3).add("c", "c", 1)
    queues = [queue(name, cpu=4, cohort="") for name in "abc"]
    found = happened(jobs, waiting(**BLOCKED), *queues)
    assert found.lines("admit") == ["0 admit a", "4 admit b", "7 admit c"]
    assert found.lines("refuse") == ["0 refuse b: Waiting", "4 refuse c: Waiting"]
    not_ready = "pods of admitted workloads are not ready"
    assert found.row("refuse", "b").detail == {"message": not_ready, "waitsFor": {"a": ""}}
    assert found.row("refuse", "c").detail == {"message": not_ready, "waitsFor": {"b": ""}}


def test_one_that_never_is_ready_holds_up_the_others_until_it_times_out() -> None:
    """In each of its attempts."""
    jobs = Jobs().add("a", "a", 1, startup=None).add("b", "b", 1, startup=3).add("c", "b", 1, at=51)
    queues = [queue(name, cpu=4, cohort="") for name in "ab"]
    found = happened(jobs, waiting(**BLOCKED), *queues)
    assert lines(found) == [
        "0 admit a",
        "30 evict a: PodsReadyTimeout",
        "30 admit b",
        "50 admit a",
        "80 evict a: PodsReadyTimeout",
        "80 admit c",
    ]


def test_a_preemption_is_not_held_up_and_its_victim_that_is_not_ready_makes_way() -> None:
    """`low` will never be ready; its preemptor goes on in the next cycle."""
    jobs = Jobs().add("low", "q", 4, startup=None).add("high", "q", 4, at=5, priority=1)
    found = happened(jobs, waiting(**BLOCKED), queue("q", cpu=4, preemption=WITHIN), until=20)
    assert lines(found) == ["0 admit low", "5 preempt low by high: InClusterQueue", "5 admit high"]


def test_room_that_is_freed_while_a_cycle_stands_still_is_seen_by_the_next_one() -> None:
    """`large` of `b` is turned down in the cycle that waits for `first`, though `short` has ended by then.

    The tree counts as woken while it was being scheduled, so `large` is tried again at once.
    """
    jobs = Jobs().add("short", "b", 3, seconds=6).add("first", "c", 1, at=1, startup=9)
    jobs.add("held", "a", 1, at=2).add("large", "b", 4, at=2)
    found = happened(jobs, waiting(**BLOCKED), queue("a", cpu=1), queue("b", cpu=4), queue("c", cpu=1))
    assert found.lines("admit") == ["0 admit short", "1 admit first", "10 admit held", "10 admit large"]
    assert found.lines("refuse") == [
        "2 refuse large: PreemptionNoCandidates",
        "2 refuse held: Waiting",
        "10 refuse large: Waiting",
    ]


def test_who_arrives_while_a_cycle_stands_still_takes_part_in_the_next_one() -> None:
    """`urgent` would have come first."""
    jobs = Jobs().add("first", "a", 1, startup=9).add("held", "b", 2, at=1, seconds=20)
    jobs.add("urgent", "b", 2, at=2, priority=9)
    found = happened(jobs, waiting(**BLOCKED), queue("a", cpu=1, cohort=""), queue("b", cpu=2, cohort=""))
    assert found.lines("admit") == ["0 admit first", "9 admit held", "29 admit urgent"]


def test_a_target_that_went_while_the_cycle_stood_still_is_not_evicted_again() -> None:
    """`b` wants the place of `gone`, which ends before the cycle comes to it; the next one admits it."""
    jobs = Jobs().add("gone", "b", 2, seconds=6).add("first", "c", 1, at=1, startup=9)
    jobs.add("held", "a", 1, at=2, priority=5).add("b", "b", 2, at=2, priority=1)
    queues = [queue("a", cpu=1, cohort=""), queue("b", cpu=2, cohort="", preemption=WITHIN)]
    found = happened(jobs, waiting(**BLOCKED), *queues, queue("c", cpu=1, cohort=""))
    assert lines(found)[2:] == ["6 finish gone", "10 admit held", "10 admit b"]


def test_a_replay_may_end_while_a_cycle_stands_still() -> None:
    """Who is held up and the heads behind are pending."""
    jobs = Jobs().add("a", "a", 1, startup=None).add("b", "b", 1).add("c", "c", 1)
    queues = [queue(name, cpu=4, cohort="") for name in "abc"]
    found = happened(jobs, waiting(**BLOCKED), *queues, until=20)
    assert found.admitted == ["a"]
    assert {name: row.state for name, row in found.decisions.jobs.items()} == {
        "a": "running",
        "b": "pending",
        "c": "pending",
    }


def test_pods_of_an_admitted_job_are_bound_while_a_cycle_stands_still() -> None:
    """Else they would never be ready; independent pods may even end meanwhile, and what they held is free."""
    jobs = Jobs().add("two", "a", 3, pods=2, gang=False, seconds=6).add("next", "b", 1, seconds=5)
    found = happened(jobs, waiting(**BLOCKED), queue("a", cpu=6), queue("b", cpu=1), node("n1", 4))
    assert found.lines("admit", "finish") == [
        "0 admit two",
        "6 finish two",
        "6 admit next",
        "11 finish next",
        "12 finish two",
    ]


def test_quotas_add_up_again_after_cycles_that_stood_still() -> None:
    """What ends, times out and is admitted meanwhile is accounted for once: in the end all is free."""
    jobs = Jobs()
    for number in range(12):
        startup = (3, None, 1, 7)[number % 4]
        name = f"{number:02}"
        jobs.add(name, "ab"[number % 2], 1 + number % 3, at=number, startup=startup, seconds=4 + number)
    jobs.add("whole", "a", 8, at=900, seconds=1)
    strategy = {"backoffLimitCount": 1, "backoffBaseSeconds": 3}
    queues = [queue("a", cpu=quota(4)), queue("b", cpu=quota(4))]
    found = happened(jobs, waiting("5s", block=True, **strategy), *queues, until=None)
    assert found.lines("admit")[-1] == "900 admit whole"
    states = [row.state for row in found.decisions.jobs.values()]
    assert (states.count("finished"), states.count("rejected")) == (7, 6)


def test_readiness_lets_the_queue_begin_with_its_first_flavor_again() -> None:
    """`late` was skipped after it had tried f1. Then `early`, of its queue, became ready, and f1 has room."""
    jobs = Jobs().add("ends", "b", 4, seconds=8).add("early", "a", 1, startup=10)
    jobs.add("high", "b", 4, at=1, priority=1).add("late", "a", 4, at=1)
    queues = [
        queue("a", flavors={"f1": {"cpu": 4}, "f2": {"cpu": 4}}),
        queue("b", flavors={"f1": {"cpu": 5}}),
    ]
    gates = {"featureGates": "FlavorFungibilityPreserveScanProgress=false"}
    found = happened(jobs, waiting("60s", block=True), flavor("f1"), flavor("f2"), *queues, **gates)
    assert found.lines("admit") == ["0 admit ends", "0 admit early", "10 admit high", "10 admit late"]
    assert found.flavors("late") == ["f1"]
