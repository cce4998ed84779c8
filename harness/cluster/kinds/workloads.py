"""Reads Kueue's Workload (v1beta1 and v1beta2): its requests, its admission and its status."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from harness.base.pod_set import PodSet, TopologyRequest
from harness.base.units import SECOND, since_1970
from harness.base.values import Value, fixed
from harness.cluster.draft import read_metadata
from harness.cluster.kinds.containers import Container, pod_requests, read_resources, saturating_amounts
from harness.cluster.kinds.topology import TopologyAssignment, read_topology_assignment, read_topology_request
from harness.cluster.model import NEWER, frozen
from harness.cluster.yaml.fields import Fields

RETRY, REJECTED = "Retry", "Rejected"
"""The states of admission checks that make Kueue evict a Workload, and deactivate it if it is rejected."""

PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"
DEADLINE = "activeDeadlineSeconds"
"""The field that limits how long a pod or a Job can run."""


@fixed()
class Condition(Value):
    """A condition of a Workload. `since` is in microseconds since 1970."""

    status: bool
    reason: str
    since: int


@fixed()
class CheckState(Value):
    """The state of an admission check for a Workload, with the message of the check's controller.

    Attributes:
        since: when the check got this state, in microseconds since 1970, or None.
        requeue_after: how long after `since` Kueue queues the Workload again if the state is `Retry`, in
            microseconds.
    """

    name: str
    state: str
    message: str
    since: int | None = field(default=None, metadata=NEWER)
    requeue_after: int = field(default=0, metadata=NEWER)

    @property
    def retry_at(self) -> int | None:
        """The time when Kueue queues the Workload again, in microseconds since 1970.

        It is None if Kueue queues the Workload immediately.
        """
        return self.since + self.requeue_after if self.since is not None and self.requeue_after else None


@fixed()
class PodSetAssignment(Value):
    """The admission of one pod set.

    Attributes:
        count: the number of admitted pods.
        flavors: maps each resource to its flavor.
        usage: the quantity of each resource for all admitted pods together.
        topology: the domains of the pods, or None.
    """

    name: str
    count: int
    flavors: Mapping[str, str]
    usage: Mapping[str, int]
    topology: TopologyAssignment | None = field(default=None, metadata=NEWER)


@fixed()
class Admission(Value):
    """The quota that a Workload has reserved, with its ClusterQueue and its assignments."""

    cluster_queue: str
    assignments: tuple[PodSetAssignment, ...]


@fixed()
class Workload(Value):
    """A Kueue Workload.

    Attributes:
        created: when the Workload was created, in microseconds since 1970, or None.
        queue: the LocalQueue of the Workload.
        boost: the number in the priority-boost annotation, or 0.
        active: False if the Workload has been deactivated, or if Kueue is about to deactivate it.
        reclaimable: the number of ended pods in each pod set that no longer need quota.
        grace_period: the longest grace period of the pods, in microseconds, or None.
        time_left: how long the Workload can stay admitted before Kueue deactivates it, in microseconds, or
            None if there is no limit.
        gated_by: the text of the admission-gated-by annotation, or "".
        time_outs: how often the pods were not ready in time.
        requeue_at: when the backoff ends, in microseconds since 1970, or None.
        deadline: how long the pods can run, in microseconds, or None if the pods of some pod set have no
            limit.
        began: when the job started according to its own status, in microseconds since 1970, or None if the
            dump doesn't contain the job.
        ended: the number of further ended pods in each pod set. These pods need no node, but they keep their
            quota until `reclaimable` includes them.
        unready: the admission checks that are not ready.
        deleted: whether the Workload's deletion has begun. Kueue then stops its job and removes the Workload.
        job_ended: whether the status of the Workload's job says that it has ended. Kueue then finishes the
            Workload.
    """

    name: str
    namespace: str
    uid: str
    created: int | None
    queue: str
    priority: int
    priority_class: str
    boost: int
    active: bool
    pod_sets: tuple[PodSet, ...]
    admission: Admission | None = None
    conditions: Mapping[str, Condition] = field(default_factory=frozen)
    reclaimable: Mapping[str, int] = field(default_factory=frozen)
    grace_period: int | None = field(default=None, metadata=NEWER)
    time_left: int | None = field(default=None, metadata=NEWER)
    gated_by: str = field(default="", metadata=NEWER)
    time_outs: int = field(default=0, metadata=NEWER)
    requeue_at: int | None = field(default=None, metadata=NEWER)
    deadline: int | None = field(default=None, metadata=NEWER)
    began: int | None = field(default=None, metadata=NEWER)
    ended: Mapping[str, int] = field(default_factory=frozen, metadata=NEWER)
    unready: tuple[CheckState, ...] = field(default=(), metadata=NEWER)
    deleted: bool = field(default=False, metadata=NEWER)
    job_ended: bool = field(default=False, metadata=NEWER)

    @property
    def key(self) -> str:
        """The Workload's namespace and name, in the format of Kueue's messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def holds_quota(self) -> bool:
        """True if the status says that the Workload has reserved quota and the Workload has not finished."""
        return self.admission is not None and self.is_true("QuotaReserved") and not self.finished

    @property
    def awaits_checks(self) -> bool:
        """True if the Workload holds quota, but is not admitted because an admission check is not ready."""
        return self.holds_quota and bool(self.unready) and not self.is_true("Admitted")

    @property
    def finished(self) -> bool:
        """True if the workload or its job has ended, or if the workload's deletion has begun."""
        return self.deleted or self.job_ended or self.is_true("Finished")

    @property
    def takes_part(self) -> bool:
        """True if the workload has not ended, and is active or still has reserved quota."""
        return self.holds_quota or (self.active and not self.finished)

    def used(self, *, reclaims: bool = True) -> Iterator[tuple[str, str, int]]:
        """Yields the flavors, resources and quantities of its admission, without its reclaimed pods.

        `reclaims` says whether reclaimed pods give back their quota.
        """
        counts = {pod_set.name: pod_set.count for pod_set in self.pod_sets}
        for assignment in () if self.admission is None else self.admission.assignments:
            spec_count = counts.get(assignment.name, 0)
            count = left = spec_count if assignment.count < 0 else assignment.count
            if reclaims:
                left = min(count, spec_count - min(self.reclaimable.get(assignment.name, 0), spec_count))
            for resource, flavor in assignment.flavors.items():
                amount = assignment.usage.get(resource, 0)
                if left < count:
                    amount = amount // count * left
                yield flavor, resource, amount

    def over(self, pod_set: PodSet) -> int:
        """Returns the number of pods of a pod set that have ended and won't run again."""
        found = self.reclaimable.get(pod_set.name, 0) + self.ended.get(pod_set.name, 0)
        return min(found, pod_set.count)

    def is_true(self, condition: str) -> bool:
        """Returns True if the workload has this condition and its status is True."""
        found = self.conditions.get(condition)
        return found is not None and found.status


