"""Workloads of a dump in the middle of something: on their way out, in a backoff, or with pods not ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, queue

from harness import Cluster
from harness.base.units import SECOND

DUMPED = datetime(2026, 1, 1, 12, tzinfo=UTC)
WAITING = {"timeout": "60s", "requeuingStrategy": {"backoffBaseSeconds": 40, "backoffLimitCount": 1}}


def before(seconds: float) -> str:
    """A time so many seconds before the dump; after it where they are negative."""
    return (DUMPED - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(
    name: str,
    *,
    conditions: Mapping[str, tuple[bool, str, float]],
    holds: bool = True,
    active: bool = True,
    **status: Any,
) -> Manifest:
    """A Workload of 4 cores that ends within 30 s once it is told to go.

    Args:
        name: its name.
        conditions: status, reason, and how many seconds before the dump.
        holds: whether it has an admission.
        active: False where it was deactivated.
        status: more of its status.
    """
    container = {"name": "c", "resources": {"requests": {"cpu": 4}}}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 30}}
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 4}}
    admission = {"admission": {"clusterQueue": "q", "podSetAssignments": [usage]}} if holds else {}
    told = [
        {"type": kind, "status": str(is_so), "reason": reason, "lastTransitionTime": before(seconds)}
        for kind, (is_so, reason, seconds) in conditions.items()
    ]
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": before(1000)}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {
            "queueName": "q",
            "active": active,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": {**admission, "conditions": told, **status},
    }


def held(seconds: float = 500) -> dict[str, tuple[bool, str, float]]:
    """The conditions of one that was admitted so many seconds before the dump."""
    return {name: (True, name, seconds) for name in ("QuotaReserved", "Admitted")}


def pod(of: str, **metadata: Any) -> Manifest:
    """The Pod of a Workload, on a node that the dump does not have."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{of}-0",
            "namespace": "default",
            "annotations": {"kueue.x-k8s.io/workload": of},
            **metadata,
        },
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": 4}}}],
            "nodeName": "elsewhere",
        },
        "status": {"phase": "Running", "startTime": before(500)},
    }


def dump(*manifests: Manifest) -> Cluster:
    """The cluster at the time of the dump, with a queue of 4 cores."""
    return replace(cluster(queue("q", cpu=4), *manifests), as_of=int(DUMPED.timestamp()) * SECOND)


def outcome(where: Cluster, *actions: str, **options: Any) -> list[str]:
    """What becomes of it where a job of 4 cores waits from the beginning."""
    return Happened(where, Jobs().add("next", "q", 4, priority=1, seconds=20), until=200, **options).lines(
        *actions
    )


GOING = {**held(), "Evicted": (True, "Preempted", 23.0)}


@pytest.mark.parametrize(
    ("pods", "gone"),
    [([], 7), ([pod("old", deletionTimestamp=before(-12))], 12), ([pod("old")], 30), ([pod("other")], 0)],
)
def test_who_was_told_to_go_before_keeps_what_it_holds_for_the_rest_of_its_time(
    pods: list[Manifest], gone: int
) -> None:
    """Its Pods say when they are gone; where the dump has no Pods, its eviction does."""
    where = dump(workload("old", conditions=GOING), *pods)
    assert outcome(where, "admit")[1] == f"{gone + 1} admit next"


def test_the_quota_of_who_was_deactivated_is_free_and_its_pods_go() -> None:
    """It must go if it was not evicted yet, and never comes back. Without quota, it takes no part."""
    off = workload("off", conditions=held(), active=False)
    late = workload("late", conditions={}, holds=False, active=False)
    assert outcome(dump(off, late), "admit", "evict", "start", "reject") == [
        "0 admit default/off",
        "0 evict default/off: Deactivated",
        "0 admit next",
        "30 start next",
        "31 reject default/off: Deactivated: it was deactivated before",
    ]


