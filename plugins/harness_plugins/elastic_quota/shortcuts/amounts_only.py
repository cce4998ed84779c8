"""Computes dry runs by adding and subtracting, if only amounts matter.

Nearly all dry runs are of this kind. The shortcut applies to pods without devices, host ports or rules about
other pods. The nodes must not have nominated pods, or victims that a budget covers. The results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, Status
from harness.models.kube.placement.trial import NOTHING, PreFilter
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.dry_run import QuotaBound


def only_amounts_count(pod: PodInfo, state: PreFilter) -> bool:
    """Returns True if a pod has no rules other than those about amounts."""
    shape = pod.template.shape
    return state is NOTHING and not shape.ports and not shape.missing and shape.device is None


def by_amounts(
    pod: PodInfo,
    node: NodeInfo,
    potential: Sequence[PodInfo],
    bound: QuotaBound | None,
    *,
    looks_ahead: bool,
) -> Candidate | Status | None:
    """Returns the result of a dry run, or None.

    The result is None if more than amounts matter, or if the record needs the shortage.

    Args:
        pod: the preemptor. Only its requests matter.
        node: the node.
        potential: the potential victims, most important first.
        bound: the limits of the preemptor's quota.
        looks_ahead: whether pods that are terminating on the node count as gone.
    """
    if node.nominated:
        return None
    gone = [*potential, *(other for other in node.pods if other.terminating)] if looks_ahead else potential
    free, slots = node.free.copy(), node.slots + len(gone)
    for other in gone:
        template = other.template
        if template.budgets:
            return None
        for resource, amount in template.shape.requests:
            free[resource] += amount
    wanted = pod.template.shape.requests
    for resource, amount in wanted:
        if amount > free[resource]:
            return None
    if slots < 1:
        return None
    status = bound.without(potential) if bound is not None else None
    if status is not None:
        return status
    victims: list[PodInfo] = []
    for other in potential:
        requests = other.template.shape.requests
        for resource, amount in requests:
            free[resource] -= amount
        stays = slots > 1
        for resource, amount in wanted:
            if amount > free[resource]:
                stays = False
        if stays:
            if bound is None or bound.with_again(other):
                slots -= 1
                continue
        elif bound is not None and (status := bound.is_short(other, node)) is not None:
            return status
        for resource, amount in requests:
            free[resource] += amount
        victims.append(other)
    return Candidate(node, tuple(victims), 0, budgeted=False) if victims else NO_VICTIM_NEEDED
