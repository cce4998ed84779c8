"""Computes the scores that depend on other pods: PodTopologySpread and InterPodAffinity."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.cluster.kinds.core import HOSTNAME
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.interpod import AffinityRules, Pair, means
from harness.models.kube.placement.scores import POD_AFFINITY_WEIGHT, SPREAD_WEIGHT
from harness.models.kube.placement.spread import SpreadRules
from harness.models.kube.pod import Template


def soft_spread(rules: SpreadRules, cache: Cache, feasible: Sequence[NodeInfo]) -> list[int]:
    """Returns PodTopologySpread's scores, which are higher for domains with fewer matching pods.

    The weight of a constraint increases with its number of domains among the feasible nodes. A node that
    lacks a topology key of the constraints scores 0.
    """
    constraints = rules.constraints
    keys = [constraint.topology_key for constraint in constraints]
    complete = [all(key in node.labels for key in keys) for node in feasible]
    counts = rules.counts()
    weights = []
    for key in keys:
        among = [node for node, whole in zip(feasible, complete, strict=True) if whole]
        size = len(among) if key == HOSTNAME else len({node.labels[key] for node in among})
        weights.append(math.log(size + 2))
    raw: list[int] = []
    for node, whole in zip(feasible, complete, strict=True):
        score = 0.0
        for number, constraint in enumerate(constraints if whole else ()):
            if keys[number] == HOSTNAME:
                count = _on_node(rules, number, cache, node)
            else:
                count = counts[number].get(node.labels[keys[number]], 0)
            score += count * weights[number] + (constraint.max_skew - 1)
        raw.append(math.floor(score + 0.5))
    scored = [score for score, whole in zip(raw, complete, strict=True) if whole]
    lowest, highest = min(scored, default=0), max(scored, default=0)
    return [
        0 if not whole else SPREAD_WEIGHT * (100 * (highest + lowest - score) // highest if highest else 100)
        for score, whole in zip(raw, complete, strict=True)
    ]


def _on_node(rules: SpreadRules, number: int, cache: Cache, node: NodeInfo) -> int:
    """Returns the number of matching pods on a node. Terminating pods don't count.

    An empty selector counts no pod. See `SpreadRules.counts`.
    """
    if not rules.constraints[number].selector:
        return 0
    return sum(
        other.placed.get(node, 0) - other.leaving.get(node, 0)
        for other in cache.placed
        if rules.matched(other)[number]
    )


def attracts(rules: AffinityRules, other: Template) -> bool:
    """Returns True if bound pods of another template have affinity terms that match the incoming pod."""
    spec, template, labels_of = other.spec, rules.template, rules.labels_of
    return any(means(term, template, labels_of) for term in spec.affinity) or any(
        means(preferred.term, template, labels_of) for preferred in spec.preferred_pods
    )


def pod_affinity(
    rules: AffinityRules, cache: Cache, feasible: Sequence[NodeInfo], hard_weight: int
) -> list[int]:
    """Returns InterPodAffinity's scores.

    They depend on the preferred terms of the pod and of bound pods, and on the required affinity of bound
    pods.
    """
    template, labels_of = rules.template, rules.labels_of
    points: dict[Pair, int] = {}
    for other in cache.placed:
        terms = [
            (preferred.term.topology_key, preferred.weight)
            for preferred in template.spec.preferred_pods
            if means(preferred.term, other, labels_of)
        ]
        terms += [
            (term.topology_key, hard_weight)
            for term in other.spec.affinity
            if means(term, template, labels_of)
        ]
        terms += [
            (preferred.term.topology_key, preferred.weight)
            for preferred in other.spec.preferred_pods
            if means(preferred.term, template, labels_of)
        ]
        for node, pods in other.placed.items() if terms else ():
            labels = node.labels
            for key, weight in terms:
                domain = labels.get(key)
                if domain is not None:
                    points[key, domain] = points.get((key, domain), 0) + weight * pods
    raw = [
        sum(points.get((key, domain), 0) for key, domain in node.labels.items()) if points else 0
        for node in feasible
    ]
    lowest, highest = min(raw), max(raw)
    if lowest == highest:
        return [0] * len(raw)
    return [POD_AFFINITY_WEIGHT * int(100.0 * ((score - lowest) / (highest - lowest))) for score in raw]
