"""Finds the first of the waiting requests that could get quota, without examining all of them.

Requests for similar quantities are close to each other in a tree. If the quota is insufficient for the
smallest of these quantities, a search skips all of these requests.
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


@final
class WaitingRequests(Generic[V]):
    """Requests that wait for quota, each with a sort key and a value.

    Args:
        quotas: the quotas that the requests wait for.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._waiting: dict[Request, tuple[Key, V]] = {}
        # The trees of each kind, the largest first. They may contain requests that do not wait any more, and
        # have the lowest key of each request since it was added.
        self._trees: dict[Kind, list[_Tree]] = {}
        self._lowest: dict[Request, Key] = {}

    def put(self, request: Request, key: Key, value: V) -> None:
        """Adds a request, or replaces its key and value."""
        self._waiting[request] = key, value
        if request not in self._lowest or key < self._lowest[request]:
            self._lowest[request] = key
            trees, entries = self._trees.setdefault(request.kind, []), {request: None}
            while trees and len(trees[-1].entries) <= max(len(entries), _FEW - 1):
                entries.update(dict.fromkeys(trees.pop().entries))
            trees.append(_Tree(list(entries), self._lowest, 0))

    def remove(self, request: Request) -> None:
        """Removes a request if it is waiting."""
        self._waiting.pop(request, None)
        if len(self._lowest) > 2 * len(self._waiting) + _FEW:
            waiting, self._waiting, self._trees, self._lowest = self._waiting, {}, {}, {}
            for each, (key, value) in waiting.items():
                self.put(each, key, value)

    def first(self) -> V | None:
        """Returns the value of the first request that could get quota now, or None if there is none."""
        before: Key | None = None
        found = None
        for kind, trees in self._trees.items():
            room = self._quotas.room(kind)
            for tree in trees:
                if (before is None or tree.first < before) and not any(map(gt, tree.least, room)):
                    request = tree.search(room, self._quotas, self._waiting, before)
                    if request is not None:
                        before, found = self._waiting[request]
        return found


@final
class _Tree:
    """A binary tree of requests of the same kind, split by one quantity after the other."""

    __slots__ = ("_halves", "entries", "first", "least")

    def __init__(self, entries: list[Request], keys: Mapping[Request, Key], level: int) -> None:
        self.entries = entries
        self.first = min([keys[request] for request in entries])
        self.least = list(map(min, zip(*[request.amounts for request in entries], strict=True)))
        self._halves: list[_Tree] = []
        if len(entries) > _FEW and self.least:
            axis, middle = level % len(self.least), len(entries) // 2
            entries.sort(key=lambda request: request.amounts[axis])
            halves = [_Tree(half, keys, level + 1) for half in (entries[:middle], entries[middle:])]
            self._halves = sorted(halves, key=lambda half: half.first)

    def search(
        self,
        room: Sequence[int],
        quotas: Quotas,
        waiting: Mapping[Request, tuple[Key, V]],
        before: Key | None,
    ) -> Request | None:
        """Returns the first request with room, and with a key below `before` if it is not None."""
        found = None
        for half in self._halves:
            if (before is None or half.first < before) and not any(map(gt, half.least, room)):
                of_half = half.search(room, quotas, waiting, before)
                if of_half is not None:
                    found, before = of_half, waiting[of_half][0]
        for request in () if self._halves else self.entries:
            if request in waiting and not any(map(gt, request.amounts, room)):
                key = waiting[request][0]
                if (before is None or key < before) and quotas.has_room(request):
                    found, before = request, key
        return found
