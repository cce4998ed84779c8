"""Flavor assignment: for each pod set and resource group the first flavor that is good enough, else the best.

How good a flavor is follows from the quota that is available, from what could be borrowed, and from a trial
search for workloads to preempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from harness.cluster.model import FlavorFungibility
from harness.memo import Memo
from harness_plugins.kueue.cache import Cache, Queue
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.flavors import PODS, GroupOffer, PodSetOffer
from harness_plugins.kueue.search import Incoming, Search, Target, put_back, remove
from harness_plugins.kueue.topology.flavors import Placed
from harness_plugins.kueue.topology.joint import joint_groups
from harness_plugins.kueue.topology.workload import WorkloadTopologies, WorkloadTopology
from harness_plugins.kueue.workload import Amounts, Workload

NO_FIT, PREEMPT, FIT, DEFERRED_FIT = range(4)
"""How a whole assignment stands; a deferred fit has to wait until others' victims are gone."""

_NO_FIT, _NO_CANDIDATES, _PREEMPT, _RECLAIM, _FIT = range(5)
"""How one flavor-resource stands, from worst to best."""

START_OVER = -1

Tried = tuple[tuple[int, ...], ...]
"""Pod set by pod set and group by group the last flavor that was looked at, `START_OVER` for the last one
of the list."""

Chosen = tuple[tuple[int, ...], ...]
"""Pod set by pod set and group by group the number of the flavor."""


class ScanMemory(NamedTuple):
    """Where to go on looking for flavors, and when that was noted."""

    tried: Tried
    cycle: int
    generation: int


class Assignment(NamedTuple):
    """Flavors for a workload.

    Attributes:
        mode: `NO_FIT`, `PREEMPT`, `FIT` or `DEFERRED_FIT`.
        borrowing: how high up the cohorts the quota comes from; 0 within the queue's own.
        usage: what it takes; what was collected before it failed, where it fails.
        uses: the flavor-resources that it takes, also amounts of zero, as a bit mask.
        need: the flavor-resources that only preemption can give.
        counts: pods of each pod set.
        chosen: the flavors.
        tried: the flavors that were looked at.
        untried: whether some group still has a flavor that was not looked at.
        placed: where its pods go in the topologies of its flavors.
        targets: whom to preempt for it.
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
    placed: tuple[Placed, ...]
    targets: Sequence[Target]

    def with_targets(self, targets: Sequence[Target]) -> Assignment:
        """The same for which these are preempted."""
        return Assignment(*self[:-1], targets)


Check = tuple[int, int, bool, tuple[int, bool]]
"""How a flavor-resource stood for a queue: what its quality rests on, but for the search for targets.

