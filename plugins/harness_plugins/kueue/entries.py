"""The entries of a cycle and the order in which they are served: classic, or by a tournament of shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import final

from harness_plugins.kueue.assignment import Assignment
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.shares import Share, Shares
from harness_plugins.kueue.workload import Workload


@final
class Entry:
    """A head in a cycle.

    Attributes:
        workload: the head.
        assignment: what it was assigned.
        reason: why it is not admitted, "" as long as it may be. One that has a reason from the start changes
            nothing when it is served.
        served: whether it had its turn.
    """

    __slots__ = ("assignment", "reason", "served", "workload")

    def __init__(self, workload: Workload, assignment: Assignment) -> None:
        self.workload = workload
        self.assignment = assignment
        self.reason = ""
        self.served = False


Order = Callable[[list[Entry]], Iterator[Entry]]
"""Yields the entries of a cycle in the order in which they are served; asked for the next one only when the
one before was served, so that it may look at what that changed. It may leave out entries that have a reason
from the start, where their turn does not matter to others."""


@final
class ClassicOrder:
    """Less borrowing first, then higher priority, then first come; ties fall by UID."""

    def __init__(self, gates: Gates) -> None:
        self._preemptors_first = gates.prioritize_preemptor_workloads
        self._by_priority = gates.priority_sorting_within_cohort

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """The entries in order."""
        return iter(sorted((entry for entry in entries if not entry.reason), key=self._key))

    def _key(self, entry: Entry) -> tuple[bool, int, int, int, str]:
        workload = entry.workload
        return (
            self._preemptors_first and workload.home.preemptor is not workload,
            entry.assignment.borrowing,
            -workload.priority if self._by_priority else 0,
            workload.timestamp,
            workload.uid,
        )


_Key = tuple[bool, bool, Share, int, int, str, int]


@final
class FairOrder:
    """In each tree of cohorts, the entry goes first that would leave the smallest share.

    At every cohort the best of each child meet; their shares are those of the children, as they would be
    with the entry admitted. Only what an entry changes is computed again: the nodes above its queue. The
    next entry is always drawn from the tree of the waiting queue with the smallest name, which changes no
    outcome.
    """

    def __init__(self, cache: Cache, shares: Shares, gates: Gates) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._shares = shares
        self._preemptors_first = gates.prioritize_preemptor_workloads
        self._non_borrowing_first = gates.fair_sharing_prioritize_non_borrowing
        self._by_priority = gates.priority_sorting_within_cohort

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """The entries in order, decided one by one."""
        if len(entries) < 2:
            yield from entries
            return
        trees: dict[int, list[Entry]] = {}
        for entry in entries:
            trees.setdefault(entry.workload.home.queue.root, []).append(entry)
        if len(trees) == 1 and all(len(entry.workload.home.queue.path) <= 1 for entry in entries):
            # All meet at one cohort: what becomes of one of them is of no account to the others' order.
            waiting = [entry for entry in entries if not entry.reason]
            if len(waiting) > 1:
                waiting.sort(key=lambda entry: self._key(entry, entry.workload.home.queue.node))
            yield from waiting
            return
        waiting = sorted(entries, key=lambda entry: entry.workload.home.queue.name)
        draws = {
            root: iter(present) if len(present) == 1 else self._tournament(present)
            for root, present in trees.items()
        }
        served: set[Entry] = set()
        for entry in waiting:
            while entry not in served:
                drawn = next(draws[entry.workload.home.queue.root])
                served.add(drawn)
                yield drawn

    def _tournament(self, entries: list[Entry]) -> Iterator[Entry]:
        """Draw the winner at the root, again and again."""
        parent = self._tree.parent
        best: dict[int, tuple[_Key, Entry]] = {}
        heaps: dict[int, list[tuple[_Key, int]]] = {}
        for entry in entries:
            node = entry.workload.home.queue.node
            best[node] = self._key(entry, node), entry
            heaps.setdefault(parent[node], []).append((best[node][0], node))
        for cohort in sorted(
            {cohort for entry in entries for cohort in entry.workload.home.queue.path}, reverse=True
        ):
            heapify(heaps.setdefault(cohort, []))
            self._promote(cohort, best, heaps)
        root = entries[0].workload.home.queue.root
        for _ in entries:
            drawn = best[heaps[root][0][1]][1]
            queue = drawn.workload.home.queue
            yield drawn
            del best[queue.node]
            for cohort in queue.path:
                self._promote(cohort, best, heaps)

    def _promote(
        self,
        cohort: int,
        best: dict[int, tuple[_Key, Entry]],
        heaps: dict[int, list[tuple[_Key, int]]],
    ) -> None:
        """Find who wins in a cohort now, and enter it in the cohort above."""
        heap = heaps[cohort]
        while heap and (heap[0][1] not in best or best[heap[0][1]][0] is not heap[0][0]):
            heappop(heap)
        above = self._tree.parent[cohort]
        if above < 0:
            return
        if heap:
            winner = best[heap[0][1]][1]
            best[cohort] = self._key(winner, cohort), winner
            heappush(heaps.setdefault(above, []), (best[cohort][0], cohort))
        else:
            best.pop(cohort, None)

    def _key(self, entry: Entry, node: int) -> _Key:
        """How an entry compares where the node on its path meets the others; smaller goes first."""
        tree, workload, usage = self._tree, entry.workload, entry.assignment.usage
        queue = workload.home.queue
        tree.charge(queue.node, usage)
        borrowing = self._non_borrowing_first and any(tree.borrows(node, cell) for cell, _ in usage)
        _, share = self._shares.of(node)
        tree.refund(queue.node, usage)
        return (
            self._preemptors_first and workload.home.preemptor is not workload,
            borrowing,
            share,
            -workload.priority if self._by_priority else 0,
            workload.timestamp,
            workload.uid,
            queue.node,
        )
