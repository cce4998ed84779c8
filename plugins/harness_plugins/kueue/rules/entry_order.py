"""The order in which a cycle serves its entries: the classic order, or a tournament of shares.

Upstream: `entryOrdering` in scheduler.go and fair_sharing_iterator.go in pkg/scheduler (KEP 1714).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import final

from harness_plugins.kueue.rules.dominant_resource_share import Share, Shares
from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache


@final
class ClassicOrder:
    """Serves second passes first, then entries by less borrowing, higher priority, earlier time, and UID."""

    def __init__(self, gates: Gates) -> None:
        self._preemptors_first = gates.prioritize_preemptor_workloads
        self._by_priority = gates.priority_sorting_within_cohort

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the entries in order."""
        return iter(sorted((entry for entry in entries if not entry.reason), key=self._key))

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
    """First serves the entry that would result in the smallest share, separately in each tree of cohorts.

    At every cohort, the best entries of its children compete. They are compared by the share that each child
    would have if its entry were admitted. After an entry is served, only the shares of the cohorts above its
    queue are computed again. The next entry always comes from the tree that contains the waiting queue whose
    name sorts first. The order of trees does not affect the outcome.
    """

    def __init__(self, cache: Cache, shares: Shares, gates: Gates) -> None:
        self._tree = cache.tree
        self._shares = shares
        self._preemptors_first = gates.prioritize_preemptor_workloads
        first = gates.fair_sharing_prioritize_non_borrowing
        self._non_borrowing_first = first and gates.rules.borrows_at_each_level
        self._own_quota_first = first and not gates.rules.borrows_at_each_level
        self._by_priority = gates.priority_sorting_within_cohort

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yields the entries in order, and picks each one when it is needed."""
        waiting = [entry for entry in entries if not entry.reason]
        if len(waiting) < 2:
            return iter(waiting)
        trees: dict[int, list[Entry]] = {}
        for entry in entries:
            trees.setdefault(entry.workload.cluster_queue.root, []).append(entry)
        return self._tournament(entries, waiting) if len(trees) == 1 else self._in_turn(entries, trees)

    def _in_turn(self, entries: list[Entry], trees: dict[int, list[Entry]]) -> Iterator[Entry]:
        draws = {
            root: iter(present) if len(present) == 1 else self._tournament(present, present)
            for root, present in trees.items()
        }
        served: set[Entry] = set()
        for entry in sorted(entries, key=lambda entry: entry.workload.cluster_queue.name):
            while entry not in served:
                drawn = next(draws[entry.workload.cluster_queue.root])
                served.add(drawn)
                yield drawn

    def _tournament(self, entries: list[Entry], needed: list[Entry]) -> Iterator[Entry]:
        """Yields the entries of a tree in order.

        A child of the root takes part until all `needed` entries below it are yielded. The others below it
        can delay no needed entry any more.
        """
        parent, top = self._tree.parent, entries[0].workload.cluster_queue.root
        left = Counter(entry.workload.cluster_queue.branch for entry in needed)
        missing = set(needed)
        heaps: dict[int, list[tuple[Key, Entry]]] = {}
        for entry in entries:
            queue = entry.workload.cluster_queue
            if queue.above not in heaps:
                heaps.update((cohort, []) for cohort in queue.path if cohort not in heaps)
            heaps[queue.above].append((self.key(entry, queue.node), entry))
        for cohort in sorted(heaps, reverse=True):  # cohorts have larger numbers than those above them
            heapify(heaps[cohort])
            if cohort != top and (parent[cohort] != top or left[cohort]):
                winner = heaps[cohort][0][1]
                heaps[parent[cohort]].append((self.key(winner, cohort), winner))
        while heaps[top]:
            drawn = heaps[top][0][1]
            queue = drawn.workload.cluster_queue
            left[queue.branch] -= drawn in missing
            yield drawn
            below = queue.node
            for cohort in queue.path:  # the drawn entry comes first in each of them
                rest = heaps.get(below)
                if rest and (cohort != top or left[below]):
                    winner = rest[0][1]
                    heapreplace(heaps[cohort], (self.key(winner, below), winner))
                else:
                    heappop(heaps[cohort])
                below = cohort

    def key(self, entry: Entry, node: int) -> Key:
        """Returns the sort key of an entry at a ClusterQueue or Cohort, for comparison with its siblings."""
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
        """Returns whether a tree node would borrow if an entry were admitted, and its share in this case.

        Both are part of the sort key. In some releases, the first value says whether the entry borrows.

        Args:
            queue: the tree node of the entry's ClusterQueue.
            node: the tree node to compare, which is this ClusterQueue or a Cohort above it.
            usage: the quota that the entry uses.
            borrowing: the height of the cohort that this quota comes from. See `Assignment`.
        """
        tree, borrows = self._tree, self._own_quota_first and borrowing > 0
        if node == queue:  # the usage above the queue does not matter
            if self._non_borrowing_first:
                for cell, amount in usage:
                    borrows = borrows or tree.borrows(node, cell, amount)
            return borrows, self._shares.changed(node, usage, 1)
        tree.charge(queue, usage)
        if self._non_borrowing_first:
            for cell, _ in usage:
                borrows = borrows or tree.borrows(node, cell)
        _, share = self._shares.of(node)
        tree.refund(queue, usage)
        return borrows, share
