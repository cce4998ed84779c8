"""Determines the request of a pod to its quota when an attempt starts, and whether the quota admits it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, final

from harness.models.cluster import frozen
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.elastic.tree import FIRM, Excess, Excesses, QuotaTree, sum_of
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

_NONE: Amounts = frozen()
_NOTHING: Mapping[Quota, Amounts] = MappingProxyType({})


class QuotaRequest(NamedTuple):
    """The request of a pod to its quota.

    Attributes:
        quota: the leaf quota of the pod, or None. A pod without a quota requests nothing.
        own: the requests of the pod itself.
        in_quota: `own` plus the requests of nominated pods of the same quota that are at least as important.
        in_all: `in_quota` plus the requests of nominated pods of other quotas that do not borrow.
        shared: the requests of the nominated pods of other quotas, by the ancestor that both quotas share.
        excess: the reason why the quota does not admit the pod, or None if it does.
        together: the requests of all pods of the gang in this quota, or None if pods request quota one by
            one.
    """

    pod: PodInfo
    quota: Quota | None
    own: Amounts = _NONE
    in_quota: Amounts = _NONE
    in_all: Amounts = _NONE
    shared: Mapping[Quota, Amounts] = _NOTHING
    excess: Excess | None = None
    together: Amounts | None = None

    def joined_by(self, others: Iterable[Amounts]) -> QuotaRequest:
        """Returns the request of this pod together with other pods of its gang in the same quota."""
        total: dict[str, int] = {}
        for amounts in others:
            add_to(total, amounts)
        in_quota, in_all, together = (sum_of(each, total) for each in (self.in_quota, self.in_all, self.own))
        return self._replace(in_quota=in_quota, in_all=in_all, together=together)

    @property
    def asked(self) -> Amounts:
        """The requests of the pods themselves. The requests of nominated pods are not included."""
        return self.own if self.together is None else self.together

    def nominated(self, excess: Excess) -> dict[str, int]:
        """Returns the requests of nominated pods that are added to the pod's own request for this limit."""
        if excess.bound == FIRM:
            return {}
        counted = self.in_quota
        if not excess.quota:
            counted = self.in_all
        elif self.quota is not None and excess.quota != self.quota.name:
            above = (amounts for quota, amounts in self.shared.items() if quota.name == excess.quota)
            counted = sum_of(self.in_quota, next(above, _NONE))
        rest = {each: amount - self.asked.get(each, 0) for each, amount in counted.items()}
        return {each: amount for each, amount in rest.items() if amount}

    def excesses(self, tree: QuotaTree) -> Excesses:
        """Returns all limits that the pod and the nominated pods exceed now, or () if the pod is admitted."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.in_quota, self.shared, self.in_all)


class Taken(NamedTuple):
    """The requests of nominated pods that count in addition to a pod's own requests. See `QuotaRequest`."""

    in_quota: Amounts
    in_all: Amounts
    shared: Mapping[Quota, Amounts]

    def with_own(self, own: Amounts) -> Taken:
        """Returns these requests plus those of the pod itself, whose resources come first."""
        return Taken(sum_of(own, self.in_quota), sum_of(own, self.in_all), self.shared)


_NOTHING_TAKEN = Taken(_NONE, _NONE, _NOTHING)


Others: TypeAlias = Callable[[Quota, int], Taken]
"""Returns the requests of nominated pods that count for a pod with a quota and a priority."""


@final
class Nominated:
    """The pods that are nominated to nodes. Nominations do not change during an attempt."""

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._known: dict[tuple[Quota, int], tuple[Sequence[tuple[Quota, Amounts]], Taken]] = {}

    def besides(self, mates: Sequence[PodInfo]) -> Others:
        """Returns the nominated pods that count for the pods of an attempt.

        These pods themselves are left out, because they are charged when they are placed.
        """
        if not (self._cache.expecting and any(mate.nominated for mate in mates)):
            return self.beside
        return lambda quota, priority: _sum(quota, self._counted(quota, priority, frozenset(mates)))

    def beside(self, quota: Quota, priority: int) -> Taken:
        """Returns what counts for a pod without a nomination, as one object while the same requests count."""
        counted = self._counted(quota, priority) if self._cache.expecting else ()
        if not counted:
            return _NOTHING_TAKEN
        known = self._known.get((quota, priority))
        if known is None or known[0] != counted:
            known = self._known[quota, priority] = counted, _sum(quota, counted)
        return known[1]

    def _counted(
        self, quota: Quota, at_least: int, apart: Collection[PodInfo] = ()
    ) -> Sequence[tuple[Quota, Amounts]]:
        found: list[tuple[Quota, Amounts]] = []
        for node in self._cache.expecting if self._usage.tree.counts_nominated else ():
            for pod in node.nominated:
                theirs, amounts, _ = self._usage.of(pod)
                if theirs is None or pod in apart:
                    continue
                if pod.priority >= at_least if theirs is quota else theirs.borrows() is None:
                    found.append((theirs, amounts))
        return found


def _sum(quota: Quota, counted: Sequence[tuple[Quota, Amounts]]) -> Taken:
    in_quota: dict[str, int] = {}
    in_all: dict[str, int] = {}
    shared: dict[Quota, dict[str, int]] = {}
    for theirs, amounts in counted:
        add_to(in_all, amounts)
        if theirs is quota:
            add_to(in_quota, amounts)
            continue
        for above in quota.line[1:]:
            if above in theirs.line:
                add_to(shared.setdefault(above, {}), amounts)
    return Taken(in_quota, in_all, shared)


def quota_request(pod: PodInfo, usage: QuotaUsage, others: Others) -> QuotaRequest:
    """Returns the request of a pod.

    Args:
        pod: the pod, which must not be bound.
        usage: the quotas.
        others: the nominated pods. See `Nominated.besides`.
    """
    quota, own, firm = usage.of(pod)
    if quota is None:
        return QuotaRequest(pod, None)
    in_quota, in_all, shared = others(quota, pod.priority).with_own(own)
    tree = usage.tree
    excess = tree.refusing(quota, in_quota, shared, in_all)
    if excess is None and firm:
        excess = tree.over_firm(quota, own)
    return QuotaRequest(pod, quota, own, in_quota, in_all, shared, excess)
