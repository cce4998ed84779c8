"""Implements InterPodAffinity, for pods that must, or must not, share a topology domain with other pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from harness.cluster.kinds.pods import NamespaceLabels, PodAffinityTerm
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import NOT_NEAR, TOO_NEAR, UNWANTED, Status
from harness.models.kube.pod import Template

Pair = tuple[str, str]
"""A topology key and one of its domains."""

Counts = dict[Pair, int]


class Effect(NamedTuple):
    """The topology keys of required affinity terms through which another pod affects an incoming pod.

    Attributes:
        unwanted: the keys of those anti-affinity terms of the other pod that match the incoming pod.
        near: the keys of all affinity terms of the incoming pod, if all of them match the other pod.
        far: the keys of those anti-affinity terms of the incoming pod that match the other pod.
    """

    unwanted: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.unwanted or self.near or self.far)


@final
class AffinityRules:
    """Finds out which affinity terms of a template match pods of other templates, and caches the answers."""

    def __init__(self, template: Template, labels_of: NamespaceLabels) -> None:
        self.template = template
        self.labels_of = labels_of
        self._effects: dict[Template, Effect] = {}
        self.meets_itself = self.near(template)

    def near(self, other: Template) -> bool:
        """Returns True if there are required affinity terms, and all of them match pods of `other`."""
        terms = self.template.spec.affinity
        return bool(terms) and all(means(term, other, self.labels_of) for term in terms)

    def effect(self, other: Template) -> Effect:
        """Returns the topology keys through which pods of another template affect an incoming pod."""
        found = self._effects.get(other)
        if found is None:
            spec, labels_of = self.template.spec, self.labels_of
            found = self._effects[other] = Effect(
                tuple(
                    term.topology_key
                    for term in other.spec.anti_affinity
                    if means(term, self.template, labels_of)
                ),
                tuple(term.topology_key for term in spec.affinity) if self.near(other) else (),
                tuple(term.topology_key for term in spec.anti_affinity if means(term, other, labels_of)),
            )
        return found


class Moves(NamedTuple):
    """The changes of three counts if some pods were added to a node or removed from it. See `Effect`."""

    unwanted: Counts
    near: Counts
    far: Counts


@final
class AffinityState:
    """Counts the bound pods in each topology domain that affect the incoming pod, for one attempt.

    The filter can also take hypothetical pods into account, but only on one node at a time.
    """

    def __init__(self, rules: AffinityRules, cache: Cache) -> None:
        self._rules = rules
        self._unwanted: Counts = {}
        self._near: Counts = {}
        self._far: Counts = {}
        for other in cache.placed:
            effect = rules.effect(other)
            if not effect:
                continue
            for node, pods in other.placed.items():
                self._count(self._unwanted, self._near, self._far, effect, node, pods)

    @staticmethod
    def _count(
        unwanted: Counts, near: Counts, far: Counts, effect: Effect, node: NodeInfo, pods: int
    ) -> None:
        for counts, keys in ((unwanted, effect.unwanted), (near, effect.near), (far, effect.far)):
            for key in keys:
                domain = node.labels.get(key)
                if domain is not None:
                    counts[key, domain] = counts.get((key, domain), 0) + pods

    def change(self, moves: Moves, other: Template, node: NodeInfo, sign: int) -> None:
        """Records in `moves` that a hypothetical pod is added to a node (`sign` 1) or removed (-1)."""
        effect = self._rules.effect(other)
        if effect:
            self._count(*moves, effect, node, sign)

    def filter(self, node: NodeInfo, moves: Moves | None) -> Status | None:
        """Returns the rejection of a node, or None. `moves` has the changes by hypothetical pods."""
        spec, labels = self._rules.template.spec, node.labels
        if spec.affinity and not self._is_near(labels, moves.near if moves else {}):
            return NOT_NEAR
        for term in spec.anti_affinity:
            domain = labels.get(term.topology_key)
            if domain is not None and _at((term.topology_key, domain), self._far, moves and moves.far) > 0:
                return TOO_NEAR
        moved = moves.unwanted if moves else {}
        for counts in (self._unwanted, moved):
            for pair in counts:
                if labels.get(pair[0]) == pair[1] and _at(pair, self._unwanted, moved) > 0:
                    return UNWANTED
        return None

    def _is_near(self, labels: Mapping[str, str], moved: Counts) -> bool:
        near = True
        for term in self._rules.template.spec.affinity:
            domain = labels.get(term.topology_key)
            if domain is None:
                return False
            near = near and _at((term.topology_key, domain), self._near, moved) > 0
        # If several pods have affinity to themselves, the first of them can run anywhere.
        return near or (
            self._rules.meets_itself
            and not any(_at(pair, self._near, moved) for pair in (*self._near, *moved))
        )


def means(term: PodAffinityTerm, other: Template, labels_of: NamespaceLabels) -> bool:
    """Returns True if a term matches pods of a template."""
    return term.matches(other.namespace, other.labels, labels_of)


def _at(pair: Pair, counts: Counts, moved: Counts | None) -> int:
    return counts.get(pair, 0) + (moved.get(pair, 0) if moved else 0)
