"""Describes the reason why a pod got no node: its quota does not admit it, or it fits on no node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.models.cluster import group_name
from harness.models.elastic.tree import FIRM, Excess
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis
from harness.models.kube.placement.status import NODE_RESOURCES_FIT, Code, Status
from harness.models.kube.placement.trial import PreFilter
from harness.models.kube.refusal import node_detail
from harness_plugins.elastic_quota.quota_detail import states
from harness_plugins.elastic_quota.quota_request import QuotaRequest

PLUGIN = "ElasticQuota"
"""The plugin name for rejections by a quota, in addition to the names of kube-scheduler's plugins."""

_NAMED = 3


class Failure(NamedTuple):
    """A pod that did not get a node.

    Attributes:
        state: the data that kube-scheduler's plugins computed at the start of the attempt.
        diagnosis: the reason why each node rejected the pod, or None if the quota rejected the pod, or its
            gang, before any node was checked.
    """

    request: QuotaRequest
    state: PreFilter
    cache: Cache
    diagnosis: Diagnosis | None

    @property
    def potential(self) -> Sequence[int]:
        """The positions of the nodes where preemption may help. If the quota refused the pod, all nodes."""
        return range(len(self.cache.nodes)) if self.diagnosis is None else self.diagnosis.potential

    @property
    def rejecting(self) -> frozenset[str]:
        """The plugins that rejected the pod.

        If the quota rejected the pod, NodeResourcesFit is included, too, because the deletion of any pod may
        help.
        """
        if self.diagnosis is None:
            return frozenset((PLUGIN, NODE_RESOURCES_FIT))
        return self.diagnosis.rejecting

    @property
    def expected(self) -> NodeInfo | None:
        """The node to which a preemption nominated the pod, unless the pod can never run on that node."""
        node = self.cache.by_name.get(self.request.pod.nominated)
        if node is not None and self.diagnosis is not None:
            return None if self.diagnosis.status(node).code is Code.UNRESOLVABLE else node
        return node


class QuotaRefusal(NamedTuple):
    """The reason why preemption did not help a pod, or did not help a gang because of one of its pods.

    Attributes:
        pod: the name of the pod that could not be placed.
        rule: a description of the rule that led to the refusal.
        failure: why the pod did not get a node.
        nodes: why each node is not a candidate, by position. It is empty if nodes did not matter.
        keeps: whether the pod and its gang keep their nominated nodes. They do if the pod waits for
            terminating victims, or if a dry run ended with an error.
        rejecting: the plugins that rejected pods.
        place: the index of the pod in its gang, or None for a single pod.
        figures: the figures of nodes and quotas at the time of the attempt. It is None until they are
            requested, which must happen before anything changes.
    """

    pod: str
    rule: str
    failure: Failure
    nodes: Mapping[int, Status] | None = None
    keeps: bool = False
    rejecting: frozenset[str] = frozenset()
    place: int | None = None
    figures: dict[str, Any] | None = None

    @property
    def said(self) -> tuple[str, str]:
        """The key that equal refusals share, which contains neither nodes nor amounts."""
        excess = self.failure.request.excess
        return self.rule, in_words(excess) if excess is not None else ""

    def with_figures(self) -> QuotaRefusal:
        """Returns the refusal with its figures. Call this before trial placements are reverted.

        Equal pods then share one record, and it is serialized only once.
        """
        return self if self.figures is not None else self._replace(figures=self._figures())

    def detail(self) -> dict[str, Any]:
        """Returns the figures for the record, with node counts by reason and the names of a few nodes."""
        said = self._figures() if self.figures is None else self.figures
        request = self.failure.request
        job, labels = request.pod.job, request.pod.template.labels
        several = (job is not None and job.pods > 1) or group_name(labels)
        return {**said, "pod": self.pod} if self.place is not None and several else said

    def _figures(self) -> dict[str, Any]:
        request, diagnosis = self.failure.request, self.failure.diagnosis
        excess = request.excess
        said: dict[str, Any] = {"preemption": self.rule}
        if diagnosis is not None:
            said = node_detail(diagnosis, self.rule)
        if excess is not None and request.quota is not None:
            asked, nominated = request.asked, request.nominated(excess)
            short = min(excess.amount, asked.get(excess.resource) or excess.amount)
            said |= {
                "message": in_words(excess),
                "queue": request.quota.name,
                "request": dict(asked),
                "short": {excess.resource: short},
                **({"nominated": nominated} if nominated else {}),
                **states(
                    each for each in request.quota.line if each.name in (request.quota.name, excess.quota)
                ),
            }
        if self.nodes:
            said = {**said, "not_freed": self._by_reason(self.nodes)}
        return said

    def _by_reason(self, nodes: Mapping[int, Status]) -> dict[str, dict[str, Any]]:
        by_reason: dict[str, list[str]] = {}
        for position, status in nodes.items():
            reason = ", ".join(status.reasons)
            by_reason.setdefault(reason, []).append(self.failure.cache.nodes[position].name)
        return {
            reason: {"count": len(names), "first": names[:_NAMED]}
            for reason, names in sorted(by_reason.items())
        }


def in_words(excess: Excess) -> str:
    """Describes the reason why the quota rejected a pod."""
    if not excess.quota:
        return f"all quotas together would use more {excess.resource} than their min"
    if excess.bound == FIRM:
        whose = f"pods of quota {excess.quota} that must not be preempted"
        return f"{whose} would use more {excess.resource} than its min"
    return f"quota {excess.quota} would use more {excess.resource} than its {excess.bound}"
