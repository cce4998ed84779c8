"""A replay that begins with the Workloads of a live cluster: some hold quota, others wait for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kueue_worlds import Happened, Jobs, Manifest, cluster, configuration, flavor, manifest, node, queue

import harness
from harness.base.errors import ClusterError
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.cluster.kinds.queues_missing import REMEDY
from harness.plugins import load

WITHIN = {"withinClusterQueue": "LowerPriority"}


def workload(
    name: str,
    cpu: int,
    *,
    hour: int,
    queue: str = "q",
    since: int | None = None,
    pods: int = 1,
    **fields: Any,
) -> Manifest:
    """A Workload that was created at an hour; with `since` it is admitted to flavor `f` since then.

    Args:
        name: its name.
        cpu: cores of one pod.
        hour: when it was created.
        queue: its ClusterQueue.
        since: when it got its quota.
        pods: how many pods.
        fields: `priority`; `evicted`, the reason of a condition; `admitted=False` where it has only reserved;
            more of its status.
    """
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    status: Manifest = {}
    conditions = []
    if since is not None:
        conditions.append(_condition("QuotaReserved", "QuotaReserved", since))
        if fields.pop("admitted", True):
            conditions.append(_condition("Admitted", "Admitted", since))
        usage = {"name": "main", "count": pods, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu * pods}}
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": [usage]}
    if "evicted" in fields:
        conditions.append(_condition("Evicted", fields.pop("evicted"), 23))
    spec = {"queueName": queue, "priority": fields.pop("priority", 0), "active": fields.pop("active", True)}
    pod_sets = [{"name": "main", "count": pods, "template": template}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": _hour(hour)},
        "spec": {**spec, "podSets": pod_sets},
        "status": {**status, "conditions": conditions, **fields},
    }


def _hour(hour: int) -> str:
    return f"2026-01-01T{hour:02}:00:00Z"


def _condition(kind: str, reason: str, hour: int) -> Manifest:
    return {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": _hour(hour)}


def local_queue(name: str, to: str, **spec: Any) -> Manifest:
    """A LocalQueue of the namespace `default`."""
    made = manifest("LocalQueue", name, clusterQueue=to, **spec)
    made["metadata"]["namespace"] = "default"
    return made


def test_a_workload_that_holds_quota_runs_from_the_start() -> None:
    """It charges its quota, in the flavor of its admission, and what does not fit beside it waits."""
    where = cluster(queue("q", cpu=4), workload("old", 3, hour=1, since=2))
    happened = Happened(where, Jobs().add("large", "q", 2, at=1).add("small", "q", 1, at=2))
    assert happened.lines("admit") == ["0 admit default/old", "2 admit small"]
    assert happened.flavors("default/old") == ["f"]
    assert happened.decisions.jobs["default/old"].state == "running"


def test_workloads_that_wait_come_in_the_order_of_their_creation_before_the_trace() -> None:
    """Also where the file has them in another order."""
    waiting = [workload("second", 4, hour=3), workload("first", 4, hour=2)]
    where = cluster(queue("q", cpu=4, preemption=WITHIN), workload("holds", 4, hour=1, since=1), *waiting)
    jobs = Jobs().add("trace", "q", 4).add("high", "q", 4, at=5, priority=1, seconds=10)
    happened = Happened(where, jobs, until=2000)
    assert happened.lines("admit")[:2] == ["0 admit default/holds", "36 admit high"]
    assert happened.lines("admit")[2] == "46 admit default/holds"
    without = cluster(queue("q", cpu=4), *waiting)
    assert Happened(without, Jobs().add("trace", "q", 4)).admitted == ["default/first"]


def test_the_newest_reservation_goes_first_when_quota_is_taken_back() -> None:
    """The manifests' reservations are ordered among each other, and before those of the replay."""
    held = [workload("early", 2, hour=1, since=3), workload("late", 2, hour=2, since=4)]
    where = cluster(queue("q", cpu=6, preemption=WITHIN), *held)
    jobs = Jobs().add("own", "q", 2).add("high", "q", 4, at=5, priority=1)
    assert sorted(Happened(where, jobs, until=6).victims) == ["default/late", "own"]


