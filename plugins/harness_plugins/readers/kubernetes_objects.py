"""Reads the submission, run, end and requests of a job from Workloads, Jobs and Pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from harness.base.errors import Fault
from harness.base.json_text import mapping_of
from harness.base.units import SECOND
from harness.models.manifests import (
    Condition,
    Fields,
    annotated_topology,
    read_pod_set,
    read_time,
    workload_from,
)
from harness.policy import PodSet

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

_FILLED_IN = ("nodeName", "priority", "priorityClassName", "schedulerName")
"""The fields of a pod's spec that the cluster fills in, or that have separate columns in a trace."""


Span: TypeAlias = tuple[int | None, int | None]
"""A start and an end in microseconds since 1970. None means that a time is unknown or not reached yet."""


class Run(NamedTuple):
    """A period in which the pods of an object were allowed to run. Times are in microseconds since 1970.

    Attributes:
        begun: when the object was admitted or started.
        ready: when the pods of the object were ready, or None if unknown.
        end: the end of the run, or None if the run has not ended or the end was not observed.
        state: the state in which the run ended, as the API names it.
    """

    begun: int
    ready: int | None = None
    end: int | None = None
    state: str = ""


@dataclass(frozen=True)
class Recorded:
    """A job as a cluster describes it.

    Attributes:
        name: the name and namespace of the job, which together are unique in the cluster.
        queue: the LocalQueue of the job, or the namespace if the job has no LocalQueue.
        submit, start, end: times in microseconds since 1970. They are None if unknown or not yet reached.
        pod_sets: the pods that the job requests, with the labels of the pods.
        gang: True if the job was admitted as a whole.
        priority: the priority, or None if the object does not have one.
        grace_period: the grace period in microseconds, or None if the object does not have one.
        evictions: the number of times that Kueue evicted the job, or None if the object does not have this
            number.
        past: the total time in microseconds that the job ran before its evictions.
        admitted: when Kueue last admitted the job. It is None for a Job or Pod, or if the time is not given.
        ready: when all pods of the job were ready, or None if unknown.
        rounds: True if more pods have to complete than run simultaneously.
        run: the run time if it differs from the time between start and end, or else None.
        runs: all runs of the job, including the last run, if the versions of the object show them.
        revoked: True if Kueue revoked an admission, so that the object no longer has the time of the
            admission.
        evicted: True if a condition shows that Kueue evicted the job, which may now run again.
    """

    name: str
    namespace: str
    uid: str
    queue: str
    submit: int | None
    start: int | None
    end: int | None
    pod_sets: tuple[PodSet, ...]
    gang: bool
    priority: int | None
    priority_class: str
    preemption_policy: str
    grace_period: int | None
    evictions: int | None = None
    past: int = 0
    admitted: int | None = None
    ready: int | None = None
    rounds: bool = False
    run: int | None = None
    runs: tuple[Run, ...] = ()
    revoked: bool = False
    evicted: bool = False


