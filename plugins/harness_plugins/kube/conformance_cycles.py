"""Computes the results of `kube-scheduler/cycles` cases by running whole replays in the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, final

from harness import Job, PodSet
from harness.base.errors import ClusterError, Fault
from harness.base.units import SECOND
from harness.models.manifests import Fields, cluster_from, nodes_replaced, read_pod, read_time
from harness.policy import LOST_WITH_NODE, Arrival
from harness.testing.engine import (
    ACTIONS,
    BIND,
    EVICT,
    FINISH,
    GONE,
    NOMINATE,
    PENDING,
    PREEMPT,
    UNNOMINATE,
    Engine,
    Fact,
)
from harness_plugins.kube.policy import default_preemption

_RECORDED = (BIND, NOMINATE, UNNOMINATE, PREEMPT, EVICT, GONE, FINISH)
_ON_NODES = (BIND, NOMINATE, PREEMPT, EVICT)


def cycles(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the times of bindings, nominations and preemptions in a `kube-scheduler/cycles` case."""
    cluster = cluster_from(case["objects"], case["id"], webhooks=False)
    if "events" in case["given"]:
        events = case["given"]["events"]
        then = ((each["at"] * SECOND, each.get("object") or each["delete"]) for each in events)
        make = partial(cluster_from, source=case["id"], webhooks=False)
        cluster = replace(cluster, changes=tuple(nodes_replaced(cluster.nodes, then, make)))
    record = _Record()
    engine = Engine([_arrivals(case)], cluster, record, until=case["given"]["horizon"] * SECOND)
    policy = default_preemption(cluster, engine.view, {}, gives_up=False)
    policy.scheduler.advance(0)  # timers start with the case, not with its first pod
    outcome = engine.run(policy, name="default-preemption")
    return {
        "decisions": record.decisions,
        "pendingAtEnd": sorted(record.pending),
        "endTime": max(outcome.end, *(instant.at for instant in cluster.changes), 0) // SECOND,
        "attempts": policy.scheduler.attempts,
    }


def explain_cycles(case: Mapping[str, Any]) -> str:
    """Describes the result of a case of `kube-scheduler/cycles`, with one line for each decision."""
    answer = cycles(case)
    lines = []
    for decision in answer["decisions"]:
        said = [f"{word} {value}" for word, value in decision.items() if word != "t"]
        lines.append(f"t={decision['t']}: {', '.join(said)}")
    return "\n".join([*lines, f"pending at the end: {', '.join(answer['pendingAtEnd']) or 'nothing'}"])


def _arrivals(case: Mapping[str, Any]) -> list[Arrival]:
    faults: list[Fault] = []
    given = case["given"]
    start = read_time(Fields(given, case["id"], faults, "given"), "start") or 0
    arrivals: list[Arrival] = []
    for number, item in enumerate(given["pods"]):
        manifest, where = item["pod"], f"{case['id']}: given.pods[{number}]"
        pod = read_pod(Fields(manifest, where, faults))
        created = read_time(Fields(manifest["metadata"], where, faults, "metadata"), "creationTimestamp")
        pod_set = PodSet(
            "main", 1, 1, pod.spec.requests, labels=pod.labels, pod_template=json.dumps(manifest["spec"])
        )
        job = Job(
            index=number,
            id=pod.name,
            submit=(created or start) - start,
            queue="",
            namespace=pod.namespace,
            user="",
            priority=pod.priority or 0,
            priority_class="",
            preempts=pod.preempts is not False,
            gang=False,
            grace_period=pod.grace_period or 0,
            uid="",
            pod_sets=(pod_set,),
            pods=1,
        )
        arrivals.append((job, item["duration"] * SECOND, None))
    if faults:
        raise ClusterError(case["id"], faults)
    return sorted(arrivals, key=lambda arrival: arrival[0].submit)


@final
class _Record:
    """Collects the events that the engine reports, in the format of the recorded cases."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, Any]] = []
        self.pending: list[str] = []
        self._successors: dict[int, int] = {}

    def record(self, fact: Fact) -> None:
        job = fact.job
        if fact.action == GONE:
            self._successors[job.index] = self._successors.get(job.index, 0) + 1
        if fact.action in _RECORDED and fact.reason != LOST_WITH_NODE:
            line: dict[str, Any] = {"t": fact.time // SECOND, ACTIONS[fact.action]: fact.pod_name}
            if fact.by is not None:
                line["by"] = self._name(fact.by)
            if fact.action in _ON_NODES:
                line["node"] = fact.node
            self.decisions.append(line)

    def share(self, *_figures: object) -> None:
        """See `Recorder`. These cases have no shares."""

    def stint(self, *_figures: object) -> None:
        """See `Recorder`. Cases do not record stints."""

    def job(self, job: Job, state: int, *_figures: object) -> None:
        if state == PENDING:
            self.pending.append(self._name(job))

    def _name(self, job: Job) -> str:
        return job.pod_name(0, self._successors.get(job.index, 0))
