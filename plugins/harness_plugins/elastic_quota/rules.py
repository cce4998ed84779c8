"""The rules of preemption in the semantics of elastic quotas."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


class Claim(Protocol):
    """The potential victims of a pod now; used in one search, during which nothing else changes."""

    def where(self) -> Collection[int]:
        """Returns the positions of nodes that may have a victim; other nodes certainly have none."""

    def potential_victims(self, node: NodeInfo) -> list[PodInfo]:
        """Returns the potential victims on a node, most important first."""


class Rules(Protocol):
    """The rules in which the semantics differ; all other code is common to them."""

    @property
    def names_nodes(self) -> bool:
        """True if the record names each node on which no pod may be a victim."""

    @property
    def counts_twice(self) -> bool:
        """True if a victim that does not fit the node is also checked against the quota, see `QuotaBound`."""

    @property
    def sorts_victims(self) -> bool:
        """True if victims are in order of importance, even if some of them break a budget."""

    @property
    def least_first(self) -> bool:
        """True if the least important victims are evicted first, instead of in the order of dry runs."""

    @property
    def keeps_room(self) -> bool:
        """True if resources reclaimed for a guarantee are kept for the preemptor against all pods."""

    @property
    def looks_ahead(self) -> bool:
        """True if dry runs count leaving pods as gone, so that no pod is a victim twice."""

    @property
    def examines_all(self) -> bool:
        """True if unschedulable nodes are tried for a single pod too, as they are for several pods."""

    @property
    def keeps_dry_runs(self) -> bool:
        """True if dry runs depend only on what `shortcuts/kept_dry_runs.py` lists."""

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if a request is claimed from the quota's guarantee, instead of being borrowed.

        If it is not, it is also not with more nominated pods, as long as the quota's usage is the same.

        Args:
            quota: the quota.
            amounts: the requested amounts and those of its nominated pods, see `QuotaRequest.in_quota`.
            own: the part of `amounts` that belongs to the pod, or to the pods of its gang.
        """

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns why no preemption on any node can help; None if one might."""

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns why a pod may not preempt now; None if it may.

        Args:
            request: the pod's request.
            expected: the node to which a preemption nominated the pod, unless it can never run the pod.
            reclaims: whether the pod, with its gang, requests its guarantee.
        """

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns the limits that a pod exceeds now and that count in dry runs."""

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod."""


def waits_for_victims(
    request: QuotaRequest, expected: NodeInfo | None, usage: QuotaUsage, *, reclaims: bool
) -> str | None:
    """Returns why a pod may not preempt now, by scheduler-plugins and Koordinator; None if it may.

    The reason is that pods are leaving its node: less important pods of its quota, or, for a pod that
    reclaims, pods of a borrowing quota. The arguments are the same as for `Rules.why_not_eligible`.
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
