"""Koordinator's elastic quotas: a tree in which what a quota may use follows from what all of them ask for.

A pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. What is
lent comes back not by preemption but by `revoke.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import final

from harness.models.cluster import KOORDINATOR, UNLIMITED, ElasticQuota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Claim
from harness_plugins.elastic_quota.runtime import Part, fair_shares
from harness_plugins.elastic_quota.tree import (
    Amounts,
    Excess,
    Excesses,
    FirstExceeded,
    Quota,
    QuotaTree,
    bound_of,
)

PREEMPTIBLE_LABEL = f"{KOORDINATOR}preemptible"
"""A pod with the value `false` is never a victim."""

_DEFAULT_QUOTA = ("cpu", "memory")
"""What the `max` of the quota names that Koordinator keeps for pods without one."""


@final
class RuntimeTree(QuotaTree):
    """Quotas whose bound is their runtime.

    Args:
        manifests: the quotas by name.
        capacity: resource -> what all nodes have together.
    """

    def __init__(self, manifests: Mapping[str, ElasticQuota], capacity: Mapping[str, int]) -> None:
        super().__init__(manifests, hierarchical=True)
        self._manifests = manifests
        self._capacity = capacity
        self._below: dict[str, list[str]] = {}
        for name, manifest in manifests.items():
            self._below.setdefault(manifest.parent, []).append(name)
        self._resources = dict.fromkeys(
            each for manifest in manifests.values() for each in (*(manifest.min or ()), *(manifest.max or ()))
        )
        self._asked: dict[str, dict[str, int]] = {name: {} for name in self.leaves}
        self._outside: dict[str, int] = {}
        self._runtime: dict[str, dict[str, int]] = {}

    def ask(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """A pod that waits or runs asks for these amounts (1), or is gone (-1)."""
        _change(self._asked[leaf.name], amounts, sign)
        self._runtime.clear()

    def take_outside(self, amounts: Amounts, sign: int = 1) -> None:
        """A pod without a quota is bound (1), or gone (-1): what it takes is not there to be shared.

        It is charged to a quota whose `max` names only cpu and memory, so other resources stay to be shared.
        """
        _change(self._outside, {each: amounts[each] for each in _DEFAULT_QUOTA if each in amounts}, sign)
        self._runtime.clear()

    def runtime(self, leaf: Quota) -> Mapping[str, int]:
        """What a quota may use now: resource -> amount, in the resources that its `max` names."""
        if not self._runtime:
            total = {
                each: self._capacity.get(each, 0) - self._outside.get(each, 0) for each in self._resources
            }
            self._share("", total, self._requests())
        return self._runtime[leaf.name]

    def _requests(self) -> dict[str, dict[str, int]]:
        """What each quota asks for: its pods, or the quotas below it; at least its `min` if it lends not."""
        found: dict[str, dict[str, int]] = {}
        for name in sorted(self.quotas, key=lambda name: -len(self.quotas[name].line)):  # from below
            manifest = self._manifests[name]
            asked = found.setdefault(name, {}) if name not in self.leaves else dict(self._asked[name])
            for resource in self._resources:
                least = 0 if manifest.lends else manifest.min_of(resource)
                asked[resource] = min(max(asked.get(resource, 0), least), _most(manifest, resource))
            found[name] = asked
            if manifest.parent:
                _change(found.setdefault(manifest.parent, {}), asked, 1)
        return found

    def _share(self, above: str, total: Mapping[str, int], asked: Mapping[str, Mapping[str, int]]) -> None:
        names = self._below.get(above, [])
        shares: dict[str, dict[str, int]] = {name: {} for name in names}
        for resource in self._resources:
            parts = [self._part(name, resource, asked[name][resource]) for name in names]
            for name, share in zip(names, fair_shares(total[resource], parts), strict=True):
                shares[name][resource] = share
        for name, share_of in shares.items():
            named = self._manifests[name].max or {}
            self._runtime[name] = {each: amount for each, amount in share_of.items() if each in named}
            self._share(name, share_of, asked)

    def _part(self, name: str, resource: str, request: int) -> Part:
        manifest = self._manifests[name]
        weights = manifest.weight if manifest.weight is not None else manifest.max or {}
        return Part(name, request, manifest.min_of(resource), weights.get(resource, 0), manifest.lends)

    # --- what differs from quotas with a fixed bound ------------------------------------------------------

    def over_max(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts] | None = None
    ) -> Excess | None:
        """Whether a quota would exceed its runtime; those above it are not asked."""
        for resource, bound in self.runtime(leaf).items():
            excess = leaf.used.get(resource, 0) + amounts.get(resource, 0) - bound
            if excess > 0:
                return Excess("runtime", leaf.name, resource, excess)
        return None

    def excesses(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts], in_all: Amounts
    ) -> Excesses:
        """In which resources a quota would exceed its runtime, and by how much."""
        would = {each: leaf.used.get(each, 0) + amounts.get(each, 0) for each in self.runtime(leaf)}
        over = ((each, would[each] - bound) for each, bound in self.runtime(leaf).items())
        return [(leaf, resource, excess) for resource, excess in over if excess > 0]

    def first_exceeded(self, leaf: Quota, amounts: Amounts) -> FirstExceeded:
        """What tells whether these amounts would exceed the runtime of their quota, whenever it is asked.

        That follows from what others ask for, whether the quota uses as much as before or not.
        """
        return lambda _: bound_of(self.over_max(leaf, amounts))

    def never(self, leaf: Quota, amounts: Amounts) -> Excess | None:
        """A `max` that these amounts exceed even when nothing else is used, here or above."""
        for quota in leaf.line:
            for resource, amount in amounts.items():
                excess = amount - _most(self._manifests[quota.name], resource)
                if excess > 0:
                    return Excess("max", quota.name, resource, excess)
        return None

    def over_guaranteed(self, amounts: Amounts) -> Excess | None:
        """Nothing bounds all quotas together but their runtimes."""
        return None


@final
class KoordinatorRules:
    """See the module, and `Rules`.

    Args:
        usage: the quotas, on a `RuntimeTree`.
    """

    as_upstream = False
    keeps_room = False
    looks_ahead = False
    examines_all = True
    keeps_dry_runs = False

    def __init__(self, usage: QuotaUsage) -> None:
        self._usage = usage

    def reclaims(self, quota: Quota | None, amounts: Amounts) -> bool:
        """Guarantees are not taken back by preemption."""
        return False

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Nobody of its quota is less important."""
        lower = self._usage.has_lower(request.quota, request.pod.priority)
        return None if lower else "no pod of lower priority"

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """It never preempts, or less important pods of its quota are leaving its node."""
        if not request.pod.preempts:
            return NEVER_PREEMPTS
        for other in expected.pods if expected is not None else ():
            if other.terminating and _is_below(other, request, self._usage):
                return VICTIMS_LEAVING
        return None

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """See `KoordinatorClaim`."""
        return KoordinatorClaim(self._usage, request)

    def in_turn(self, victims: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Most important first."""
        return victims


@final
class KoordinatorClaim:
    """What a pod may take from less important pods of its own quota; see `Claim`.

    Args:
        usage: the quotas.
        request: the pod's request.
    """

    def __init__(self, usage: QuotaUsage, request: QuotaRequest) -> None:
        self._usage = usage
        self._request = request

    def where(self) -> Collection[int]:
        """Nodes with pods of its own quota."""
        return self._usage.nodes_of(self._request.quota)

    def potential_victims(self, node: NodeInfo) -> list[PodInfo]:
        """Less important pods of its own quota that may be preempted, but none of its own gang or job."""
        request = self._request
        return [
            each
            for each in node.by_importance()
            if _is_below(each, request, self._usage)
            and is_preemptible(each)
            and not are_mates(each, request.pod)
        ]


def _is_below(other: PodInfo, request: QuotaRequest, usage: QuotaUsage) -> bool:
    return other.priority < request.pod.priority and usage.quota_of(other) is request.quota


def is_preemptible(pod: PodInfo) -> bool:
    """Whether a pod does not say that it must not be preempted."""
    return pod.template.labels.get(PREEMPTIBLE_LABEL) != "false"


def _most(manifest: ElasticQuota, resource: str) -> int:
    """A `max` of Koordinator bounds only what it names."""
    return manifest.max.get(resource, UNLIMITED) if manifest.max else UNLIMITED


def _change(total: dict[str, int], amounts: Amounts, sign: int) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + sign * amount
