"""What a pod asks of its quota, seen at the beginning of an attempt, and whether its quota lets it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, final

from harness.models.cluster import frozen
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import FIRM, Excess, Excesses, QuotaTree, sum_of
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

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
        together: what all pods of its gang take that are of its quota, where they are asked for as one.
    """

    pod: PodInfo
    quota: Quota | None
    own: Amounts = _NONE
    in_quota: Amounts = _NONE
    in_all: Amounts = _NONE
    shared: Mapping[Quota, Amounts] = _NOTHING
    excess: Excess | None = None
    together: Amounts | None = None

    @property
    def asked(self) -> Amounts:
        """What the pods that ask take themselves."""
        return self.own if self.together is None else self.together

    def nominated(self, excess: Excess) -> dict[str, int]:
        """What nominated pods take of that which a bound counts."""
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
        """All bounds that keep it out now, with nominated pods; none if its quota lets it in."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.in_quota, self.shared, self.in_all)

    def own_excesses(self, tree: QuotaTree) -> Excesses:
        """The same for what it takes itself."""
        if self.quota is None or self.excess is None:
            return ()
        return tree.excesses(self.quota, self.own, _NOTHING, self.own)


class Taken(NamedTuple):
    """What nominated pods count for beside a pod, see `QuotaRequest`."""

    in_quota: Amounts
    in_all: Amounts
    shared: Mapping[Quota, Amounts]


@final
class Others:
    """Pods that are nominated to nodes, which an attempt does not change.

    Args:
        pods: the priority of each, its quota, and what it takes of that.
        cache: what they count for stays the same as long as no node changes: no quota uses less or more then.
    """

    __slots__ = ("_at", "_cache", "_pods", "_taken")

    def __init__(self, pods: Mapping[PodInfo, tuple[int, Quota, Amounts]], cache: Cache) -> None:
        self._pods = pods
        self._cache = cache
        self._at = cache.version
        self._taken: dict[tuple[Quota, int], Taken] = {}

    def with_pod(self, pod: PodInfo, quota: Quota, own: Amounts) -> Taken:
        """What a pod takes with them beside it, see `QuotaRequest`.

        A nominated pod that is one of them counts once.
        """
        taken = self.beside(quota, pod.priority)
        if pod not in self._pods:
            return with_amounts(own, taken)
        in_quota, in_all, shared = taken
        return Taken(_named_first(own, in_quota), _named_first(own, in_all), shared)

    def beside(self, quota: Quota, priority: int) -> Taken:
        """What they count for beside a pod of a quota and a priority."""
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
                    add(in_quota, amounts)
                    add(in_all, amounts)
            elif theirs.borrows() is None:
                add(in_all, amounts)
                for above in quota.line[1:]:
                    if above in theirs.line:
                        add(shared.setdefault(above, {}), amounts)
        return Taken(in_quota, in_all, shared)


@final
class Nominated:
    """Tells of each attempt who is nominated to nodes besides.

    Args:
        usage: the quotas.
        cache: has the nominations.
    """

    def __init__(self, usage: QuotaUsage, cache: Cache) -> None:
        self._usage = usage
        self._cache = cache
        self._counts = usage.tree.counts_nominated
        self._all: Others | None = None
        self._at = -1

    def renew(self) -> None:
        """Quotas have changed: what nominated pods take of them is worked out again."""
        self._at = -1

    def besides(self, mates: Sequence[PodInfo]) -> Others | None:
        """The pods with a quota that are nominated to nodes now, but for those of a gang; None where none is.

        Args:
            mates: the pods of the attempt. Of a gang their own nominations do not count, as they are charged
                when they are placed; of a pod alone see `Others.with_pod`.
        """
        cache = self._cache
        if not (cache.expecting and self._counts):
            return None
        if len(mates) > 1 and any(mate.nominated for mate in mates):
            return self._but_for(mates)
        if self._at != cache.version:  # which any change of a nomination changes
            self._all, self._at = self._but_for(()), cache.version
        return self._all

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
    """The request of a pod.

    Args:
        pod: the pod, not bound.
        usage: the quotas.
        others: who is nominated to nodes, see `Nominated.besides`; None for nobody.
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
    """What nominated pods count for, and amounts more of the quota."""
    in_quota, in_all, shared = taken
    return Taken(sum_of(amounts, in_quota), sum_of(amounts, in_all), shared)


def _named_first(names: Amounts, amounts: Amounts) -> Amounts:
    """Amounts in the order that they have where they are added to others: bounds are looked at in it."""
    found = {name: amounts[name] for name in names}
    found.update(amounts)
    return found


def add(total: dict[str, int], amounts: Amounts) -> None:
    """Add amounts to a total."""
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
