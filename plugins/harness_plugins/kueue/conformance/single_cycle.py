"""Computes the results of cases that consist of a single cycle on a given state, without later effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.models.manifests import read_time
from harness_plugins.kueue.conformance.cases import Question, setting_of
from harness_plugins.kueue.conformance.jobs import job_of
from harness_plugins.kueue.manifests.imported import hold_quota, used_flavor_resources, workload_of
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.rules.outcomes import Admitted, Preempted
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.pod_counts import counts_of
from harness_plugins.kueue.state.workload import Workload


def answer_single_cycle(case: Mapping[str, Any], shortcuts: Shortcuts | None) -> Mapping[str, Any]:
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
            scheduler.submit(workload, job_of(manifest, 0, gates), scheduler.pending[queue.name])
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
