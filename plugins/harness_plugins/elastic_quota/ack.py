"""ACK's documented rules about who may preempt whom, the default.

A pod, or a gang, whose quota stays within its `min` takes from quotas that use more than theirs; one whose
quota would exceed it takes only from less important pods of its own quota; one without a quota takes from
nobody. Nobody is a victim twice, or against a PodDisruptionBudget; system pods are none.
https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/enable-preemptive-scheduling
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from harness.models.cluster import SYSTEM_PRIORITY_CLASSES
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.claim import Claim
from harness_plugins.elastic_quota.tree import Amounts, Quota

NO_QUOTA = "a pod that belongs to no quota may not preempt"
QUOTA_LEAVING = "not eligible until the pods that are leaving have given back their quota."
NOT_LOWER = "its quota would exceed its min, and has no pod of lower priority"
NOBODY_BORROWS = "no other quota uses more than its min"

_SYSTEM = min(known.value for known in SYSTEM_PRIORITY_CLASSES.values())


@final
class AckRules:
    """See the module, and `Rules`.

    Args:
        accounts: the quota tree.
        budgets: the PodDisruptionBudgets, a hard rule here.
        protected: label of pods that are never victims, such as those of DaemonSets: (key, value), where a
            value of None stands for any.
    """

    as_upstream = False
    keeps_room = True
    looks_ahead = True

    def __init__(
        self, accounts: Accounts, budgets: Budgets, protected: tuple[str, str | None] | None = None
    ) -> None:
        self._accounts = accounts
        self._budgets = budgets
        self._protected = protected

    def reclaims(self, quota: Quota | None, amounts: Amounts) -> bool:
        """Whether the quota stays within its `min` in every resource."""
        return quota is not None and self._accounts.tree.within_min(quota, amounts)

    def why_never(self, claim: Claim, *, reclaims: bool) -> str | None:
        """It has no quota, or nobody borrows, or nobody of its own quota is less important."""
        accounts, quota = self._accounts, claim.quota
        if quota is None:
            return NO_QUOTA
        if not reclaims:
            return None if accounts.has_lower(quota, claim.pod.priority) else NOT_LOWER
        tree = accounts.tree
        found = any(leaf is not quota and tree.may_lose(leaf, quota) for leaf in tree.leaves.values())
        return None if found else NOBODY_BORROWS

    def why_not_eligible(self, claim: Claim, expected: NodeInfo | None, *, reclaims: bool) -> str | None:
        """It never preempts, or it waits for what leaves the node where room was made for it, or its quota.

        The dry run that made the room took all that to have left.
        """
        if not claim.pod.preempts:
            return NEVER_PREEMPTS
        if expected is None or claim.quota is None:
            return None
        if any(other.terminating for other in expected.pods):
            return VICTIMS_LEAVING
        if claim.refusal is not None:
            tree = self._accounts.tree
            with tree.departed():
                excess = tree.over_max(claim.quota, claim.in_quota, claim.shared)
                if excess is None and tree.over_guaranteed(claim.in_all) is None:
                    return QUOTA_LEAVING
        return None

    def examines(self, node: NodeInfo, *, alone: bool) -> bool:
        """Nodes that are marked unschedulable are left out for one pod; for several they join the pool."""
        return not (alone and node.unschedulable)

    def where(self, claim: Claim, *, reclaims: bool) -> Collection[int]:
        """Nodes with pods of quotas that borrow, else with pods of its own."""
        accounts, quota = self._accounts, claim.quota
        if quota is None:
            return ()
        if not reclaims:
            return accounts.nodes_of(quota)
        tree = accounts.tree
        losing = (leaf for leaf in tree.leaves.values() if leaf is not quota and tree.may_lose(leaf, quota))
        return {position for leaf in losing for position in accounts.nodes_of(leaf)}

    def potential_victims(self, claim: Claim, node: NodeInfo, *, reclaims: bool) -> list[PodInfo]:
        """Borrowers of other quotas for a pod that reclaims, else less important pods of its own.

        The least important ones come first: they use up the disruptions that budgets allow, and a quota's
        pods are taken until it no longer borrows.
        """
        pod, quota, accounts, budgets = claim.pod, claim.quota, self._accounts, self._budgets
        found: list[PodInfo] = []
        if quota is None:
            return found
        left: dict[int, int] = {}
        for each in reversed(node.by_importance()):
            theirs = accounts.quota_of(each)
            if reclaims:
                if theirs is None or theirs is quota or not accounts.tree.may_lose(theirs, quota):
                    continue
            elif theirs is not quota or each.priority >= pod.priority:
                continue
            if each.terminating or self._is_protected(each) or _same_job(each, pod):
                continue
            if each.template.budgets:
                charged = list(budgets.charged(each))
                if any(left.setdefault(number, budgets.allowed[number]) < 1 for number in charged):
                    continue
                for number in charged:
                    left[number] -= 1
            found.append(each)
            if reclaims:
                accounts.refund(each)
        for each in found if reclaims else ():
            accounts.charge(each)
        found.reverse()
        return found

    def _is_protected(self, pod: PodInfo) -> bool:
        if pod.priority >= _SYSTEM:
            return True
        named = pod.job.priority_class if pod.job is not None else ""
        if named and named.startswith("system-"):
            return True
        if self._protected is None:
            return False
        key, value = self._protected
        labels = pod.template.labels
        return key in labels and value in (None, labels[key])

    def in_turn(self, victims: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Least important first, so that no quota is below its `min` when it loses a pod to another."""
        return victims[::-1]


def _same_job(pod: PodInfo, other: PodInfo) -> bool:
    return pod.job is not None and pod.job is other.job
