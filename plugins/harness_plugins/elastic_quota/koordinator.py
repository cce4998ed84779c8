"""Implements Koordinator's elastic quotas, which form a tree.

The runtime of a quota is the amount that it may use at present. It depends on the requests to all quotas. A
pod is admitted within the runtime of its quota, and preempts less important pods of its own quota. Quota that
was lent is taken back by `revoke.py`, not by preemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import of_lower_priority
from harness_plugins.elastic_quota.capacity import waits_for_victims
from harness_plugins.elastic_quota.dry_run import Claim, Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

NO_QUOTA = "a pod without a quota cannot preempt"
FIRM_PODS = "with it, pods that must not be preempted would exceed their quota's min"


@final
class KoordinatorRules:
    """The rules of Koordinator. See `AckRules`.

    Args:
        usage: the quotas, with runtimes.
        quirks: whether dry runs reproduce behavior that is found only in Koordinator's code. See `exceeded`.
    """

    by_usage = False
    names_nodes = False
    sorts_victims = False
    least_first = False
    keeps_room = False
    looks_ahead = False
    examines_all = True

    def __init__(self, usage: QuotaUsage, *, quirks: bool = True) -> None:
        self._usage = usage
        self._quirks = quirks
        self.counts_twice = quirks  # Koordinator's code checks the quota again, see `QuotaBound`

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns False, because quotas do not reclaim guarantees by preemption."""
        return False

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns the reason why preemption cannot help, or None if it might.

        The pod has no quota, or no pod of its quota is less important. With `quirks=off`, there is another
        reason. Pods that must not be preempted may use only the `min` of their quota. If such a pod would
        exceed this limit, preemption does not help.
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
        """Returns the reason why a pod cannot preempt now, such as terminating pods of its quota."""
        return waits_for_victims(request, expected, self._usage, reclaims=False)

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the exceeded limits that count in a dry run.

        With `quirks=on`, a dry run checks the quota only when it puts victims back. It then compares only the
        runtime of the requested resources. Admission can therefore refuse the pod after its victims are gone.
        If only the `max` of sibling quotas names a resource, the runtime of this quota is 0 for the resource.
        A pod that requests it always exceeds this runtime, although admission ignores the resource.

        With `quirks=off`, all limits of admission count, also after the removal of all potential victims.
        """
        tree, quota, own = self._usage.tree, request.quota, request.own
        excesses = request.excesses(tree)
        if not self._quirks:
            return Exceeded(excesses, excesses)
        found = [each for each in excesses if each[0] is quota and each[1] in own]
        unnamed = tree.runtimes.unnamed(quota.name) if tree.runtimes is not None and quota is not None else ()
        if unnamed:
            asked = request.pod.template.spec.requests.items()
            found += [(quota, name, amount) for name, amount in asked if amount and name in unnamed]
        return Exceeded(found, ())

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod: less important, preemptible pods of the same quota.

        Koordinator's `disableDefaultQuotaPreemption` prevents preemption for pods without a quota.
        """
        of, quota = self._usage.of, request.quota

        def eligible_pods(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
            own = (each for each in of_lower_priority(node, preemptor) if of(each).quota is quota)
            return [each for each in own if not (of(each).firm or are_mates(each, preemptor))]

        return Claim(() if quota is None else self._usage.nodes_of(quota), eligible_pods)
