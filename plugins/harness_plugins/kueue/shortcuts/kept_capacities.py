"""Caches the number of pods that each domain could take, from one placement to the next.

Free capacity changes in only a few leaves at a time, so only these leaves and the domains above them are
counted again. The cache key is the request. The numbers are valid for one version of the free capacity, and
later changes are applied leaf by leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.topology.capacity import Capacities, Capacity, PodsToPlace
from harness_plugins.kueue.state.topology.tree import PODS

_MOST = 256
"""The maximum number of requests to cache. Each has two numbers per domain."""


@final
class _Kept:
    """The figures of all domains for one request, for one version of the free capacity."""

    __slots__ = ("_above", "_asked", "_room", "_suitable", "_tree", "_wanted", "pods", "slices", "version")

    def __init__(self, pods: PodsToPlace, figures: Capacity) -> None:
        self._tree, self._room, self._wanted, worker, _, self._suitable = pods
        self._asked = [*((resource, amount) for resource, amount in worker.items() if amount), (PODS, 1)]
        self.pods = list(figures.pods)
        self.slices = list(figures.slices)
        self.version = pods.room.version

    def refresh(self, leaves: Sequence[int]) -> None:
        self.version = self._room.version
        for leaf in leaves:
            times = 0
            if self._suitable is None or self._suitable[leaf]:
                times = max(0, min(self._fits(resource, amount, leaf) for resource, amount in self._asked))
            domain = self._tree.leaves.start + leaf
            if times != self.pods[domain]:
                self._set(domain, times)

    def _fits(self, resource: str, amount: int, leaf: int) -> int:
        amounts = self._room.get(resource)
        return 0 if amounts is None else amounts[leaf] // amount

    def _set(self, domain: int, pods: int) -> None:
        tree, (_, slice_level, size, inner, *_) = self._tree, self._wanted
        more_slices = 0
        for level in range(len(tree.levels) - 1, -1, -1):
            slices = self.slices[domain]
            if level == slice_level:
                slices = pods // size
            elif level < slice_level:
                slices += more_slices
            unit = inner.get(level, 1)
            more_pods = pods - pods % unit - (self.pods[domain] - self.pods[domain] % unit)
            more_slices = slices - self.slices[domain]
            self.pods[domain], self.slices[domain] = pods, slices
            if not (more_pods or more_slices) or not level:
                return
            domain = tree.parent[domain]
            pods = self.pods[domain] + more_pods

    def figures(self) -> Capacity:
        """Returns a copy of the figures, which a search can change."""
        found = Capacity(0)
        found.pods = found.pods_with = self.pods.copy()
        found.slices = found.slices_with = self.slices.copy()
        found.leaders = [0] * len(self.pods)
        return found


@final
class KeptCapacities:
    """Counts the pods that each domain could take, for pod sets without a leader.

    Present pods keep their places.
    """

    def __init__(self, capacities: Capacities) -> None:
        self._capacities = capacities
        self._known: Memo[tuple[object, ...], _Kept] = Memo(_MOST)

    def __call__(self, pods: PodsToPlace) -> Capacity:
        """Returns the capacity of each domain for a pod set."""
        tree, room, wanted, worker, leader, suitable = pods
        if leader is not None or not room.lasts:
            return self._capacities(pods)
        inner = tuple(wanted.inner.items())
        key = tree, tuple(worker.items()), wanted.slice_level, wanted.size, inner, suitable
        kept = self._known.get(key)
        changed = None if kept is None else room.changed_since(kept.version)
        if kept is None or changed is None:
            figures = self._capacities(pods)
            self._known[key] = _Kept(pods, figures)
            return figures
        if changed:
            kept.refresh(changed)
        return kept.figures()
