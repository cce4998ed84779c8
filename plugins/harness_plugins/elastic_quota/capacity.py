"""Implements capacity scheduling, which has the rules of scheduler-plugins for preemption between quotas.

Quotas are flat, and each namespace has one quota. A pod that would borrow preempts within its namespace by
priority. A pod that stays within the guarantee of its quota preempts pods of any priority in namespaces that
borrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.victims import EligiblePods
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.rules import Rules


@final
class CapacityRules(Rules):
    """The rules of capacity scheduling, for quotas without a hierarchy."""

    needs_quota = False
    names_nodes = True
    counts_twice = True

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if `usage + request <= min` for the quota in the compared resources."""
        return quota is not None and quota.over_min(amounts) is None

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns all limits that the pod exceeds.

        A dry run first removes all potential victims, and then ignores the requests of nominated pods. When
        it puts victims back, it counts these requests, as does the attempt that follows.
        """
        tree = self.usage.tree
        return Exceeded(request.excesses(tree), request.own_excesses(tree))

    def eligible_pods(self, quota: Quota | None, *, reclaims: bool) -> EligiblePods:
        """Returns a function that finds the potential victims on a node. Least important pods come first.

        If the pod reclaims, each borrowing quota loses pods until it no longer borrows.
        """
        usage = self.usage

        def lower(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
            return self.lower_pods(reversed(node.by_importance()), preemptor, quota)

        def borrowers(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
            found = []
            for each in reversed(node.by_importance()):
                theirs = usage.quota_of(each)
                if theirs is None or theirs is quota or are_mates(each, preemptor):
                    continue
                if theirs.borrows() is not None:
                    usage.refund(each)
                    found.append(each)
            for each in found:
                usage.charge(each)
            return found

        return borrowers if reclaims else lower
