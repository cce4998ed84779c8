"""Computes scores as integers with the default weights, as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness.models.kube.node import CPU, MEMORY, NodeInfo
from harness.models.kube.placement.filters import tolerated
from harness.models.kube.pod import Shape

if TYPE_CHECKING:
    from harness.models.kube.placement.fit_scores import FitScore
    from harness.models.kube.placement.shape_nodes import ShapeNodes

TAINTS_WEIGHT = 3
NODE_AFFINITY_WEIGHT = 2
SPREAD_WEIGHT = 2
POD_AFFINITY_WEIGHT = 2
HIGHEST_LOCAL: Final = 200
"""The highest sum of `least_allocated` and `balanced_allocation`, which both have a weight of 1."""


def least_allocated(shape: Shape, node: NodeInfo) -> int:
    """Returns NodeResourcesFit's score, which is higher if more cpu and memory remain on the node.

    Pods without a request for cpu or memory count with kube-scheduler's default requests.
    """
    total = counted = 0
    for resource, requested in (
        (CPU, node.scored_cpu + shape.scored_cpu),
        (MEMORY, node.scored_memory + shape.scored_memory),
    ):
        allocatable = node.allocatable[resource]
        if allocatable > 0:
            counted += 1
            if requested <= allocatable:
                total += (allocatable - requested) * 100 // allocatable
    return total // counted if counted else 0


def balanced_allocation(shape: Shape, node: NodeInfo) -> int:
    """Returns NodeResourcesBalancedAllocation's score.

    It is higher if the pod improves the balance between cpu and memory on the node.
    """
    if not shape.balanced:
        return 0
    free_cpu, free_memory = node.free[CPU], node.free[MEMORY]
    for resource, amount in shape.requests:
        if resource == CPU:
            free_cpu -= amount
        elif resource == MEMORY:
            free_memory -= amount
    return 50 + (50 + node.balanced(free_cpu, free_memory) - node.balance()) // 2


def intolerable_taints(shape: Shape, node: NodeInfo) -> int:
    """Returns TaintToleration's raw score, which is the number of untolerated `PreferNoSchedule` taints."""
    soft = [each for each in shape.spec.tolerations if each.effect in ("", "PreferNoSchedule")]
    return sum(taint.effect == "PreferNoSchedule" and not tolerated(taint, soft) for taint in node.taints)


def preferred_nodes(shape: Shape, node: NodeInfo) -> int:
    """Returns NodeAffinity's raw score, which is the sum of the weights of preferred terms that match."""
    return sum(
        preferred.weight
        for preferred in shape.spec.preferred_nodes
        if preferred.term.matches(node.name, node.labels)
    )


def normalized(raw: Sequence[int]) -> list[int]:
    """Scales raw scores so that the highest becomes 100. If all scores are 0, they remain 0."""
    highest = max(raw)
    return [100 * score // highest for score in raw] if highest else list(raw)


def normalized_reversed(raw: Sequence[int]) -> list[int]:
    """Scales raw scores so that 0 becomes 100 and the highest becomes 0. If all are 0, they become 100."""
    return [100 - score for score in normalized(raw)]


def score_nodes(
    shape: Shape, nodes: ShapeNodes, feasible: Sequence[NodeInfo], fit_score: FitScore
) -> list[dict[str, int]]:
    """Returns, for each feasible node, the weighted scores of the plugins that ignore pods on other nodes."""
    taints = normalized_reversed([nodes.rules.taints[node.position] for node in feasible])
    affinity = normalized([nodes.rules.preferred[node.position] for node in feasible])
    return [
        {
            "TaintToleration": TAINTS_WEIGHT * tolerable,
            "NodeAffinity": NODE_AFFINITY_WEIGHT * preferred,
            "NodeResourcesFit": fit_score(shape, node),
            "NodeResourcesBalancedAllocation": balanced_allocation(shape, node) if nodes.balances else 0,
        }
        for node, tolerable, preferred in zip(feasible, taints, affinity, strict=True)
    ]
