"""Flavor assignment, which picks a flavor from each resource group for every pod set.

A pod set gets the first flavor that is good enough. If no flavor is good enough, it gets the best flavor. The
quality of a flavor depends on the available quota, on whether the queue has to borrow, and on a simulated
search for preemption targets.

Upstream: `FlavorAssigner` in pkg/scheduler/flavorassigner/flavorassigner.go (KEP 582).
"""

from __future__ import annotations

from typing import final

from harness_plugins.kueue.rules.assignment import FIT, NO_FIT, PREEMPT, Assignment, Choice, assembled, take
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
from harness_plugins.kueue.rules.preemption import remove, restore
from harness_plugins.kueue.rules.preemption_oracle import Oracle, height
from harness_plugins.kueue.rules.preemption_policy import may_preempt_for
from harness_plugins.kueue.rules.topology.workload import Topologies, WorkloadTopology
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.topology.flavors import without
from harness_plugins.kueue.state.workload import START_OVER, Chosen, Tried


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

    def assign(
        self,
        oracle: Oracle,
        offers: tuple[PodSetOffer, ...],
        counts: tuple[int, ...],
        tried: Tried = (),
        allowed: Chosen | None = None,
    ) -> Assignment:
        """Assigns flavors to all pod sets, and finds preemption targets if they are needed.

        Args:
            oracle: answers questions about the current state for this workload.
            offers: the flavors that the queue offers to each pod set.
            counts: the number of pods in each pod set.
            tried: the flavors that were already tried. The scans start with the flavors after them.
            allowed: the flavor that can be chosen in each resource group, or None if all flavors can be
                chosen.
        """
        assumed: dict[int, int] = {}
        choices: list[tuple[Choice, ...]] = []
        joined: dict[int, tuple[Choice, ...]] = {}
        last = len(offers) - 1
        for number, pod_set in enumerate(offers):
            found = joined.get(number)
            if found is None:
                if pod_set.mates:
                    joined |= self._assign_together(offers, number, counts, assumed, tried, allowed, oracle)
                    found = joined.get(number)
                elif pod_set.covered or self._is_free(counts[number]):
                    found = self._assign_pod_set(
                        pod_set,
                        counts[number],
                        assumed,
                        tried[number] if number < len(tried) else (),
                        None if allowed is None else allowed[number],
                        oracle,
                    )
                if found is not None and number < last:
                    # The usage of all mates counts from the first mate onwards, even for pod sets that are
                    # between mates.
                    for mate in pod_set.mates or (number,):
                        take(offers[mate], joined.get(mate, found), counts[mate], assumed)
            if found is None:
                break
            choices.append(found)
        assignment = assembled(offers, counts, tuple(choices))
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
        asked = topologies.asked(offers, assignment.chosen, assignment.counts)
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
        self,
        offers: tuple[PodSetOffer, ...],
        first: int,
        counts: tuple[int, ...],
        assumed: dict[int, int],
        tried: Tried,
        allowed: Chosen | None,
        oracle: Oracle,
    ) -> dict[int, tuple[Choice, ...]]:
        """Returns the flavors of each pod set in a group with common flavors, or {} if some are missing."""
        mates = offers[first].mates
        if not all(offers[number].covered or self._is_free(counts[number]) for number in mates):
            return {}
        found: dict[int, dict[int, Choice]] = {number: {} for number in mates}
        for joint in joint_groups(offers, mates):
            start, part = 0, joint.entry
            if part is not None and part.pod_set < len(tried) and part.group < len(tried[part.pod_set]):
                start = tried[part.pod_set][part.group] + 1
            one = joint.parts[0]
            only = None if allowed is None else allowed[one.pod_set][one.group]
            group = joint.with_counts(offers, counts)
            choice = self._scan(group, 1, assumed, start, only, oracle)
            if choice is None:
                return {}
            for number, at, resources in joint.parts:
                each = tuple(choice.each[resource] for resource in resources)
                found[number][at] = choice._replace(each=each)
        return {number: tuple(choices[at] for at in sorted(choices)) for number, choices in found.items()}

    def _assign_pod_set(
        self,
        pod_set: PodSetOffer,
        count: int,
        assumed: dict[int, int],
        tried: tuple[int, ...],
        allowed: tuple[int, ...] | None,
        oracle: Oracle,
    ) -> tuple[Choice, ...] | None:
        """Returns a flavor for each resource group of a pod set, or None if any group has no flavor."""
        choices: tuple[Choice, ...] = ()
        for number, group in enumerate(pod_set.groups):
            start = tried[number] + 1 if number < len(tried) else 0
            only = None if allowed is None else allowed[number]
            choice = self._scan(group, count, assumed, start, only, oracle)
            if choice is None:
                return None
            choices += (choice,)
        return choices

    def _scan(
        self,
        group: GroupOffer,
        count: int,
        assumed: dict[int, int],
        start: int,
        only: int | None,
        oracle: Oracle,
    ) -> Choice | None:
        """Tries the flavors of a group until one is good enough, and returns the best flavor.

        If scans do not continue after the considered flavors (`goes_on` is False), the first flavor is always
        recorded as the last one considered. An untried flavor then always seems to remain, so a workload that
        gets any flavor never becomes inadmissible.
        """
        is_preferred, is_better, is_enough, goes_on = self._scans[oracle.workload.cluster_queue]
        seen_all = START_OVER if goes_on else 0
        best: tuple[int, Quality, tuple[Quality, ...]] | None = None
        for flavor in range(start, len(group.cells)):
            cells = group.cells[flavor]
            if cells is None or (only is not None and flavor != only):
                continue
            worst: Quality | None = None
            each: tuple[Quality, ...] = ()
            for cell, amount in zip(cells, group.amounts, strict=True):
                quality = self._quality(cell, assumed.get(cell, 0) + amount * count, oracle)
                each += (quality,)
                if worst is None or is_preferred(worst, quality):
                    worst = quality
                if quality[0] == NOTHING_FITS:
                    break
            assert worst is not None
            if is_enough(worst):
                last = not goes_on or flavor == len(group.cells) - 1
                return Choice(flavor, seen_all if last else flavor, worst, each)
            if worst[0] != NOTHING_FITS and (best is None or is_better(worst, best[1])):
                best = flavor, worst, each
        return None if best is None else Choice(best[0], seen_all, best[1], best[2])

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
        borrowing, _ = height(self._cache, queue, cell, amount)
        restore(tree, targets, (cell,))
        own = queue in [target.workload.cluster_queue for target in targets]
        return PREEMPTS if own else RECLAIMS, borrowing
