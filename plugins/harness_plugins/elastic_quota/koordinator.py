"""Koordinator's elastic quotas: a tree in which what a quota may use follows from what all of them ask for.

A pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. What is
lent comes back not by preemption but by `revoke.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from harness.models.cluster import KOORDINATOR, UNLIMITED, ElasticQuota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness.models.runtime_quotas import DEFAULT_QUOTA_RESOURCES, RuntimeQuotas
from harness_plugins.elastic_quota.dry_run import Exceeded
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

NO_QUOTA = "a pod that belongs to no quota preempts nobody"
FIRM_PODS = "no preemption gives back min that pods use which must not be preempted"


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


def args_of(options: Mapping[str, Any]) -> KoordinatorArgs:
    """What the options of a policy say of them."""
    return KoordinatorArgs(
        options["enableMinQuotaScale"],
        options["enableCheckParentQuota"],
        options["multiQuotaTree"],
        options["quirks"],
    )


@final
class RuntimeTree(QuotaTree):
    """Quotas whose bound is their runtime.

    Args:
        manifests: the quotas by name.
        capacity: resource -> what all nodes have together.
        args: see `KoordinatorArgs`.

    Attributes:
        args: these.
        runtimes: what each quota may use.
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
        self.args = args

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
        found = leaf.runtime = self.runtimes.runtime(leaf.name)
        return found

    # --- what differs from quotas with a fixed bound ------------------------------------------------------

    @property
    def counts_nominated(self) -> bool:
        """They do not."""
        return False

    def is_firm(self, labels: Mapping[str, str]) -> bool:
        """By the label of such pods."""
        return labels.get(PREEMPTIBLE_LABEL) == "false"

    def over_max(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts] | None = None
    ) -> Excess | None:
        """Whether a quota would exceed its runtime, or one above it, where these are asked."""
        for quota, resource, excess in self._excesses(leaf, amounts):
            return Excess("runtime", quota.name, resource, excess)
        return None

    def excesses(
        self, leaf: Quota, amounts: Amounts, shared: Mapping[Quota, Amounts], in_all: Amounts
    ) -> Excesses:
        """In which resources these would exceed their runtimes, and by how much."""
        return list(self._excesses(leaf, amounts))

    def _excesses(self, leaf: Quota, amounts: Amounts) -> Iterator[tuple[Quota, str, int]]:
        """Of the quota all that its `max` names counts, of those above it only what is requested."""
        for quota in leaf.line if self.args.checks_parents else (leaf,):
            for resource, bound in self.runtime(quota).items():
                excess = quota.used.get(resource, 0) + amounts.get(resource, 0) - bound
                if excess > 0 and (quota is leaf or resource in amounts):
                    yield quota, resource, excess

    def first_exceeded(self, leaf: Quota, amounts: Amounts) -> FirstExceeded:
        """What tells whether these amounts would exceed the runtime of their quota, whenever it is asked.

        That follows from what others ask for, whether the quota uses as much as before or not.
        """
        return lambda _: bound_of(self.over_max(leaf, amounts))

    def never(self, leaf: Quota, amounts: Amounts) -> Excess | None:
        """A `max` that these amounts exceed even when nothing else is used, here or above.

        A `max` of Koordinator bounds only what it names.
        """
        for quota in leaf.line:
            most = self._manifests[quota.name].max or {}
            for resource, amount in self.counted(leaf, amounts).items():
                excess = amount - most.get(resource, UNLIMITED)
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
        quirks: whether dry runs do what only Koordinator's code explains, see `exceeded`.
    """

    names_nodes = False
    sorts_victims = False
    keeps_room = False
    looks_ahead = False
    examines_all = True
    keeps_dry_runs = False

    def __init__(self, usage: QuotaUsage, *, quirks: bool = True) -> None:
        self._usage = usage
        self._quirks = quirks

    @property
    def counts_twice(self) -> bool:
        """As its code does it."""
        return self._quirks

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Guarantees are not taken back by preemption."""
        return False

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """It has no quota, or nobody of its quota is less important.

        Without quirks a pod that must not be preempted preempts nobody either where such pods use all of the
        `min`, which no preemption changes.
        """
        pod, quota = request.pod, request.quota
        if quota is None:
            return NO_QUOTA
        if not self._usage.has_lower(quota, pod.priority):
            return "no pod of lower priority"
        if not self._quirks and self._usage.of(pod).firm and self._usage.tree.over_firm(quota, request.own):
            return FIRM_PODS
        return None

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

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Its runtime, in the resources that the pod requests, and only as victims are put back.

        So admission may refuse the pod after its victims are gone. Without quirks all counts that counts in
        admission, also when all potential victims are gone.
        """
        excesses = request.excesses(self._usage.tree)
        if not self._quirks:
            return Exceeded(excesses, excesses)
        own = request.own
        return Exceeded([each for each in excesses if each[0] is request.quota and each[1] in own], ())

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """See `KoordinatorClaim`."""
        return KoordinatorClaim(self._usage, request)

    def in_turn(self, victims: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """As dry runs found them."""
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
        """Nodes with pods of its own quota; none where it has none (`disableDefaultQuotaPreemption`)."""
        quota = self._request.quota
        return () if quota is None else self._usage.nodes_of(quota)

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
