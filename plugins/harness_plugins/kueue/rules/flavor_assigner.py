"""Flavor assignment, which picks a flavor from each resource group for every pod set.

A pod set gets the first flavor that is good enough. If no flavor is good enough, it gets the best flavor. The
quality of a flavor depends on the available quota, on whether the queue has to borrow, and on a simulated
search for preemption targets.

Upstream: `FlavorAssigner` and `Assignment` in pkg/scheduler/flavorassigner/flavorassigner.go (KEP 582).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_offers import GroupOffer, PodSetOffer, cells_of_pods, joint_groups
from harness_plugins.kueue.rules.fungibility import (
    FITS,
    NO_CANDIDATES,
    NOTHING_FITS,
    PREEMPTS,
    RECLAIMS,
    Quality,
    scan_of,
)
from harness_plugins.kueue.rules.preemption import Target, remove, restore
from harness_plugins.kueue.rules.preemption_oracle import Oracle, quota_of
from harness_plugins.kueue.rules.preemption_policy import may_preempt_for
from harness_plugins.kueue.rules.topology.placement import Topologies, WorkloadTopology
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import Placed, without
from harness_plugins.kueue.state.workload import START_OVER, Chosen, Tried

NO_FIT: Final = 0
PREEMPT: Final = 1
FIT: Final = 2
DEFERRED_FIT: Final = 3
"""The modes of an assignment. A deferred fit must wait until the victims of other entries are gone.

