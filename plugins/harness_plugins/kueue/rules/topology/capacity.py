"""Counts how many pods and slices each domain could take, with and without the leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

from harness_plugins.kueue.rules.topology.request import Wanted
from harness_plugins.kueue.state.topology.tree import PODS, Room, TopologyTree

MOST_PODS = 1 << 60
"""A node with more free slots than this has no limit on the number of pods in its manifest."""


@final
class Capacity:
    """The capacities of all domains. When a domain is chosen, its capacity is replaced by its assigned pods.

    Attributes:
        pods, slices: how many pods and slices a domain can take.
        pods_with, slices_with: how many pods and slices the domain can take in addition to the leader.
        leaders: 1 if the domain can take the leader, otherwise 0.
    """

    __slots__ = ("leaders", "pods", "pods_with", "slices", "slices_with")

    def __init__(self, domains: int) -> None:
        self.pods, self.pods_with, self.slices, self.slices_with, self.leaders = (
            [0] * domains for _ in range(5)
        )


Capacities: TypeAlias = Callable[
    [TopologyTree, Room, Wanted, Mapping[str, int], Mapping[str, int] | None, Sequence[bool] | None], Capacity
]
"""See `capacity_of`."""


def capacity_of(
    tree: TopologyTree,
    room: Room,
    wanted: Wanted,
    worker: Mapping[str, int],
    leader: Mapping[str, int] | None,
    suitable: Sequence[bool] | None,
) -> Capacity:
    """Returns the capacity of each domain for a pod set.

    Args:
        tree: the topology domains.
        room: the free capacity of the leaves.
        wanted: the kind of place that the pod set requests.
        worker: the requests of one pod.
        leader: the requests of the leader, or None if there is no leader.
        suitable: the leaves on which the pods can run, or None for all leaves.
    """
    figures = Capacity(len(tree.values))
    if leader is None:
        _count_without_leader(figures, tree, room, wanted, worker, suitable)
        return figures
    first, end = tree.leaves.start, tree.leaves.stop
    alone = _fits(room, worker, {}, len(tree.leaves))
    figures.pods[first:end] = alone
    figures.pods_with[first:end] = alone
    taken = {**leader, PODS: 1}
    beside = _fits(room, worker, taken, len(tree.leaves))
    for leaf, times in enumerate(_fits(room, leader, {}, len(tree.leaves))):
        if times:
            figures.leaders[first + leaf] = 1
            figures.pods_with[first + leaf] = beside[leaf]
    if suitable is not None:
        for leaf, suits in enumerate(suitable, start=first):
            if not suits:
                figures.pods[leaf] = figures.pods_with[leaf] = figures.leaders[leaf] = 0
    finest = len(tree.levels) - 1
    if wanted.slice_level == finest:
        _count_slices(figures, tree.leaves, wanted.size)
    for level in range(finest - 1, -1, -1):
        unit = wanted.inner.get(level + 1, 1)
        for domain in tree.domains[level]:
            _add_up(figures, domain, tree.children[domain], unit)
        if level == wanted.slice_level:
            _count_slices(figures, tree.domains[level], wanted.size)
    return figures


def _count_without_leader(
    figures: Capacity,
    tree: TopologyTree,
    room: Room,
    wanted: Wanted,
    worker: Mapping[str, int],
    suitable: Sequence[bool] | None,
) -> None:
    """Counts the capacity without a leader. `*_with` then equals the other figures, and domains are sums."""
    figures.pods_with, figures.slices_with = figures.pods, figures.slices
    pods, slices = figures.pods, figures.slices
    alone = _fits(room, worker, {}, len(tree.leaves))
    if suitable is not None and not all(suitable):
        alone = [times if suits else 0 for times, suits in zip(alone, suitable, strict=True)]
    pods[tree.leaves.start : tree.leaves.stop] = alone
    finest = len(tree.levels) - 1
    if wanted.slice_level == finest:
        _count_slices(figures, tree.leaves, wanted.size)
    for level in range(finest - 1, -1, -1):
        unit = wanted.inner.get(level + 1, 1)
        for domain in tree.domains[level]:
            below = tree.children[domain]
            of_children = pods[below.start : below.stop]
            pods[domain] = sum(of_children) - (sum(each % unit for each in of_children) if unit > 1 else 0)
            if level < wanted.slice_level:
                slices[domain] = sum(slices[below.start : below.stop])
        if level == wanted.slice_level:
            _count_slices(figures, tree.domains[level], wanted.size)


def _fits(room: Room, requests: Mapping[str, int], taken: Mapping[str, int], leaves: int) -> list[int]:
    """Returns how often the requests, with a slot for the pod, fit in each leaf in addition to `taken`."""
    nothing = [0] * leaves
    columns = []
    slots = room.get(PODS, nothing)
    if slots and min(slots) > MOST_PODS and requests:
        asked: Mapping[str, int] = requests  # no node limits its number of pods
    else:
        asked = {**requests, PODS: 1}
    for resource, amount in asked.items():
        if amount:
            less = taken.get(resource, 0)
            columns.append(
                [(left - less) // amount if left > less else 0 for left in room.get(resource, nothing)]
            )
    if not columns:
        return list(slots)
    return columns[0] if len(columns) == 1 else list(map(min, *columns))


def _count_slices(figures: Capacity, domains: range, size: int) -> None:
    if size == 1:
        first, end = domains.start, domains.stop
        figures.slices[first:end] = figures.pods[first:end]
        figures.slices_with[first:end] = figures.pods_with[first:end]
        return
    for domain in domains:
        figures.slices[domain] = figures.pods[domain] // size
        figures.slices_with[domain] = figures.pods_with[domain] // size


def _add_up(figures: Capacity, domain: int, children: range, unit: int) -> None:
    """Adds up the capacity of a domain from its children, counting pods in groups of `unit`.

    The leader goes to the child where it costs the fewest pods. For the number of slices, it goes to the
    child where it costs the fewest slices.
    """
    pods = slices = leaders = 0
    lost_pods: int | None = None
    lost_slices = 0
    for child in children:
        can = figures.pods[child] - figures.pods[child] % unit
        can_with = figures.pods_with[child] - figures.pods_with[child] % unit
        pods += can
        slices += figures.slices[child]
        if not figures.leaders[child]:
            continue
        leaders = 1
        fewer_slices = figures.slices[child] - figures.slices_with[child]
        if lost_pods is None:
            lost_pods, lost_slices = can - can_with, fewer_slices
        else:
            lost_pods, lost_slices = min(lost_pods, can - can_with), min(lost_slices, fewer_slices)
    figures.pods[domain], figures.slices[domain], figures.leaders[domain] = pods, slices, leaders
    if lost_pods is not None:
        figures.pods_with[domain], figures.slices_with[domain] = pods - lost_pods, slices - lost_slices