@pytest.mark.parametrize(("policy", "evicted"), [("Hold", []), ("HoldAndDrain", ["ClusterQueueStopped"])])
def test_a_stopped_cluster_queue_keeps_or_drains_what_holds_its_quota(
    policy: str, evicted: list[str]
) -> None:
    """Hold keeps it running and lets nobody in; HoldAndDrain evicts it, and others may borrow the quota."""
    where = cluster(
        queue("q", cpu=4, stopPolicy=policy), queue("b", cpu=0), workload("old", 4, hour=1, since=2)
    )
    happened = Happened(where, Jobs().add("q0", "q", 1, at=1).add("b0", "b", 4, at=2))
    assert [row.reason for row in happened.decisions.of("evict")] == evicted
    assert happened.lines("admit") == ["0 admit default/old", *(["31 admit b0"] if evicted else [])]
    reason = f"ClusterQueue q is inactive: its stopPolicy is {policy}"
    assert happened.row("reject", "q0").reason == reason


@pytest.mark.parametrize(("policy", "evicted"), [("Hold", []), ("HoldAndDrain", ["LocalQueueStopped"])])
def test_a_stopped_local_queue_stops_its_own_jobs_alone(policy: str, evicted: list[str]) -> None:
    """Another LocalQueue of the same ClusterQueue goes on; who was drained does not come back.

    The drained job's end at 31 s wakes nobody, so that `in` is tried only after `late`.
    """
    held = workload("old", 2, hour=1, since=2)
    held["spec"]["queueName"] = "stopped"
    doors = [local_queue("stopped", "q", stopPolicy=policy), local_queue("open", "q")]
    where = cluster(queue("q", cpu=4), *doors, held)
    jobs = Jobs().add("out", "stopped", 1).add("in", "open", 4, at=1).add("late", "open", 3, at=40, seconds=5)
    happened = Happened(where, jobs)
    assert [row.reason for row in happened.decisions.of("evict")] == evicted
    others = ["40 admit late", "45 admit in"] if evicted else []
    assert happened.lines("admit") == ["0 admit default/old", *others]
    reason = f"LocalQueue default/stopped is inactive: its stopPolicy is {policy}"
    assert happened.row("reject", "out").reason == reason


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
def test_who_has_only_reserved_loses_its_reservation_where_its_queue_is_stopped(
    kind: str, policy: str
) -> None:
    """It has no pods, so nobody is evicted: it waits from the beginning, and others may borrow the quota."""
    stop = {"stopPolicy": policy}
    of_queue, of_door = (stop, {}) if kind == "ClusterQueue" else ({}, stop)
    where = cluster(
        queue("q", cpu=4, **of_queue),
        queue("b", cpu=0),
        local_queue("q", "q", **of_door),
        workload("reserved", 4, hour=1, since=2, admitted=False),
    )
    happened = Happened(where, Jobs().add("b0", "b", 4))
    assert happened.lines("admit", "evict") == ["0 admit b0"]
    refused = happened.row("refuse", "default/reserved")
    name = "ClusterQueue q" if kind == "ClusterQueue" else "LocalQueue default/q"
    message = f"{name} is inactive: its stopPolicy is {policy}"
    assert (refused.reason, refused.detail) == ("Inadmissible", {"message": message})


def test_who_has_only_reserved_keeps_it_where_nothing_is_stopped() -> None:
    """Its checks are taken to be ready."""
    reserved = workload("reserved", 4, hour=1, since=2, admitted=False)
    where = cluster(queue("q", cpu=4), queue("b", cpu=0), reserved)
    assert Happened(where, Jobs().add("b0", "b", 4)).admitted == ["default/reserved"]


