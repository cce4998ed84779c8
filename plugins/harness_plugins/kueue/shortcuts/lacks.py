"""Finds the quota that refused heads lack, based on their requests in each flavor.

The cache key consists of the request and the recorded reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, final

from harness.base.memo import Memo
from harness.models.quota import QuotaTree
from harness_plugins.kueue.rules.entry import NO_PREEMPTION_CANDIDATES, NO_QUOTA
from harness_plugins.kueue.rules.flavor_offers import GroupOffer, Offers, PodSetOffer, cells_of_pods
from harness_plugins.kueue.rules.preemption_policy import may_preempt_for
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

Flavors: TypeAlias = tuple[tuple[int, ...], ...]
"""The flavor-resources that a workload needs from each flavor. One of the flavors is enough."""


class Kind(NamedTuple):
    """Why a head is futile, apart from its requests. Equal kinds of one queue are the same object.

    Attributes:
        flavors: the flavors that the head could use.
        for_want_of_candidates: True if the head lacks preemption candidates, False if it lacks quota.
    """

    flavors: Flavors
    for_want_of_candidates: bool


class Lack(NamedTuple):
    """The flavor-resources that a futile head (see `in_vain`) lacks. It lacks at least one in every flavor.

    Attributes:
        amounts: the requests of the head for each flavor.
    """

    kind: Kind
    amounts: tuple[tuple[int, ...], ...]


@final
class Bounds:
    """The smallest and the largest requests of heads with the same flavors and reason for waiting."""

    __slots__ = ("least", "most")

    def __init__(self, amounts: Sequence[Sequence[Sequence[int]]]) -> None:
        self.least, self.most = amounts[0], amounts[0]
        if len(amounts) > 1:
            by_flavor = list(zip(*amounts, strict=True))
            self.least = [list(map(min, *each)) for each in by_flavor]
            self.most = [list(map(max, *each)) for each in by_flavor]


Parts: TypeAlias = dict[Kind, Bounds]
"""The bounds of heads of each kind."""


@final
class Lacks:
    """Finds the quota that heads lack."""

    def __init__(self, tree: QuotaTree, offers: Offers, *, fair: bool) -> None:
        self._tree = tree
        self._offers = offers
        self._pods = cells_of_pods(tree)
        self._fair = fair
        self._kinds: dict[Kind, Kind] = {}  # one object for equal kinds
        self._known: Memo[tuple[int, int, tuple[int, ...], bool], Lack | None] = Memo(most=1 << 16)

    def of(self, workload: Workload) -> Lack | None:
        """Returns the quota that a refused head lacks, or None if amounts alone don't explain the refusal."""
        asks = workload.asks
        wanting = workload.told.last == NO_PREEMPTION_CANDIDATES
        if not wanting and workload.told.last != NO_QUOTA:
            return None
        if workload.last_assignment is not None or workload.namespace_mismatch or asks.reducible:
            return None
        key = workload.cluster_queue.number, asks.number, workload.counts, wanting
        if key not in self._known:
            lack = self._lack_of(workload, wanting=wanting)
            if lack is not None:
                lack = Lack(self._kinds.setdefault(lack.kind, lack.kind), lack.amounts)
            self._known[key] = lack
        return self._known[key]

    def _lack_of(self, workload: Workload, *, wanting: bool) -> Lack | None:
        queue = workload.cluster_queue
        found = _flavors_of(self._offers(workload.asks, queue), workload.counts)
        if found is None:
            return None
        first, potential = queue.node * self._tree.width, self._tree.potential_available
        able = [each for each in found if all(amount <= potential[first + cell] for cell, amount in each)]
        if not wanting:
            if able and len(queue.path) > 1:
                return None  # a cohort in between may have free quota
            lacking = [
                [each for each in amounts if not self._may_preempt_for(queue, *each)] for amounts in able
            ]
            return _lack_from(lacking, wanting=False)
        if self._pods and any(cell in self._pods for amounts in able for cell, _ in amounts):
            return None  # preemption never searches for the `pods` resource alone
        if not any(all(self._may_preempt_for(queue, *each) for each in amounts) for amounts in able):
            return None
        return _lack_from(able, wanting=True)

    def _may_preempt_for(self, queue: ClusterQueueState, cell: int, amount: int) -> bool:
        nominal = self._tree.nominal[queue.node * self._tree.width + cell]
        return may_preempt_for(queue.spec, amount, nominal, fair=self._fair)


def parts_of(lacks: Iterable[Lack]) -> Parts:
    """Returns the bounds of the requests of several heads."""
    several: dict[Kind, list[Sequence[Sequence[int]]]] = {}
    last: Kind | None = None
    for kind, amounts in lacks:
        if kind is not last:
            same, last = several.setdefault(kind, []), kind
        same.append(amounts)
    return {key: Bounds(amounts) for key, amounts in several.items()}


def take_in(parts: Parts, lack: Lack) -> None:
    """Widens bounds to include one more head."""
    bounds = parts.get(lack.kind)
    amounts = [lack.amounts] if bounds is None else [bounds.least, bounds.most, lack.amounts]
    parts[lack.kind] = Bounds(amounts)


def _lack_from(flavors: Sequence[Sequence[tuple[int, int]]], *, wanting: bool) -> Lack:
    cells = tuple(tuple(cell for cell, _ in amounts) for amounts in flavors)
    return Lack(Kind(cells, wanting), tuple(tuple(amount for _, amount in amounts) for amounts in flavors))


def _flavors_of(offers: Sequence[PodSetOffer], counts: Sequence[int]) -> list[Amounts] | None:
    """Returns the requests for each flavor if a single choice decides, or None if there are several choices.

    A single choice decides if the workload has only one resource group, or if each group has only one flavor.
    """
    groups: list[tuple[GroupOffer, int]] = []
    covered = True
    for each, count in zip(offers, counts, strict=True):
        if each.placed or each.mates:
            return None
        groups += [(group, count) for group in each.groups]
        covered = covered and (each.covered or not count)
    if not covered:
        # An earlier pod set may have several flavors, and Kueue may not have tried all of them yet.
        return [] if all(len(group.cells) == 1 for group, _ in groups) else None
    if len(groups) == 1:
        group, count = groups[0]
        return [
            tuple((cell, amount * count) for cell, amount in zip(cells, group.amounts, strict=True))
            for cells in group.cells
            if cells is not None
        ]
    total: dict[int, int] = {}
    for group, count in groups:
        if len(group.cells) != 1:
            return None
        if group.cells[0] is None:
            return []
        for cell, amount in zip(group.cells[0], group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count
    return [tuple(sorted(total.items()))]
