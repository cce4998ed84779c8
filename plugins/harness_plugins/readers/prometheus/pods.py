"""Converts samples of kube-state-metrics to pods with their creation, run, end and requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from harness.base.units import SECOND, round_up
from harness.readers.exported_resources import resource_of
from harness_plugins.readers.prometheus.answers import LATEST, Samples

QUEUE_LABEL = "label_kueue_x_k8s_io_queue_name"
_FINAL = ("Succeeded", "Failed")
_TIMES = {
    "kube_pod_created": "created",
    "kube_pod_status_scheduled_time": "scheduled",
    "kube_pod_start_time": "started",
}  # fmt: skip
_REQUESTS = "kube_pod_container_resource_requests"
_INIT = "kube_pod_init_container_resource_requests"
_MOST = 2**62


class Final(NamedTuple):
    """The period between two samples in which a pod entered its final phase.

    Attributes:
        after: the time of the pod's last sample in another phase, or the start of the pod if that is later.
        first: the time of the pod's first sample in the final phase.
        seen_before: True if the pod was ever scraped in another phase.
    """

    after: int
    first: int
    seen_before: bool


@dataclass
class Pod:
    """A pod as it was scraped. Times are in microseconds, or None if no sample has them.

    Attributes:
        namespace, name, uid: the identity of the pod. `uid` is "" if the labels do not include it.
        created: when the API server created the pod.
        scheduled: when the pod was assigned to a node.
        started: when the kubelet of the node accepted the pod.
        completed: when the last container of the pod ended.
        completion_seen: when `completed` was last scraped.
        phases: maps the time of each sample to the phase of the pod.
        seen: the time of the last sample in any series of the pod.
        owner_kind, owner: the controller of the pod.
        queue, priority_class: the queue in the pod's labels and the priority class in its info.
        requests: the requested amount by resource and container. `init` has the requests of init containers.
    """

    namespace: str
    name: str
    uid: str
    created: int | None = None
    scheduled: int | None = None
    started: int | None = None
    completed: int | None = None
    completion_seen: int = -1
    phases: dict[int, str] = field(default_factory=dict)
    seen: int = -1
    owner_kind: str = ""
    owner: str = ""
    queue: str = ""
    priority_class: str = ""
    requests: dict[str, dict[str, Fraction]] = field(default_factory=dict)
    init: dict[str, dict[str, Fraction]] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        """The last scraped phase, or ""."""
        return self.phases[max(self.phases)] if self.phases else ""

    def end(self) -> int | None:
        """Returns the time when the last container of the pod ended, or None if no sample has this time.

        When a container starts again, the time of its end disappears. The time is therefore used only if the
        pod is in a final phase. If the phases are unknown, the time is used only if the last sample still has
        it.
        """
        final = self.phase in _FINAL if self.phases else self.completion_seen >= self.seen
        return self.completed if final else None

    def final(self) -> Final | None:
        """Returns the period in which the phase of the pod became final, or None if it did not.

        For an evicted pod, this may be the only known end.
        """
        if self.phase not in _FINAL:
            return None
        before = max((time for time, phase in self.phases.items() if phase not in _FINAL), default=None)
        known = -1 if before is None else before
        first = min(time for time in self.phases if time > known)
        return Final(max(known, self.started or 0), first, before is not None)

    def amounts(self) -> dict[str, int]:
        """Returns the requests of the pod.

        The request for a resource is the sum over all containers, or the largest request of an init
        container if that is higher.
        """
        found: dict[str, int] = {}
        for resource in sorted({*self.requests, *self.init}):
            together = sum(self.requests.get(resource, {}).values(), Fraction(0))
            largest = max(self.init.get(resource, {}).values(), default=Fraction(0))
            amount = max(together, largest)
            found[resource] = min(round_up(resource, amount), _MOST)
        return found


def pods_of(samples: Samples) -> list[Pod]:
    """Returns all scraped pods, in the order of their creation."""
    pods: dict[tuple[str, str, str], Pod] = {}
    for metric, series in samples.series.items():
        if not metric.startswith("kube_pod_"):
            continue
        for labels, values in series.items():
            own = dict(labels)
            key = (own.get("namespace", ""), own.get("pod", ""), own.get("uid", ""))
            if not key[1]:
                samples.ignored["pod series that lack the label `pod`"] += 1
                continue
            pod = pods.setdefault(key, Pod(*key))
            pod.seen = max(pod.seen, *values)
            _add(pod, metric, own, values)
    return sorted(pods.values(), key=lambda pod: (pod.created or 0, pod.namespace, pod.name, pod.uid))


def _add(pod: Pod, metric: str, own: Mapping[str, str], values: Mapping[int, float]) -> None:
    last = max(values)
    if metric in _TIMES:
        setattr(pod, _TIMES[metric], _time(values[last]))
    elif metric == "kube_pod_completion_time":
        if last > pod.completion_seen:
            pod.completed, pod.completion_seen = _time(values[last]), last
    elif metric == "kube_pod_status_phase":
        pod.phases.update({time: own.get("phase", "") for time, value in values.items() if value == 1})
    elif metric in (_REQUESTS, _INIT):
        resource = resource_of(own.get("resource", "")) or "unknown"
        containers = (pod.requests if metric == _REQUESTS else pod.init).setdefault(resource, {})
        container = own.get("container", "")
        amount = Fraction(values[last]).limit_denominator(1000)
        containers[container] = max(containers.get(container, Fraction(0)), amount)
    elif metric == "kube_pod_owner" and own.get("owner_is_controller", "true") == "true":
        pod.owner_kind = own.get("owner_kind", "").replace("<none>", "")
        pod.owner = own.get("owner_name", "").replace("<none>", "")
    elif metric == "kube_pod_labels":
        pod.queue = own.get(QUEUE_LABEL, "") or pod.queue
    elif metric == "kube_pod_info":
        pod.priority_class = own.get("priority_class", "") or pod.priority_class


def _time(seconds: float) -> int | None:
    return round(seconds * SECOND) if 0 <= seconds <= LATEST else None


@dataclass(frozen=True, slots=True)
class KubeJob:
    """A Job of batch/v1. Several consecutive Jobs may have the same name.

    Attributes:
        created: when the Job was created, in microseconds.
    """

    namespace: str
    name: str
    created: int
    queue: str


def jobs_of(samples: Samples) -> dict[tuple[str, str], list[KubeJob]]:
    """Returns the Jobs by namespace and name, in the order of their creation.

    If the samples of a name have several creation times, each of them is a separate Job.
    """
    queues = {
        (own.get("namespace", ""), own.get("job_name", "")): own.get(QUEUE_LABEL, "")
        for own in map(dict, samples.series.get("kube_job_labels", {}))
        if own.get(QUEUE_LABEL)
    }
    found: dict[tuple[str, str], set[int]] = {}
    for labels, values in samples.series.get("kube_job_created", {}).items():
        own = dict(labels)
        key = (own.get("namespace", ""), own.get("job_name", ""))
        times = map(_time, values.values())
        found.setdefault(key, set()).update(time for time in times if time is not None)
    return {
        key: [KubeJob(*key, created, queues.get(key, "")) for created in sorted(times)]
        for key, times in found.items()
    }


def interval_of(samples: Samples) -> int:
    """Returns the median time between two samples of a series in microseconds, or 0 without two samples."""
    gaps: list[int] = []
    for series in samples.series.values():
        for values in series.values():
            gaps += [later - earlier for earlier, later in pairwise(sorted(values))]
    return sorted(gaps)[len(gaps) // 2] if gaps else 0


def silences(samples: Samples, interval: int) -> Iterator[tuple[int, int]]:
    """Yields the periods of at least two intervals in which nothing was scraped."""
    if interval:
        for earlier, later in pairwise(sorted(samples.times)):
            if later - earlier >= 2 * interval:
                yield earlier, later