def held_back(name: str, cpu: int, *, by: str, **fields: Any) -> Manifest:
    """A Workload that is not queued, because of its gate (`by`), or of a condition."""
    made = workload(name, cpu, **fields)
    conditions = made["status"]["conditions"]
    if by == "OnHold":
        conditions.append({**_condition("QuotaReserved", by, 2), "status": "False"})
    elif by == "WaitingForReplacementPods":
        conditions.append(_condition(by, "Preempted", 2))
    else:
        made["metadata"]["annotations"] = {"kueue.x-k8s.io/admission-gated-by": by}
    return made


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("example.com/gate", "its admission is gated by example.com/gate"),
        (
            "WaitingForReplacementPods",
            "it waits for replacement pods, as its condition WaitingForReplacementPods says",
        ),
        ("OnHold", "it is on hold, as its condition QuotaReserved says"),
    ],
)
def test_a_workload_that_is_held_back_is_not_queued(by: str, why: str) -> None:
    """It blocks nobody, also in a strict queue, and it is said why; nobody ends it during a replay."""
    where = cluster(queue("q", cpu=4, queueingStrategy="StrictFIFO"), held_back("held", 4, by=by, hour=1))
    happened = Happened(where, Jobs().add("mine", "q", 4, seconds=5).add("more", "q", 4, at=1))
    assert happened.lines("admit") == ["0 admit mine", "5 admit more"]
    refused = happened.row("refuse", "default/held")
    message = f"{why}; this never changes in a replay"
    assert (refused.reason, refused.detail) == ("Inadmissible", {"message": message})


def test_a_gate_is_not_looked_at_where_its_feature_gate_is_off() -> None:
    """Nor is an annotation a gate that is empty."""
    where = cluster(queue("q", cpu=4), held_back("held", 4, by="example.com/gate", hour=1))
    assert Happened(where, Jobs(), featureGates="AdmissionGatedBy=false").admitted == ["default/held"]
    empty = cluster(queue("q", cpu=4), held_back("free", 4, by="", hour=1))
    assert Happened(empty, Jobs()).admitted == ["default/free"]


def test_a_gated_workload_that_holds_quota_keeps_it_until_it_is_evicted() -> None:
    """It runs; once it was preempted it is not queued again."""
    held = held_back("held", 4, by="example.com/gate", hour=1, since=2)
    where = cluster(queue("q", cpu=4, preemption=WITHIN), held)
    happened = Happened(where, Jobs().add("high", "q", 4, at=1, priority=1, seconds=5), until=500)
    assert happened.lines("admit", "preempt") == [
        "0 admit default/held",
        "1 preempt default/held by high: InClusterQueue",
        "32 admit high",
    ]
    assert happened.decisions.jobs["default/held"].state == "pending"


def test_a_workload_that_is_held_back_in_a_stopped_queue_is_refused_for_the_queue() -> None:
    """Once, as others there are."""
    held = held_back("held", 4, by="example.com/gate", hour=1)
    happened = Happened(cluster(queue("q", cpu=4, stopPolicy="Hold"), held), Jobs())
    assert [row.detail for row in happened.decisions.of("refuse")] == [
        {"message": "ClusterQueue q is inactive: its stopPolicy is Hold"}
    ]


def test_a_workload_that_was_told_to_go_goes() -> None:
    """It holds its quota until its grace period and the latency are over, and waits again."""
    where = cluster(queue("q", cpu=4), workload("old", 4, hour=1, since=2, evicted="Preempted", priority=-1))
    happened = Happened(where, Jobs().add("mine", "q", 4, at=1))
    assert happened.lines("evict", "admit") == [
        "0 admit default/old",
        "0 evict default/old: Preempted",
        "31 admit mine",
    ]


def test_what_has_ended_or_was_deactivated_is_left_out() -> None:
    """So is what waits in a queue that does not exist."""
    done = workload("done", 4, hour=1, since=2)
    done["status"]["conditions"].append(_condition("Finished", "Succeeded", 3))
    off = workload("off", 4, hour=1, active=False)
    where = cluster(queue("q", cpu=4), done, off, workload("lost", 1, hour=1, queue="nowhere"))
    assert Happened(where, Jobs().add("mine", "q", 4)).admitted == ["mine"]


def test_pods_that_had_ended_before_are_not_run_again() -> None:
    """Three of four pods were reclaimed: one is left, with its share of the quota."""
    reclaimed = workload("old", 1, hour=1, since=2, pods=4, reclaimablePods=[{"name": "main", "count": 3}])
    happened = Happened(cluster(queue("q", cpu=4), reclaimed), Jobs().add("mine", "q", 3))
    assert [(row.job, row.pods) for row in happened.decisions.of("admit")] == [
        ("default/old", 1),
        ("mine", 1),
    ]


