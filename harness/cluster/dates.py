"""Reads times from manifests to derive the current time.

The models of objects don't have all of these times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cluster.kinds.pods import places_of_pods
from harness.cluster.kinds.workloads import read_time
from harness.cluster.model import Cluster
from harness.cluster.yaml.fields import Fields

_OF_CONDITIONS = ("lastTransitionTime", "lastHeartbeatTime", "lastProbeTime")
_SECONDS = len("2026-01-31T08:00:00Z")


def created_of_pods(cluster: Cluster) -> dict[str, int]:
    """Returns the creation times of Pods by `key`, in microseconds since 1970.

    Pods that don't take part in the replay, or have no known creation time, are omitted.
    """
    places = places_of_pods(cluster.manifests) if cluster.pods else {}
    found = {}
    for pod in cluster.pods:
        metadata = cluster.manifests[places[pod.full_name]]["metadata"]
        time = read_time(Fields(metadata, "", []), "creationTimestamp")  # faults were reported before
        if time is not None:
            found[pod.key] = time
    return found


def latest_of(cluster: Cluster) -> int | None:
    """Returns the latest time in the manifests, in microseconds since 1970, or None if there is none.

    The dump was made at this time or later, so this time serves as its time. Work that has ended counts,
    and so do objects that harness doesn't model, such as Jobs. On a quiet cluster, the latest time is often
    the heartbeat of a node. Times that may lie in the future, such as `deletionTimestamp`, don't count.
    """
    times = [each.created for each in cluster.workloads]
    times += [each.since or None for one in cluster.workloads for each in one.conditions.values()]
    times += [each.began for each in cluster.workloads]
    times += [each.start for each in cluster.pods]
    latest = max((time for time in times if time is not None), default=None)
    newest = ""
    for text in _texts(cluster):
        # Most times have this form, in which a later time is a greater text. It need not be parsed.
        plain = isinstance(text, str) and len(text) == _SECONDS and text.endswith("Z")
        if plain and text <= newest:
            continue
        time = read_time(Fields({"time": text}, "", []), "time")
        if time is not None and (latest is None or time > latest):
            latest = time
        if plain and time is not None:
            newest = text
    return latest


def _texts(cluster: Cluster) -> Iterator[Any]:
    for manifest in cluster.manifests:
        status = _mapping(manifest.get("status"))
        yield _mapping(manifest.get("metadata")).get("creationTimestamp")
        yield status.get("startTime")
        yield status.get("completionTime")
        for condition in _mappings(status.get("conditions")):
            for name in _OF_CONDITIONS:
                yield condition.get(name)
        for container in _mappings(status.get("containerStatuses")):
            state = _mapping(container.get("state"))
            yield _mapping(state.get("running")).get("startedAt")
            yield _mapping(state.get("terminated")).get("finishedAt")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    return map(_mapping, value if isinstance(value, (list, tuple)) else ())