def read_workload(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Recorded:
    """Reads Kueue's Workload, v1beta1 or v1beta2: its creation, its last admission and its end.

    The result also has the time when the pods of the Workload were ready. See `pod_runs`.
    """
    pod_sets = _list(mapping_of(manifest, "spec"), "podSets")
    templates = [mapping_of(item, "template") for item in pod_sets]
    trimmed = [
        {**item, "template": {**template, "spec": _trimmed(mapping_of(template, "spec"))}}
        for item, template in zip(pod_sets, templates, strict=True)
    ]
    whole = (
        {**manifest, "spec": {**mapping_of(manifest, "spec"), "podSets": trimmed}} if pod_sets else manifest
    )
    workload = workload_from(Fields(whole, where, faults), {})
    spec = mapping_of(templates[0], "spec") if templates else {}

    def since(condition: str) -> int | None:
        found = workload.conditions.get(condition)
        return found.since if found is not None and found.status else None

    evictions, past = _evictions(Fields(mapping_of(manifest, "status"), where, faults, "status"))
    admitted, revoked = since("Admitted"), _revoked(workload.conditions)
    finished, ready = since("Finished"), since("PodsReady")
    if revoked is not None:
        admitted, past = _admitted_before(revoked, workload.conditions, evictions, past)
        finished = None if finished is None else min(finished, revoked)
        if ready is not None and ready <= revoked:
            past = max(0, past - (revoked - ready))
    return Recorded(
        workload.key,
        workload.namespace,
        workload.uid,
        workload.queue or workload.namespace,
        workload.created,
        admitted,
        finished,
        tuple(pod_set for pod_set in workload.pod_sets if pod_set.count > 0),
        sum(pod_set.count for pod_set in workload.pod_sets) > 1,
        workload.priority,
        workload.priority_class,
        _text(spec, "preemptionPolicy"),
        _grace_period(Fields(spec, where, faults, "spec.podSets[0].template.spec")),
        evictions,
        past,
        admitted=admitted,
        ready=ready,
        revoked=revoked is not None,
        evicted="Evicted" in workload.conditions,
    )


def _revoked(conditions: Mapping[str, Condition]) -> int | None:
    """Returns when a Workload lost its admission, or None if it is admitted or was never admitted."""
    admitted = conditions.get("Admitted")
    return admitted.since or None if admitted is not None and not admitted.status else None


def _admitted_before(
    revoked: int, conditions: Mapping[str, Condition], evictions: int | None, past: int
) -> tuple[int | None, int]:
    """Returns when the revoked admission began, and how long the Workload had been admitted before that.

    The condition contains only the time of the revocation. However, Kueue also keeps the total time of all
    admissions. When it revokes an admission, it adds the length of this admission to the total. If there was
    a single admission, the total is its length. Kueue 0.15 also revokes the admission of a Workload that has
    finished.
    """
    count = evictions if evictions is not None or "Evicted" in conditions else 0
    only = 0 if conditions["Admitted"].reason == "Finished" else 1
    return (revoked - past, 0) if past and count == only else (None, past)


def _evictions(status: Fields) -> tuple[int | None, int]:
    """Returns how often a Workload was evicted, and how long it was admitted before the evictions.

    In v1beta1, the name of the field has a spelling mistake.
    """
    stats = status.child("schedulingStats")
    counts = [item.integer("count", least=0) for item in stats.items("evictions")]
    spellings = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
    past = max(status.integer(each, least=0) for each in spellings)
    return sum(counts) if "schedulingStats" in status else None, past * SECOND


def read_job(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Recorded:
    """Reads a Job of batch/v1: its start, its end, and the number of pods that may run simultaneously."""
    spec = Fields(manifest, where, faults).child("spec")
    parallelism = spec.integer("parallelism", 1, least=0)
    completions = spec.integer("completions", parallelism, least=0) if "completions" in spec else parallelism
    return _recorded(
        manifest,
        where,
        faults,
        template=mapping_of(mapping_of(manifest, "spec"), "template"),
        count=min(parallelism, completions),
        span=job_span(manifest, where, faults),
        rounds=completions > parallelism,
    )


def read_pod(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Recorded:
    """Reads a Pod, which runs from its start on a node until the end of its last container."""
    span = pod_span(manifest, where, faults)
    return _recorded(manifest, where, faults, template=manifest, count=1, span=span)


def job_span(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Span:
    """Returns the start of a Job, and the time when the Job completed or failed."""
    status = Fields(manifest, where, faults).child("status")
    ends = [read_time(status, "completionTime")]
    for condition in status.items("conditions"):
        ended = condition.string("type") in ("Complete", "Failed") and condition.string("status") == "True"
        ends.append(read_time(condition, "lastTransitionTime") if ended else None)
    return read_time(status, "startTime"), next((end for end in ends if end is not None), None)


def pod_span(manifest: Mapping[str, Any], where: str, faults: list[Fault]) -> Span:
    """Returns the start and end of a Pod.

    A Pod starts when its node accepts it. It ends with its last container, or when the cluster gives it up.
    """
    status = Fields(manifest, where, faults).child("status")
    start = read_time(status, "startTime")
    ends = [
        read_time(container.child("state").child("terminated"), "finishedAt")
        for container in status.items("containerStatuses")
    ]
    if not final_phase(manifest):
        return start, None
    if not ends or None in ends:
        ends.append(_given_up(manifest, status, start))
    return start, max((end for end in ends if end is not None), default=None)


def final_phase(manifest: Mapping[str, Any]) -> str:
    """Returns the phase of a Pod that has ended, which is `Succeeded` or `Failed`, or "" for other Pods."""
    phase = _text(mapping_of(manifest, "status"), "phase")
    return phase if phase in ("Succeeded", "Failed") else ""


def _given_up(manifest: Mapping[str, Any], status: Fields, start: int | None) -> int | None:
    """Returns the time at which a Pod was disrupted or became unready, for example because its node was lost.

    If neither happened, the result is None. A Pod with a readiness probe may run without being ready.
    """
    spec = mapping_of(manifest, "spec")
    probed = bool(spec.get("readinessGates")) or any(
        container.get("readinessProbe") for container in _list(spec, "containers")
    )
    tells = {("DisruptionTarget", "True")} | (set() if probed else {("Ready", "False")})
    times = [
        read_time(condition, "lastTransitionTime")
        for condition in status.items("conditions")
        if (condition.string("type"), condition.string("status")) in tells
    ]
    return max((time for time in times if time is not None and time > (start or 0)), default=None)


READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any], str, list[Fault]], Recorded]] = {
    ("kueue.x-k8s.io", "Workload"): read_workload,
    ("batch", "Job"): read_job,
    ("", "Pod"): read_pod,
}


