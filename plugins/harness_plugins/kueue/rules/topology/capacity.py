"""Counts how many pods and slices each domain could take, with and without the leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, final

from harness_plugins.kueue.rules.topology.request import Wanted
from harness_plugins.kueue.state.topology.tree import PODS, Room, TopologyTree


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


class PodsToPlace(NamedTuple):
    """The pods of a pod set, and the place where they could go.

    Attributes:
        worker: the requests of one pod.
        leader: the requests of the leader, or None if there is no leader.
        suitable: the leaves on which the pods can run, or None for all leaves.
    """

    tree: TopologyTree
    room: Room
    wanted: Wanted
    worker: Mapping[str, int]
    leader: Mapping[str, int] | None
    suitable: Sequence[bool] | None


Capacities: TypeAlias = Callable[[PodsToPlace], Capacity]
"""See `capacity_of`."""


def capacity_of(pods: PodsToPlace) -> Capacity:
    """Returns the capacity of each domain for a pod set."""
    tree, room, wanted, worker, leader, suitable = pods
    figures = Capacity(len(tree.values))
    first, end = tree.leaves.start, tree.leaves.stop
    alone = _fits(room, worker, {}, len(tree.leaves))
    if suitable is not None:
        alone = [times if suits else 0 for times, suits in zip(alone, suitable, strict=True)]
    figures.pods[first:end] = alone
    if leader is None:  # `*_with` then equals the other figures
        figures.pods_with, figures.slices_with = figures.pods, figures.slices
    else:
        figures.pods_with[first:end] = alone
        beside = _fits(room, worker, {**leader, PODS: 1}, len(tree.leaves))
        for leaf, times in enumerate(_fits(room, leader, {}, len(tree.leaves))):
            if times and (suitable is None or suitable[leaf]):
                figures.leaders[first + leaf] = 1
                figures.pods_with[first + leaf] = beside[leaf]
    finest = len(tree.levels) - 1
    for level in range(finest, -1, -1):
        unit = wanted.inner.get(level + 1, 1)
        for domain in tree.domains[level] if level < finest else ():
            _add_up(figures, domain, tree.children[domain], unit)
        if level == wanted.slice_level:
            start, stop = tree.domains[level].start, tree.domains[level].stop
            figures.slices[start:stop] = [pods // wanted.size for pods in figures.pods[start:stop]]
            figures.slices_with[start:stop] = [pods // wanted.size for pods in figures.pods_with[start:stop]]
    return figures


def _fits(room: Room, requests: Mapping[str, int], taken: Mapping[str, int], leaves: int) -> list[int]:
    """Returns how often the requests, with a slot for the pod, fit in each leaf in addition to `taken`."""
    nothing = [0] * leaves
    columns = []
    for resource, amount in {**requests, PODS: 1}.items():
        if amount:
            less = taken.get(resource, 0)
            columns.append(
                [(left - less) // amount if left > less else 0 for left in room.get(resource, nothing)]
            )
    return columns[0] if len(columns) == 1 else list(map(min, *columns))


def _add_up(figures: Capacity, domain: int, children: range, unit: int) -> None:
    """Adds up the capacity of a domain from its children, counting pods in groups of `unit`.

    The leader goes to the child where it costs the fewest pods. For the number of slices, it goes to the
    child where it costs the fewest slices.
    """
    first, end = children.start, children.stop
    pods, slices = figures.pods, figures.slices
    below = pods[first:end]
    pods[domain] = sum(below) - (sum(each % unit for each in below) if unit > 1 else 0)
    slices[domain] = sum(slices[first:end])
    if any(figures.leaders[first:end]):
        able = [child for child in children if figures.leaders[child]]
        pods_with, slices_with = figures.pods_with, figures.slices_with
        lost = min(pods[one] - pods[one] % unit - (pods_with[one] - pods_with[one] % unit) for one in able)
        figures.leaders[domain] = 1
        pods_with[domain] = pods[domain] - lost
        slices_with[domain] = slices[domain] - min(slices[one] - slices_with[one] for one in able)
