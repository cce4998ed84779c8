"""Dry runs in which nothing counts but amounts: the same as `DryRun`, by adding and subtracting.

They are nearly all of them. It is a shortcut for pods without rules about other pods or host ports, on nodes
to which nobody is nominated and with no victim that a budget covers; and for rules that are not upstream's.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, Status
from harness.models.kube.placement.trial import NOTHING, PreFilter
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import Candidate
from harness_plugins.elastic_quota.dry_run import OVER_QUOTA, Shortfall
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Excesses


def only_amounts_count(pod: PodInfo, state: PreFilter) -> bool:
    """Whether a pod has no rules but about amounts."""
    shape = pod.template.shape
    return state is NOTHING and not shape.ports and not shape.missing


def by_amounts(
    pod: PodInfo,
    excesses: Excesses,
    node: NodeInfo,
    potential: Sequence[PodInfo],
    usage: QuotaUsage,
    *,
    looks_ahead: bool,
) -> Candidate | Status | None:
    """What a dry run finds; None where more than amounts counts, or where it is to be said what is short.

    The arguments are those of `DryRun`; of the pod only amounts count.
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
    short = Shortfall(excesses) if excesses else None
    if short is not None:
        for other in potential:
            short.change(*usage.of(other), -1)
        if not short.is_covered():
            return OVER_QUOTA
    victims: list[PodInfo] = []
    for other in potential:
        requests = other.template.shape.requests
        for resource, amount in requests:
            free[resource] -= amount
        stays = slots > 1
        for resource, amount in wanted:
            if amount > free[resource]:
                stays = False
        if stays and (short is None or short.still_covered(*usage.of(other))):
            slots -= 1
            continue
        for resource, amount in requests:
            free[resource] += amount
        victims.append(other)
    return Candidate(node, tuple(victims), 0, budgeted=False) if victims else NO_VICTIM_NEEDED