def workload_from(fields: Fields, known: dict[str, tuple[PodSet, ...]]) -> Workload:
    """Returns the Workload that a manifest describes.

    `known` maps texts to the pod sets that were read from them, so that Workloads with equal requests share
    pod sets.
    """
    metadata = read_metadata(fields)
    more = fields.child("metadata")
    spec = fields.child("spec")
    status = fields.child("status")
    reference = spec.child("priorityClassRef")
    requeue = status.child("requeueState")
    conditions = dict(_read_condition(item) for item in status.items("conditions"))
    target = conditions.get("DeactivationTarget")
    return Workload(
        name=metadata.name,
        namespace=metadata.namespace,
        uid=more.string("uid"),
        created=read_time(more, "creationTimestamp"),
        queue=spec.string("queueName"),
        priority=spec.integer("priority"),
        priority_class=reference.string("name") or spec.string("priorityClassName"),
        boost=_boost(more.raw("annotations")),
        active=spec.boolean("active", True) and not (target is not None and target.status),
        pod_sets=_pod_sets(spec, known),
        admission=_read_admission(status.child("admission")) if "admission" in status else None,
        conditions=frozen(conditions),
        reclaimable=frozen(
            {item.string("name"): item.integer("count", least=0) for item in status.items("reclaimablePods")}
        ),
        grace_period=_grace_period(spec),
        time_left=_time_left(spec, status),
        gated_by=_gated_by(more.raw("annotations")),
        time_outs=requeue.integer("count", least=0),
        requeue_at=read_time(requeue, "requeueAt"),
        deadline=_deadline(spec),
        unready=tuple(_unready(status)),
        deleted="deletionTimestamp" in more,
    )


def _unready(status: Fields) -> Iterator[CheckState]:
    for item in status.items("admissionChecks"):
        state = item.string("state", "Ready")
        if state != "Ready":
            since, after = read_time(item, "lastTransitionTime"), item.integer("requeueAfterSeconds", least=0)
            yield CheckState(item.string("name"), state, item.string("message"), since, after * SECOND)


def _grace_period(spec: Fields) -> int | None:
    name = "terminationGracePeriodSeconds"
    pods = [item.child("template").child("spec") for item in spec.items("podSets")]
    times = [each.integer(name, least=0) * SECOND for each in pods if name in each]
    return max(times, default=None)


def _deadline(spec: Fields) -> int | None:
    times = [read_deadline(item.child("template").child("spec")) for item in spec.items("podSets")]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def read_deadline(spec: Fields) -> int | None:
    """Returns the `activeDeadlineSeconds` of a pod's `spec` in microseconds, or None."""
    return spec.integer(DEADLINE, least=1) * SECOND if DEADLINE in spec else None


def _time_left(spec: Fields, status: Fields) -> int | None:
    """Returns how much of `maximumExecutionTimeSeconds` remains.

    In v1beta1, the name of the field for the time used so far is misspelled.
    """
    name = "maximumExecutionTimeSeconds"
    spellings = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
    past = max(status.integer(each, least=0) for each in spellings)
    return max(0, spec.integer(name, least=1) - past) * SECOND if name in spec else None


