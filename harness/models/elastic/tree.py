"""Models the tree of quotas, where guarantees, limits and usage are added up to the root.

The tree does not depend on pods, nodes or time. Quantities are integers, and all results depend only on the
quantities that are charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, TypeAlias, final

from harness.cluster.kinds.elastic import KOORDINATOR, ElasticQuota, leaves_of
from harness.cluster.model import UNLIMITED
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.runtime_quotas import DEFAULT_QUOTA_RESOURCES, RuntimeQuotas, add_to

Excesses: TypeAlias = Sequence[tuple[Quota | None, str, int]]
"""Limits that would be exceeded, each with its quota, its resource and the excess.

If the quota is None, the limit applies to all quotas together.
"""


_PREEMPTIBLE = f"{KOORDINATOR}preemptible"
"""Pods that have this label with the value `false` must not be preempted."""

FIRM = "firm min"
"""The limit for pods that must not be preempted, which is the `min` of their quota."""


class Excess(NamedTuple):
    """A limit that would be exceeded, and the excess. If `quota` is "", the limit is the sum of all `min`."""

    bound: str
    quota: str
    resource: str
    amount: int


@final
class QuotaTree:
    """The tree of all quotas, with their limits and their usage.

    Args:
        manifests: the quotas by name.
        hierarchical: whether a quota also limits the quotas below it. If not, the tree consists only of
            leaves, which don't limit each other.
        runtimes: Koordinator's runtime quotas, which depend on the requests of all quotas. If they are
            given, a `max` limits only the resources that it names, and does not limit the quotas below it.
            The requests of nominated pods are ignored.
        asks_above: whether a quota is also limited by the runtimes of its ancestors
            (`enableCheckParentQuota`).

    Attributes:
        quotas: the quotas by name. Without a hierarchy, these are only the leaves.
        leaves: the quotas that pods count against, by name.
        guaranteed: the sum of `min` over the roots for each resource. Without a hierarchy, it is the sum over
            the leaves.
        used: the usage of all quotas together for each resource.
    """

    def __init__(
        self,
        manifests: Mapping[str, ElasticQuota],
        *,
        hierarchical: bool,
        runtimes: RuntimeQuotas | None = None,
        asks_above: bool = False,
    ) -> None:
        self.runtimes = runtimes
        self.hierarchical = hierarchical
        self._asks_above = asks_above
        self.quotas: dict[str, Quota] = {}
        self._set_up(manifests)

    def _set_up(self, manifests: Mapping[str, ElasticQuota]) -> None:
        """Starts with these quotas and no charges. The objects of quotas that existed before are reused."""
        leaves, known = leaves_of(manifests), self.quotas
        self.quotas = {}
        for name in manifests if self.hierarchical else leaves:
            if name in known:
                known[name].become(manifests[name])
            self.quotas[name] = known.get(name) or Quota(
                manifests[name], only_named=self.runtimes is not None
            )
        self.leaves = {name: self.quotas[name] for name in leaves}
        if self.hierarchical:
            for name, quota in self.quotas.items():
                quota.line = tuple(self.quotas[each] for each in _line(name, manifests))
        tops = [quota for quota in self.quotas.values() if quota.line[-1] is quota]
        self._leaving: dict[Quota, int] = {}  # the number of terminating pods, for quotas that have any
        self._top = tops[0] if len(tops) == 1 else None
        self.guaranteed: dict[str, int] = {}
        for quota in tops:
            add_to(self.guaranteed, quota.min, 1)
        self.used: dict[str, int] = {}

    @property
    def counts_nominated(self) -> bool:
        """True if checks of a pending pod add the requests of nominated pods to its own requests."""
        return self.runtimes is None

    def is_firm(self, labels: Mapping[str, str]) -> bool:
        """Returns True if pods with these labels must not be preempted.

        The `min` of their quota limits such pods, in addition to the other limits.
        """
        return self.runtimes is not None and labels.get(_PREEMPTIBLE) == "false"

    @property
    def rescaled(self) -> int:
        """How often the query of one quota changed the limits of other quotas. See `RuntimeQuotas`."""
        return 0 if self.runtimes is None else self.runtimes.rescaled

    @property
    def settled(self) -> bool:
        """Whether all results are independent of earlier queries."""
        return self.runtimes is None or self.runtimes.settled

    def counted(self, leaf: Quota | None, requests: Amounts) -> Amounts:
        """Returns the part of a pod's requests that counts against its quota.

        With runtimes, only the resources in `max` count. A pod without a quota then counts against
        Koordinator's default quota. Without runtimes, all resources except `pods` count.
        """
        if self.runtimes is None:
            return {name: amount for name, amount in requests.items() if name != "pods"}
        named = DEFAULT_QUOTA_RESOURCES if leaf is None else leaf.max
        return {name: amount for name, amount in requests.items() if name in named}

    # --- changes ------------------------------------------------------------------------------------------

    def charge(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """Charges the requests of a pod to a quota and its ancestors (1), or releases them (-1)."""
        line, total = leaf.line, self.used
        for resource, amount in amounts.items():
            change = sign * amount
            for quota in line:
                used = quota.used
                used[resource] = used.get(resource, 0) + change
            total[resource] = total.get(resource, 0) + change

    def hold(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """Increases (1) or reduces (-1) the usage by bound pods that must not be preempted."""
        add_to(leaf.firm, amounts, sign)

    def leave(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """Marks charged quantities as terminating (1), or removes this mark (-1)."""
        leaving = self._leaving
        for quota in leaf.line:
            add_to(quota.leaving, amounts, sign)
            pods = leaving[quota] = leaving.get(quota, 0) + sign
            if not pods:
                del leaving[quota]

    def ask(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """Adds (1) or removes (-1) the requests of a pending or running pod."""
        if self.runtimes is not None:
            self.runtimes.ask(leaf.name, amounts, sign)

    def take_outside(self, amounts: Amounts, sign: int = 1) -> None:
        """Reduces (1) or increases (-1) the shared capacity by the usage of a bound pod without a quota."""
        if self.runtimes is not None:
            self.runtimes.take_outside(amounts, sign)

    @contextmanager
    def becoming(self, manifests: Mapping[str, ElasticQuota]) -> Iterator[None]:
        """Adds, removes or changes one quota.

        The usage of all quotas becomes 0. Within this context, the caller must count all pods again.

        Args:
            manifests: all quotas after the change.
        """
        with nullcontext() if self.runtimes is None else self.runtimes.becoming(manifests):
            self._set_up(manifests)
            yield
        for name in () if self.runtimes is None else self.runtimes.anew:
            self.quotas[name].runtime = None

    @contextmanager
    def departed(self) -> Iterator[None]:
        """Counts terminating pods as gone within this context."""
        before = [(quota, quota.used, quota.leaving) for quota in self._leaving]
        total = self.used
        if before:
            self.used = dict(total)
        for quota, used, leaving in before:
            quota.used = dict(used)
            add_to(quota.used, leaving, -1)
            quota.leaving = {}
            if quota.name in self.leaves:
                add_to(self.used, leaving, -1)
        try:
            yield
        finally:
            self.used = total
            for quota, used, leaving in before:
                quota.used, quota.leaving = used, leaving

    # --- questions ----------------------------------------------------------------------------------------

    def runtime(self, quota: Quota) -> Amounts:
        """Returns the runtime of a quota for the resources in its `max`, or {} without runtimes."""
        found = quota.runtime = {} if self.runtimes is None else self.runtimes.runtime(quota.name)
        return found

    def _over_runtime(self, leaf: Quota, amounts: Amounts) -> Iterator[tuple[Quota, str, int]]:
        """Yields how far the runtimes of the quota and of its ancestors are exceeded.

        For the quota itself, all resources in its `max` count. For its ancestors, only requested resources
        count.
        """
        for quota in leaf.line if self._asks_above else (leaf,):
            for resource, bound in self.runtime(quota).items():
                excess = quota.used.get(resource, 0) + amounts.get(resource, 0) - bound
                if excess > 0 and (quota is leaf or resource in amounts):
                    yield quota, resource, excess

    def over_max(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts] | None = None
    ) -> Excess | None:
        """Returns the first `max` or runtime that a quota or an ancestor would exceed, or None.

        Args:
            leaf: the quota.
            amounts: the additional usage of the quota.
            shared: maps each ancestor of the quota to the additional usage of other quotas below it.
        """
        if self.runtimes is not None:
            over = self._over_runtime(leaf, amounts)
            return next((Excess("runtime", quota.name, name, more) for quota, name, more in over), None)
        for quota in leaf.line:
            asked = amounts
            if shared and quota in shared:
                asked = sum_of(amounts, shared[quota])
            used = quota.used
            for resource, bound in quota.bounds(asked, self.used):
                excess = used.get(resource, 0) + asked.get(resource, 0) - bound
                if excess > 0:
                    return Excess("max", quota.name, resource, excess)
        return None

    def refusing(
        self, leaf: Quota, in_quota: Amounts, shared: Mapping[Quota, Amounts], in_all: Amounts
    ) -> Excess | None:
        """Returns the limit that a pod would exceed first, or None. See `excesses` for the arguments."""
        return self.over_max(leaf, in_quota, shared) or self.over_guaranteed(in_all)

    def over_firm(self, leaf: Quota, amounts: Amounts, *, alone: bool = False) -> Excess | None:
        """Checks the `min` of a quota against the usage by its pods that must not be preempted.

        The result is the excess, or None. `min` does not limit resources that it does not name.

        Args:
            leaf: the quota.
            amounts: the additional usage of a pod that must not be preempted.
            alone: whether to ignore all other pods.
        """
        for resource, least in leaf.min.items():
            used = 0 if alone else leaf.firm.get(resource, 0)
            excess = used + amounts.get(resource, 0) - least
            if excess > 0:
                return Excess(FIRM, leaf.name, resource, excess)
        return None

    def excesses(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts], in_all: Amounts
    ) -> Excesses:
        """Returns all limits that would be exceeded. See `over_max` and `over_guaranteed`.

        The sum of all `min` and the `max` of the root quota both limit all quotas together. If a resource
        exceeds both of these limits, the result contains only the larger excess.

        Args:
            leaf: the quota.
            amounts: the additional usage of the quota.
            shared: maps each ancestor of the quota to the additional usage of other quotas below it.
            in_all: the additional usage of all quotas together.
        """
        if self.runtimes is not None:
            return list(self._over_runtime(leaf, amounts))
        found: dict[tuple[Quota | None, str], int] = {}
        for quota, resource, most in self.limits(leaf, amounts, shared, in_all):
            used = self.used if quota is None else quota.used
            whose = None if quota is self._top else quota
            excess = used.get(resource, 0) - most
            if excess > found.get((whose, resource), 0):
                found[whose, resource] = excess
        return [(whose, resource, excess) for (whose, resource), excess in found.items()]

    def limits(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts], in_all: Amounts
    ) -> list[tuple[Quota | None, str, int]]:
        """Returns all limits in the order of checks, each with its quota, its resource and what it leaves.

        A limit leaves the usage with which the additional usage does not exceed it. The quota is None for the
        sum of all `min`. Limits of resources that nobody has used or requests are left out. The tree must
        have no runtimes. See `excesses` for the arguments.
        """
        found: list[tuple[Quota | None, str, int]] = []
        for quota in leaf.line:
            asked = sum_of(amounts, shared[quota]) if quota in shared else amounts
            for resource, bound in quota.bounds(asked, self.used):
                found.append((quota, resource, bound - asked.get(resource, 0)))
        guaranteed, names = self.guaranteed, (*self.used, *[each for each in in_all if each not in self.used])
        return found + [(None, each, guaranteed.get(each, 0) - in_all.get(each, 0)) for each in names]

    def never(self, leaf: Quota, amounts: Amounts) -> Excess | None:
        """Returns a limit that these quantities exceed even without other usage, or None if there is none."""
        amounts = self.counted(leaf, amounts)
        for quota in leaf.line:
            for resource, amount in amounts.items():
                excess = amount - quota.max.get(resource, UNLIMITED)
                if excess > 0:
                    return Excess("max", quota.name, resource, excess)
        for resource, amount in amounts.items() if self.runtimes is None else ():
            excess = amount - self.guaranteed.get(resource, 0)
            if excess > 0:
                return Excess("min", "", resource, excess)
        return None

    def over_guaranteed(self, amounts: Amounts) -> Excess | None:
        """Returns the excess of all quotas together over the sum of their `min`, or None.

        Above this sum, no quota has an unused guarantee that another quota could borrow. With runtimes, this
        limit does not exist, and the result is None.
        """
        if self.runtimes is not None:
            return None
        guaranteed, used = self.guaranteed, self.used
        for resource, amount in used.items():
            excess = amount + amounts.get(resource, 0) - guaranteed.get(resource, 0)
            if excess > 0:
                return Excess("min", "", resource, excess)
        for resource, amount in amounts.items():
            if resource not in used and amount > guaranteed.get(resource, 0):
                return Excess("min", "", resource, amount - guaranteed.get(resource, 0))
        return None

    def within_min(self, leaf: Quota, amounts: Amounts) -> bool:
        """Returns True if a quota's usage with these quantities stays within its `min` for every resource."""
        return leaf.over_min({**dict.fromkeys(leaf.used, 0), **amounts}) is None


def _line(name: str, manifests: Mapping[str, ElasticQuota]) -> Iterator[str]:
    while name in manifests:  # the parent of a new or deleted quota is unknown
        yield name
        name = manifests[name].parent


def sum_of(amounts: Amounts, more: Amounts) -> Amounts:
    """Returns the sum of two mappings of quantities."""
    if not more:
        return amounts
    total = dict(amounts)
    add_to(total, more, 1)
    return total