Upstream ranks a deferred fit below a fit. Here, only the other three modes are compared.
"""


class Assignment(NamedTuple):
    """The flavors that a workload would get, with the quota, places and preemptions that they require.

    Attributes:
        mode: `NO_FIT`, `PREEMPT`, `FIT` or `DEFERRED_FIT`.
        borrowing: the height of the cohort that the quota comes from, or 0 if the queue's own quota is
            enough.
        usage: the quota that the assignment uses. For a failed assignment, this is the quota counted before
            the failure.
        uses: a bit mask of the flavor-resources that the assignment uses, including those with an amount of
            zero.
        need: the flavor-resources that only preemption can free.
        untried: whether any resource group has a flavor that was not considered.
        placed: the places of the pods in the topologies of the flavors.
        lacks_place: whether there is enough quota, but not enough free capacity in a topology.
    """

    mode: int
    borrowing: int
    usage: Amounts
    uses: int
    need: tuple[int, ...]
    counts: tuple[int, ...]
    chosen: Chosen
    tried: Tried
    untried: bool
    placed: tuple[Placed, ...] = ()
    lacks_place: bool = False
    targets: Sequence[Target] = ()


class _Choice(NamedTuple):
    """A chosen flavor, its overall quality, its quality for each resource, and the last flavor considered."""

    flavor: int
    tried: int
    quality: Quality
    each: tuple[Quality, ...]


class Attempt(NamedTuple):
    """An attempt to assign flavors to a workload.

    Attributes:
        tried: the flavors that were already tried. The scans start with the flavors after them.
        allowed: the only flavor to try in each resource group, or None to try all flavors after `tried`.
    """

    oracle: Oracle
    offers: tuple[PodSetOffer, ...]
    counts: tuple[int, ...]
    tried: Tried = ()
    allowed: Chosen | None = None

    def flavors(self, pod_set: int, group: int) -> Iterable[int]:
        """Returns the flavors to try for a resource group of a pod set, in order."""
        if self.allowed is not None:
            return (self.allowed[pod_set][group],)
        tried = self.tried[pod_set] if pod_set < len(self.tried) else ()
        start = tried[group] + 1 if group < len(tried) else 0
        return range(start, len(self.offers[pod_set].groups[group].cells))


@final
class Assigner:
    """Assigns flavors to pod sets, based on the current state of the cache."""

    def __init__(
        self, cache: Cache, *, fair: bool, gates: Gates, topologies: Topologies | None = None
    ) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._fair = fair
        self._topologies = topologies
        self._pods = cells_of_pods(cache.tree)
        self._zero_needs_no_quota = gates.rules.zero_needs_no_quota
        self._scans = {queue: scan_of(queue.spec.fungibility, gates) for queue in cache.queues.values()}

    def assign(self, attempt: Attempt) -> Assignment:
        """Assigns flavors to all pod sets, and finds preemption targets if they are needed."""
        oracle, offers, counts, _, _ = attempt
        assumed: dict[int, int] = {}
        choices: list[tuple[_Choice, ...]] = []
        joined: dict[int, tuple[_Choice, ...]] = {}
        for number, pod_set in enumerate(offers):
            found = joined.get(number)
            if found is None:
                if pod_set.mates:
                    joined |= self._assign_together(attempt, pod_set.mates, assumed)
                    found = joined.get(number)
                elif pod_set.covered or self._is_free(counts[number]):
                    found = self._assign_pod_set(attempt, number, assumed)
                if found is None:
                    break
                if number + 1 < len(offers):
                    # The usage of all mates counts from the first mate onwards, even for pod sets that are
                    # between mates.
                    for mate in pod_set.mates or (number,):
                        _take(offers[mate], joined.get(mate, found), counts[mate], assumed)
            choices.append(found)
        assignment = _assembled(offers, counts, tuple(choices))
        asked = None
        if self._topologies is not None and any(pod_set.placed for pod_set in offers):
            assignment, asked = self._place(self._topologies, oracle, assignment, offers)
        if assignment.mode != PREEMPT:
            return assignment
        targets = oracle.targets(self._searched(assignment.usage), assignment.need, asked)
        if asked is not None and targets:
            gone = [placed for target in targets for placed in target.workload.placed]
            placed = without(gone, asked.place)
            assignment = assignment._replace(placed=placed or ())
        return Assignment(*assignment[:-1], targets)  # faster than `_replace`

    def _is_free(self, count: int) -> bool:
        """Returns True if this number of pods needs no quota, regardless of their requests."""
        return not count and self._zero_needs_no_quota

    def _searched(self, usage: Amounts) -> Amounts:
        """Returns the usage for the target search, which ignores the number of pods, as in Kueue.

        The search ends as soon as all other resources fit. Its targets can therefore free too little quota
        for pods.
        """
        if not self._pods:
            return usage
        return tuple((cell, amount) for cell, amount in usage if cell not in self._pods)

    def _place(
        self, topologies: Topologies, oracle: Oracle, assignment: Assignment, offers: tuple[PodSetOffer, ...]
    ) -> tuple[Assignment, WorkloadTopology | None]:
        """Places the pods beside those that are present. If this fails, other workloads must be preempted.

        In that case, the pods are placed in empty topologies. All resources of the placed pod sets then count
        as needing preemption, even if quota is free.
        """
        if assignment.mode == NO_FIT:
            return assignment, None
        asked = topologies(offers, assignment.chosen, assignment.counts)
        if asked is None:
            return assignment._replace(mode=NO_FIT), None
        lacks_place = assignment.mode == FIT
        placed = oracle.place(asked) if lacks_place else None
        if placed is not None:
            return assignment._replace(placed=placed), asked
        placed = asked.place(empty=True)
        if placed is None:
            return assignment._replace(mode=NO_FIT, lacks_place=lacks_place), asked
        need = tuple(sorted(asked.cells.union(assignment.need)))
        found = assignment._replace(mode=PREEMPT, need=need, placed=placed, lacks_place=lacks_place)
        return found, asked

    def _assign_together(
        self, attempt: Attempt, mates: Sequence[int], assumed: dict[int, int]
    ) -> dict[int, tuple[_Choice, ...]]:
        """Returns the flavors of each pod set in a group with common flavors, or {} if some are missing."""
        offers, counts = attempt.offers, attempt.counts
        if not all(offers[number].covered or self._is_free(counts[number]) for number in mates):
            return {}
        found: dict[int, dict[int, _Choice]] = {number: {} for number in mates}
        for group, parts, enters in joint_groups(offers, mates, counts):
            goes_on = enters or attempt.allowed is not None
            flavors = attempt.flavors(*parts[0]) if goes_on else range(len(group.cells))
            choice = self._scan(attempt.oracle, group, 1, assumed, flavors)
            if choice is None:
                return {}
            qualities = dict(zip(group.resources, choice.each, strict=True))
            for number, at in parts:
                each = tuple(map(qualities.__getitem__, offers[number].groups[at].resources))
                found[number][at] = choice._replace(each=each)
        return {number: tuple(choices[at] for at in sorted(choices)) for number, choices in found.items()}

    def _assign_pod_set(
        self, attempt: Attempt, number: int, assumed: dict[int, int]
    ) -> tuple[_Choice, ...] | None:
        """Returns a flavor for each resource group of a pod set, or None if any group has no flavor."""
        oracle, count, choices = attempt.oracle, attempt.counts[number], []
        for at, group in enumerate(attempt.offers[number].groups):
            choice = self._scan(oracle, group, count, assumed, attempt.flavors(number, at))
            if choice is None:
                return None
            choices.append(choice)
        return tuple(choices)

    def _scan(
        self, oracle: Oracle, group: GroupOffer, count: int, assumed: dict[int, int], flavors: Iterable[int]
    ) -> _Choice | None:
        """Tries the flavors of a group until one is good enough, and returns the best flavor.

        If scans do not continue after the considered flavors (`goes_on` is False), the first flavor is always
        recorded as the last one considered. An untried flavor then always seems to remain, so a workload that
        gets any flavor never becomes inadmissible.
        """
        of_resources, of_flavors, is_enough, goes_on = self._scans[oracle.workload.cluster_queue]
        seen_all = START_OVER if goes_on else 0
        best: tuple[int, Quality, tuple[Quality, ...]] | None = None
        for flavor in flavors:
            cells = group.cells[flavor]
            if cells is None:
                continue
            each: tuple[Quality, ...] = ()
            for cell, amount in zip(cells, group.amounts, strict=True):
                quality = self._quality(cell, assumed.get(cell, 0) + amount * count, oracle)
                each += (quality,)
                if quality[0] == NOTHING_FITS:
                    break
            worst = each[0] if each.count(each[0]) == len(each) else min(each, key=of_resources)
            if is_enough(worst):
                last = not goes_on or flavor == len(group.cells) - 1
                return _Choice(flavor, seen_all if last else flavor, worst, each)
            if worst[0] != NOTHING_FITS and (best is None or of_flavors(worst) > of_flavors(best[1])):
                best = flavor, worst, each
        return None if best is None else _Choice(best[0], seen_all, best[1], best[2])

    def _quality(self, cell: int, amount: int, oracle: Oracle) -> Quality:
        tree, queue = self._tree, oracle.workload.cluster_queue
        at = queue.node * tree.width + cell
        if amount > tree.potential_available[at]:
            return NOTHING_FITS, 0
        available, (borrowing, smaller) = oracle.quota_for(cell, amount)
        if available:
            return FITS, borrowing
        if not smaller and not may_preempt_for(queue.spec, amount, tree.nominal[at], fair=self._fair):
            return NOTHING_FITS, borrowing
        targets = oracle.targets(((cell, amount),), (cell,))
        if not targets:
            return NO_CANDIDATES, borrowing
        for target in targets:
            remove(tree, target.workload, (cell,))
        _, (borrowing, _) = quota_of(self._cache, queue, cell, amount)
        restore(tree, targets, (cell,))
        own = queue in [target.workload.cluster_queue for target in targets]
        return PREEMPTS if own else RECLAIMS, borrowing


def _take(pod_set: PodSetOffer, choices: tuple[_Choice, ...], count: int, total: dict[int, int]) -> None:
    """Adds the usage of a pod set's pods in the chosen flavors to `total`."""
    for group, choice in zip(pod_set.groups, choices, strict=True):
        for cell, amount in zip(group.cells[choice.flavor] or (), group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count


def _assembled(
    offers: tuple[PodSetOffer, ...], counts: tuple[int, ...], choices: tuple[tuple[_Choice, ...], ...]
) -> Assignment:
    """Makes an assignment without targets from the flavors chosen for each pod set.

    If there are fewer choices than pod sets, no flavor was found for the first pod set that has no choice.
    """
    mode = FIT if len(choices) == len(offers) else NO_FIT
    usage: dict[int, int] = {}
    uses = borrowing = 0
    need: set[int] = set()
    untried = False
    for pod_set, chosen, count in zip(offers, choices, counts, strict=False):
        for group, (flavor, tried, quality, each) in zip(pod_set.groups, chosen, strict=True):
            # As in Kueue, the quality of the flavor as a whole decides, even if one of its resources does not
            # fit.
            if quality[0] != FITS and mode == FIT:
                mode = PREEMPT
            untried = untried or tried != START_OVER
            cells = group.cells[flavor] or ()
            for cell, amount, (stands, levels) in zip(cells, group.amounts, each, strict=True):
                usage[cell] = usage.get(cell, 0) + amount * count
                uses |= 1 << cell
                if levels > borrowing:
                    borrowing = levels
                if stands != FITS:
                    need.add(cell)
    return Assignment(
        mode,
        borrowing,
        tuple(sorted([each for each in usage.items() if each[1]])),
        uses,
        tuple(sorted(need)),
        counts,
        tuple([tuple([choice[0] for choice in chosen]) for chosen in choices]),
        tuple([tuple([choice[1] for choice in chosen]) for chosen in choices]),
        untried,
    )
