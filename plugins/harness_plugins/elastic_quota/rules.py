"""Defines the preemption rules that differ between the semantics of elastic quotas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


class Claim(Protocol):
    """The potential victims of a pod in one search. The state does not change during the search."""

    def where(self) -> Collection[int]:
        """Returns the positions of the nodes that may have victims. Other nodes certainly have none."""

    def eligible_pods(self, node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
        """Returns the pods of a node that a preemptor can evict. See `EligiblePods`."""


class Rules(Protocol):
    """The rules that differ between semantics. All other code is shared."""

    @property
    def names_nodes(self) -> bool:
        """True if the record lists each node on which no pod can be preempted."""

    @property
    def counts_twice(self) -> bool:
        """True if a dry run also checks the quota for a victim that does not fit on the node.

        See `QuotaBound`.
        """

    @property
    def sorts_victims(self) -> bool:
        """True if victims are sorted by importance, even if evicting some of them violates a budget."""

    @property
    def least_first(self) -> bool:
        """True if the least important victims are evicted first. Otherwise, the dry run's order is kept."""

    @property
    def keeps_room(self) -> bool:
        """True if no other pod may use resources that a preemptor has reclaimed for its quota's guarantee."""

    @property
    def looks_ahead(self) -> bool:
        """True if dry runs count terminating pods as gone, so that no pod is preempted twice."""

    @property
    def examines_all(self) -> bool:
        """True if preemption for a single pod also tries unschedulable nodes, as for several pods."""

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if a request claims the guarantee of the quota and does not borrow.

        If the result is False, it remains False with more nominated pods, unless the quota's usage changes.

        Args:
            quota: the quota.
            amounts: the requests, including those of nominated pods. See `QuotaRequest.in_quota`.
            own: the part of `amounts` that belongs to the pod, or to the pods of its gang.
        """

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns the reason why preemption cannot help on any node, or None if it might help."""

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can.

        Args:
            request: the request of the pod.
            expected: the node to which a preemption nominated the pod, unless the pod can never run on it.
            reclaims: whether the pod, with its gang, claims the guarantee of its quota.
        """

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the limits that a pod exceeds now and that count in dry runs."""

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod."""


def waits_for_victims(
    request: QuotaRequest, expected: NodeInfo | None, usage: QuotaUsage, *, reclaims: bool
) -> str | None:
    """Returns the reason why a pod cannot preempt now, or None if it can.

    These are the rules of scheduler-plugins and Koordinator. The pod waits while certain pods on its node are
    terminating. They are less important pods of its quota or, if the pod reclaims, pods of a borrowing quota.
    The arguments are the same as those of `Rules.why_not_eligible`.
    """
    pod, quota = request.pod, request.quota
    if not pod.preempts:
        return NEVER_PREEMPTS
    for other in expected.pods if expected is not None else ():
        if not other.terminating:
            continue
        theirs = usage.quota_of(other)
        if theirs is quota:
            waits = other.priority < pod.priority
        else:
            waits = theirs is not None and reclaims and theirs.borrows() is not None
        if waits:
            return VICTIMS_LEAVING
    return None
