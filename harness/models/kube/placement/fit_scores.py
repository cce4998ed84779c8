"""Computes NodeResourcesFit's score of a node by the scoring strategy in a KubeSchedulerConfiguration.

For containers that request no cpu or memory, the score uses default requests. An extended resource counts
only for pods that request it. A resource that a node lacks does not count on that node.

Upstream: `resourceAllocationScorer` and the related scorers in pkg/scheduler/framework/plugins/noderesources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, final

from harness.cluster.kinds.scheduler_configuration import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    USUAL_STRATEGY,
    ScoringStrategy,
)
from harness.models.kube.node import CPU, MEMORY, NodeInfo
from harness.models.kube.placement.scores import least_allocated
from harness.models.kube.pod import Shape

FitScore: TypeAlias = Callable[[Shape, NodeInfo], int]
"""A function that returns the score of a node for pods of a shape, from 0 to 100."""

_PLAIN = ("ephemeral-storage",)
"""Further resources that count for all pods, like cpu and memory, because they aren't extended resources."""


def fit_score(strategy: ScoringStrategy, resources: Mapping[str, int]) -> FitScore:
    """Returns the function that scores nodes by a strategy.

    Args:
        strategy: the strategy.
        resources: the index of each resource of nodes.
    """
    return least_allocated if strategy == USUAL_STRATEGY else _StrategyScore(strategy, resources)


@final
class _StrategyScore:
    """Any strategy except the default. The default has its own function, because it is used most often."""

    __slots__ = ("_by_ratio", "_of_each", "_resources")

    def __init__(self, strategy: ScoringStrategy, resources: Mapping[str, int]) -> None:
        self._resources = [
            (resources[name], name not in _PLAIN, weight)
            for name, weight in strategy.resources
            if name in resources
        ]
        self._by_ratio = strategy.kind not in (LEAST_ALLOCATED, MOST_ALLOCATED)
        if self._by_ratio:
            points = [(utilization, 10 * score) for utilization, score in strategy.shape]
            self._of_each: Callable[[int, int], int] = partial(_by_shape, points)
        else:
            self._of_each = _most if strategy.kind == MOST_ALLOCATED else _least

    def __call__(self, shape: Shape, node: NodeInfo) -> int:
        total = weights = 0
        asked = dict(shape.requests)
        for resource, extended, weight in self._resources:
            allocatable = node.allocatable[resource]
            if allocatable <= 0:
                continue
            if resource == CPU:
                used = node.scored_cpu + shape.scored_cpu
            elif resource == MEMORY:
                used = node.scored_memory + shape.scored_memory
            else:
                amount = asked.get(resource, 0)
                if extended and not amount:
                    continue
                used = allocatable - node.free[resource] + amount
            score = self._of_each(used, allocatable)
            if score > 0 or not self._by_ratio:
                total += weight * score
                weights += weight
        if not weights:
            return 0
        # Upstream rounds half up for ratios. For other strategies, it truncates.
        return (2 * total + weights) // (2 * weights) if self._by_ratio else total // weights


def _least(used: int, allocatable: int) -> int:
    return (allocatable - used) * 100 // allocatable if used <= allocatable else 0


def _most(used: int, allocatable: int) -> int:
    return min(used, allocatable) * 100 // allocatable


def _by_shape(points: Sequence[tuple[int, int]], used: int, allocatable: int) -> int:
    """Interpolates linearly between points of utilization and score, which are both in percent."""
    utilization = 100 if used > allocatable else used * 100 // allocatable
    before: tuple[int, int] | None = None
    for at, score in points:
        if utilization <= at:
            if before is None:
                return score
            rise = (score - before[1]) * (utilization - before[0])
            # Integers are truncated towards zero, even if the line falls.
            step = abs(rise) // (at - before[0])
            return before[1] + (step if rise >= 0 else -step)
        before = at, score
    return points[-1][1]
