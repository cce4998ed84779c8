"""Koordinator's elastic quotas: a tree in which what a quota may use follows from what all of them ask for.

A pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. What is
lent comes back not by preemption but by `revoke.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from harness.models.cluster import KOORDINATOR, UNLIMITED, ElasticQuota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness.models.runtime_quotas import DEFAULT_QUOTA_RESOURCES, RuntimeQuotas
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Claim
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


class KoordinatorArgs(NamedTuple):
    """What of `ElasticQuotaArgs`, and of feature gates, counts; the defaults are Koordinator's.

    Attributes:
        scales: `enableMinQuotaScale`.
        checks_parents: `enableCheckParentQuota`.
        trees: the gate `MultiQuotaTree`.
        quirks: whether what only Koordinator's code explains is done as the code does it.
    """

    scales: bool = True
    checks_parents: bool = False
    trees: bool = False
    quirks: bool = True


USUAL_ARGS = KoordinatorArgs()


@final
class RuntimeTree(QuotaTree):
    """Quotas whose bound is their runtime.

    Args:
        manifests: the quotas by name.
        capacity: resource -> what all nodes have together.
        args: see `KoordinatorArgs`.
    """

    def __init__(
        self,
        manifests: Mapping[str, ElasticQuota],
        capacity: Mapping[str, int],
        args: KoordinatorArgs = USUAL_ARGS,
    ) -> None:
        super().__init__(manifests, hierarchical=True)
        self.runtimes = RuntimeQuotas(
            manifests, capacity, scales=args.scales, quirks=args.quirks, trees=args.trees
        )
        self._manifests = manifests
        self._args = args

    @property
    def rescaled(self) -> int:
        """See `QuotaTree`: guarantees are scaled as their quotas are asked for."""
        return self.runtimes.rescaled

    @property
    def settled(self) -> bool:
        """See `QuotaTree`."""
        return self.runtimes.settled

    def counted(self, leaf: Quota | None, requests: Amounts) -> Amounts:
        """What the `max` of a pod's quota names; without one, what that of the default quota does."""
        named = self._manifests[leaf.name].max or () if leaf is not None else DEFAULT_QUOTA_RESOURCES
        return {resource: amount for resource, amount in requests.items() if resource in named}

    def ask(self, leaf: Quota, amounts: Amounts, sign: int = 1) -> None:
        """A pod that waits or runs asks for these amounts (1), or is gone (-1)."""
        self.runtimes.ask(leaf.name, amounts, sign)

    def take_outside(self, amounts: Amounts, sign: int = 1) -> None:
        """A pod without a quota is bound (1), or gone (-1): what it takes is not there to be shared."""
        self.runtimes.take_outside(amounts, sign)

    def runtime(self, leaf: Quota) -> Mapping[str, int]:
        """What a quota may use now: resource -> amount, in the resources that its `max` names."""
        return self.runtimes.runtime(leaf.name)

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
