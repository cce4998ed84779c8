"""The order in which the entries of a cycle are served: classic, or by a tournament of shares.

Upstream: `entryOrdering` in pkg/scheduler/scheduler.go; pkg/scheduler/fair_sharing_iterator.go (KEP 1714).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache


@final
class ClassicOrder:
    """Second passes come first; then less borrowing, higher priority, earlier time, and finally the UID.

    Attributes:
        by_age: whether entries of equal standing are ordered as in a queue.
    """

    def __init__(self, gates: Gates) -> None:
        self._preemptors_first = gates.prioritize_preemptor_workloads
        self._by_priority = gates.priority_sorting_within_cohort
        self.by_age = self._by_priority and not self._preemptors_first

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the entries in order."""
        waiting = [entry for entry in entries if not entry.reason]
        if len(waiting) > 1:
            waiting.sort(key=self._key)
        return iter(waiting)

    def standing(self, queue: int, node: int, usage: Amounts, borrowing: int) -> tuple[int]:
        """Returns the sort key before priority and age: how many levels up the quota comes from."""
        return (borrowing,)

    def _key(self, entry: Entry) -> tuple[bool, bool, int, int, int, str]:
        workload = entry.workload
        return (
            entry.second is None,
            self._preemptors_first and not entry.marked,
            entry.assignment.borrowing,
            -workload.priority if self._by_priority else 0,
            workload.timestamp,
            workload.uid,
        )


Key = tuple[bool, bool, Share, int, int, str, int]


@final
class FairOrder:
    """In each tree of cohorts, the entry that would leave the smallest share comes first.

    At every cohort, the best entries of its children compete, by the share that the child would have with the
    entry admitted. After an entry is served, only the nodes above its queue are computed again. The next
    entry always comes from the tree of the waiting queue with the smallest name; this changes no outcome.

    Attributes:
        by_age: whether entries of equal standing are ordered as in a queue.
    """

    def __init__(self, cache: Cache, shares: Shares, gates: Gates) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._shares = shares
        self._preemptors_first = gates.prioritize_preemptor_workloads
        self._non_borrowing_first = gates.fair_sharing_prioritize_non_borrowing
        self._by_priority = gates.priority_sorting_within_cohort
        self.by_age = self._by_priority and not self._preemptors_first

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the entries in order, decided one by one."""
        if len(entries) < 2:
            yield from entries
            return
        trees: dict[int, list[Entry]] = {}
        for entry in entries:
            trees.setdefault(entry.workload.cluster_queue.root, []).append(entry)
        waiting = sorted(entries, key=lambda entry: entry.workload.cluster_queue.name)
        draws = {
            root: iter(present) if len(present) == 1 else self._tournament(present)
            for root, present in trees.items()
        }
        served: set[Entry] = set()
        for entry in waiting:
            while entry not in served:
                drawn = next(draws[entry.workload.cluster_queue.root])
                served.add(drawn)
                yield drawn

    def _tournament(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the winner at the root, repeatedly, until no entry is left."""
        parent = self._tree.parent
        best: dict[int, tuple[Key, Entry]] = {}
        heaps: dict[int, list[tuple[Key, int]]] = {}
        for entry in entries:
            node = entry.workload.cluster_queue.node
            best[node] = self.key(entry, node), entry
            heaps.setdefault(parent[node], []).append((best[node][0], node))
        for cohort in sorted(
            {cohort for entry in entries for cohort in entry.workload.cluster_queue.path}, reverse=True
        ):
            heapify(heaps.setdefault(cohort, []))
            self._promote(cohort, best, heaps)
        root = entries[0].workload.cluster_queue.root
        for _ in entries:
            drawn = best[heaps[root][0][1]][1]
            queue = drawn.workload.cluster_queue
            yield drawn
            del best[queue.node]
            for cohort in queue.path:
                self._promote(cohort, best, heaps)

    def _promote(
        self,
        cohort: int,
        best: dict[int, tuple[Key, Entry]],
        heaps: dict[int, list[tuple[Key, int]]],
    ) -> None:
        """Finds the current winner of a cohort, and enters it in the cohort above."""
        heap = heaps[cohort]
        while heap and (heap[0][1] not in best or best[heap[0][1]][0] != heap[0][0]):
            heappop(heap)
        above = self._tree.parent[cohort]
        if above < 0:
            return
        if heap:
            winner = best[heap[0][1]][1]
            best[cohort] = self.key(winner, cohort), winner
            heappush(heaps.setdefault(above, []), (best[cohort][0], cohort))
        else:
            best.pop(cohort, None)

    def key(self, entry: Entry, node: int) -> Key:
        """Returns the sort key of an entry at a node on its path, among the node's siblings."""
        workload, assignment = entry.workload, entry.assignment
        queue = workload.cluster_queue
        return (
            self._preemptors_first and not entry.marked,
            *self.standing(queue.node, node, assignment.usage, assignment.borrowing),
            -workload.priority if self._by_priority else 0,
            workload.timestamp,
            workload.uid,
            queue.node,
        )

    def standing(self, queue: int, node: int, usage: Amounts, borrowing: int) -> tuple[bool, Share]:
        """Returns the sort key before priority and age: borrowing and share of a node.

        Args:
            queue: the node of the entry's queue.
            node: the node, on the entry's path.
            usage: the usage of the entry.
            borrowing: how many levels up the quota comes from; not used here.
        """
        tree = self._tree
        tree.charge(queue, usage)
        borrows = self._non_borrowing_first and any(tree.borrows(node, cell) for cell, _ in usage)
        _, share = self._shares.of(node)
        tree.refund(queue, usage)
        return borrows, share