def test_a_workload_that_waits_needs_quota_for_the_pods_that_are_left() -> None:
    """Three of its five have ended; without the gate Kueue asks for all of them."""
    ended = [{"name": "main", "count": 3}]
    where = cluster(queue("q", cpu=4), workload("old", 2, hour=1, pods=5, reclaimablePods=ended))
    for gates, admitted in (("", ["default/old"]), ("ReclaimablePods=false", [])):
        assert Happened(where, Jobs(), featureGates=gates).admitted == admitted


def test_partial_admission_begins_with_the_pods_that_have_ended() -> None:
    """It may find quota for more pods than are left; these do not run, and what they would hold is free."""
    shape = workload("old", 1, hour=1, pods=4, reclaimablePods=[{"name": "main", "count": 3}])
    (main,) = shape["spec"]["podSets"]
    container = {"name": "c", "resources": {"requests": {"cpu": 2}}}
    more = {"name": "more", "minCount": 1, "template": {"spec": {"containers": [container]}}}
    shape["spec"]["podSets"] = [main, {**more, "count": 4}]
    happened = Happened(cluster(queue("q", cpu=8), shape), Jobs().add("rest", "q", 3, at=1))
    assert happened.lines("admit") == ["0 admit default/old", "1 admit rest"]
    admitted = happened.row("admit", "default/old")
    assert admitted.detail is not None
    assert (admitted.detail["counts"], admitted.pods) == ({"more": 2}, 1 + 2)


def test_with_nodes_the_pods_of_a_workload_are_bound_at_the_start() -> None:
    """Within its flavor."""
    where = cluster(
        flavor(nodeLabels={"kind": "x"}),
        node("n0", 4),
        node("n1", 4, kind="x"),
        queue("q", cpu=8),
        workload("old", 2, hour=1, since=2, pods=2),
        flavors=False,
    )
    happened = Happened(where, Jobs())
    assert [(row.job, row.node) for row in happened.decisions.of("bind")] == [("default/old", "n1")] * 2


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_workloads_may_hold_more_than_there_is(plugin: str) -> None:
    """Quota was reduced, or a flavor was removed, while they held it; others get what their own queue has."""
    where = cluster(
        *(
            flavor("f"),
            flavor("g"),
            queue("p", flavors={"f": {"cpu": 4}}),
            queue("q", flavors={"g": {"cpu": 4}}),
        ),
        workload("old", 5, hour=1, since=2, queue="p"),
        flavors=False,
    )
    jobs = Jobs().add("a", "p", 1).add("b", "q", 4)
    happened = Happened(where, jobs, plugin=plugin)
    assert happened.lines("admit", "start") == ["0 admit default/old", "0 admit b"]
    removed = cluster(
        *(flavor("f"), flavor("g"), queue("p", flavors={"g": {"cpu": 5}})),
        workload("old", 5, hour=1, since=2, queue="p"),
        flavors=False,
    )
    happened = Happened(removed, Jobs().add("a", "p", 5), plugin=plugin)
    assert happened.lines("admit", "start") == ["0 admit default/old", "0 admit a"]


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
def test_what_a_cohort_lends_too_much_is_missing_where_a_queue_keeps_quota(plugin: str) -> None:
    """Kueue subtracts it from the quota that a queue does not lend, so nobody exceeds the sum of quotas."""
    quota = {"name": "cpu", "nominalQuota": 4, "lendingLimit": 0}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
    keeps = manifest("ClusterQueue", "p", namespaceSelector={}, cohortName="c", resourceGroups=[group])
    where = cluster(keeps, queue("q", cpu=2, cohort="c"), workload("old", 5, hour=1, since=2))
    jobs = Jobs().add("two", "p", 2).add("one", "p", 1, at=1).add("more", "q", 1, at=2)
    assert Happened(where, jobs, plugin=plugin).lines("admit") == ["0 admit default/old", "1 admit one"]


