"""Determines the request of a pod to its quota when an attempt starts, and whether the quota admits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, final

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

    def own_excesses(self, tree: QuotaTree) -> Excesses:
        """Returns all limits that the requests of the pod itself exceed now."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.own, _NOTHING, self.own)


class Taken(NamedTuple):
    """The requests of nominated pods that count in addition to a pod's own requests. See `QuotaRequest`."""

    in_quota: Amounts
    in_all: Amounts
    shared: Mapping[Quota, Amounts]


NOTHING_TAKEN = Taken(_NONE, _NONE, _NOTHING)


@final
class Others:
    """The pods that are nominated to nodes. Nominations do not change during an attempt.

    Args:
        pods: the priority, quota and requests of each pod.
        cache: the nodes. While no node changes, the usage stays the same, so the totals remain valid.
    """

    __slots__ = ("_at", "_cache", "_pods", "_taken")

    def __init__(self, pods: Mapping[PodInfo, tuple[int, Quota, Amounts]], cache: Cache) -> None:
        self._pods = pods
        self._cache = cache
        self._at = cache.version
        self._taken: dict[tuple[Quota, int], Taken] = {}

    def with_pod(self, pod: PodInfo, quota: Quota, own: Amounts) -> Taken:
        """Returns the requests of a pod plus those of the nominated pods. See `QuotaRequest`.

        If the pod itself is nominated, it counts once.
        """
        taken = self.beside(quota, pod.priority)
        if pod not in self._pods:
            return with_amounts(own, taken)
        in_quota, in_all, shared = taken
        return Taken(_named_first(own, in_quota), _named_first(own, in_all), shared)

    def beside(self, quota: Quota, priority: int) -> Taken:
        """Returns the requests of nominated pods to add for a pod with this quota and priority."""
        if self._at != self._cache.version:
            self._at = self._cache.version
            self._taken.clear()
        taken = self._taken.get((quota, priority))
        if taken is None:
            taken = self._taken[quota, priority] = self._sum(quota, priority)
        return taken

    def _sum(self, quota: Quota, at_least: int) -> Taken:
        in_quota: dict[str, int] = {}
        in_all: dict[str, int] = {}
        shared: dict[Quota, dict[str, int]] = {}
        for priority, theirs, amounts in self._pods.values():
            if theirs is quota:
                if priority >= at_least:
                    add_to(in_quota, amounts)
                    add_to(in_all, amounts)
            elif theirs.borrows() is None:
                add_to(in_all, amounts)
                for above in quota.line[1:]:
                    if above in theirs.line:
                        add_to(shared.setdefault(above, {}), amounts)
        return Taken(in_quota, in_all, shared)


@final
class Nominated:
    """For each attempt, finds the nominated pods that are not part of the attempt."""

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._counts = usage.tree.counts_nominated
        self._all: Others | None = None
        self._at = -1

    def renew(self) -> None:
        """Drops the requests of nominated pods, because quotas have changed."""
        self._at = -1

    def besides(self, mates: Sequence[PodInfo]) -> Others | None:
        """Returns the nominated pods with a quota, or None if there are none.

        Args:
            mates: the pods of the attempt. If these are the pods of a gang, their nominations are left out,
                because these pods are charged when they are placed. For a single pod, see `Others.with_pod`.
        """
        cache = self._cache
        if not (cache.expecting and self._counts):
            return None
        if len(mates) > 1 and any(mate.nominated for mate in mates):
            return self._but_for(mates)
        if self._at != cache.version:  # every nomination change also changes the version
            self._all, self._at = self._but_for(()), cache.version
        return self._all

    def beside(self, quota: Quota, priority: int) -> Taken:
        """Returns what nominated pods add to the request of a pod that is not nominated itself."""
        others = self.besides(())
        return NOTHING_TAKEN if others is None else others.beside(quota, priority)

    def _but_for(self, mates: Sequence[PodInfo]) -> Others | None:
        apart = frozenset(mates)
        others: dict[PodInfo, tuple[int, Quota, Amounts]] = {}
        for node in self._cache.expecting:
            for other in node.nominated:
                if other not in apart:
                    quota, amounts, _ = self._usage.of(other)
                    if quota is not None:
                        others[other] = other.priority, quota, amounts
        return Others(others, self._cache) if others else None


def quota_request(pod: PodInfo, usage: QuotaUsage, others: Others | None) -> QuotaRequest:
    """Returns the request of a pod.

    Args:
        pod: the pod, which must not be bound.
        usage: the quotas.
        others: the nominated pods (see `Nominated.besides`), or None if there are none.
    """
    quota, own, firm = usage.of(pod)
    if quota is None:
        return QuotaRequest(pod, None)
    in_quota, in_all, shared = own, own, _NOTHING
    if others is not None:
        in_quota, in_all, shared = others.with_pod(pod, quota, own)
    tree = usage.tree
    excess = tree.refusing(quota, in_quota, shared, in_all)
    if excess is None and firm:
        excess = tree.over_firm(quota, own)
    return QuotaRequest(pod, quota, own, in_quota, in_all, shared, excess)


def with_amounts(amounts: Amounts, taken: Taken) -> Taken:
    """Returns the requests of nominated pods plus other requests in the same quota."""
    in_quota, in_all, shared = taken
    return Taken(sum_of(amounts, in_quota), sum_of(amounts, in_all), shared)


def _named_first(names: Amounts, amounts: Amounts) -> Amounts:
    """Returns the amounts with the resources in `names` first, because limits are checked in this order."""
    found = {name: amounts[name] for name in names}
    found.update(amounts)
    return found
