"""Defines the preemption rules of elastic quotas. Each semantics changes some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.models.elastic.quota import Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Claim, Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


class Rules:
    """The rules of one semantics. Here are those that most of them share.

    Args:
        usage: the quotas and the pods that are charged to them.

    Attributes:
        needs_quota: whether only pods with a quota preempt. If not, pods outside of all quotas preempt each
            other like the pods of one quota.
        not_lower: the reason to record if a pod may preempt only less important pods, and there are none.
        by_usage: True if a quota can claim its guarantee while its usage is within its `min`. False if the
            usage plus the request must be within its `min`.
        keeps_firm: whether a pod that must not be preempted waits if it would exceed the `min` of its quota.
        names_nodes: whether the record lists each node on which no pod can be preempted.
        counts_twice: whether a dry run also checks the quota for a victim that does not fit on the node. See
            `QuotaBound`.
        sorts_victims: whether victims are sorted by importance, even if evicting some of them violates a
            budget.
        least_first: whether the least important victims are evicted first. Otherwise, the dry run's order is
            kept.
        keeps_room: whether no other pod may use resources that a preemptor has reclaimed for its quota's
            guarantee.
        looks_ahead: whether dry runs count terminating pods as gone, so that no pod is preempted twice.
        examines_all: whether preemption for a single pod also tries unschedulable nodes, as for several pods.
    """

    needs_quota = True
    not_lower = "no pod of lower priority"
    by_usage = False
    keeps_firm = False
    names_nodes = False
    counts_twice = False
    sorts_victims = True
    least_first = False
    keeps_room = False
    looks_ahead = False
    examines_all = True

    def __init__(self, usage: QuotaUsage) -> None:
        self.usage = usage

    def reclaims(self, request: QuotaRequest) -> bool:
        """Returns True if pods claim the guarantee of their quota, and so preempt pods of other quotas."""
        return False

    def claim(self, quota: Quota | None, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod. If the pod reclaims, these are pods of borrowing quotas.

        Otherwise, they are less important pods of the pod's own quota.
        """
        losing = () if quota is None and self.needs_quota else (quota,)
        return Claim(losing, lambda node, preemptor: self.lower_pods(node.pods, preemptor, quota))

    def lower_pods(
        self, pods: Iterable[PodInfo], preemptor: PodInfo, quota: Quota | None
    ) -> Sequence[PodInfo]:
        """Returns the pods of a quota that are less important than a preemptor, and that it may preempt."""
        of = self.usage.of
        own = [each for each in pods if each.priority < preemptor.priority and of(each).quota is quota]
        return [each for each in own if not (of(each).firm or are_mates(each, preemptor))]

    def why_waiting(self, request: QuotaRequest, expected: NodeInfo, *, reclaims: bool) -> str | None:
        """Returns the reason why a pod waits for pods that terminate, or None if it can preempt now.

        It waits while less important pods of its quota are terminating on its node. If it reclaims, it also
        waits for pods of a borrowing quota.

        Args:
            request: the request of the pod.
            expected: the node to which a preemption nominated the pod.
            reclaims: whether the pod, with its gang, claims the guarantee of its quota.
        """
        pod = request.pod
        for other in expected.pods:
            if not other.terminating:
                continue
            theirs = self.usage.quota_of(other)
            if theirs is request.quota:
                waits = other.priority < pod.priority
            else:
                waits = theirs is not None and reclaims and theirs.borrows() is not None
            if waits:
                return VICTIMS_LEAVING
        return None

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the exceeded limits that count in a dry run: all limits, with the nominated pods."""
        excesses = request.excesses(self.usage.tree)
        return Exceeded(excesses, excesses)
