"""Determines the pods, the nodes and the start of each job in a dump.

A job is a Workload of Kueue, or a Pod that has no Workload. `owners.py` finds the pods of a Workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from harness.base.pod_set import PodSet
from harness.cluster.kinds.pods import Pod
from harness.cluster.kinds.workloads import Workload
from harness.cluster.model import Cluster, frozen


class Standing(NamedTuple):
    """The state of one job in a dump.

    Attributes:
        pods: the job's Pods by their numbers in the job. They include running Pods and Pods that wait for a
            node.
        more: further Pods that exceed the wanted number.
        wanted: the number of pods that the job should have.
        since: the time at which the job started, in microseconds since 1970. It is None if the job isn't
            running, or if the start is unknown.
    """

    pods: Mapping[int, Pod]
    more: tuple[Pod, ...]
    wanted: int
    since: int | None


def standing_of(cluster: Cluster, each: Workload | Pod) -> Standing:
    """Returns the state of a job in a dump.

    A Workload starts when its pods become ready (condition `PodsReady`). Without that condition, harness uses
    the start in the status of its job, or the start of its first pod. If the dump contains none of its pods,
    harness uses the time of its admission or of its quota reservation. A Workload does not run without quota,
    or while one of its pods has no node.
    """
    if isinstance(each, Pod):
        return Standing({0: each}, (), 1, each.start if each.node else None)
    known = cluster.standings
    found = known.get(id(each))
    if found is None:
        found = known[id(each)] = (
            each,
            _of_workload(cluster, each),
        )  # keep the object, so that its id remains unique
    return found[1]


def _of_workload(cluster: Cluster, each: Workload) -> Standing:
    evicted = each.holds_quota and each.is_true("Evicted")
    pods = [
        pod
        for pod in cluster.pods_of.get(each.key, ())
        if not pod.terminating or (evicted and leaving(cluster, pod))
    ]
    rooms = list(_rooms(each))
    numbered, more = _numbered(pods, rooms)
    wanted = sum(len(room.numbers) for room in rooms)
    return Standing(numbered, more, wanted, _since(each, numbered, wanted))


def ended_pods(workload: Workload, pods: Iterable[Pod], succeeded: Iterable[Pod]) -> Mapping[str, int]:
    """Returns the number of pods in each pod set that succeeded and that no other pod replaces.

    In a Job with more completions than parallel pods, for example, new pods replace those that succeeded. If
    no pod of the Workload is left, its job continues with new pods, because the job has not ended.

    `pods` are the Pods of the Workload that have not ended, and `succeeded` those that have succeeded.
    """
    rooms = list(_rooms(workload))
    present, _ = _numbered(pods, rooms)
    numbered, _ = _numbered(succeeded, rooms, present)
    ended = numbered.keys() - present.keys()
    if len(ended) == sum(len(room.numbers) for room in rooms):
        return {}
    counts = {room.pod_set.name: sum(number in ended for number in room.numbers) for room in rooms}
    return frozen({name: count for name, count in counts.items() if count})


def leaving(cluster: Cluster, pod: Pod) -> int:
    """Returns how long a terminating pod keeps its resources, in microseconds, or 0 for other pods.

    The pod ends at its deletion timestamp. The timestamp already includes the grace period.
    """
    if not (pod.terminating and pod.node) or pod.gone_at is None or cluster.as_of is None:
        return 0
    return max(0, pod.gone_at - cluster.as_of)


def staying(cluster: Cluster) -> frozenset[str]:
    """Returns the Pods that stay on their nodes when the replay begins, as `namespace/name`.

    A Pod stays if its node exists and has enough free resources for it, in addition to the Pods that started
    earlier. For each resource of a Pod with a Workload, the larger of two requests counts: that of the Pod
    itself, and that of the Workload for the Pod.
    """
    bound = [
        pod
        for pod in cluster.pods
        if pod.node in cluster.nodes and (not pod.terminating or leaving(cluster, pod))
    ]
    bound.sort(key=lambda pod: (pod.start is None, pod.start or 0, pod.key))
    said = requests_of_workloads(cluster) if any(pod.workload for pod in bound) else {}
    free = {pod.node: dict(cluster.nodes[pod.node].allocatable) for pod in bound}
    found = set()
    for pod in bound:
        left, requests = free[pod.node], {**pod.spec.requests, "pods": 1}
        for resource, amount in said.get(pod.key, {}).items():
            requests[resource] = max(amount, requests.get(resource, 0))
        asked = {
            name: amount for name, amount in requests.items() if amount and (name != "pods" or name in left)
        }
        if all(left.get(resource, 0) >= amount for resource, amount in asked.items()):
            found.add(pod.key)
            for resource, amount in asked.items():
                left[resource] -= amount
    return frozenset(found)


def requests_of_workloads(cluster: Cluster) -> dict[str, Mapping[str, int]]:
    """Returns the requests of Workloads for each of their Pods, by the `namespace/name` of the Pod."""
    found: dict[str, Mapping[str, int]] = {}
    for workload in cluster.workloads:
        rooms = list(_rooms(workload))
        for number, pod in standing_of(cluster, workload).pods.items():
            found[pod.key] = next(room.pod_set.requests for room in rooms if number in room.numbers)
    return found


def _since(workload: Workload, pods: Mapping[int, Pod], wanted: int) -> int | None:
    ready = workload.conditions.get("PodsReady")
    if not workload.holds_quota or workload.is_true("Evicted") or (ready is not None and not ready.status):
        return None
    if ready is not None and ready.since:
        return ready.since
    if pods and sum(bool(pod.node) for pod in pods.values()) < wanted:
        return None
    if workload.began is not None:
        return workload.began
    starts = [pod.start for pod in pods.values() if pod.start is not None]
    if starts:
        return min(starts)
    held = [workload.conditions[name] for name in ("Admitted", "QuotaReserved") if workload.is_true(name)]
    return next((condition.since for condition in held if condition.since), None)


class _Room(NamedTuple):
    pod_set: PodSet
    numbers: range


def _rooms(workload: Workload) -> Iterator[_Room]:
    """Yields the pod sets of a Workload. Pods that have ended or were not admitted have no numbers."""
    given: Mapping[str, int] = {}
    if workload.admission is not None:
        given = {each.name: each.count for each in workload.admission.assignments if each.count > 0}
    first = 0
    for pod_set in workload.pod_sets:
        left = pod_set.count - workload.over(pod_set)
        admitted = given.get(pod_set.name, pod_set.count) - workload.ended.get(pod_set.name, 0)
        yield _Room(pod_set, range(first, first + max(0, min(admitted, left))))
        first += left


def _numbered(
    pods: Iterable[Pod], rooms: Sequence[_Room], others: Mapping[int, Pod] = MappingProxyType({})
) -> tuple[dict[int, Pod], tuple[Pod, ...]]:
    """Returns Pods by their numbers, and Pods without a number. Running Pods are numbered first.

    A pod gets the number that equals its index, if this number is free. The pods in `others` already have
    numbers.
    """
    found = dict(others)
    more: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: (not pod.node, pod.index is None, pod.index or 0, pod.key)):
        room = _room_of(pod, rooms, found)
        free = [number for number in room.numbers if number not in found] if room is not None else []
        if room is None or not free:
            more.append(pod)
            continue
        wished = room.numbers.start + (pod.index or 0)
        found[wished if pod.index is not None and wished in free else free[0]] = pod
    return found, tuple(more)


def _room_of(pod: Pod, rooms: Sequence[_Room], taken: Mapping[int, Pod]) -> _Room | None:
    """Returns the pod set that a pod's labels name, or a pod set with a free number and equal requests."""
    named = [room for room in rooms if room.pod_set.name == pod.pod_set.lower()]
    open_ = [room for room in named or rooms if any(number not in taken for number in room.numbers)]
    alike = [room for room in open_ if _asked(room.pod_set.requests) == _asked(pod.spec.requests)]
    return next(iter(alike or open_), None)


def differs(pod: Pod, requests: Mapping[str, int]) -> bool:
    """Returns True if the requests of a Pod differ from the given requests."""
    return _asked(pod.spec.requests) != _asked(requests)


def _asked(requests: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in requests.items() if amount}
