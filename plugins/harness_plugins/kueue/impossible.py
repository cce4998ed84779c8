"""Finds the jobs that Kueue can never start because of their queue, its quota and flavors, or the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product
from typing import TYPE_CHECKING, NamedTuple, final

from harness import Cluster, Job, Never, PodSet
from harness.base.memo import Memo
from harness.models.cluster import ClusterQueue
from harness.models.constraints import Constraints
from harness.models.kube.running import is_pod
from harness.models.never import Part, by_quota, no_queue, parts_of, short, uncovered
from harness_plugins.kueue.record.inactive import why_inactive
from harness_plugins.kueue.record.places import room_in_words
from harness_plugins.kueue.rules.device_claims import asking_of
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_offers import Suiting, counting_of, ignores_undeclared, requests_of
from harness_plugins.kueue.rules.topology.placement import (
    IMPLIED,
    PodSetRequest,
    WorkloadTopologies,
    WorkloadTopology,
)
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors

if TYPE_CHECKING:
    from harness_plugins.kueue.binding import Binder

_SHAPES = 1 << 16  # how many distinct job shapes are kept
_MOST_CHOICES = 1000
"""The maximum number of flavor combinations to check on nodes. If there are more, one probably fits."""


class Verdict(NamedTuple):
    """The reason why a job can never start, and whether the job is still queued.

    A job that never gets quota is queued, as in reality: in a StrictFIFO queue, it blocks all jobs behind it.
    A job that would get quota but fits on no node is not queued, because it would never release the quota.
    """

    never: Never
    waits: bool


@final
class Impossible:
    """Finds the jobs that can never start.

    Args:
        binder: checks the nodes, or None if pods are not bound to nodes.
    """

    def __init__(self, cluster: Cluster, cache: Cache, gates: Gates, binder: Binder | None) -> None:
        self._cluster = cluster
        self._cache = cache
        self.asking = asking_of(cluster, gates)
        self._suiting = Suiting(cluster, gates)
        self._partial = gates.partial_admission
        self._counted = counting_of(cluster, gates)
        self._ignores_undeclared = ignores_undeclared(cluster, gates)
        self._binder = binder
        self._topologies: WorkloadTopologies | None = None
        if gates.topology_aware_scheduling and cluster.nodes and not cluster.nodes_change:
            empty = TopologyFlavors(replace(cluster, pods=()), overlapping=False)
            self._topologies = WorkloadTopologies(empty, gates.tas_profile_mixed)
        # Why the queues of a namespace are inactive, and why they do not admit the namespace.
        self._closes: Memo[tuple[str, str], tuple[str, str]] = Memo()
        self._known: Memo[tuple[tuple[PodSet, ...], str, str], tuple[Verdict | None]] = Memo(_SHAPES)

    def judge(self, job: Job) -> Verdict | None:
        """Returns the reason why a job can never start, or None if it might start. See `Verdict`."""
        key = (job.pod_sets, job.namespace, job.queue)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (self._judged(job),)
        return known[0]

    def _judged(self, job: Job) -> Verdict | None:
        if self._binder is not None and is_pod(job):
            never = self._binder.never(job)
            return None if never is None else Verdict(never, waits=False)
        queue = self._cluster.cluster_queue_of(job.namespace, job.queue)
        if queue is None:
            return Verdict(no_queue(self._cluster, job.namespace, job.queue), waits=False)
        asks = self.asking.of(job)
        if asks.claimed is not None and asks.claimed.refused:
            return Verdict(Never("quota", asks.claimed.refused), waits=False)
        closed = self._closed(queue, job, asks)
        if closed:
            return Verdict(by_quota(queue.name, closed), waits=True)
        most = partial(self._cache.tree.most, self._cache.queues[queue.name].node)
        total: dict[str, int] = {}
        parts: list[list[Part]] = []
        for pod_set, requests in zip(job.pod_sets, requests_of(asks, queue, self._counted), strict=True):
            count = pod_set.min_count if self._partial else pod_set.count
            wanted = {resource: amount * count for resource, amount in requests.items() if amount * count}
            of_pod_set = parts_of(queue, self._cluster, most, [Constraints(pod_set)], wanted)
            parts.append([self._placed(pod_set, part, queue) for part in of_pod_set])
            total.update(wanted)
        every = [*chain.from_iterable(parts)]
        why = "" if self._ignores_undeclared else uncovered(queue, total)
        for part in every:
            why = why or part.never(queue.name)
        if len(every) > 1:
            why = why or _too_much(queue, every, most)
        if why:
            return Verdict(by_quota(queue.name, why), waits=True)
        why = self._fits_no_node(job, parts)
        return Verdict(Never("nodes", why), waits=False) if why else None

    def _placed(self, pod_set: PodSet, part: Part, queue: ClusterQueue) -> Part:
        """Returns a part of a request, with flavors whose topology does not suit the pods as misfits."""
        flavors = self._cluster.flavors
        if pod_set.topology is None and not self._cluster.topologies:
            return part
        misfits = part.misfits.items()
        return Part(
            part.asked,
            {
                name: why
                or self._suiting.misplaced(pod_set, flavors[name], part.asked, queue)
                or self._too_small(pod_set, name)
                for name, why in misfits
            },
        )

    def _too_small(self, pod_set: PodSet, flavor: str) -> str:
        """Returns why pods have no place in the empty topology of a flavor, or "" if they may have one."""
        finder, request = self._topologies, pod_set.topology or IMPLIED
        empty = None if finder is None else finder.flavors.by_name.get(flavor)
        count = pod_set.min_count if self._partial else pod_set.count
        if finder is None or empty is None or request.group or not count:
            return ""
        asked = WorkloadTopology([(empty, [PodSetRequest(pod_set, count, request)])], frozenset(), finder)
        why = room_in_words(asked)
        return f"has no place for it even when empty: {why}" if why else ""

    def _closed(self, queue: ClusterQueue, job: Job, asks: Asks) -> str:
        """Returns why a queue does not admit this job, or any job, or "" if the queue could admit it."""
        home = job.namespace, job.queue
        if home not in self._closes:
            self._closes[home] = why_inactive(self._cluster, queue.name, job), self._mismatch(queue, job)
        inactive, mismatch = self._closes[home]
        return inactive or asks.invalid or mismatch

    def _mismatch(self, queue: ClusterQueue, job: Job) -> str:
        selector = queue.namespace_selector
        if selector is not None and selector.matches(self._cluster.namespace_labels(job.namespace)):
            return ""
        return f"ClusterQueue {queue.name} does not admit workloads from namespace {job.namespace}"

    def _fits_no_node(self, job: Job, parts: list[list[Part]]) -> str:
        """Returns why a pod set fits on no empty node in any flavor, or "" if every pod set fits on one."""
        if self._binder is None:
            return ""
        for pod_set, of_pod_set in zip(job.pod_sets, parts, strict=True):
            reasons = self._reasons(job, pod_set, of_pod_set, self._binder)
            first = next(reasons)
            if first and all(reasons):
                return first
        return ""

    def _reasons(self, job: Job, pod_set: PodSet, parts: list[Part], binder: Binder) -> Iterator[str]:
        """Yields why no node fits, by flavor combination, or "" if one fits, or if some were not checked."""
        choices = product(*map(_choices, parts))
        for chosen in islice(choices, _MOST_CHOICES):
            yield binder.fits_none(job, pod_set, chosen)
        if next(choices, None) is not None:
            yield ""


def _choices(part: Part) -> list[str]:
    return [flavor for flavor, misfit in part.misfits.items() if not misfit]


def _too_much(queue: ClusterQueue, parts: Iterable[Part], most: Callable[[str, str], int]) -> str:
    """Returns why pod sets that can use only one and the same flavor request too much of it in total."""
    sums: dict[tuple[str, str], int] = {}
    for part in parts:
        flavors = _choices(part)
        if len(flavors) == 1:
            for resource, amount in part.asked.items():
                sums[flavors[0], resource] = sums.get((flavors[0], resource), 0) + amount
    for (flavor, resource), amount in sums.items():
        there = most(flavor, resource)
        if amount > there:
            return Part({resource: amount}, {flavor: short(resource, there)}).never(queue.name)
    return ""
