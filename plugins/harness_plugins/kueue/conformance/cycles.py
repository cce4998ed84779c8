"""Computes the results of `kueue/cycles` cases.

Most cases replay a whole trace in the engine. A case with `maxCycles` runs a single cycle on a given state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from harness.base.units import SECOND
from harness.models.cluster import Cluster, frozen
from harness.models.cluster import Workload as Manifest
from harness.models.manifests import Fields, read_time
from harness.policy import Arrival, Job
from harness.testing.engine import Engine
from harness_plugins.kueue.conformance.cases import Question, setting_of
from harness_plugins.kueue.conformance.driver import Driver
from harness_plugins.kueue.conformance.node_events import NodeEvents, RecordedPods
from harness_plugins.kueue.conformance.readiness import Interruptions, Readiness
from harness_plugins.kueue.conformance.record import Record
from harness_plugins.kueue.factory import pods_ready
from harness_plugins.kueue.manifests.imported import (
    hold_quota,
    pod_sets_left,
    used_flavor_resources,
    workload_of,
)
from harness_plugins.kueue.node_failures import NodeFailures
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.record.admissions import counts_of
from harness_plugins.kueue.rules.entry import Admitted, Preempted
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.workload import Workload

_ORIGIN = 1_735_689_600 * SECOND  # 2025-01-01T00:00:00Z, which is time 0 in recorded traces
_MILLISECOND = 1000


def answer(case: Mapping[str, Any], shortcuts: Shortcuts | None = None) -> Mapping[str, Any]:
    """Returns the times of admissions and preemptions in a case of `kueue/cycles`."""
    if "maxCycles" in case["given"]:
        return _answer_single_cycle(case, shortcuts)
    cluster, nodes, configuration, gates = setting_of(case, over_time=True)
    question = Question(case)
    found = [_arrival(question, item, gates) for item in question.fields.items("workloads")]
    until = round((question.number(question.fields, "until") or 0) * SECOND)
    tolerated = round((question.number(question.fields, "tolerationSeconds") or 0) * SECOND)
    question.fields.raw("events")  # `setting_of` has already read the events
    question.finish()
    found.sort(key=lambda each: each[0][0].submit)
    arrivals = [_numbered(arrival, index) for index, (arrival, _, _) in enumerate(found)]
    admission = configuration.admission if gates.admission_fair_sharing else None
    scheduler = Scheduler(
        cluster,
        gates,
        configuration.strategies,
        admission=admission,
        evicted_last=configuration.evicted_last,
        shortcuts=shortcuts,
    )
    waits = pods_ready(configuration, gates)
    pods = RecordedPods(scheduler, tolerated)
    failures = partial(NodeFailures, scheduler, cluster, gates, pods) if nodes else None
    policy = KueuePolicy(scheduler, cluster, pods_ready=waits, failures=failures)
    counting = "counts" in case["expect"]
    record = Record(policy, counting=counting)
    inactive = {index for index, (_, manifest, _) in enumerate(found) if not manifest.active}
    plain = admission.sampling_interval if admission is not None and _unordered(cluster) else None
    interruptions = Interruptions([readiness for _, _, readiness in found])
    durations = [each[1] for each in arrivals]
    events = [instant.at for instant in (*cluster.changes, *nodes)]
    on_nodes = NodeEvents(nodes, cluster, policy, pods) if nodes else None
    driver = Driver(policy, durations, inactive, until, plain, interruptions, events, on_nodes)
    without_nodes = replace(cluster, nodes=frozen())  # recordings do not bind pods; pods run once admitted
    Engine([arrivals], without_nodes, record, until=until).run(driver, name="kueue")
    return record.counts(len(arrivals)) if counting else record.answer(deactivating=waits is not None)


def _unordered(cluster: Cluster) -> bool:
    """Returns True if a LocalQueue is sampled although usage does not order its ClusterQueue."""
    return any(
        local.stop_policy == "None" and not cluster.cluster_queues[local.cluster_queue].by_usage
        for local in cluster.local_queues.values()
    )


def _numbered(arrival: Arrival, index: int) -> Arrival:
    job, *rest = arrival
    return replace(job, index=index), *rest


def _arrival(question: Question, item: Fields, gates: Gates) -> tuple[Arrival, Manifest, Readiness]:
    manifest = question.workload(item)
    submit = question.number(item, "submitMs")
    duration = question.number(item, "durationMs")
    seconds = question.number(item, "duration")
    job = _job_of(
        manifest,
        (manifest.created or _ORIGIN) - _ORIGIN if submit is None else round(submit * _MILLISECOND),
        gates,
    )
    run = round((seconds or 0) * SECOND) if duration is None else round(duration * _MILLISECOND)
    readiness = Readiness(*(question.spans(item, name) for name in ("readyAfter", "lostAfter", "backAfter")))
    startup = readiness.startup
    return ((job, run, None) if startup is None else (job, run, None, startup)), manifest, readiness


def _answer_single_cycle(case: Mapping[str, Any], shortcuts: Shortcuts | None) -> Mapping[str, Any]:
    """Returns the workloads that one cycle admits or preempts, and the workloads that wait afterwards."""
    cluster, _, configuration, gates = setting_of(case)
    question = Question(case)
    waiting = []
    for item in question.fields.items("workloads"):
        waiting.append(question.workload(item))
        item.ignore("duration")
    now = read_time(question.fields, "now") or 0
    if question.fields.integer("maxCycles") != 1:
        question.fields.fault("maxCycles", "must be 1")
    question.fields.ignore("until")
    question.finish()
    also = used_flavor_resources(cluster.workloads)
    scheduler = Scheduler(cluster, gates, configuration.strategies, also=also, shortcuts=shortcuts)
    policy = KueuePolicy(scheduler, cluster)
    hold_quota(scheduler.cache, cluster.workloads, gates, now)
    for manifest in waiting:
        queue = cluster.cluster_queue_of(manifest.namespace, manifest.queue)
        if queue is not None:
            workload = workload_of(manifest, gates)
            scheduler.submit(workload, _job_of(manifest, 0, gates), scheduler.pending[queue.name])
            scheduler.enqueue(workload)
    decisions: list[dict[str, Any]] = []
    for outcome in scheduler.cycle():
        at: dict[str, Any] = {"t": 0, "cycle": scheduler.cycles}
        if isinstance(outcome, Admitted):
            workload, assignment = outcome
            at |= {"admit": _name(workload), "flavors": policy.flavors_of(workload, assignment)}
            at["borrowing"] = assignment.borrowing > 0
            if counts := counts_of(workload, assignment.counts):
                at["counts"] = counts
            decisions.append(at)
        elif isinstance(outcome, Preempted):
            at["by"] = _name(outcome.preemptor)
            decisions += [
                at | {"preempt": _name(target.workload), "reason": target.reason}
                for target in sorted(outcome.targets, key=lambda target: target.workload.name)
            ]
    pending = scheduler.pending.items()
    return {
        "decisions": decisions,
        "left": _keys({name: queue.active() for name, queue in pending}),
        "inadmissible": _keys({name: queue.inadmissible() for name, queue in pending}),
    }


def _name(workload: Workload) -> str:
    return workload.name.partition("/")[2]


def _keys(queues: Mapping[str, list[Workload]]) -> Mapping[str, list[str]]:
    return {
        name: sorted(workload.name for workload in workloads)
        for name, workloads in queues.items()
        if workloads
    }


def _job_of(manifest: Manifest, submit: int, gates: Gates) -> Job:
    """Converts a Workload manifest into a job that is submitted at `submit`."""
    pod_sets = pod_sets_left(manifest)
    return Job(
        index=-1,
        id=manifest.name,
        submit=submit,
        queue=manifest.queue,
        namespace=manifest.namespace,
        user="",
        priority=workload_of(manifest, gates).priority,
        priority_class="",
        preempts=True,
        gang=True,
        grace_period=0,
        uid=manifest.uid,
        pod_sets=pod_sets,
        pods=sum(pod_set.count for pod_set in pod_sets),
    )