def test_who_got_the_quota_of_one_that_was_deactivated_waits_for_its_pods_alone() -> None:
    """Together they hold more than there is, although the condition Evicted is not set yet."""
    off, new = workload("off", conditions=held(), active=False), workload("new", conditions=held(3))
    assert outcome(dump(new, off), "admit", "evict", "start") == [
        "0 admit default/off",
        "0 evict default/off: Deactivated",
        "0 admit default/new",
        "30 start default/new",
    ]


RESERVED = {"QuotaReserved": (True, "QuotaReserved", 500.0)}


def checks(*states: str, **more: Any) -> list[Manifest]:
    """The states of admission checks, which they have had for 10 s."""
    return [
        {"name": f"c{number}", "state": state, "lastTransitionTime": before(10), **more}
        for number, state in enumerate(states)
    ]


@pytest.mark.parametrize(("conditions", "gone"), [(RESERVED, 1), (held(), 31)])
def test_who_has_a_check_that_says_retry_is_evicted_and_queued_again(
    conditions: dict[str, tuple[bool, str, float]], gone: int
) -> None:
    """Whether it is admitted or not; one that is not admitted has no pods to stop."""
    where = dump(workload("old", conditions=conditions, admissionChecks=checks("Ready", "Retry")))
    assert outcome(where, "admit", "evict", "reject") == [
        "0 admit default/old",
        "0 evict default/old: AdmissionCheck",
        f"{gone} admit next",
        f"{gone + 20} admit default/old",
    ]
    assert not any("admissionChecks" in each for each in where.warnings)


def test_a_check_may_say_how_long_kueue_waits_before_it_retries() -> None:
    """From the time at which the check got its state."""
    later = checks("Retry", requeueAfterSeconds=100)
    where = dump(workload("old", conditions=RESERVED, admissionChecks=later))
    assert outcome(where, "admit")[1:] == ["1 admit next", "90 admit default/old"]


def test_a_check_keeps_a_workload_without_quota_out_of_its_queue_too() -> None:
    """Its own backoff ends before that."""
    later = checks("Retry", requeueAfterSeconds=100)
    state = {"requeueAt": before(-20)}
    away = workload("away", conditions={}, holds=False, admissionChecks=later, requeueState=state)
    happened = Happened(dump(away), Jobs(), until=200)
    assert happened.lines("admit") == ["90 admit default/away"]
    (refused,) = happened.decisions.of("refuse")
    assert refused.detail is not None
    assert refused.detail["message"] == (
        f"it is in a backoff, and Kueue queues it again at {before(-90)}, as requeueAfterSeconds of its "
        "admission check says"
    )


def test_who_is_rejected_by_a_check_is_deactivated() -> None:
    """Although another check says `Retry`; but one that is evicted already goes as it was told."""
    rejected = checks("Retry", "Rejected")
    where = dump(workload("old", conditions=RESERVED, admissionChecks=rejected))
    reason = "DeactivatedDueToAdmissionCheck"
    assert outcome(where, "admit", "evict", "reject") == [
        "0 admit default/old",
        f"0 evict default/old: {reason}",
        "0 admit next",
        f"1 reject default/old: {reason}: admission check c1 rejected it",
    ]
    evicted = dump(workload("old", conditions=GOING, admissionChecks=rejected))
    assert outcome(evicted, "evict", "reject") == ["0 evict default/old: Preempted"]


def test_a_check_that_is_pending_counts_as_ready_and_a_warning_says_so() -> None:
    """Nobody knows when it will be."""
    where = dump(workload("old", conditions=RESERVED, admissionChecks=checks("Pending")))
    assert outcome(where, "admit", "evict")[:1] == ["0 admit default/old"]
    assert any("status.admissionChecks[].state is not modelled" in each for each in where.warnings)


