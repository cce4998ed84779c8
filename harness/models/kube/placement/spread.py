"""Implements PodTopologySpread, which limits how unevenly matching pods are spread over topology domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.cluster.kinds.pods import TopologySpreadConstraint
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.filters import tolerated
from harness.models.kube.placement.status import NO_TOPOLOGY, TOO_SKEWED, Status
from harness.models.kube.pod import Template

_NOWHERE = 2**31 - 1
"""The lowest count if a constraint has no domains. With it, the constraint rejects nothing."""


@final
class SpreadRules:
    """The spread constraints of a template, with the domains of the nodes that count for them.

    Args:
        template: the template with the constraints.
        constraints: its required constraints, or its soft constraints.
        cache: the cache with the nodes.

    Attributes:
        domains: for each constraint, the domain of each node by position, or None if the node does not count.
        own: for each constraint, 1 if the constraint counts the template's own pods, or else 0.
    """

    def __init__(
        self, template: Template, constraints: tuple[TopologySpreadConstraint, ...], cache: Cache
    ) -> None:
        self.template = template
        self.constraints = constraints
        self._cache = cache
        keys = [constraint.topology_key for constraint in constraints]
        complete = [all(key in node.labels for key in keys) for node in cache.nodes]
        self.domains = [
            [
                node.labels[constraint.topology_key]
                if complete[node.position] and _counts(node, constraint, template)
                else None
                for node in cache.nodes
            ]
            for constraint in constraints
        ]
        self._matches: dict[Template, tuple[int, ...]] = {}
        self.own = self.matched(template)

    def matched(self, other: Template) -> tuple[int, ...]:
        """Returns, for each constraint, 1 if it counts the pods of another template, and otherwise 0."""
        found = self._matches.get(other)
        if found is None:
            here = other.namespace == self.template.namespace
            found = self._matches[other] = tuple(
                int(here and each.selector is not None and each.selector.matches(other.labels))
                for each in self.constraints
            )
        return found

    def counts(self) -> list[dict[str, int]]:
        """Returns the number of bound matching pods that aren't terminating, by constraint and domain.

        As in kube-scheduler, an empty selector counts no bound pod (`countPodsMatchSelector`). However, it
        matches the pod itself and all hypothetical pods.
        """
        found = [
            dict.fromkeys((domain for domain in domains if domain is not None), 0) for domains in self.domains
        ]
        counting = [bool(each.selector) for each in self.constraints]
        for other in self._cache.placed:
            matched = [one and counts for one, counts in zip(self.matched(other), counting, strict=True)]
            if not any(matched):
                continue
            for node, pods in other.placed.items():
                staying = pods - other.leaving.get(node, 0)
                for number, domains in enumerate(self.domains):
                    domain = domains[node.position]
                    if matched[number] and domain is not None:
                        found[number][domain] += staying
        return found


@final
class SpreadState:
    """Counts the matching bound pods in each topology domain, for one scheduling attempt.

    The filter can also take hypothetical pods into account, but only on one node at a time.
    """

    def __init__(self, rules: SpreadRules) -> None:
        self.rules = rules
        self._counts = rules.counts()
        self._lowest = [_two_lowest(counts) for counts in self._counts]

    def change(self, moved: list[int], other: Template, node: NodeInfo, sign: int) -> None:
        """Records in `moved` that a hypothetical pod is added to a node (`sign` 1) or removed from it (-1).

        Counts don't include terminating pods. Nevertheless, as in kube-scheduler, the removal of such a pod
        reduces the count, which can therefore be too low by one.
        """
        matched = self.rules.matched(other)
        for number, domains in enumerate(self.rules.domains):
            if matched[number] and domains[node.position] is not None:
                moved[number] += sign

    def filter(self, node: NodeInfo, moved: Sequence[int] | None) -> Status | None:
        """Returns the rejection of a node, or None. `moved` has the changes by hypothetical pods."""
        rules = self.rules
        for number, constraint in enumerate(rules.constraints):
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                return NO_TOPOLOGY
            counts = self._counts[number]
            here = counts.get(domain, 0) + (moved[number] if moved else 0)
            first, second = self._lowest[number]
            lowest = second[0] if first[1] == domain else first[0]  # of the other domains
            if domain in counts:
                lowest = min(lowest, here)
            if len(counts) < constraint.min_domains:
                lowest = 0
            if here + rules.own[number] - lowest > constraint.max_skew:
                return TOO_SKEWED
        return None


def _two_lowest(counts: dict[str, int]) -> tuple[tuple[int, str], tuple[int, str]]:
    lowest = sorted((count, domain) for domain, count in counts.items())[:2]
    while len(lowest) < 2:
        lowest.append((_NOWHERE, ""))
    return lowest[0], lowest[1]


def _counts(node: NodeInfo, constraint: TopologySpreadConstraint, template: Template) -> bool:
    spec = template.spec
    if constraint.honor_affinity and not spec.allows(node.name, node.labels):
        return False
    return not constraint.honor_taints or all(
        taint.effect == "PreferNoSchedule" or tolerated(taint, spec.tolerations) for taint in node.taints
    )
