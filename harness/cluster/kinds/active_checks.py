"""Finds the ClusterQueues that are inactive because their admission checks are missing or inactive.

Upstream: `updateQueueStatus` in pkg/cache/scheduler/clusterqueue.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.base.json_text import mapping_of
from harness.cluster.model import ClusterQueue


def with_active_checks(
    queues: Mapping[str, ClusterQueue], manifests: Iterable[Mapping[str, Any]]
) -> dict[str, ClusterQueue]:
    """Returns the ClusterQueues, with the reason why those with missing or inactive checks are inactive.

    If the manifests contain no AdmissionCheck, they don't say which checks exist.
    """
    active = dict(_checks(manifests))
    return {name: _with_reason(queue, active) if active else queue for name, queue in queues.items()}


def _checks(manifests: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yields each AdmissionCheck, and whether it is active, which only its condition `Active` can deny."""
    for each in manifests:
        if each.get("kind") == "AdmissionCheck" and str(each.get("apiVersion")).startswith("kueue.x-k8s.io/"):
            conditions = mapping_of(each, "status").get("conditions")
            told = [
                str(condition.get("status")) == "True"
                for condition in (conditions if isinstance(conditions, list) else ())
                if isinstance(condition, Mapping) and condition.get("type") == "Active"
            ]
            yield str(mapping_of(each, "metadata").get("name")), all(told)


def _with_reason(queue: ClusterQueue, active: Mapping[str, bool]) -> ClusterQueue:
    if queue.inactive:
        return queue
    for state, names in (
        ("missing", [each.name for each in queue.checks if each.name not in active]),
        ("inactive", [each.name for each in queue.checks if not active.get(each.name, True)]),
    ):
        if names:
            return replace(queue, inactive=f"it references {state} AdmissionChecks: {', '.join(names)}")
    return queue
