"""ACK's documented rules of preemption between quotas, the default.

If a quota stays within its `min`, its pods and gangs may preempt pods of quotas that use more than their
`min`. Otherwise they may only preempt less important pods of their own quota. A pod without a quota may not
preempt. No pod is a victim twice, or against a PodDisruptionBudget. Protected pods are never victims.
https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/enable-preemptive-scheduling
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from harness.models.elastic.lent import Lent
from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.protection import Protection
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Claim

NO_QUOTA = "a pod without a quota may not preempt"
QUOTA_LEAVING = "not eligible until the pods that are leaving have given back their quota."
NOT_LOWER = "its quota would exceed its min, and has no pod of lower priority"
NOT_LOWER_BY_USAGE = "its quota uses more than its min, and has no pod of lower priority"
NOBODY_BORROWS = "no other quota uses more than its min"


@final
class AckRules:
    """See the module, and `Rules`.

    Args:
        usage: the quota tree.
        budgets: the PodDisruptionBudgets, a hard rule here.
        protection: which pods are never victims.
        by_usage: True if a quota claims its guarantee while its usage is within its `min`. False if its usage
            plus the request must be within its `min`.
        examines_all: see `Rules`.
    """

    names_nodes = False
    counts_twice = False
    sorts_victims = True
    least_first = True  # so that no quota falls below its `min` when it loses a pod to another quota
    keeps_room = True
    looks_ahead = True
    keeps_dry_runs = True

    def __init__(
        self,
        usage: QuotaUsage,
        budgets: Budgets,
        protection: Protection,
        *,
        by_usage: bool = False,
        examines_all: bool = False,
    ) -> None:
        self.examines_all = examines_all
        self._usage = usage
        self._budgets = budgets
        self._protection = protection
        self._by_usage = by_usage
        self._may_go: dict[NodeInfo, tuple[int, list[PodInfo]]] = {}  # with the node's generation

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if the quota is within its `min` in every resource, with the request or without it.

        Resources that a preemption frees for other pods of the quota count as used. So a guarantee is not
        claimed several times while victims leave.
        """
        if quota is None:
            return False
        if self._by_usage:
            amounts = {resource: amount - own.get(resource, 0) for resource, amount in amounts.items()}
        return self._usage.tree.within_min(quota, amounts)

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns why preemption cannot help: no quota, no borrowing quota, or no less important pod."""
        usage, quota = self._usage, request.quota
        if quota is None:
            return NO_QUOTA
        if not reclaims:
            if usage.has_lower(quota, request.pod.priority):
                return None
            return NOT_LOWER_BY_USAGE if self._by_usage else NOT_LOWER
        lent = Lent(quota)
        found = any(leaf is not quota and lent.may_lose(leaf) for leaf in usage.tree.leaves.values())
        return None if found else NOBODY_BORROWS

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns why the pod may not: it never preempts, or waits for leaving pods of its node or quota.

        The node is the one to which a preemption nominated the pod. The dry run of that preemption counted
        the leaving pods as gone.
        """
        if not request.pod.preempts:
            return NEVER_PREEMPTS
        if expected is None or request.quota is None:
            return None
        if any(other.terminating for other in expected.pods):
            return VICTIMS_LEAVING
        if request.excess is not None:
            tree = self._usage.tree
            with tree.departed():
                if tree.refusing(request.quota, request.in_quota, request.shared, request.in_all) is None:
                    return QUOTA_LEAVING
        return None

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns all exceeded limits, with nominated pods."""
        excesses = request.excesses(self._usage.tree)
        return Exceeded(excesses, excesses)

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """See `AckClaim`."""
        assert request.quota is not None, "see `why_never`"
        return AckClaim(self, self._usage, self._budgets, request.pod, request.quota, reclaims=reclaims)

    def may_go(self, node: NodeInfo) -> Sequence[PodInfo]:
        """Returns the pods of a node that may be victims, least important first, regardless of budgets."""
        known = self._may_go.get(node)
        if known is not None and known[0] == node.generation:
            return known[1]
        covers = self._protection.covers
        found = [each for each in node.by_importance() if not (each.terminating or covers(each))]
        found.reverse()
        self._may_go[node] = node.generation, found
        return found


@final
class AckClaim:
    """The potential victims: pods of borrowing quotas if the pod reclaims, else of its own; see `Claim`.

    Args:
        rules: determine which pods may ever be victims.
        usage: the quotas.
        budgets: the PodDisruptionBudgets.
        pod: the pod.
        quota: its quota.
        reclaims: whether the pod reclaims its quota's guarantee from other quotas.
    """

    def __init__(
        self,
        rules: AckRules,
        usage: QuotaUsage,
        budgets: Budgets,
        pod: PodInfo,
        quota: Quota,
        *,
        reclaims: bool,
    ) -> None:
        self._rules = rules
        self._usage = usage
        self._budgets = budgets
        self._pod = pod
        self._quota = quota
        self._lent = Lent(quota) if reclaims else None
        job = pod.job
        self._may_have_mates = pod.gang is not None or (job is not None and job.pods > 1)

    def where(self) -> Collection[int]:
        """Returns the nodes with pods of borrowing quotas if the pod reclaims, else of its own quota."""
        usage, quota, lent = self._usage, self._quota, self._lent
        if lent is None:
            return usage.nodes_of(quota)
        losing = (leaf for leaf in usage.tree.leaves.values() if leaf is not quota and lent.may_lose(leaf))
        return set().union(*(usage.nodes_of(leaf) for leaf in losing))

    def potential_victims(self, node: NodeInfo) -> list[PodInfo]:
        """Returns pods of borrowing quotas if the pod reclaims, else less important pods of its own quota.

        The result has no pods of its own gang or job. The least important pods come first: they use up the
        disruptions that budgets allow, and a quota loses pods until it no longer borrows.
        """
        pod, quota, lent, quota_of = self._pod, self._quota, self._lent, self._usage.of
        found: list[PodInfo] = []
        left: dict[int, int] = {}
        if lent is not None:
            lent.restore()
        for each in self._rules.may_go(node):
            if lent is None and each.priority >= pod.priority:
                break  # no further pod is less important
            theirs, amounts, _ = quota_of(each)
            if lent is None:
                if theirs is not quota:
                    continue
            elif theirs is None or theirs is quota or not lent.may_lose(theirs):
                continue
            if self._may_have_mates and are_mates(each, pod):
                continue
            if each.template.budgets and not self._disrupts(each, left):
                continue
            found.append(each)
            if lent is not None and theirs is not None:
                lent.take(theirs, amounts)
        found.reverse()
        return found

    def _disrupts(self, victim: PodInfo, left: dict[int, int]) -> bool:
        """Returns True if all budgets also allow this victim; it then uses one disruption of each."""
        budgets = self._budgets
        charged = list(budgets.charged(victim))
        if any(left.setdefault(number, budgets.allowed[number]) < 1 for number in charged):
            return False
        for number in charged:
            left[number] -= 1
        return True
