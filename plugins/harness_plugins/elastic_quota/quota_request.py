"""What a pod asks of its quota, seen at the beginning of an attempt, and whether its quota lets it in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from harness.models.cluster import frozen
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Amounts, Excess, Excesses, Quota, QuotaTree

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

    def excesses(self, tree: QuotaTree) -> Excesses:
        """All bounds that keep it out now, with nominated pods; none if its quota lets it in."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.in_quota, self.shared, self.in_all)

    def own_excesses(self, tree: QuotaTree) -> Excesses:
        """The same for what it takes itself."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.own, _NOTHING, self.own)


Others: TypeAlias = Sequence[tuple[int, Quota, Amounts]]
"""Pods that are nominated to nodes: the priority of each, its quota, and what it takes of that."""


def nominated_besides(mates: Collection[PodInfo], usage: QuotaUsage, cache: Cache) -> Others:
    """The pods with a quota that are nominated to nodes now, but for some; an attempt changes none of them.

    Args:
        mates: the pods of the attempt: their own nominations do not count, as they are charged when they are
            placed.
        usage: the quotas.
        cache: has the nominations.
    """
    if not cache.expecting:
        return ()
    apart, others = frozenset(mates), []
    for node in cache.expecting:
        for other in node.nominated:
            if other not in apart:
                quota, amounts = usage.of(other)
                if quota is not None:
                    others.append((other.priority, quota, amounts))
    return others


def quota_request(pod: PodInfo, usage: QuotaUsage, others: Others) -> QuotaRequest:
    """The request of a pod.

    Args:
        pod: the pod, not bound.
        usage: the quotas.
        others: who is nominated to nodes besides.
    """
    quota, own = usage.of(pod)
    if quota is None:
        return QuotaRequest(pod, None)
    return request_of(pod, quota, own, usage, others)


def request_of(pod: PodInfo, quota: Quota, own: Amounts, usage: QuotaUsage, others: Others) -> QuotaRequest:
    """The same of a pod that takes these amounts, such as all that its gang takes, of its quota."""
    in_quota, in_all, shared = own, own, _NOTHING
    if others:
        in_quota, in_all, shared = _with_others(pod, quota, own, others)
    tree = usage.tree
    excess = tree.over_max(quota, in_quota, shared) or tree.over_guaranteed(in_all)
    return QuotaRequest(pod, quota, own, in_quota, in_all, shared, excess)


def _with_others(
    pod: PodInfo, quota: Quota, own: Amounts, others: Others
) -> tuple[Amounts, Amounts, Mapping[Quota, Amounts]]:
    """See `QuotaRequest.in_quota`, `in_all` and `shared`."""
    in_quota, in_all = dict(own), dict(own)
    shared: dict[Quota, dict[str, int]] = {}
    for priority, theirs, amounts in others:
        if theirs is quota:
            if priority >= pod.priority:
                add(in_quota, amounts)
                add(in_all, amounts)
        elif theirs.borrows() is None:
            add(in_all, amounts)
            for above in quota.line[1:]:
                if above in theirs.line:
                    add(shared.setdefault(above, {}), amounts)
    return in_quota, in_all, shared


def add(total: dict[str, int], amounts: Amounts) -> None:
    """Add amounts to a total."""
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
