"""Counts the pods of workloads by pod set."""

from __future__ import annotations

from collections.abc import Mapping

from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.workload import Workload

_ALL: Mapping[str, int] = {}
"""The result if every pod set has its usual number of pods."""


def counts_of(workload: Workload, counts: tuple[int, ...]) -> Mapping[str, int]:
    """Returns the number of pods with quota, for each pod set in which this is not the original number."""
    return named(workload.asks, counts, workload.asks.full)


def named(asks: Asks, counts: tuple[int, ...], usual: tuple[int, ...]) -> Mapping[str, int]:
    """Returns the counts in `counts` that differ from those in `usual`, by the name of the pod set."""
    if counts == usual:
        return _ALL
    return {
        pod_set.name: count
        for pod_set, count, whole in zip(asks.pod_sets, counts, usual, strict=True)
        if count != whole
    }


def ended_so_far(workload: Workload, pods: range) -> tuple[int, ...]:
    """Returns the number of finished pods in each pod set, including `pods`."""
    pod_sets = workload.asks.pod_sets
    ended = list(workload.ended) or [0] * len(pod_sets)
    first = 0
    for number, pod_set in enumerate(pod_sets):
        last = first + pod_set.count
        ended[number] += max(0, min(pods.stop, last) - max(pods.start, first))
        first = last
    return tuple(ended)
