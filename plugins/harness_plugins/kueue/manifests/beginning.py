"""Reads the workloads in the manifests, which hold quota or wait for quota when a replay starts.

The run times of these workloads are unknown, so they run until they are evicted. All of them are older than
the jobs of the trace. Their pods stay on the nodes that the manifests name. If the cluster has nodes, Pods
that belong to no Workload take part, too. These Pods hold no quota, and kube-scheduler places them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, final
from weakref import ref

from harness import Cluster, Job, PodSet
from harness.base.errors import ClusterError, Fault
from harness.base.units import SECOND, format_amount
from harness.models.cluster import Pod, Standing, Workload, frozen, leaving, standing_of
from harness.models.kube.running import pod_jobs
from harness.policy import ENDLESS, Arrival, Startup
from harness_plugins.kueue.manifests.imported import pod_sets_left

_GRACE_PERIOD = 30 * SECOND
_STARTING: Startup = (SECOND, 0)
"""The start-up of pods that the manifests say are not ready. They become ready later, at an unknown time."""


class Start(NamedTuple):
    """A Workload that is present when a replay starts.

    Attributes:
        manifest: the manifest, without its admission if the Workload loses its reservation immediately.
        queue: the ClusterQueue whose quota the Workload holds, or in which it waits.
        pod_sets: the pod sets, without pods that have already finished.
        counts: for each pod set that was admitted with only some of its pods, the number of these pods.
        flavors: for each pod set, the admitted flavor of each resource.
        pods: the Pods that stay on their nodes, by their number in the job.
        ready: whether all pods count as ready. This follows from the Workload's condition. If there is no
            condition, the pods are ready if all are on their nodes or if the cluster has no nodes.
        expected: whether the pods have had time to become ready since the admission. They have had time if
            the manifests contain the condition or Pods of the Workload.
        leaves: how long the Workload keeps its quota, in microseconds, if it was evicted before the replay.
            None means its whole grace period.
    """

    manifest: Workload
    queue: str
    pod_sets: tuple[PodSet, ...]
    counts: Mapping[str, int]
    flavors: Mapping[str, Mapping[str, str]]
    pods: Mapping[int, Pod]
    ready: bool
    expected: bool
    leaves: int | None

    @property
    def evicted(self) -> bool:
        """True if a Workload with quota has been evicted, or will be evicted because it is deactivated."""
        manifest = self.manifest
        return manifest.holds_quota and (manifest.is_true("Evicted") or not manifest.active)


@final
class Beginning:
    """The Workloads in the manifests.

    Attributes:
        starts: the Workloads that take part, in the order in which the policy receives them. Workloads that
            hold quota come first, sorted by the time of their reservation. Waiting Workloads come next,
            sorted by creation time. Workloads that are finished or deactivated, or have no queue, are left
            out.
        crowded: whether the Workloads hold more quota than there is in total. This is possible while some of
            them are being evicted.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._as_of = cluster.as_of
        self.starts = _in_order(cluster)
        self.crowded = bool(_beyond(cluster, self.starts))

    @cached_property
    def _latest(self) -> int:
        """The time of the latest known event, in microseconds since 1970."""
        times = [start.manifest.created or 0 for start in self.starts]
        times += [each.since for start in self.starts for each in start.manifest.conditions.values()]
        return max(times)

    def moment(self, since: int, now: int) -> int:
        """Converts a time in a manifest to the replay's clock, for events before the replay's start.

        The result is always before the start.

        Args:
            since: the time in microseconds since 1970.
            now: the time at which the replay starts.
        """
        at_the_latest = now // SECOND * SECOND - SECOND - (self._latest - since)
        return at_the_latest if self._as_of is None else min(at_the_latest, self.time_of(since, now))

    def time_of(self, since: int, now: int) -> int:
        """Converts a time in a manifest to the replay's clock. The time may be after the replay's start."""
        return self.moment(since, now) if self._as_of is None else now - (self._as_of - since)

    def start_of(self, job: Job) -> Start | None:
        """Returns the Workload that this job represents, or None if the job comes from the trace."""
        if job.index < len(self.starts):
            start = self.starts[job.index]
            if (start.manifest.key, start.manifest.uid) == (job.id, job.uid):
                return start
        return None


_LAST: list[tuple[ref[Cluster], list[Start]]] = []
"""The last cluster and its beginning. A replay needs the beginning twice, for its jobs and for its policy."""


