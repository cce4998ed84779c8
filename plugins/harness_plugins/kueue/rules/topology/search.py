"""Chooses the domains for a pod set, and distributes its pods level by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from harness_plugins.kueue.rules.topology.capacity import Capacity
from harness_plugins.kueue.rules.topology.request import Wanted
from harness_plugins.kueue.state.topology.tree import TopologyTree


@final
class Search:
    """The search for one pod set, with or without a leader.

    Args:
        figures: the capacities of the domains. For each chosen domain, the search replaces the capacity by
            the number of assigned pods.
        leaders: 1 if there is a leader, otherwise 0.
    """

    def __init__(self, tree: TopologyTree, figures: Capacity, wanted: Wanted, leaders: int) -> None:
        self._tree = tree
        self._figures = figures
        self._wanted = wanted
        self._leaders = leaders

    def place(self, pods: int) -> Sequence[int] | None:
        """Returns the leaves to use for this many pods, or None if they do not fit.

        Afterwards, `figures` has the number of pods of each leaf. Pods of an incomplete slice get no place.
        """
        wanted, slices = self._wanted, pods // self._wanted.size
        level = wanted.level
        coarsest = self._tree.domains[0]
        if not coarsest:
            return None  # if there are no nodes, even zero slices have no place
        if not self._leaders and sum(self._figures.slices[coarsest.start : coarsest.stop]) < slices:
            return None  # all domains together are too small
        found = self._domains(level, slices)
        while found is None and not (wanted.required or wanted.unconstrained) and level > 0:
            level -= 1
            found = self._domains(level, slices)
        if found is None:
            found = None if wanted.required else self._several(level, slices)
        return None if found is None else self._descend(found, level, slices)

    # --- choice of domains --------------------------------------------------------------------------------

    def _domains(self, level: int, slices: int) -> list[int] | None:
        """Returns the one domain of a level that can take all pods, in a list, or None if there is none."""
        ordered = self._sorted(self._tree.domains[level], leader=True)
        able = self._able(ordered, self._figures.slices_with, slices, self._leaders)
        if not able:
            return None
        return [able[0] if self._wanted.least_free else min(able, key=self._figures.slices_with.__getitem__)]

    def _several(self, level: int, slices: int) -> list[int] | None:
        """Returns domains of a level that can take all pods together, or None if they are too small."""
        figures, leaders, missing = self._figures, self._leaders, slices
        ordered = self._sorted(self._tree.domains[level], leader=True)
        ordered = self._leader_first(ordered, figures.slices, figures.slices_with, slices, leaders)
        found: list[int] = []
        taken = 0
        while leaders > 0 and taken < len(ordered) and figures.leaders[ordered[taken]]:
            domain = self._optimal(ordered, taken, figures.slices_with, missing, leaders)
            found.append(domain)
            leaders -= figures.leaders[domain]
            missing -= figures.slices_with[domain]
            taken += 1
        if leaders > 0:
            return None
        rest = self._sorted(ordered[taken:])
        for at in range(len(rest)):
            if missing <= 0:
                break
            domain = self._optimal(rest, at, figures.slices, missing, 0)
            found.append(domain)
            missing -= figures.slices[domain]
        return None if missing > 0 else found

    # --- distribution -------------------------------------------------------------------------------------

    def _descend(self, found: list[int], level: int, slices: int) -> list[int]:
        """Distributes all pods to the chosen domains, then to their children, down to the leaves."""
        wanted, figures, children = self._wanted, self._figures, self._tree.children
        found = self._hand_out(found, slices, self._leaders, wanted.size)
        while level < wanted.slice_level:
            level += 1
            below = self._sorted(child for domain in found for child in children[domain])
            found = self._hand_out(below, slices, self._leaders, wanted.size)
        while level < len(self._tree.levels) - 1:
            level += 1
            unit = wanted.inner.get(level, 1)
            chosen: list[int] = []
            for domain in found:
                below = self._sorted(children[domain])
                pods = figures.pods[domain]
                if unit > 1:
                    for child in below:
                        figures.slices[child] = figures.pods[child] // unit
                        figures.slices_with[child] = figures.pods_with[child] // unit
                chosen += self._hand_out(
                    below, pods // unit, figures.leaders[domain], unit if unit > 1 else 0
                )
            found = chosen
        return found

    def _hand_out(self, domains: list[int], missing: int, leaders: int, size: int) -> list[int]:
        """Distributes slices of `size` pods (single pods for 0), and returns the domains that got any.

        As in Kueue, if the domains are too small, none of them gets anything.
        """
        figures = self._figures
        plain, with_leader = (
            (figures.slices, figures.slices_with) if size else (figures.pods, figures.pods_with)
        )
        domains = self._leader_first(domains, plain, with_leader, missing, leaders)
        served: list[int] = []
        for at in range(len(domains)):
            figure = with_leader if leaders > 0 else plain
            domain = self._optimal(domains, at, figure, missing, leaders)
            served.append(domain)
            if figure[domain] >= missing and figures.leaders[domain] >= leaders:
                figures.leaders[domain] = leaders
                self._get(domain, missing, size)
                return served
            gets = min(figure[domain], missing)
            self._get(domain, gets, size)
            if leaders > 0:
                leaders -= figures.leaders[domain]
            else:
                figures.leaders[domain] = 0
            missing -= gets
        return []

    def _get(self, domain: int, units: int, size: int) -> None:
        if size:
            self._figures.slices[domain] = units
        self._figures.pods[domain] = units * (size or 1)

    # --- orders -------------------------------------------------------------------------------------------

    def _optimal(self, domains: list[int], at: int, figure: list[int], missing: int, leaders: int) -> int:
        """Returns the domain at a position or, if it can take the other pods, the best fit from there on."""
        first = domains[at]
        if (
            self._wanted.least_free
            or figure[first] < missing
            or (leaders > 0 and self._figures.leaders[first] < leaders)
        ):
            return first
        return min(self._able(domains[at:], figure, missing, leaders), key=figure.__getitem__)

    def _able(self, domains: list[int], figure: list[int], missing: int, leaders: int) -> list[int]:
        able = self._figures.leaders
        return [domain for domain in domains if figure[domain] >= missing and able[domain] >= leaders]

    def _sorted(self, domains: Iterable[int], *, leader: bool = False) -> list[int]:
        figures, sign = self._figures, 1 if self._wanted.least_free else -1
        slices, pods = (figures.slices_with, figures.pods_with) if leader else (figures.slices, figures.pods)
        first = figures.leaders if leader else [0] * len(pods)
        ranked = sorted([(-first[one], sign * slices[one], pods[one], one) for one in domains])
        return [each[3] for each in ranked]

    def _leader_first(
        self, domains: list[int], plain: list[int], with_leader: list[int], missing: int, leaders: int
    ) -> list[int]:
        """Moves the leader's domain to the front: the first that leaves enough capacity for the others."""
        if leaders < 1 or len(domains) < 2:
            return domains
        total = sum(plain[domain] for domain in domains)
        for at, domain in enumerate(domains):
            if (
                self._figures.leaders[domain] >= leaders
                and total - plain[domain] + with_leader[domain] >= missing
            ):
                return [domain, *domains[:at], *domains[at + 1 :]]
        return domains
