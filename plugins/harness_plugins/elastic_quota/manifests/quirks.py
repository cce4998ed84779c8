"""Warnings about Koordinator's behaviour that only its code explains, if it can occur in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.models.cluster import KOORDINATOR, KOORDINATORS, ElasticQuota, leaves_of
from harness.models.manifests import Draft

_EVICTS = (
    "may evict pods for one that it still refuses. With quirks=on, dry runs do not check the quota "
    "without all victims; a node that also refuses a victim is not a candidate"
)
_SPARES = (
    "names several resources in its max: with quirks=on, a pod that does not request the overused "
    "resource is refused, and does not preempt"
)
_FIRM = (
    "has a min below its max: with quirks=on, a pod that must not be preempted may evict other pods "
    "although min still refuses it"
)
_IDLE = (
    "does not lend its min: with quirks=on, it has no more than its share of the nodes' capacity until "
    "its first pod"
)


def warn_of_quirks(quotas: Mapping[str, ElasticQuota], draft: Draft) -> None:
    """Warns of behaviour that the options `quirks=off` and `enableMinQuotaScale=false` switch off."""
    own = {name: quota for name, quota in quotas.items() if quota.semantics == KOORDINATORS}
    if not own or not draft.nodes:
        return
    there: dict[str, int] = {}
    for node in draft.nodes.values():
        for resource, amount in node.allocatable.items():
            there[resource] = there.get(resource, 0) + amount
    for name, quota in leaves_of(own).items():
        for what in (*_of_scaling(quota, own, there), *_of_preemption(quota, own, there, draft)):
            draft.warnings.add("elastic quota", name, what)


def _of_scaling(
    quota: ElasticQuota, own: Mapping[str, ElasticQuota], there: Mapping[str, int]
) -> Iterator[str]:
    """Yields effects of guarantees that are scaled down."""
    tops = [each for each in own.values() if not each.parent]
    scaled = [each for each in there if sum(top.min_of(each) for top in tops) > there[each]]
    if not quota.lends and any(quota.min_of(each) for each in scaled):
        yield _IDLE
    weights = quota.weight if quota.weight is not None else quota.max or {}
    unweighted = [each for each in quota.min or () if quota.min_of(each) and not weights.get(each)]
    if quota.parent and unweighted:
        listed = ", ".join(unweighted)
        yield (
            f"has weight 0 in {listed}: with enableMinQuotaScale=true, it has less than its min while the "
            f"quotas below {quota.parent} request less than the sum of their min"
        )


def _of_preemption(
    quota: ElasticQuota, own: Mapping[str, ElasticQuota], there: Mapping[str, int], draft: Draft
) -> Iterator[str]:
    """Yields effects of dry runs, if pods may differ in priority."""
    most = quota.max or {}
    if not draft.priority_classes:
        return
    if len(leaves_of(own)) > 1 or any(bound < there.get(each, 0) for each, bound in most.items()):
        yield _EVICTS
        if len(most) > 1:
            yield _SPARES
    firm = any(pod.labels.get(f"{KOORDINATOR}preemptible") == "false" for pod in draft.pods.values())
    if firm and any(quota.min_of(each) < bound for each, bound in most.items() if each in (quota.min or ())):
        yield _FIRM
