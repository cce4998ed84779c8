"""Implements capacity scheduling, which has the rules of scheduler-plugins for preemption between quotas.

Quotas are flat, and each namespace has one quota. A pod that would borrow preempts within its namespace by
priority. A pod that stays within the guarantee of its quota preempts pods of any priority in namespaces that
borrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.elastic.quota import Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.dry_run import Claim, Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.rules import Rules


@final
class CapacityRules(Rules):
    """The rules of capacity scheduling, for quotas without a hierarchy."""

    needs_quota = False
    names_nodes = True
    counts_twice = True

    def reclaims(self, request: QuotaRequest) -> bool:
        """Returns True if `usage + request <= min` for the quota in the compared resources."""
        return request.quota is not None and request.quota.over_min(request.in_quota) is None

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns all limits that the pod exceeds.

        A dry run first removes all potential victims, and then ignores the requests of nominated pods. When
        it puts victims back, it counts these requests, as does the attempt that follows.
        """
        tree, own = self.usage.tree, request.own
        alone = request._replace(in_quota=own, in_all=own, shared={})
        return Exceeded(request.excesses(tree), alone.excesses(tree))

    def claim(self, quota: Quota | None, *, reclaims: bool) -> Claim:
        """See `Rules`. Least important pods come first. Each quota loses pods until it no longer borrows."""
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
                    usage.charge(each, -1)
                    found.append(each)
            for each in found:
                usage.charge(each)
            return found

        if not reclaims:
            return Claim((quota,), lower)
        leaves = usage.tree.leaves.values()
        return Claim([leaf for leaf in leaves if leaf is not quota and leaf.borrows() is not None], borrowers)