Its number, how much was asked for, whether that was available, and what `Assigner.height` said."""

_Quality = tuple[int, int]
"""How a flavor-resource or a flavor stands, and how high up the cohorts the quota comes from."""


class _Choice(NamedTuple):
    """A flavor for a group: its number, the last one looked at, how it stands, and each resource alone."""

    flavor: int
    tried: int
    quality: _Quality
    each: tuple[_Quality, ...]


@final
class Assigner:
    """Assigns flavors in the state that the cache is in.

    Args:
        cache: who holds which quota.
        search: finds preemption targets.
        fair: whether fair sharing is on.
        gates: the feature gates.
        topologies: finds what workloads ask of topologies; None where no flavor has one.
    """

    def __init__(
        self,
        cache: Cache,
        search: Search,
        *,
        fair: bool,
        gates: Gates,
        topologies: WorkloadTopologies | None = None,
    ) -> None:
        self._cache = cache
        self._tree = cache.tree
        self._search = search
        self._fair = fair
        self._topologies = topologies
        self._pods = {
            cell for cell, (_, resource) in enumerate(self._tree.flavor_resources) if resource == PODS
        }
        # What follows from the flavors chosen is put together once; offers are few and live on.
        self._known: Memo[
            tuple[tuple[PodSetOffer, ...], tuple[int, ...], tuple[tuple[_Choice, ...], ...]], Assignment
        ] = Memo()
        self._implicit_preference = gates.flavor_fungibility_implicit_preference_default

    def questions(self, workload: Workload) -> Questions:
        """Questions for one assignment of a workload, none asked yet."""
        return Questions(self._search, workload)

    def assign(
        self,
        workload: Workload,
        offers: tuple[PodSetOffer, ...],
        counts: tuple[int, ...],
        tried: Tried = (),
        allowed: Chosen | None = None,
        questions: Questions | None = None,
    ) -> Assignment:
        """Assign flavors to all pod sets, and find preemption targets where they are needed.

        Args:
            workload: the workload.
            offers: what its queue offers to each pod set.
            counts: the pods of each pod set.
            tried: where to go on; scans start at the flavor after.
            allowed: the only flavors that may be taken, group by group.
            questions: keeps what was asked, for who wants to know.
        """
        if questions is None:
            questions = self.questions(workload)
        assumed: dict[int, int] = {}
        choices: list[tuple[_Choice, ...]] = []
        for number, pod_set in enumerate(offers):
            if number:
                _take(offers[number - 1], choices[-1], counts[number - 1], assumed)
            found = None
            if pod_set.mates:
                if number == pod_set.mates[0]:
                    joined = self._assign_together(offers, number, counts, assumed, tried, allowed, questions)
                found = joined.get(number)
            elif pod_set.covered or not counts[number]:
                found = self._assign_pod_set(
                    pod_set,
                    counts[number],
                    assumed,
                    tried[number] if number < len(tried) else (),
                    None if allowed is None else allowed[number],
                    questions,
                )
            if found is None:
                break
            choices.append(found)
        key = offers, counts, tuple(choices)
        assignment = self._known.get(key)
        if assignment is None:
            assignment = self._known[key] = _assembled(*key)
        asked = None
        if self._topologies is not None and any(pod_set.placed for pod_set in offers):
            assignment, asked = self._place(self._topologies, assignment, offers)
        if assignment.mode != PREEMPT:
            return assignment
        targets = questions.targets(self._searched(assignment.usage), assignment.need, asked)
        if asked is not None and targets:
            placed = asked.place_without(target.workload.placed for target in targets)
            assignment = assignment._replace(placed=placed or ())
        return assignment.with_targets(targets)

    def _searched(self, usage: Amounts) -> Amounts:
        """What targets are looked for: Kueue leaves out how many pods there are, where quotas count pods.

        A search ends as soon as all else fits, so that what it finds may still leave too few pods.
        """
        if not self._pods:
            return usage
        return tuple((cell, amount) for cell, amount in usage if cell not in self._pods)

    def _place(
        self, topologies: WorkloadTopologies, assignment: Assignment, offers: tuple[PodSetOffer, ...]
    ) -> tuple[Assignment, WorkloadTopology | None]:
        """Place the pods beside those that are there, else as if nobody were: then others have to go.

        All that the placed pod sets take counts as what only preemption can give, also quota that is free.
        """
        if assignment.mode == NO_FIT:
            return assignment, None
        asked = topologies.asked(offers, assignment.chosen, assignment.counts)
        if asked is None:
            return assignment._replace(mode=NO_FIT), None
        placed = asked.place() if assignment.mode == FIT else None
        if placed is not None:
            return assignment._replace(placed=placed), asked
        placed = asked.place(empty=True)
        if placed is None:
            return assignment._replace(mode=NO_FIT), asked
        need = tuple(sorted(asked.cells.union(assignment.need)))
        return assignment._replace(mode=PREEMPT, need=need, placed=placed), asked

    def _assign_together(
        self,
        offers: tuple[PodSetOffer, ...],
        first: int,
        counts: tuple[int, ...],
        assumed: dict[int, int],
        tried: Tried,
        allowed: Chosen | None,
        questions: Questions,
    ) -> dict[int, tuple[_Choice, ...]]:
        """Flavors for the pod sets of one group, by number; empty when some resource group has none."""
        mates = offers[first].mates
        if any(counts[number] and not offers[number].covered for number in mates):
            return {}
        found: dict[int, dict[int, _Choice]] = {number: {} for number in mates}
        for joint in joint_groups(offers, mates):
            start, part = 0, joint.entry
            if part is not None and part.pod_set < len(tried) and part.group < len(tried[part.pod_set]):
                start = tried[part.pod_set][part.group] + 1
            one = joint.parts[0]
            only = None if allowed is None else allowed[one.pod_set][one.group]
            group = joint.with_counts(offers, counts)
            choice = self._scan(group, 1, assumed, start, only, questions)
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
        questions: Questions,
    ) -> tuple[_Choice, ...] | None:
        """A flavor for each of a pod set's groups; None when some group has none."""
        choices: tuple[_Choice, ...] = ()
        for number, group in enumerate(pod_set.groups):
            start = tried[number] + 1 if number < len(tried) else 0
            only = None if allowed is None else allowed[number]
            choice = self._scan(group, count, assumed, start, only, questions)
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
        questions: Questions,
    ) -> _Choice | None:
        """Go through a group's flavors until one is good enough; answers the best seen."""
        fungibility = questions.workload.home.queue.spec.fungibility
        best: tuple[int, _Quality, tuple[_Quality, ...]] | None = None
        for flavor in range(start, len(group.cells)):
            cells = group.cells[flavor]
            if cells is None or (only is not None and flavor != only):
                continue
            worst: _Quality | None = None
            each: tuple[_Quality, ...] = ()
            for cell, amount in zip(cells, group.amounts, strict=True):
                quality = self._quality(cell, assumed.get(cell, 0) + amount * count, questions)
                each += (quality,)
                if worst is None or self._better(worst, quality, fungibility):
                    worst = quality
                if quality[0] == _NO_FIT:
                    break
            assert worst is not None
            if _good_enough(worst, fungibility):
                last = flavor == len(group.cells) - 1
                return _Choice(flavor, START_OVER if last else flavor, worst, each)
            if worst[0] != _NO_FIT and (best is None or self._better(worst, best[1], fungibility)):
                best = flavor, worst, each
        return None if best is None else _Choice(best[0], START_OVER, best[1], best[2])

    def _quality(self, cell: int, amount: int, questions: Questions) -> _Quality:
        """How one flavor-resource stands when the workload takes `amount` of it."""
        tree, queue = self._tree, questions.workload.home.queue
        at = queue.node * tree.width + cell
        if amount > tree.capacity[at]:
            return _NO_FIT, 0
        height, smaller = self.height(queue, cell, amount)
        available = self.available(queue, cell, amount)
        questions.checks.append((cell, amount, available, (height, smaller)))
        if available:
            return _FIT, height
        preemption = queue.spec.preemption
        if not (
            smaller
            or amount <= tree.nominal[at]
            or preemption.borrow_within_cohort != "Never"
            or (self._fair and preemption.reclaim_within_cohort != "Never")
        ):
            return _NO_FIT, height
        targets = questions.targets(((cell, amount),), (cell,))
        if not targets:
            return _NO_CANDIDATES, height
        for target in targets:
            remove(tree, target.workload)
        height, _ = self.height(queue, cell, amount)
        for target in targets:
            put_back(tree, target.workload)
        own = queue in [target.workload.queue for target in targets]
        return _PREEMPT if own else _RECLAIM, height

    def available(self, queue: Queue, cell: int, amount: int) -> bool:
        """Whether a queue could use an amount more of a flavor-resource now."""
        return amount <= self._tree.available(queue.node, cell) or not amount

    def height(self, queue: Queue, cell: int, amount: int) -> tuple[int, bool]:
        """How high the lowest subtree is that holds an amount, and whether it is smaller than the tree."""
        node = self._tree.lowest_with_room(queue.node, cell, amount)
        return self._cache.height[node], node != queue.root

    def _better(self, left: _Quality, right: _Quality, fungibility: FlavorFungibility) -> bool:
        """Whether a flavor is strictly preferred to another."""
        (mode, borrowing), (other_mode, other_borrowing) = left, right
        if mode != other_mode and min(mode, other_mode) <= _NO_CANDIDATES:
            return mode > other_mode
        rather_preempt = fungibility.preference == "PreemptionOverBorrowing"
        if self._implicit_preference and not fungibility.preference:
            rather_preempt = fungibility.when_can_borrow == "TryNextFlavor"
        if rather_preempt and borrowing != other_borrowing:
            return borrowing < other_borrowing
        if mode != other_mode:
            return mode > other_mode
        return borrowing < other_borrowing