SPANS: Mapping[tuple[str, str], Callable[[Mapping[str, Any], str, list[Fault]], Span]] = {
    ("batch", "Job"): job_span,
    ("", "Pod"): pod_span,
}


def _recorded(
    manifest: Mapping[str, Any],
    where: str,
    faults: list[Fault],
    *,
    template: Mapping[str, Any],
    count: int,
    span: Span,
    rounds: bool = False,
) -> Recorded:
    """Builds what Jobs and Pods have in common. `template` is the template of the pods."""
    metadata = Fields(mapping_of(manifest, "metadata"), where, faults, "metadata")
    name, namespace = metadata.string("name", required=True), metadata.string("namespace", "default")
    queue = metadata.strings("labels").get(QUEUE_LABEL, "")
    spec = mapping_of(template, "spec")
    pods = {
        "name": "main",
        "count": count,
        "template": {**template, "spec": _trimmed(spec)},
        "topologyRequest": annotated_topology(mapping_of(template, "metadata"), faults),
    }
    pod_set = read_pod_set(Fields(pods, where, faults, "spec"))
    fields = Fields(spec, where, faults, "spec")
    return Recorded(
        f"{namespace}/{name}",
        namespace,
        metadata.string("uid"),
        queue or namespace,
        read_time(metadata, "creationTimestamp"),
        *span,
        (pod_set,) if count else (),
        bool(queue) and count > 1,
        fields.integer("priority") if "priority" in fields else None,
        _text(spec, "priorityClassName"),
        _text(spec, "preemptionPolicy"),
        _grace_period(fields),
        rounds=rounds,
    )


def _trimmed(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _FILLED_IN}


def _grace_period(spec: Fields) -> int | None:
    name = "terminationGracePeriodSeconds"
    return spec.integer(name, least=0) * SECOND if name in spec else None


def _text(manifest: Mapping[str, Any], name: str) -> str:
    value = manifest.get(name)
    return value if isinstance(value, str) else ""


def _list(manifest: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = manifest.get(name)
    items = value if isinstance(value, list) else []
    return items if all(isinstance(item, Mapping) for item in items) else []
