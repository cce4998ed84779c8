"""Nomination: what would it take to admit a head now, with all its pods or, if it may, with fewer?"""

from __future__ import annotations

from typing import NamedTuple, final

from harness.cluster.model import Cluster
from harness_plugins.kueue.assignment import (
    FIT,
    PREEMPT,
    Assigner,
    Assignment,
    Chosen,
    ScanMemory,
    Tried,
)
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.configuration import Gates
from harness_plugins.kueue.flavors import PodSetOffer, offer
from harness_plugins.kueue.hopeless import Hopeless, why_hopeless
from harness_plugins.kueue.search import Search
from harness_plugins.kueue.topology.flavors import TopologyFlavors
from harness_plugins.kueue.workload import Workload


class Nomination(NamedTuple):
    """An assignment, and what it was found from: it stays right as long as these are the same."""

    assignment: Assignment
    version: int
    tried: Tried


@final
class Nominator:
    """Finds assignments for heads.

    Args:
        cluster: the flavors.
        cache: who holds which quota.
        assigner: assigns flavors to a fixed number of pods.
        search: the way of choosing whom to preempt.
        gates: the feature gates.
        topologies: the flavors with a topology; None where there is none.
    """

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        assigner: Assigner,
        search: Search,
        gates: Gates,
        topologies: TopologyFlavors | None = None,
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._search = search
        self._assigner = assigner
        self._gates = gates
        self._topologies = topologies

    def nominate(self, workload: Workload, cycle: int) -> Assignment:
        """The assignment of a head in this cycle; it remembers which flavors were looked at.

        What was in vain for one of the same kin, and still is, is not looked at again. Where nothing changed
        in the tree of its queue since the workload was asked last, the answer is the same.
        """
        tried = () if workload.memory is None else self._where_to_go_on(workload, workload.memory, cycle)
        queue = workload.home.queue
        version = self._cache.version[queue.root]
        if self._topologies is not None:
            version += self._topologies.version  # room is shared between trees
        hopeless = workload.kin.hopeless
        if (
            not tried
            and hopeless is not None
            and hopeless.still(self._assigner, queue, self._search, version)
        ):
            workload.memory = workload.nomination = None
            return hopeless.assignment
        last = workload.nomination
        if last is None or last.version != version or last.tried != tried:
            last = Nomination(self._look(workload, tried), version, tried)
            workload.nomination = last
        self._remember(workload, last.assignment, cycle)
        return last.assignment

    def in_vain(self, workload: Workload, hopeless: Hopeless) -> bool:
        """Whether to assign anew is as much in vain for a head as it was before for one of its kin."""
        if workload.memory:
            return False
        queue = workload.home.queue
        if not hopeless.still(self._assigner, queue, self._search, self._cache.version[queue.root]):
            return False
        workload.nomination = None
        return True

    def _look(self, workload: Workload, tried: Tried) -> Assignment:
        """Assign anew; note why, if it is in vain for everything of its kin."""
        offers = self.offers(workload)
        if tried or workload.asks.reducible or any(pod_set.placed for pod_set in offers):
            return self._assign(workload, tried)
        questions = self._assigner.questions(workload)
        assignment = self._assigner.assign(workload, offers, workload.counts, questions=questions)
        hopeless = why_hopeless(assignment, questions, workload.home.queue, self._search)
        if hopeless is not None:  # else what was in vain before may be so again
            workload.kin.hopeless = hopeless
        return assignment

    def _remember(self, workload: Workload, assignment: Assignment, cycle: int) -> None:
        """Note where to go on; where every scan has come to its end the next one starts over."""
        workload.memory = None
        if assignment.untried:
            workload.memory = ScanMemory(assignment.tried, cycle, workload.home.queue.generation)

    def reassign(self, workload: Workload, first: Assignment, cycle: int) -> Assignment:
        """Assign again within a cycle, to the flavors that were chosen before."""
        assignment = self._assign(workload, (), first.chosen)
        self._remember(workload, assignment, cycle)
        return assignment

    def offers(self, workload: Workload) -> tuple[PodSetOffer, ...]:
        """What a workload's queue can offer to it."""
        known = workload.home.offers
        offers = known.get(workload.asks.number)
        if offers is None:
            spec = workload.home.queue.spec
            offers = known[workload.asks.number] = offer(workload.asks, spec, self._cluster, self._cache.tree)
        return offers

    def _where_to_go_on(self, workload: Workload, memory: ScanMemory, cycle: int) -> Tried:
        """The scan memory, unless it is outdated: from before the last cycle, and the queue has changed."""
        if self._gates.flavor_fungibility_preserve_scan_progress and cycle - memory.cycle <= 1:
            return memory.tried
        return memory.tried if workload.home.queue.generation <= memory.generation else ()

    def _assign(self, workload: Workload, tried: Tried, allowed: Chosen | None = None) -> Assignment:
        offers = self.offers(workload)
        counts = workload.counts
        whole = self._assigner.assign(workload, offers, counts, tried, allowed)
        if _works(whole) or not (self._gates.partial_admission and workload.asks.reducible):
            return whole
        return self._assign_fewer(workload, offers, tried, allowed) or whole

    def _assign_fewer(
        self,
        workload: Workload,
        offers: tuple[PodSetOffer, ...],
        tried: Tried,
        allowed: Chosen | None,
    ) -> Assignment | None:
        """Kueue's bisection for the most pods that work; right only if fewer pods never work worse.

        It begins with all pods, those included that have ended, and so may find more than are left. Pod sets
        of which none is left stay out of it.
        """
        asks, left = workload.asks, workload.counts
        reducible = [
            max(0, count - pod_set.min_count) for count, pod_set in zip(asks.full, asks.pod_sets, strict=True)
        ]
        steps = sum(reducible)
        if not steps:
            return None
        low, high = 0, steps + 1
        found: tuple[int, Assignment] | None = None
        while low < high:
            step = (low + high) // 2
            counts = tuple(
                count - most * step // steps if any_left else 0
                for count, most, any_left in zip(asks.full, reducible, left, strict=True)
            )
            assignment = self._assigner.assign(workload, offers, counts, tried, allowed)
            if _works(assignment):
                found = step, assignment
                high = step
            else:
                low = step + 1
        return found[1] if found is not None and found[0] == low else None


def _works(assignment: Assignment) -> bool:
    return assignment.mode == FIT or (assignment.mode == PREEMPT and bool(assignment.targets))
