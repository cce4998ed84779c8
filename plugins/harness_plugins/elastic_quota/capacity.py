"""Capacity scheduling: the rules of scheduler-plugins about who may preempt whom.

Quotas are flat, one a namespace. A pod that would borrow takes from its own namespace, by priority; one that
claims its guarantee takes from namespaces that borrow, whatever their priority.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.claim import Claim
from harness_plugins.kube.node import NodeInfo
from harness_plugins.kube.pod import PodInfo
from harness_plugins.kube.preemption import NEVER_PREEMPTS, VICTIMS_LEAVING


@final
class CapacityRules:
    """See the module.

    Args:
        accounts: the quotas, without hierarchy.

    Attributes:
        removes_twice: upstream's defect in the dry run, see `DryRun.run`.
    """

    removes_twice = True

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def reclaims(self, claim: Claim) -> bool:
        """Whether the pod claims what its quota is guaranteed, instead of borrowing."""
        return claim.quota is not None and claim.quota.over_min(claim.in_quota) is None

    def why_not_eligible(self, claim: Claim, nominated: NodeInfo | None) -> str | None:
        """Why a pod may not preempt now: it never does, or it waits for pods that are leaving.

        Args:
            claim: the pod's claim.
            nominated: the node that a preemption made room on, unless it can never run the pod.
        """
        pod, quota = claim.pod, claim.quota
        if not pod.preempts:
            return NEVER_PREEMPTS
        if nominated is None:
            return None
        reclaims = self.reclaims(claim)
        for other in nominated.pods:
            if not other.terminating:
                continue
            theirs = self._accounts.quota_of(other)
            if quota is None:
                waits = theirs is None and other.priority < pod.priority
            elif theirs is quota:
                waits = other.priority < pod.priority
            else:
                waits = theirs is not None and reclaims and theirs.borrows() is not None
            if waits:
                return VICTIMS_LEAVING
        return None

    def potential_victims(self, claim: Claim, node: NodeInfo) -> list[PodInfo]:
        """Who may be a victim on a node, most important first."""
        pod, quota, accounts = claim.pod, claim.quota, self._accounts
        least_first = reversed(node.by_importance())
        if quota is None or not self.reclaims(claim):
            found = [
                each
                for each in least_first
                if each.priority < pod.priority and accounts.quota_of(each) is quota
            ]
        else:
            found = self._borrowers(claim, least_first)
        # Where priority and start are equal the sort leaves the order in which pods were visited.
        return sorted(found, key=lambda each: (-each.priority, each.start))

    def _borrowers(self, claim: Claim, least_first: Iterable[PodInfo]) -> list[PodInfo]:
        """Pods of quotas that borrow, the least important ones until their quota no longer does."""
        accounts, found = self._accounts, []
        for each in least_first:
            theirs = accounts.quota_of(each)
            if theirs is not None and theirs is not claim.quota and theirs.borrows() is not None:
                accounts.refund(each)
                found.append(each)
        for each in found:
            accounts.charge(each)
        return found