def _in_order(cluster: Cluster) -> list[Start]:
    if _LAST and _LAST[0][0]() is cluster:
        return _LAST[0][1]
    found = [start for manifest in cluster.workloads for start in _starts(cluster, manifest)]
    starts = sorted(found, key=_order)
    _LAST[:] = [(ref(cluster, _forget), starts)]
    return starts


def _forget(cluster: ref[Cluster]) -> None:
    _LAST[:] = [each for each in _LAST if each[0] is not cluster]


def admitted_since(manifest: Workload) -> int | None:
    """Returns the time of a Workload's admission in microseconds since 1970, or None if it is not known."""
    found = manifest.conditions.get("Admitted")
    return found.since or None if found is not None and found.status else None


def loses_reservation(cluster: Cluster, manifest: Workload) -> bool:
    """Returns True if a Workload that holds quota must release it without having run.

    Such a Workload has reserved quota but is not admitted, and its ClusterQueue or LocalQueue is stopped with
    `Hold` or `HoldAndDrain` (upstream's reconcileOnClusterQueueActiveState and
    reconcileOnLocalQueueActiveState).
    """
    if manifest.admission is None or manifest.is_true("Admitted"):
        return False
    queue = cluster.cluster_queues.get(manifest.admission.cluster_queue)
    local = cluster.local_queues.get((manifest.namespace, manifest.queue))
    return any(each is not None and each.stop_policy != "None" for each in (queue, local))


def running_jobs(cluster: Cluster, at: int = 0) -> list[Arrival]:
    """Returns one job for each Workload that is present at the start, in the order of `Beginning.starts`.

    If the cluster has nodes, jobs for the Pods without a Workload follow.

    Args:
        cluster: the Workloads, queues and flavors.
        at: when the jobs arrive, in microseconds since the origin.

    Raises:
        ClusterError: Workloads hold less quota than their pods request.
    """
    starts = Beginning(cluster).starts
    others = list(_others(cluster, starts)) if cluster.nodes else []
    faults = list(_less_than_asked(cluster, starts))
    if faults:
        raise ClusterError(cluster.source or "the manifests", faults)
    found = [_arrival(start, number, at) for number, start in enumerate(starts)]
    return [*found, *pod_jobs(cluster, others, at, len(starts))]


def _arrival(start: Start, index: int, at: int) -> Arrival:
    job = _job(start, index, at)
    if start.manifest.holds_quota and "PodsReady" in start.manifest.conditions and not start.ready:
        return job, ENDLESS, None, _STARTING
    return job, ENDLESS, None


def _others(cluster: Cluster, starts: Iterable[Start]) -> Iterator[Pod]:
    """Yields the Pods that do not belong to a Workload that takes part.

    A Workload can have more Pods than it requests. The Pods of a Workload without quota count as gone. A Pod
    without a Workload waits outside of all queues while it has scheduling gates.
    """
    own = {pod.key for start in starts for pod in standing_of(cluster, start.manifest).pods.values()}
    without = {start.manifest.key for start in starts if not start.manifest.holds_quota}
    for pod in cluster.pods:
        waits = not pod.workload and not pod.gates
        if pod.key not in own and pod.workload not in without and (pod.node or waits):
            yield pod


def _starts(cluster: Cluster, manifest: Workload) -> Iterator[Start]:
    admitted: dict[str, int] = {}
    flavors: dict[str, Mapping[str, str]] = {}
    queue = cluster.queue_of_object(manifest.namespace, manifest.queue)
    if manifest.holds_quota:
        assert manifest.admission is not None
        queue = cluster.cluster_queues.get(manifest.admission.cluster_queue)
        if loses_reservation(cluster, manifest):
            manifest = replace(manifest, admission=None)
    if not manifest.takes_part:
        return
    if manifest.admission is not None and manifest.holds_quota:
        admitted = {each.name: each.count for each in manifest.admission.assignments if each.count >= 0}
        flavors = {each.name: each.flavors for each in manifest.admission.assignments}
    pod_sets = []
    counts = {}
    for pod_set in pod_sets_left(manifest):
        given = admitted.get(pod_set.name, pod_set.count) - manifest.ended.get(pod_set.name, 0)
        if 0 < given < pod_set.count:
            counts[pod_set.name] = given
            if given < pod_set.min_count:
                pod_set = replace(pod_set, min_count=given)
        pod_sets.append(pod_set)
    if queue is None or not any(pod_set.count for pod_set in pod_sets):
        return
    standing = standing_of(cluster, manifest)
    pods: dict[int, Pod] = {}
    if manifest.holds_quota:
        pods = {number: pod for number, pod in standing.pods.items() if pod.key in cluster.staying}
    condition = manifest.conditions.get("PodsReady")
    ready = not cluster.nodes or len(pods) == standing.wanted
    if condition is not None:
        ready = condition.status
    yield Start(
        manifest,
        queue.name,
        tuple(pod_sets),
        frozen(counts),
        frozen(flavors),
        MappingProxyType(pods),
        ready,
        condition is not None or bool(standing.pods),
        _leaves(cluster, manifest, standing),
    )