def _good_enough(quality: _Quality, fungibility: FlavorFungibility) -> bool:
    """Whether a scan stops at a flavor."""
    mode, borrowing = quality
    if mode <= _NO_CANDIDATES:
        return False
    if mode != _FIT and fungibility.when_can_preempt == "TryNextFlavor":
        return False
    return not (borrowing and fungibility.when_can_borrow == "TryNextFlavor")


def _take(pod_set: PodSetOffer, choices: tuple[_Choice, ...], count: int, total: dict[int, int]) -> None:
    """Add what the pods of a pod set take of the flavors that were chosen."""
    for group, choice in zip(pod_set.groups, choices, strict=True):
        for cell, amount in zip(group.cells[choice.flavor] or (), group.amounts, strict=True):
            total[cell] = total.get(cell, 0) + amount * count


def _assembled(
    offers: tuple[PodSetOffer, ...], counts: tuple[int, ...], choices: tuple[tuple[_Choice, ...], ...]
) -> Assignment:
    """The assignment that follows from the flavors chosen, pod set by pod set, but for its targets.

    Fewer choices than pod sets: the next one has none.
    """
    mode = FIT if len(choices) == len(offers) else NO_FIT
    usage: dict[int, int] = {}
    borrowing = 0
    need: set[int] = set()
    for pod_set, chosen, count in zip(offers, choices, counts, strict=False):
        _take(pod_set, chosen, count, usage)
        for group, choice in zip(pod_set.groups, chosen, strict=True):
            # The flavor as a whole counts: where it fits, a resource of it may still not, as in Kueue.
            if choice.quality[0] != _FIT and mode == FIT:
                mode = PREEMPT
            for cell, (stands, height) in zip(group.cells[choice.flavor] or (), choice.each, strict=True):
                borrowing = max(borrowing, height)
                if stands != _FIT:
                    need.add(cell)
    tried = tuple(tuple(choice.tried for choice in chosen) for chosen in choices)
    return Assignment(
        mode=mode,
        borrowing=borrowing,
        usage=tuple(sorted((cell, amount) for cell, amount in usage.items() if amount)),
        uses=sum(1 << cell for cell in usage),
        need=tuple(sorted(need)),
        counts=counts,
        chosen=tuple(tuple(choice.flavor for choice in chosen) for chosen in choices),
        tried=tried,
        untried=any(flavor != START_OVER for chosen in tried for flavor in chosen),
        placed=(),
        targets=(),
    )


