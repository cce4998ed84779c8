"""Finds the first of the waiting requests that could get quota, without examining all of them.

Requests for similar quantities are close to each other in a tree. If the quota is insufficient for the
smallest of these quantities, a search skips all of these requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt
from typing import Generic, TypeAlias, TypeVar, final

from harness.models.job_quotas import Quotas, Request

V = TypeVar("V")

Key: TypeAlias = tuple[int, int]
"""A sort key, which differs between requests."""

Kind: TypeAlias = tuple[int, tuple[tuple[int, ...], ...]]
"""The node of a queue, and for each requested quantity the cells of the flavors that could provide it."""

Entry: TypeAlias = tuple[Sequence[int], Request]
"""The quantities of a request, in the order of its kind, and the request."""

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
            kind, amounts = _read(request)
            trees, entries = self._trees.setdefault(kind, []), {request: amounts}
            while trees and len(trees[-1].entries) <= max(len(entries), _FEW - 1):
                entries.update((each, amounts) for amounts, each in trees.pop().entries)
            trees.append(_Tree([(amounts, each) for each, amounts in entries.items()], self._lowest, 0))

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
        for (node, cells), trees in self._trees.items():
            room = self._quotas.room(node, cells)
            for tree in trees:
                if before is None or tree.first < before:
                    request = tree.search(room, self._quotas, self._waiting, before)
                    if request is not None:
                        before, found = self._waiting[request]
        return found


@final
class _Tree:
    """A binary tree of requests of the same kind, split by one quantity after the other."""

    __slots__ = ("_halves", "_least", "entries", "first")

    def __init__(self, entries: list[Entry], keys: Mapping[Request, Key], level: int) -> None:
        self.entries = entries
        self.first = min([keys[request] for _, request in entries])
        self._least = [min(same) for same in zip(*[amounts for amounts, _ in entries], strict=True)]
        self._halves: list[_Tree] = []
        if len(entries) > _FEW and self._least:
            axis, middle = level % len(self._least), len(entries) // 2
            entries.sort(key=lambda entry: entry[0][axis])
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
        if any(map(gt, self._least, room)):
            return None
        for half in self._halves:
            if before is None or half.first < before:
                of_half = half.search(room, quotas, waiting, before)
                if of_half is not None:
                    found, before = of_half, waiting[of_half][0]
        for amounts, request in () if self._halves else self.entries:
            if request in waiting and not any(map(gt, amounts, room)):
                key = waiting[request][0]
                if (before is None or key < before) and quotas.has_room(request):
                    found, before = request, key
        return found


def _read(request: Request) -> tuple[Kind, Sequence[int]]:
    """Returns the kind and the quantities. Each flavor of a group provides the same quantities."""
    groups = [zip(*[cells for _, cells in flavors], strict=True) for flavors in request.groups]
    quantities = [each for group in groups for each in group]
    cells = tuple([tuple([cell for cell, _ in each]) for each in quantities])
    return (request.node, cells), [each[0][1] for each in quantities]
