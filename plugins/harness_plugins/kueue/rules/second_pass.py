"""The second pass of a workload through a cycle, in which it needs other places but no quota.

Upstream: `assignTopology` and `nominate` for second passes in pkg/scheduler (KEP 2724, node replacement).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.flavor_assigner import FIT, NO_FIT, PREEMPT, Assignment
from harness_plugins.kueue.rules.flavor_offers import PodSetOffer, cells_of_pods
from harness_plugins.kueue.rules.preemption import Incoming, Target
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.rules.topology.replacement import added, replacement
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.second_passes import SecondPass
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavors, without
from harness_plugins.kueue.state.workload import Workload

NODE_FAILURES = "NodeFailures"
"""The reason for an eviction after nodes failed."""


@final
class SecondPassNominator:
    """Finds other places, or targets that free such places, based on the current state of the cache."""

    def __init__(
        self,
        cache: Cache,
        search: TargetSearch,
        flavors: TopologyFlavors,
        offers: Callable[[Workload], tuple[PodSetOffer, ...]],
        gates: Gates,
    ) -> None:
        self._pods = cells_of_pods(cache.tree)
        self._search = search
        self._flavors = flavors
        self._offers = offers
        self._mixed = gates.tas_profile_mixed
        self._fails_fast = gates.tas_failed_node_replacement_fail_fast

    def entry(self, one: SecondPass) -> Entry:
        """Returns the entry of a second pass in a cycle."""
        assignment, placed = self.nominate(one)
        entry = Entry(one.workload, assignment, marked=False)
        entry.second, entry.placed = one, placed
        return entry

    def nominate(self, one: SecondPass) -> tuple[Assignment, tuple[Placed, ...]]:
        """Returns the assignment of a second pass, and all places of the workload under this assignment.

        The assignment itself contains only the additional places. `NO_FIT` means that there are no places for
        the workload and it is evicted.
        """
        before = self._flavors.now(one.placed)

        def place() -> tuple[Placed, ...] | None:
            found = replacement(before, one.node, self._flavors, mixed=self._mixed)
            return found.placed if found.without is None else None

        found, lacking = replacement(before, one.node, self._flavors, mixed=self._mixed)
        if lacking is None:
            return _assignment(one, FIT, added(found, before)), found
        if self._fails_fast:
            return _assignment(one, NO_FIT, ()), ()
        targets = self._targets(one.workload, lacking.pod_set.name, place)
        gone = [each for target in targets for each in target.workload.placed]
        placed = (without(gone, place) if targets else None) or ()
        return _assignment(one, PREEMPT, added(placed, before), targets), placed

    def _targets(
        self, workload: Workload, lacking: str, place: Callable[[], Sequence[Placed] | None]
    ) -> list[Target]:
        """Returns the targets of a second pass. They must free quota for the whole workload again.

        The workload already holds its quota, so the search asks for more than the workload needs.
        """
        admission = workload.admission
        if admission is None:
            return []
        need: set[int] = set()
        for offer, chosen in zip(self._offers(workload), admission.chosen, strict=True):
            if offer.pod_set.name == lacking:
                for group, flavor in zip(offer.groups, chosen, strict=True):
                    need.update(group.cells[flavor] or ())
        requests = tuple([each for each in workload.usage if each[0] not in self._pods])
        return self._search.find_targets(Incoming(workload, requests, tuple(sorted(need)), place))


def _assignment(
    one: SecondPass, mode: int, placed: tuple[Placed, ...], targets: Sequence[Target] = ()
) -> Assignment:
    """Returns an assignment that uses no further quota."""
    chosen, counts = one.workload.admission or ((), ())
    return Assignment(mode, 0, (), 0, (), counts, chosen, (), untried=False, placed=placed, targets=targets)


def looked_at(second: Sequence[SecondPass], heads: Iterable[Workload], *, fair: bool) -> Iterator[SecondPass]:
    """Yields the second passes that a cycle considers.

    Without fair sharing, a cycle considers all second passes. With fair sharing, it considers only the last
    second pass of each ClusterQueue, and no second pass of a ClusterQueue that has a head. The reason is that
    upstream's fairSharingIterator keeps one entry for each queue (`cqToEntry`), and heads come last.
    """
    if not fair:
        yield from second
        return
    taken = {head.cluster_queue for head in heads}
    last = {one.workload.cluster_queue: one for one in second}
    yield from (one for queue, one in last.items() if queue not in taken)
