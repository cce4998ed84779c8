"""Reads times from manifests to derive the current time.

The model of a Pod doesn't have all of these times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.cluster.kinds.workloads import read_time
from harness.cluster.yaml.fields import Fields

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


def created_of_pods(cluster: Cluster) -> dict[str, int]:
    """Returns the creation times of Pods by `namespace/name`, in microseconds since 1970.

    Pods without a known creation time are omitted.
    """
    created = ((key, read_time(metadata, "creationTimestamp")) for key, metadata, _ in _pods(cluster))
    return {key: time for key, time in created if time is not None}


def latest_of(cluster: Cluster) -> int | None:
    """Returns the latest time in Workloads and Pods, in microseconds since 1970, or None if there is none.

    A waiting Pod has no start time, but it has a creation time, and its conditions contain times.
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
    """Yields the `namespace/name`, metadata and status of each Pod that takes part in the replay."""
    there = {pod.key for pod in cluster.pods}
    for manifest in cluster.manifests if there else ():
        if manifest.get("kind") != "Pod":
            continue
        fields = Fields(manifest, "", [])  # faults were reported when the cluster was read
        metadata = fields.child("metadata")
        key = f"{metadata.raw('namespace') or 'default'}/{metadata.raw('name')}"
        if key in there:
            yield key, metadata, fields.child("status")