@pytest.mark.parametrize("plugin", ["kueue-classic", "fairsharing"])
@pytest.mark.parametrize("named", ["f", "g"])
def test_workloads_of_a_deleted_flavor_keep_their_quota(plugin: str, named: str) -> None:
    """If the queue still names the flavor, the queue is inactive. Other queues go on."""
    queues = [queue("q", flavors={named: {"cpu": 6}}), queue("r", flavors={"g": {"cpu": 1}})]
    held = workload("old", 5, hour=1, since=2)
    for nodes in ([], [node("n1", cpu=9)]):
        where = cluster(flavor("g"), *queues, held, *nodes, flavors=False)
        happened = Happened(where, Jobs().add("own", "q", 1).add("other", "r", 1), plugin=plugin)
        own = [] if named == "f" else ["0 admit own"]
        assert happened.lines("admit") == ["0 admit default/old", *own, "0 admit other"]
        assert happened.flavors("default/old") == ["f"]
        assert happened.decisions.jobs["default/old"].state == "running"


def test_a_workload_whose_quota_is_less_than_its_pods_ask_for_needs_nodes() -> None:
    """Kueue counts what its admission says; without nodes there is no more to run on, with nodes there is."""
    held = workload("old", 1, hour=1, since=2, pods=3, reclaimablePods=[{"name": "main", "count": 1}])
    held["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": "2400m"}
    jobs = Jobs().add("beside", "q", 3)
    with pytest.raises(ClusterError) as refused:
        Happened(cluster(queue("q", cpu=5), held), jobs)
    assert "Workload default/old: status.admission: pod set main: it holds quota for 2400m of cpu" in str(
        refused.value
    )
    assert "3 of its pods request 3" in str(refused.value)
    on_nodes = Happened(cluster(queue("q", cpu=5), node("n1", cpu=8), held), jobs)
    assert on_nodes.lines("admit") == ["0 admit default/old", "0 admit beside"]
    held["status"]["admission"]["podSetAssignments"][0]["flavors"] = {}
    with pytest.raises(ClusterError, match="holds quota for 0 of cpu"):
        Happened(cluster(queue("q", cpu=5), held), jobs)


def test_workloads_that_were_admitted_while_others_leave_wait_for_them() -> None:
    """7 of 6 cores are held, of which 4 are leaving: f waits for them, x does not need to."""
    queues = {"a": 3, "b": 2, "c": 0, "d": 1}
    held = [
        workload("v", 4, hour=1, since=2, queue="b", evicted="Preempted"),
        workload("x", 1, hour=1, since=1, queue="d"),
        workload("f", 2, hour=3, since=4, queue="c"),
    ]
    happened = Happened(cluster(*(queue(name, cpu=cpu) for name, cpu in queues.items()), *held), Jobs())
    assert happened.lines("admit", "start", "evict", "gone") == [
        "0 admit default/v",
        "0 evict default/v: Preempted",
        "0 admit default/x",
        "0 admit default/f",
        "30 gone default/v",
        "30 start default/f",
    ]
    alone = workload("v", 7, hour=1, since=2, queue="b", evicted="Preempted")
    happened = Happened(cluster(queue("b", cpu=2), alone), Jobs().add("next", "b", 2))
    assert happened.lines("admit", "start", "gone") == [
        "0 admit default/v",
        "30 gone default/v",
        "31 admit next",
    ]


