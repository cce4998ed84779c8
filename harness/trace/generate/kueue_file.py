"""Reads the jobs and queues from a configuration of Kueue's performance generator (`generator.yaml`).

The file has the same layout and meaning as in Kueue's `test/performance/scheduler/runner/generator`. Every
set of workloads of a queue begins at 0, and each workload is created one interval after the previous
workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.cluster.manifests import (
    KUEUE,
    flavor_manifest,
    local_queue_manifest,
    manifest_of,
    namespace_manifest,
)
from harness.cluster.yaml.fields import Fields
from harness.trace.generate.arrivals import Regular
from harness.trace.generate.distributions import Choice
from harness.trace.generate.spec import MOST_STREAMS, JobKind, Spec, Stream

_MILLISECOND = 1000
_MOST = 10**6
_LONGEST = 10**9  # milliseconds
_FLAVOR = "rf"


def is_kueue(fields: Fields) -> bool:
    """Returns True if a specification is for Kueue's generator."""
    return "cohorts" in fields


def read_kueue(fields: Fields, source: str) -> Spec:
    """Returns the jobs and the queues that Kueue's generator would create.

    Topologies and devices are not supported. Their fields remain unread, so they are reported as faults.
    """
    flavor = fields.child("resourceFlavor").string("name", _FLAVOR)
    streams: list[Stream] = []
    manifests = [flavor_manifest(flavor)]
    for cohorts in fields.items("cohorts"):
        cohort_class, cohort_count = _class(cohorts), _count(cohorts)
        for place, queues in enumerate(cohorts.items("queuesSets")):
            prefix, count = f"{_class(queues)}-{place}", _count(queues)
            spec = _quotas(queues, flavor)
            sets = [_workloads(item, number) for number, item in enumerate(queues.items("workloadsSets"))]
            made = cohort_count * count * max(1, sum(map(len, sets)))
            if len(streams) + made > MOST_STREAMS:
                what = f"make more queues and sets of workloads than the allowed {MOST_STREAMS:,}"
                cohorts.fault(f"queuesSets[{place}]", what)
                continue
            for cohort in (f"{cohort_class}-{number}" for number in range(cohort_count)):
                for name in (f"{prefix}-{number}-{cohort}" for number in range(count)):
                    manifests += _manifests(name, {"cohortName": cohort, **spec})
                    streams += [_of_queue(name, each) for workloads in sets for each in workloads]
    if not streams:
        fields.fault("cohorts", "hold no workloads")
    return Spec(tuple(streams), None, None, source, tuple(manifests))


def _class(fields: Fields) -> str:
    return fields.string("className", required=True)


def _count(fields: Fields) -> int:
    return fields.integer("count", 0, required=True, least=0, most=_MOST)


def _quotas(fields: Fields, flavor: str) -> dict[str, Any]:
    cpu: dict[str, Any] = {"name": "cpu"}
    for name in ("nominalQuota", "borrowingLimit"):
        if fields.quantity(name) is not None:
            cpu[name] = str(fields.raw(name))
    if "nominalQuota" not in cpu:
        fields.fault("nominalQuota", "is missing")
    preemption = {
        name: fields.choice(name, choices, "Never")
        for name, choices in (
            ("reclaimWithinCohort", ("Never", "LowerPriority", "Any")),
            ("withinClusterQueue", ("Never", "LowerPriority", "LowerOrNewerEqualPriority")),
        )
        if name in fields
    }
    group = {"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": [cpu]}]}
    return {"namespaceSelector": {}, "preemption": preemption, "resourceGroups": [group]}


def _manifests(name: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        namespace_manifest(name),
        manifest_of(KUEUE, "ClusterQueue", name, dict(spec)),
        local_queue_manifest(name, name),
    ]


def _workloads(fields: Fields, place: int) -> list[Stream]:
    """Returns the streams of a set of workloads.

    Each template has its own stream, and the jobs of the streams alternate.
    """
    most = _count(fields)
    interval = _MILLISECOND * fields.integer("creationIntervalMs", 0, least=0, most=_LONGEST)
    templates = fields.items("workloads")
    return [
        Stream(
            name=f"{_class(template)}-{place}-",
            queue="",
            arrivals=Regular(interval * len(templates), first=interval * (number + 1)),
            kinds=(_kind(template),),
            most=most,
            suffix=f"-{number}",
        )
        for number, template in enumerate(templates)
        if most
    ]


def _kind(fields: Fields) -> JobKind:
    runtime = _MILLISECOND * fields.integer("runtimeMs", 0, least=0, most=_LONGEST)
    return JobKind(
        weight=1.0,
        duration=Choice([runtime], [1.0]),
        requests={"cpu": Choice([fields.amount("request", "cpu") or 0], [1.0])},
        pods=Choice([fields.integer("podCount", 1, least=1)], [1.0]),
        priority=Choice([fields.integer("priority", 0)], [1.0]),
    )


def _of_queue(queue: str, stream: Stream) -> Stream:
    """Returns a copy of a stream for one queue, whose jobs are named `NAMESPACE/WORKLOAD`."""
    return replace(stream, name=f"{queue}/{stream.name}", queue=queue, namespace=queue)