@final
class Questions:
    """What is asked to find one assignment; searches for targets are made once each.

    The trial for one flavor-resource is often the search for the whole workload.

    Attributes:
        workload: who asks.
        checks: how the flavor-resources stood that were looked at.
        in_vain: searches that found nobody.
        found_targets: whether any search found somebody.
    """

    __slots__ = ("_known", "_search", "checks", "found_targets", "in_vain", "workload")

    def __init__(self, search: Search, workload: Workload) -> None:
        self.workload = workload
        self.checks: list[Check] = []
        self.in_vain: list[Incoming] = []
        self.found_targets = False
        self._search = search
        self._known: dict[tuple[Amounts, tuple[int, ...], WorkloadTopology | None], list[Target]] = {}

    def targets(
        self, requests: Amounts, need: tuple[int, ...], topology: WorkloadTopology | None = None
    ) -> list[Target]:
        """Whom to preempt for `requests`, where `need` is what preemption has to give.

        Args:
            requests: what is asked for.
            need: what preemption has to give.
            topology: what is to be placed, too; None for nothing.
        """
        question = requests, need, topology
        found = self._known.get(question)
        if found is None:
            incoming = Incoming(self.workload, self.workload.home.queue, requests, need, topology)
            found = self._known[question] = self._search.find_targets(incoming)
            if found:
                self.found_targets = True
            else:
                self.in_vain.append(incoming)
        return found
