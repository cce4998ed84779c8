"""Records why a head is refused: the quota it lacks, the workloads that block it, and why it preempts none.

The numbers describe the moment of the failure. A head can also lack quota that is only reserved for earlier
entries of the cycle. The record therefore shows reserved and used quota separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, final

from harness.base.memo import Memo
from harness.models.shortage import lacking, shortage
from harness_plugins.kueue.record.obstacles import why_no_search, why_no_targets
from harness_plugins.kueue.record.places import room_in_words
from harness_plugins.kueue.rules.entry import INADMISSIBLE, NO_LONGER_FITS, PENDING, Entry, Victims, why_not
from harness_plugins.kueue.rules.flavor_assigner import NO_FIT, PREEMPT
from harness_plugins.kueue.rules.flavor_offers import GroupOffer, PodSetOffer
from harness_plugins.kueue.rules.preemption import Incoming, put_back, remove
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.rules.snapshot import Reservation
from harness_plugins.kueue.rules.topology.placement import Topologies
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload


class Refused(NamedTuple):
    """A head that returns to its queue for a different reason than at its last attempt."""

    workload: Workload
    reason: str
    figures: Mapping[str, Any]


_NONE: Final = -1
"""Stands for a flavor if no flavor of a resource group will do."""

_Ahead: TypeAlias = Sequence[tuple[Workload, Amounts]]
"""The workloads of earlier entries in the same tree for which a cycle reserved quota, with the amounts."""


@final
class Refusals:
    """Records why heads fail, with the numbers that explain it.

    Attributes:
        refused: the heads whose reason for waiting has changed since their last attempt. The caller that
            reads this list also clears it.
        records: whether `refused` is filled.
    """

    def __init__(
        self,
        cache: Cache,
        offers: Callable[[Workload], tuple[PodSetOffer, ...]],
        search: TargetSearch,
        topologies: Topologies | None,
    ) -> None:
        self.refused: list[Refused] = []
        self.records = True
        self._cache = cache
        self._tree = cache.tree
        self._offers = offers
        self._search = search
        self._topologies = topologies
        flavors = Counter(each.resource for each in self._tree.flavor_resources)
        self._holders_are_told = any(count > 1 for count in flavors.values())
        self._known: Memo[tuple[object, ...], dict[str, Any]] = Memo()

    def __call__(
        self, entry: Entry, message: str, waits_for: Victims, reserved: Sequence[Reservation]
    ) -> None:
        """Records why an entry waits, unless the reason is the same as at its last attempt. See `Fails`."""
        if not self.records:
            return
        workload, before = entry.workload, entry.workload.told
        why = why_not(entry.assignment, entry.reason) + message
        if why == before.last:
            return
        after = workload.told = before.then(why)
        if before.tells(after):
            root, again = workload.cluster_queue.root, after.returns > before.returns
            ahead = [(each, amounts) for each, amounts, _ in reserved if each.cluster_queue.root == root]
            figures = self._figures(entry, message, ahead, waits_for, again=again)
            self.refused.append(Refused(workload, entry.reason, figures))

    def leave_out(self, workload: Workload, message: str) -> None:
        """Records the reason why a head is skipped before nomination, unless it was the last known reason."""
        told = workload.told
        if self.records and told.last != message:
            workload.told = told.then(message)
            self.refused.append(Refused(workload, INADMISSIBLE, {"message": message}))

    def _figures(
        self, entry: Entry, message: str, ahead: _Ahead, waits_for: Victims, *, again: bool
    ) -> Mapping[str, Any]:
        """Returns the figures of a failure. See `docs/explain.md` for the fields.

        If the reason is repeated or targets are still terminating, the figures contain only the workloads
        that block the head. `again` is True if all figures were already recorded since the workload was
        queued.
        """
        alone = {"lacks": "place"} if entry.assignment.lacks_place else {}
        offers = self._offers(entry.workload)
        if not (again or message or ahead):
            detail = self._plain(entry, offers)
        else:
            detail = {}
            if message != PENDING:
                gone = waits_for if message == NO_LONGER_FITS else ()
                detail = {"again": True} if again else self._shortage(entry, gone, ahead, offers)
            if message:
                detail["message"] = message
            if ahead:
                detail["ahead"] = {
                    each.name: {self._tree.labels[cell]: amount for cell, amount in amounts if amount}
                    for each, amounts in ahead
                }
            if waits_for:
                detail["waitsFor"] = {
                    each.name: "" if preemptor is None else preemptor.name
                    for each, preemptor in waits_for.items()
                }
            if again:
                return {**detail, **alone}
            if not message:
                detail |= self._why_nobody(entry, offers)
        if room := self._room_for(entry, offers, detail.get("short", {})):
            if entry.assignment.mode == NO_FIT:
                alone = {"lacks": "place"}
            return {**detail, "message": f"{message}; {room}" if message else room, "unplaced": True, **alone}
        return detail

    def _plain(self, entry: Entry, offers: tuple[PodSetOffer, ...]) -> dict[str, Any]:
        """Returns the shortage and why nothing is preempted, ignoring the reservations of other entries.

        The cache key contains all usage that the shortage mentions. Equal figures are mostly the same object,
        which is converted to text only once.
        """
        tree, queue, why = self._tree, entry.workload.cluster_queue, self._why_nobody(entry, offers)
        cells, usage, width = self._cells(entry, offers), tree.usage, tree.width
        key = (
            queue.node,
            cells,
            *[usage[node * width + cell] for node in (queue.node, *queue.path) for cell, _ in cells],
            self._cache.version[queue.root] if self._holders_are_told else 0,
            str(why),
        )
        detail = self._known.get(key)
        if detail is None:
            detail = self._known[key] = shortage(tree, queue.node, cells) | why
        return detail

    def _cells(self, entry: Entry, offers: tuple[PodSetOffer, ...]) -> Amounts:
        assignment = entry.assignment
        return (
            _of_all_flavors(offers, entry.workload.counts) if assignment.mode == NO_FIT else assignment.usage
        )

    def _shortage(
        self, entry: Entry, gone: Iterable[Workload], ahead: _Ahead, offers: tuple[PodSetOffer, ...]
    ) -> dict[str, Any]:
        """Returns the shortage with the reservations of earlier entries, and the usage without them."""
        tree, node, cells = self._tree, entry.workload.cluster_queue.node, self._cells(entry, offers)
        for each in gone:
            remove(tree, each)
        short = lacking(tree, node, cells)
        for each, amounts in ahead:
            tree.refund(each.cluster_queue.node, amounts)
        detail = shortage(tree, node, cells, short=short)
        for each, amounts in ahead:
            tree.charge(each.cluster_queue.node, amounts)
        for each in gone:
            put_back(tree, each)
        return detail

    def _why_nobody(self, entry: Entry, offers: Iterable[PodSetOffer]) -> dict[str, Any]:
        """Returns why the head preempts no workload."""
        workload, assignment = entry.workload, entry.assignment
        if assignment.mode == PREEMPT:
            incoming = Incoming(workload, assignment.usage, assignment.need)
            return why_no_targets(self._cache, self._search, incoming)
        wanted = _of_all_flavors(offers, workload.counts)
        return why_no_search(self._cache, self._search, workload.cluster_queue, wanted)

    # --- topologies ---------------------------------------------------------------------------------------

    def _room_for(self, entry: Entry, offers: tuple[PodSetOffer, ...], short: Collection[str]) -> str:
        """Describes the topologies' free capacity for a head that has quota but no place, or returns "".

        An attempt that starts after the flavors that the head has tried may find no flavor. The place is then
        missing in the first flavors that lack no quota.
        """
        assignment = entry.assignment
        if self._topologies is None:
            return ""
        chosen = assignment.chosen
        if len(chosen) < len(offers):
            chosen = tuple(tuple(self._with_quota(group, short) for group in each.groups) for each in offers)
            if any(_NONE in each for each in chosen):
                return ""
        asked = self._topologies(offers, chosen, assignment.counts)
        return "" if asked is None else room_in_words(asked)

    def _with_quota(self, group: GroupOffer, short: Collection[str]) -> int:
        """Returns the first suitable flavor of a resource group that lacks no quota, or _NONE."""
        labels = self._tree.labels
        for flavor, cells in enumerate(group.cells):
            if cells is not None and not any(labels[cell] in short for cell in cells):
                return flavor
        return _NONE


def _of_all_flavors(offers: Iterable[PodSetOffer], counts: Iterable[int]) -> Amounts:
    return tuple(
        (cell, amount * count)
        for pod_set, count in zip(offers, counts, strict=True)
        for group in pod_set.groups
        for flavor in group.cells
        for cell, amount in zip(flavor or (), group.amounts, strict=bool(flavor))
    )
