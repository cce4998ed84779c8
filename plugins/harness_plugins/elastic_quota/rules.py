"""What semantics of elastic quotas say about who may preempt whom."""

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
    """Whom a pod may preempt, as things stand: it is made for one search, in which nothing else changes."""

    def where(self) -> Collection[int]:
        """Positions of the nodes that may hold a victim; on the others there certainly is none."""

    def potential_victims(self, node: NodeInfo) -> list[PodInfo]:
        """Who may be a victim on a node, most important first."""


class Rules(Protocol):
    """The points at which semantics differ; the rest is common to them."""

    @property
    def names_nodes(self) -> bool:
        """Whether it is said of each node by its name that nobody on it may be a victim."""

    @property
    def counts_twice(self) -> bool:
        """Whether a victim for which a node has no room is also held against the quota, see `QuotaBound`."""

    @property
    def sorts_victims(self) -> bool:
        """Whether victims are in order of importance, also where some of them break a budget."""

    @property
    def least_first(self) -> bool:
        """Whether victims are evicted the least important first, and not as dry runs found them."""

    @property
    def keeps_room(self) -> bool:
        """Whether room that was taken back for a guarantee is kept for its owner from everyone."""

    @property
    def looks_ahead(self) -> bool:
        """Whether dry runs take what is leaving to have left; nobody is a victim twice then."""

    @property
    def examines_all(self) -> bool:
        """Whether nodes that are marked unschedulable are tried for one pod alone, as for several."""

    @property
    def keeps_dry_runs(self) -> bool:
        """Whether dry runs depend on nothing but what `shortcuts/kept_dry_runs.py` says."""

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Whether a request is claimed from the quota's guarantee, instead of being borrowed.

        If it is not, it is not with more nominated pods either, as long as the quota uses the same.

        Args:
            quota: the quota.
            amounts: what is requested of it and what its nominated pods take, see `QuotaRequest.in_quota`.
            own: the part of that which the pod, or the pods of its gang, take themselves.
        """

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Why no preemption on any node can help; None when one might."""

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Why a pod may not preempt now; None when it may.

        Args:
            request: the pod's request.
            expected: the node that a preemption made room on, unless it can never run the pod.
            reclaims: whether the pod, with its gang, requests its guarantee.
        """

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """The bounds that a pod exceeds now, as far as they count in dry runs."""

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Whom a pod may preempt."""


def waits_for_victims(
    request: QuotaRequest, expected: NodeInfo | None, usage: QuotaUsage, *, reclaims: bool
) -> str | None:
    """Why a pod may not preempt now, as scheduler-plugins and Koordinator say it; None when it may.

    Pods are leaving its node that are less important and of its quota, or for a pod that reclaims of a quota
    that borrows. The arguments are those of `Rules.why_not_eligible`.
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
