"""Imports the quota, the reservation times and the order of workloads from their manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.models.cluster import Workload as Manifest
from harness.models.quota import FlavorResource
from harness.policy import PodSet
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.preemption import IN_COHORT_RECLAIM_WHILE_BORROWING
from harness_plugins.kueue.rules.wait_for_pods_ready import TIMED_OUT
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

_BEGINNING = -(1 << 62)  # a workload without a creation time is older than all others
_REQUEUED_LATER = (TIMED_OUT, "AdmissionCheck")
_MILLISECOND = 1000


def workload_of(manifest: Manifest, gates: Gates, *, evicted_last: bool = True) -> Workload:
    """Returns the workload of a manifest, without the quota that it holds.

    Args:
        manifest: the manifest.
        gates: the feature gates.
        evicted_last: whether a workload that was evicted because its pods were not ready in time is ordered
            by the time of this eviction. Otherwise, it is ordered by its creation time.
    """
    priority = manifest.priority + (manifest.boost if gates.priority_boost else 0)
    created = _BEGINNING if manifest.created is None else manifest.created
    workload = Workload(manifest.key, manifest.uid, priority, created)
    workload.timestamp = queue_order_time(manifest, gates, created, evicted_last=evicted_last)
    workload.held_back = held_back(manifest, gates)
    return workload


def held_back(manifest: Manifest, gates: Gates) -> str:
    """Returns the reason why an active workload is in no queue, or "" if it is queued.

    The reason can end only through a controller outside the scheduler (upstream's IsAdmissible).
    """
    reserved = manifest.conditions.get("QuotaReserved")
    if reserved is not None and not reserved.status and reserved.reason == "OnHold":
        return "it is on hold, as its condition QuotaReserved says"
    if gates.admission_gated_by and manifest.gated_by:
        return f"its admission is gated by {manifest.gated_by}"
    if manifest.is_true("WaitingForReplacementPods"):
        return "it waits for replacement pods, as its condition WaitingForReplacementPods says"
    return ""


def pod_sets_left(manifest: Manifest) -> tuple[PodSet, ...]:
    """Returns the pod sets of a manifest, reduced by their finished pods. A pod set can have no pods left."""
    if not manifest.reclaimable and not manifest.ended:
        return manifest.pod_sets
    return tuple(_without_ended(each, manifest.over(each)) for each in manifest.pod_sets)


def _without_ended(pod_set: PodSet, gone: int) -> PodSet:
    return replace(pod_set, count=pod_set.count - gone, reclaimed=gone) if gone else pod_set


def queue_order_time(manifest: Manifest, gates: Gates, created: int, *, evicted_last: bool = True) -> int:
    """Returns the time that orders workloads of equal priority. Only some evictions change this time."""
    evicted = manifest.conditions.get("Evicted")
    if (
        evicted is not None
        and evicted.status
        and evicted.reason in _REQUEUED_LATER
        and (evicted_last or evicted.reason != TIMED_OUT)
    ):
        return evicted.since
    if not gates.priority_sorting_within_cohort:
        preempted = manifest.conditions.get("Preempted")
        if (
            preempted is not None
            and preempted.status
            and preempted.reason == IN_COHORT_RECLAIM_WHILE_BORROWING
        ):
            return preempted.since + _MILLISECOND
    return created


def used_flavor_resources(found: Iterable[Manifest]) -> set[FlavorResource]:
    """Returns the flavor-resources to which any workload was admitted."""
    return {
        FlavorResource(flavor, resource)
        for manifest in found
        if manifest.admission is not None
        for assignment in manifest.admission.assignments
        for resource, flavor in assignment.flavors.items()
    }


def hold_quota(cache: Cache, found: Iterable[Manifest], gates: Gates, now: int) -> list[Workload]:
    """Adds the workloads that hold quota to the cache, and returns them.

    Args:
        cache: a cache with all flavor-resources that the workloads use.
        found: the manifests. Workloads that hold no quota, are deactivated, or name an unknown queue are
            skipped.
        gates: the feature gates.
        now: the reservation time of workloads whose manifest has none.
    """
    holders = []
    for manifest in found:
        if not (manifest.holds_quota and manifest.active):
            continue
        assert manifest.admission is not None
        queue = cache.queues.get(manifest.admission.cluster_queue)
        if queue is None:
            continue
        holder = workload_of(manifest, gates)
        hold(cache, queue, holder, manifest, gates, manifest.conditions["QuotaReserved"].since or now)
        holders.append(holder)
    return holders


def hold(
    cache: Cache, queue: ClusterQueueState, holder: Workload, manifest: Manifest, gates: Gates, reserved: int
) -> None:
    """Adds a workload to the cache. The workload has held quota since `reserved`."""
    holder.evicted = manifest.is_true("Evicted")
    usage, uses = cache.amounts(manifest.used(reclaims=gates.reclaimable_pods))
    cache.hold(holder, queue, usage, uses, reserved)