def _pod_sets(spec: Fields, known: dict[str, tuple[PodSet, ...]]) -> tuple[PodSet, ...]:
    text = repr(spec.raw("podSets"))
    pod_sets = known.get(text)
    if pod_sets is None:
        before = len(spec.faults)
        pod_sets = tuple(read_pod_set(item) for item in spec.items("podSets"))
        if not pod_sets:
            spec.fault("podSets", "must name at least one pod set")
        if len(spec.faults) == before:
            known[text] = pod_sets
    return pod_sets


def read_time(fields: Fields, name: str) -> int | None:
    """Returns a time in Kubernetes' format as microseconds since 1970, or None if it is absent or faulty."""
    text = fields.raw(name)
    if text is None:
        return None
    try:
        moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    except (TypeError, ValueError):
        fields.fault(name, f"{text!r} is not a time such as 2025-01-31T08:00:00Z")
        return None
    return since_1970(moment)


def read_pod_set(fields: Fields) -> PodSet:
    """Read an item of a Workload's `podSets`, or a mapping with the same fields.

    The fields are name, count, minCount and template.
    """
    count = fields.integer("count", 1, least=0)
    least = fields.integer("minCount", count, least=1, most=max(1, count))
    template = fields.child("template")
    spec = template.child("spec")
    containers = [Container(item, saturating_amounts) for item in spec.items("containers")]
    init = [Container(item, saturating_amounts) for item in spec.items("initContainers")]
    _, as_whole = read_resources(spec, saturating_amounts)
    return PodSet(
        name=fields.string("name", "main"),
        count=count,
        min_count=least if "minCount" in fields else count,
        requests=frozen(pod_requests(containers, init, {}, as_whole, spec.amounts("overhead"))),
        limits=frozen(_pod_limits(containers)),
        labels=template.child("metadata").strings("labels"),
        node_selector=spec.strings("nodeSelector"),
        tolerations=_as_json(spec.raw("tolerations")),
        affinity=_as_json(spec.raw("affinity")),
        pod_template=_as_json(_rest_of_template(spec)),
        topology=_topology(fields),
    )


def _topology(fields: Fields) -> TopologyRequest | None:
    found = read_topology_request(fields.child("topologyRequest"))
    return None if found == TopologyRequest() else found


def _pod_limits(containers: list[Container]) -> dict[str, int]:
    """Returns the limits of one pod. A resource has a limit only if all containers have a limit for it."""
    tables = [container.limits for container in containers]
    limited = (
        [resource for resource in tables[0] if all(resource in table for table in tables)] if tables else []
    )
    return {resource: sum(table[resource] for table in tables) for resource in limited}


_SCHEDULING = (
    "hostNetwork", "nodeName", "overhead", "priority", "priorityClassName", "resourceClaims", "resources",
    "runtimeClassName", "schedulerName", "topologySpreadConstraints",
)  # fmt: skip


_OF_CONTAINERS: Mapping[str, tuple[str, ...]] = frozen(
    {"containers": ("ports", "resources"), "initContainers": ("ports", "resources", "restartPolicy")}
)


def _rest_of_template(spec: Fields) -> dict[str, Any] | None:
    """Returns the other parts of a pod template that affect scheduling.

    Usually there are none, so it returns None.

    The containers are included unless the pod has a single container with the same requests and limits.
    """
    rest = {name: spec.raw(name) for name in _SCHEDULING if name in spec}
    found = {name: _mappings(spec.raw(name)) for name in ("containers", "initContainers")}
    every = [*found["containers"], *found["initContainers"]]
    if len(every) > 1 or any("ports" in item for item in every) or {"overhead", "resources"} & rest.keys():
        for name, items in found.items():
            if items:
                rest[name] = [
                    {key: item[key] for key in _OF_CONTAINERS[name] if key in item} for item in items
                ]
    return rest or None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """Returns the mappings in a list. If the value is not a list, there is already a fault."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _read_condition(fields: Fields) -> tuple[str, Condition]:
    status = fields.choice("status", ("True", "False", "Unknown"), "Unknown")
    since = read_time(fields, "lastTransitionTime") or 0
    return fields.string("type", required=True), Condition(status == "True", fields.string("reason"), since)


def _as_json(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True) if value else None


def _read_admission(fields: Fields) -> Admission:
    return Admission(
        fields.string("clusterQueue", required=True),
        tuple(
            PodSetAssignment(
                item.string("name", "main"),
                item.integer("count", -1),
                item.strings("flavors"),
                item.amounts("resourceUsage"),
                read_topology_assignment(item.child("topologyAssignment")),
            )
            for item in fields.items("podSetAssignments")
        ),
    )


def _gated_by(annotations: Any) -> str:
    text = annotations.get(ADMISSION_GATED_BY) if isinstance(annotations, Mapping) else None
    return text if isinstance(text, str) else ""


def _boost(annotations: Any) -> int:
    """Returns the boost in an annotation. A text that is not a number counts as 0, as in Kueue."""
    text = annotations.get(PRIORITY_BOOST, "0") if isinstance(annotations, Mapping) else "0"
    try:
        return int(text)
    except (TypeError, ValueError):
        return 0
