"""What a pod asks of its quota, seen at the beginning of an attempt, and whether its quota lets it in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from harness.models.cluster import frozen
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Amounts, Excess, Quota

_NONE: Amounts = frozen()
_NOTHING: Mapping[Quota, Amounts] = MappingProxyType({})


class QuotaRequest(NamedTuple):
    """What a pod asks of its quota.

    Attributes:
        pod: the pod.
        quota: the leaf it belongs to; None when it belongs to none, and asks nothing then.
        own: what it takes itself.
        in_quota: that, and what nominated pods of its quota take that are at least as important.
        in_all: that, and what nominated pods take of other quotas that do not borrow.
        shared: what those pods of other quotas take of each quota above both.
        excess: why its quota does not let it in; None when it does.
    """

    pod: PodInfo
    quota: Quota | None
    own: Amounts = _NONE
    in_quota: Amounts = _NONE
    in_all: Amounts = _NONE
    shared: Mapping[Quota, Amounts] = _NOTHING
    excess: Excess | None = None


def quota_request(
    pod: PodInfo, usage: QuotaUsage, cache: Cache, *, mates: Collection[PodInfo] = ()
) -> QuotaRequest:
    """The request of a pod, with the pods that are nominated to nodes now.

    Args:
        pod: the pod, not bound.
        usage: the quotas.
        cache: has the nominations.
        mates: pods whose nominations do not count, because they are charged as they are placed.
    """
    quota = usage.quota_of(pod)
    if quota is None:
        return QuotaRequest(pod, None)
    own = usage.amounts(pod)
    return request_of(pod, quota, own, usage, cache, mates)


def excess_of(pod: PodInfo, quota: Quota, own: Amounts, usage: QuotaUsage, cache: Cache) -> Excess | None:
    """Why its quota does not let in a pod that takes these amounts; None when it does."""
    if cache.expecting:
        return request_of(pod, quota, own, usage, cache, ()).excess
    return usage.tree.over_max(quota, own) or usage.tree.over_guaranteed(own)


def request_of(
    pod: PodInfo, quota: Quota, own: Amounts, usage: QuotaUsage, cache: Cache, mates: Collection[PodInfo]
) -> QuotaRequest:
    """The same of a pod that takes these amounts, such as all that its gang takes, of its quota."""
    in_quota, in_all = own, own
    shared: dict[Quota, dict[str, int]] = {}
    if cache.expecting:
        in_quota, in_all = dict(own), dict(own)
        for node in cache.expecting:
            for other in node.nominated:
                theirs = usage.quota_of(other)
                if other is pod or theirs is None or other in mates:
                    continue
                if theirs is quota:
                    if other.priority >= pod.priority:
                        add(in_quota, usage.amounts(other))
                        add(in_all, usage.amounts(other))
                elif theirs.borrows() is None:
                    add(in_all, usage.amounts(other))
                    for above in quota.line[1:]:
                        if above in theirs.line:
                            add(shared.setdefault(above, {}), usage.amounts(other))
    tree = usage.tree
    excess = tree.over_max(quota, in_quota, shared) or tree.over_guaranteed(in_all)
    return QuotaRequest(pod, quota, own, in_quota, in_all, shared, excess)


def add(total: dict[str, int], amounts: Amounts) -> None:
    """Add amounts to a total."""
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
