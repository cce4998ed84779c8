"""Reads times from manifests, including times that the model of a Pod drops, and derives the present time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.cluster.kinds.workloads import read_time
from harness.cluster.yaml.fields import Fields

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


def created_of_pods(cluster: Cluster) -> dict[str, int]:
    """Returns `namespace/name` of a Pod -> its time of creation, if known, in microseconds since 1970."""
    created = ((key, read_time(metadata, "creationTimestamp")) for key, metadata, _ in _pods(cluster))
    return {key: time for key, time in created if time is not None}


def latest_of(cluster: Cluster) -> int | None:
    """Returns the latest time in Workloads and Pods, microseconds since 1970; None if they have no time.

    A waiting Pod has no start time, but it has a time of creation and times of conditions.
    """
    times = [each.created for each in cluster.workloads]
    times += [each.since or None for one in cluster.workloads for each in one.conditions.values()]
    times += [each.began for each in cluster.workloads]
    times += [each.start for each in cluster.pods]
    times += created_of_pods(cluster).values()
    for _, _, status in _pods(cluster):
        times += [read_time(each, "lastTransitionTime") for each in status.items("conditions")]
    return max((time for time in times if time is not None), default=None)


def _pods(cluster: Cluster) -> Iterator[tuple[str, Fields, Fields]]:
    """Yields `namespace/name`, metadata and status of each Pod that takes part."""
    there = {pod.key for pod in cluster.pods}
    for manifest in cluster.manifests if there else ():
        if manifest.get("kind") != "Pod":
            continue
        fields = Fields(manifest, "", [])  # faults were reported when the cluster was read
        metadata = fields.child("metadata")
        key = f"{metadata.raw('namespace') or 'default'}/{metadata.raw('name')}"
        if key in there:
            yield key, metadata, fields.child("status")