def _leaves(cluster: Cluster, manifest: Workload, standing: Standing) -> int | None:
    """Returns how long an evicted Workload keeps its quota. See `Start`.

    The Workload keeps its quota until its pods reach their deletion timestamps. If it has no pods left, it
    keeps no quota. If the dump contains no pods at all, the grace period starts with the eviction.
    """
    if cluster.as_of is None or not (manifest.holds_quota and manifest.is_true("Evicted")):
        return None
    pods = [pod for pod in standing.pods.values() if pod.node]
    if not cluster.pods:
        grace = _GRACE_PERIOD if manifest.grace_period is None else manifest.grace_period
        return max(0, manifest.conditions["Evicted"].since + grace - cluster.as_of)
    if not all(pod.terminating for pod in pods):
        return None
    return max((leaving(cluster, pod) for pod in pods), default=0)


def _order(start: Start) -> tuple[bool, int, str]:
    manifest = start.manifest
    if manifest.holds_quota:
        return False, manifest.conditions["QuotaReserved"].since, manifest.key
    return True, manifest.created or 0, manifest.key


def _job(start: Start, index: int, at: int) -> Job:
    manifest = start.manifest
    pods = sum(pod_set.count for pod_set in start.pod_sets)
    return Job(
        index=index,
        id=manifest.key,
        submit=at,
        queue=manifest.queue or start.queue,
        namespace=manifest.namespace,
        user="",
        priority=manifest.priority,
        priority_class=manifest.priority_class,
        preempts=True,
        gang=pods > 1,
        grace_period=_GRACE_PERIOD if manifest.grace_period is None else manifest.grace_period,
        uid=manifest.uid,
        pod_sets=start.pod_sets,
        pods=pods,
    )


def _less_than_asked(cluster: Cluster, starts: list[Start]) -> Iterator[Fault]:
    """Yields a fault for each Workload that holds less quota than its pods request.

    Kueue counts the quantities in the admission, no matter what the pods request. Without nodes, the pods can
    use only the quota, so this is a fault. With nodes, both quantities are limits.
    """
    limited = {} if cluster.nodes else cluster.capacity
    for start in starts:
        admission = start.manifest.admission
        if not start.manifest.holds_quota or admission is None:
            continue
        assignments = {each.name: each for each in admission.assignments}
        for pod_set in start.pod_sets:
            given = assignments.get(pod_set.name)
            pods = pod_set.count + pod_set.reclaimed
            if given is not None and given.count > 0:
                pods = given.count
            for resource, amount in pod_set.requests.items():
                held = given.usage.get(resource, 0) if given is not None and resource in given.flavors else 0
                if resource in limited and pod_set.count and held < amount * pods:
                    has, asks = format_amount(resource, held), format_amount(resource, amount * pods)
                    yield Fault(
                        f"Workload {start.manifest.key}: status.admission: pod set {pod_set.name}",
                        f"it holds quota for {has} of {resource}, but {pods} of its pods request {asks}. "
                        "Without nodes, pods cannot have more than their quota: add the cluster's nodes, or "
                        "correct resourceUsage and flavors",
                    )


def _beyond(cluster: Cluster, starts: Iterable[Start]) -> dict[str, int]:
    """Returns the held quantity of each resource that exceeds the capacity, or {} if there are nodes."""
    held: dict[str, int] = {}
    for start in starts:
        if start.manifest.holds_quota and not cluster.nodes:
            for pod_set in start.pod_sets:
                count = start.counts.get(pod_set.name, pod_set.count)
                for resource, amount in pod_set.requests.items():
                    held[resource] = held.get(resource, 0) + amount * count
    capacity = cluster.capacity
    return {name: amount for name, amount in held.items() if amount > capacity.get(name, amount)}