def test_a_time_out_counts_from_the_admission_before_the_dump() -> None:
    """Admitted 90 s ago and not ready after 60 s, it goes at once; admitted 45 s ago, it has 15 s left."""
    for seconds, evicted in ((90.0, ["0 evict default/slow: PodsReadyTimeout"]), (45.0, [])):
        conditions = {**held(seconds), "PodsReady": (False, "WaitForStart", seconds)}
        slow = workload("slow", conditions=conditions)
        where = dump(slow, configuration(waitForPodsReady=WAITING))
        assert Happened(where, Jobs(), until=5).lines("evict") == evicted


@pytest.mark.parametrize(("ready", "second"), [(True, 0), (False, 1)])
def test_a_workload_whose_pods_are_not_ready_blocks_the_first_instant(ready: bool, second: int) -> None:
    """Its pods become ready a second later, because their condition says that they are not ready yet."""
    old = workload("old", conditions={**held(45), "PodsReady": (ready, "WaitForStart", 45.0)})
    where = dump(old, configuration(waitForPodsReady={**WAITING, "blockAdmission": True}), queue("r", cpu=4))
    found = Happened(where, Jobs().add("next", "r", 4, seconds=20), until=100).lines("admit")
    assert found == ["0 admit default/old", f"{second} admit next"]


@pytest.mark.parametrize("condition", [None, (False, "WaitForRecovery", 5.0), (True, "Started", 90.0)])
def test_who_was_ready_or_does_not_say_it_does_not_time_out_for_an_admission_long_ago(condition: Any) -> None:
    """Kueue did not look then, or its pods were lost later and may come back."""
    said = {} if condition is None else {"PodsReady": condition}
    where = dump(workload("old", conditions={**held(5000), **said}), configuration(waitForPodsReady=WAITING))
    assert Happened(where, Jobs(), until=100).lines("evict") == []


def test_a_backoff_goes_on_and_how_often_it_was_counts() -> None:
    """It stays away for 25 s more; its second time-out is one more than the limit."""
    conditions = {
        "QuotaReserved": (False, "Pending", 15.0),
        "Evicted": (True, "PodsReadyTimeout", 15.0),
        "Requeued": (False, "PodsReadyTimeout", 15.0),
    }
    state = {"count": 1, "requeueAt": before(-25)}
    away = workload("away", conditions=conditions, holds=False, requeueState=state)
    where = dump(away, configuration(waitForPodsReady=WAITING))
    assert Happened(where, Jobs(), until=200).lines("admit") == ["25 admit default/away"]
    going = {**held(75), "PodsReady": (False, "WaitForStart", 75.0)}
    again = dump(
        workload("again", conditions=going, requeueState={"count": 1}),
        configuration(waitForPodsReady=WAITING),
    )
    assert Happened(again, Jobs(), until=200).lines("evict") == [
        "0 evict default/again: DeactivatedDueToRequeuingLimitExceeded"
    ]


def test_who_timed_out_right_before_stays_away_also_when_it_is_gone() -> None:
    """Its pods are gone after 10 s, and its backoff is over after 33 s."""
    conditions = {
        **held(80),
        "Evicted": (True, "PodsReadyTimeout", 20.0),
        "PodsReady": (False, "WaitForStart", 80.0),
    }
    state = {"count": 1, "requeueAt": before(-33)}
    where = dump(
        workload("late", conditions=conditions, requeueState=state), configuration(waitForPodsReady=WAITING)
    )
    assert Happened(where, Jobs(), until=100).lines("admit") == [
        "0 admit default/late",
        "33 admit default/late",
    ]


def test_an_empty_list_tells_no_workload_from_another() -> None:
    """The API server does not keep `tolerations: []`, so that both are of one class and refused together."""

    def waits(name: str, **spec: Any) -> Manifest:
        made = workload(name, conditions={}, holds=False)
        made["spec"]["podSets"][0]["template"]["spec"] |= spec
        return made

    refused = []
    for spec in ({}, {"tolerations": []}, {"tolerations": [{"operator": "Exists"}]}):
        where = dump(workload("old", conditions=held()), waits("a"), waits("b", **spec))
        refused.append(len(Happened(where, Jobs(), until=5).decisions.of("refuse")))
    assert refused == [1, 1, 2]