def test_policies_that_do_not_take_workloads_over_say_so(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """By number and name; for Kueue only those of queues that do not exist."""
    manifests = [flavor(), queue("default", cpu=4), workload("old", 2, hour=1, since=2, queue="default")]
    manifests.append(workload("lost", 1, hour=1, queue="nowhere"))
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    held = "Workloads of the manifests that hold quota: 1 (default/old); none does not take them over, "
    lost = "Workloads of the manifests that wait in a LocalQueue that is not in the manifests: "
    lost += f"1 (default/lost in nowhere); they are left out; {REMEDY}"
    left_out = {"none": [f"{held}so harness treats their quota as free", lost], "kueue-classic": [lost]}
    for plugin, told in left_out.items():
        run = harness.replay(write_trace({}), plugin=plugin, cluster=path, output=tmp_path / "results")
        assert run.info["cluster"]["warnings"] == told
    assert run.jobs.select("job_id", "state").rows() == [("default/old", "finished"), ("j0", "finished")]


def limited(name: str, seconds: int, past: int = 0, **fields: Any) -> Manifest:
    """A Workload that may be admitted for some seconds, of which some have passed before."""
    made = workload(name, 4, **fields)
    made["spec"]["maximumExecutionTimeSeconds"] = seconds
    made["status"]["accumulatedPastExecutionTimeSeconds"] = past
    return made


def test_a_workload_is_deactivated_once_it_was_admitted_for_as_long_as_it_may_be() -> None:
    """Since the time that its condition has, with what has passed before; it never comes back.

    Its quota is free at once, and its resources are 30 s later, when its pods are gone.
    """
    where = cluster(queue("q", cpu=4), limited("old", 30, past=10, hour=1, since=2))
    happened = Happened(where, Jobs().add("next", "q", 4, at=1, seconds=5), until=500)
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert [(row.time, row.reason) for row in happened.decisions.of("evict")] == [(19_000_000, reason)]
    assert happened.lines("admit", "start", "reject") == [
        "0 admit default/old",
        "19 admit next",
        "49 start next",
        f"50 reject default/old: {reason}: it was admitted for its maximum execution time",
    ]


def test_what_a_workload_was_admitted_for_counts_over_its_evictions() -> None:
    """It is admitted until its quota is free after 41 s, and has 4 s left when it is admitted again."""
    waits = limited("waits", 45, hour=1)
    where = cluster(queue("q", cpu=4, preemption=WITHIN), waits)
    jobs = Jobs().add("high", "q", 4, at=10, priority=1, seconds=10)
    happened = Happened(where, jobs, until=500)
    assert happened.lines("admit") == ["0 admit default/waits", "41 admit high", "51 admit default/waits"]
    assert [row.time // 1_000_000 for row in happened.decisions.of("evict")] == [55]
    assert happened.decisions.jobs["default/waits"].state == "rejected"


def test_only_whole_seconds_count_of_what_a_workload_was_admitted_for() -> None:
    """Of 31.5 s 31 count, so 2 s are left; from the second of its admission on, as conditions have it."""
    waits = limited("waits", 33, hour=1)
    where = cluster(queue("q", cpu=4, preemption=WITHIN), waits)
    jobs = Jobs().add("high", "q", 4, at=0.5, priority=1, seconds=10)
    happened = Happened(where, jobs, until=500)
    admitted = [row.time for row in happened.decisions.of("admit")]
    assert admitted == [0, 31_500_000, 41_500_000]
    assert [row.time for row in happened.decisions.of("evict")] == [43_000_000]


@pytest.mark.parametrize("limit", [11, 40, 41])
def test_a_workload_whose_time_is_over_while_its_pods_end_is_never_queued_again(limit: int) -> None:
    """It was told to go, so it is not told again; its quota is free as its time is over.

    When its pods are gone and the latency of the eviction is over, it is rejected.
    """
    waits = limited("waits", limit, hour=1)
    where = cluster(queue("q", cpu=4, preemption=WITHIN), waits)
    jobs = Jobs().add("high", "q", 4, at=10, priority=1, seconds=10)
    happened = Happened(where, jobs, until=500)
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded: it was admitted for its maximum execution time"
    assert happened.lines("admit", "preempt", "evict") == [
        "0 admit default/waits",
        "10 preempt default/waits by high: InClusterQueue",
        f"{limit} admit high",
    ]
    assert happened.lines("reject") == [f"41 reject default/waits: {reason}"]


def test_a_workload_of_the_manifests_that_was_told_to_go_is_admitted_until_it_is_gone() -> None:
    """Of 59 s 28 had passed by 0 s; after its grace period and the latency nothing is left."""
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded: it was admitted for its maximum execution time"
    for limit, outcome in ((59, f"31 reject default/old: {reason}"), (60, "31 admit default/old")):
        old = limited("old", limit, past=27, hour=1, since=23, evicted="Preempted")
        happened = Happened(cluster(queue("q", cpu=4), old), Jobs(), until=31)
        assert happened.lines("admit", "reject")[1:] == [outcome]


def test_who_goes_before_its_checks_are_ready_was_not_admitted() -> None:
    """It had reserved for 3 s of the 10 s that its check takes: nothing of its limit has passed."""
    checks: Manifest = {"version": "v1beta1", "admissionChecks": ["check"]}
    where = cluster(queue("q", cpu=4, preemption=WITHIN, **checks), limited("waits", 5, hour=1))
    jobs = Jobs().add("high", "q", 4, at=3, priority=1, seconds=5)
    happened = Happened(where, jobs, admissionCheckDelay="10s", evictionLatency="0s", until=100)
    assert happened.lines("admit", "start", "evict") == [
        "0 admit default/waits",
        "3 admit high",
        "13 start high",
        "18 admit default/waits",
        "28 start default/waits",
        "33 evict default/waits: DeactivatedDueToMaximumExecutionTimeExceeded",
    ]


@pytest.mark.parametrize(
    ("backoff", "free", "then"),
    [(2, 15, ["41 reject"]), (8, 18, ["41 reject"]), (60, 41, ["70 admit", "70 evict", "101 reject"])],
)
def test_a_limit_that_is_reached_after_a_time_out_counts_when_the_backoff_is_over(
    backoff: int, free: int, then: list[str]
) -> None:
    """One of its two pods finds no node, so it times out after 10 of 15 s. Its pods are gone at 41 s.

    Another job shows when its quota is free.
    """
    strategy = {"backoffBaseSeconds": backoff}
    section = {"timeout": "10s", "blockAdmission": False, "requeuingStrategy": strategy}
    wide = limited("wide", 15, hour=1, pods=2)
    where = cluster(configuration(waitForPodsReady=section), queue("q", cpu=8), node("n", 4), wide)
    happened = Happened(where, Jobs().add("next", "q", 4, at=11, seconds=5), until=200)
    assert next(row.time for row in happened.decisions.of("admit") if row.job == "next") == free * SECOND
    rows = [row for row in happened.lines("admit", "evict", "reject") if " next" not in row]
    told = [" ".join(row.split()[:2]) for row in rows]
    assert told == ["0 admit", "10 evict", *then]
    assert rows[1] == "10 evict default/wide: PodsReadyTimeout"
    assert happened.row("reject", "default/wide").reason.startswith(
        "DeactivatedDueToMaximumExecutionTimeExceeded"
    )


def test_the_pods_of_a_workload_have_the_time_to_end_that_their_template_says() -> None:
    """The longest of them; 30 s where none says it."""
    quick = workload("quick", 4, hour=1, since=2)
    quick["spec"]["podSets"][0]["template"]["spec"]["terminationGracePeriodSeconds"] = 3
    for held, back in ((quick, 5), (workload("usual", 4, hour=1, since=2), 32)):
        where = cluster(queue("q", cpu=4, preemption=WITHIN), held)
        happened = Happened(where, Jobs().add("high", "q", 4, at=1, priority=1))
        assert happened.lines("admit")[1] == f"{back} admit high"


def test_checks_of_a_workload_that_holds_quota_are_ready_when_the_replay_begins() -> None:
    """Only what is admitted later waits for its checks; so does the one that was evicted."""
    checks: Manifest = {"version": "v1beta1", "admissionChecks": ["check"]}
    where = cluster(queue("q", cpu=4, preemption=WITHIN, **checks), workload("old", 3, hour=1, since=2))
    jobs = Jobs().add("high", "q", 4, at=40, priority=1, seconds=5)
    happened = Happened(where, jobs, admissionCheckDelay="10s", evictionLatency="0s", until=100)
    assert happened.lines("admit", "start", "preempt") == [
        "0 admit default/old",
        "40 preempt default/old by high: InClusterQueue",
        "70 admit high",
        "80 start high",
        "85 admit default/old",
        "95 start default/old",
    ]


# --- waitForPodsReady -------------------------------------------------------------------------------------


def unready(reason: str, hour: int, status: str = "False") -> Manifest:
    """A Workload that was admitted at 1 o'clock, of two pods for which the nodes have room for one."""
    made = workload("old", 4, hour=1, since=1, pods=2)
    made["status"]["conditions"].append(_condition("PodsReady", reason, hour) | {"status": status})
    return made


TWO_HOURS = configuration(waitForPodsReady={"timeout": "2h", "recoveryTimeout": "90m"})


@pytest.mark.parametrize(
    ("old", "due"),
    [
        (unready("WaitForStart", 1), 3599),
        (unready("PodsReady", 1), 3599),
        (unready("WaitForRecovery", 1), 1799),
        (unready("WaitForStart", 1, "True"), None),
        (workload("old", 4, hour=1, since=1, pods=2), 7200),
    ],
    ids=["starts", "older reason", "lost", "ready", "without the condition"],
)
def test_pods_of_the_manifests_are_waited_for_since_their_condition_says(
    old: Manifest, due: int | None
) -> None:
    """The last that the manifests know of is 2 o'clock, a second before the replay begins."""
    latest = workload("latest", 1, hour=2)
    where = cluster(TWO_HOURS, queue("q", cpu=8), node("n", 4), old, latest)
    happened = Happened(where, Jobs(), until=8000)
    evicted = [] if due is None else [f"{due} evict default/old: PodsReadyTimeout"]
    assert happened.lines("evict") == evicted
    if due is not None:
        cause = "WaitForRecovery" if due == 1799 else "WaitForStart"
        assert happened.row("evict", "default/old").detail["cause"] == cause


def test_time_outs_of_the_manifests_count_and_their_backoff_is_waited_for() -> None:
    """Nobody who stays away until 3 o'clock is queued before; the third wait is four times the first."""
    away = workload("away", 4, hour=1, pods=2, requeueState={"count": 2, "requeueAt": _hour(3)})
    over = workload("over", 2, hour=2, requeueState={"count": 1, "requeueAt": _hour(1)})
    where = cluster(queue("q", cpu=10), node("n", 6), away, over)
    happened = Happened(where, Jobs(), until=5500)
    assert happened.lines("admit", "evict") == [
        "0 admit default/over",
        "3599 admit default/away",
        "5399 evict default/away: PodsReadyTimeout",
    ]
    detail = happened.row("evict", "default/away").detail
    assert (detail["count"], detail["requeueAt"]) == (3, 5399 + 4 * 60)
    until = f"Kueue queues it again at {_hour(3)}, as its status.requeueState.requeueAt says"
    told = f"it is in a backoff, and {until}"
    assert happened.decisions.of("refuse")[0].detail == {"message": told}


def test_a_backoff_of_the_manifests_lasts_although_nobody_looks_at_pods() -> None:
    """Such as that of an admission check: Kueue queues the workload when `requeueAt` has come."""
    until = {"count": 1, "requeueAt": "2026-01-01T23:02:00Z"}
    away = workload("away", 4, hour=1, requeueState=until)
    until = {"requeueAt": "2026-01-01T23:01:00Z"}
    gone = workload("gone", 4, hour=2, since=2, evicted="AdmissionCheck", requeueState=until)
    off = configuration(featureGates={"DisableWaitForPodsReady": True})
    happened = Happened(cluster(off, queue("q", cpu=9), away, gone), Jobs(), until=200)
    assert happened.lines("admit", "evict") == [
        "0 admit default/gone",
        "0 evict default/gone: AdmissionCheck",
        "59 admit default/gone",
        "119 admit default/away",
    ]
    assert "it is in a backoff, and Kueue" in happened.decisions.of("refuse")[0].detail["message"]
    spec = load().policy("kueue-classic")
    assert spec.ignored_fields is not None
    where = cluster(off, queue("q", cpu=4), away)
    assert list(spec.ignored_fields(where, resolve(spec.options, {}, owner="kueue-classic"))) == []


def test_a_workload_that_is_leaving_stays_away_until_its_manifest_says() -> None:
    """Its quota is free before that."""
    old = workload(
        "old",
        4,
        hour=1,
        since=1,
        evicted="PodsReadyTimeout",
        requeueState={"count": 1, "requeueAt": "2026-01-01T23:01:00Z"},
    )
    happened = Happened(cluster(queue("q", cpu=4), old), Jobs(), until=100)
    assert happened.lines("admit", "evict") == [
        "0 admit default/old",
        "0 evict default/old: PodsReadyTimeout",
        "59 admit default/old",
    ]
