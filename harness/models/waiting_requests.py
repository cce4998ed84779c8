"""Finds the first of the waiting requests that could get quota, without examining all of them.

Requests for similar quantities are close to each other in a tree. If the quota is insufficient for the
smallest of these quantities, a search skips all of these requests. A search also removes the requests that it
meets and that do not wait any more, because these are mostly small, and would attract every later search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt
from typing import Generic, TypeAlias, TypeVar, final

from harness.models.job_quotas import Kind, Quotas, Request

V = TypeVar("V")

Key: TypeAlias = tuple[int, int]
"""A sort key, which differs between requests."""

_FEW = 8  # a tree with more requests is split into two halves

_AFTER_ALL: Key = (1 << 62, 0)


@final
class WaitingRequests(Generic[V]):
    """Requests that wait for quota, each with a sort key and a value.

    Args:
        quotas: the quotas that the requests wait for.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._waiting: dict[Request, tuple[Key, V]] = {}
        # The trees of each kind. They may contain requests that do not wait any more, and have the lowest key
        # of each request since it was added.
        self._trees: dict[Kind, list[_Tree]] = {}
        self._lowest: dict[Request, Key] = {}

    def put(self, request: Request, key: Key, value: V) -> None:
        """Adds a request, or replaces its key and value."""
        self._waiting[request] = key, value
        lowest = self._lowest
        if request not in lowest or key < lowest[request]:
            lowest[request] = key
            trees, entries = self._trees.setdefault(request.kind, []), {request: None}
            while trees and trees[-1].size <= max(len(entries), _FEW - 1):
                entries.update({each: None for each in trees.pop().entries if each in lowest})
            trees.append(_Tree(list(entries), lowest, 0))

    def remove(self, request: Request) -> None:
        """Removes a request if it is waiting."""
        self._waiting.pop(request, None)
        if len(self._lowest) > 2 * len(self._waiting) + _FEW:
            waiting, self._waiting, self._trees, self._lowest = self._waiting, {}, {}, {}
            for each, (key, value) in waiting.items():
                self.put(each, key, value)

    def first(self) -> V | None:
        """Returns the value of the first request that could get quota now, or None if there is none."""
        before, found = _AFTER_ALL, None
        for kind, trees in self._trees.items():
            room = self._quotas.room(kind)
            for tree in trees:
                if tree.first < before and not any(map(gt, tree.least, room)):
                    request = tree.search(room, self._quotas, self._waiting, self._lowest, before)
                    if request is not None:
                        before, found = self._waiting[request]
        return found


@final
class _Tree:
    """A binary tree of requests of the same kind, split by one quantity after the other.

    Attributes:
        entries: the requests. If the tree has halves, these may also be requests that it has removed.
        size: the number of requests, without those removed.
        first: the lowest key, or `_AFTER_ALL` if the tree is empty.
        least: the smallest of each quantity.
    """

    __slots__ = ("_halves", "_level", "entries", "first", "least", "size")

    def __init__(self, entries: list[Request], keys: Mapping[Request, Key], level: int) -> None:
        self._level = level
        self._halves: list[_Tree] = []
        self._hold(entries, keys)
        if len(entries) > _FEW and self.least:
            axis, middle = level % len(self.least), len(entries) // 2
            entries.sort(key=lambda request: request.amounts[axis])
            self._halves = [_Tree(half, keys, level + 1) for half in (entries[:middle], entries[middle:])]

    def _hold(self, entries: list[Request], keys: Mapping[Request, Key]) -> None:
        self.entries, self.size = entries, len(entries)
        self.first = min([keys[request] for request in entries], default=_AFTER_ALL)
        self.least: list[int] = list(map(min, zip(*[request.amounts for request in entries], strict=True)))

    def search(
        self,
        room: Sequence[int],
        quotas: Quotas,
        waiting: Mapping[Request, tuple[Key, V]],
        keys: dict[Request, Key],
        before: Key,
    ) -> Request | None:
        """Returns the first request with room and a key below `before`."""
        found, gone, halves = None, False, self._halves
        if halves:
            for half in halves if halves[0].first < halves[1].first else halves[::-1]:
                if half.first < before and not any(map(gt, half.least, room)):
                    of_half = half.search(room, quotas, waiting, keys, before)
                    if of_half is not None:
                        found, before = of_half, waiting[of_half][0]
            if halves[0].size + halves[1].size < self.size:
                self._sum_up()
            return found
        for request in self.entries:
            if request not in waiting:
                gone = True
            elif not any(map(gt, request.amounts, room)):
                key = waiting[request][0]
                if key < before and quotas.has_room(request):
                    found, before = request, key
        if gone and self._level:  # a small tree keeps its requests, because that costs less if they return
            for request in self.entries:
                if request not in waiting:
                    keys.pop(request, None)  # another tree may have it, too
            self._hold([request for request in self.entries if request in waiting], keys)
        return found

    def _sum_up(self) -> None:
        halves = [half for half in self._halves if half.size]
        self.size = sum([half.size for half in halves])
        self.first = min([half.first for half in halves], default=_AFTER_ALL)
        self.least = list(map(min, zip(*[half.least for half in halves], strict=True)))
