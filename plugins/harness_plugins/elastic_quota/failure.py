"""Why a pod got no node: its quota does not let it in, or no node has room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from harness_plugins.elastic_quota.claim import Claim
from harness_plugins.elastic_quota.tree import Excess
from harness_plugins.kube.cache import Cache
from harness_plugins.kube.node import NodeInfo
from harness_plugins.kube.scheduling import Diagnosis
from harness_plugins.kube.status import NODE_RESOURCES_FIT, Code, Status
from harness_plugins.kube.trial import PreFilter

PLUGIN = "ElasticQuota"
"""Who rejects a pod that its quota does not let in, among the plugins of kube-scheduler."""

_NAMED = 3


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """A pod that got no node.

    Attributes:
        claim: its claim.
        state: the counts of the attempt.
        cache: the nodes.
        diagnosis: why each node rejected it; None when its quota did, and no node was looked at.
        excess: why its quota did, or that of its gang.
    """

    claim: Claim
    state: PreFilter
    cache: Cache
    diagnosis: Diagnosis | None
    excess: Excess | None = None

    @property
    def potential(self) -> Sequence[int]:
        """Positions of the nodes on which a preemption may help; all of them when the quota refused."""
        return range(len(self.cache.nodes)) if self.diagnosis is None else self.diagnosis.potential

    @property
    def rejecting(self) -> frozenset[str]:
        """The plugins that rejected the pod.

        When its quota did, every deletion may help, as if resources of nodes were short.
        """
        if self.diagnosis is None:
            return frozenset((PLUGIN, NODE_RESOURCES_FIT))
        return self.diagnosis.rejecting

    @property
    def expected(self) -> NodeInfo | None:
        """The node that a preemption made room on, unless it can never run the pod."""
        node = self.cache.by_name.get(self.claim.pod.nominated)
        if node is not None and self.diagnosis is not None:
            return None if self.diagnosis.status(node).code is Code.UNRESOLVABLE else node
        return node


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod, or a gang because of one of its pods, was not helped by a preemption.

    Attributes:
        pod: the pod that could not be placed.
        rule: which rule said so, in words.
        quota: what its quota said, or "".
        nodes: why each node is no candidate, by position; empty where nodes did not matter.
        keeps: whether nominations stay: it waits for victims to leave, or a dry run ended in an error.
        rejecting: the plugins that rejected pods.
    """

    pod: str
    rule: str
    quota: str = ""
    nodes: Mapping[int, Status] | None = None
    keeps: bool = False
    rejecting: frozenset[str] = frozenset()

    @property
    def said(self) -> tuple[str, str, str]:
        """What tells refusals apart; nodes do not."""
        return self.pod, self.rule, self.quota

    def figures(self, cache: Cache) -> dict[str, Any]:
        """The figures for the record; nodes that say the same are counted, and the first ones named."""
        said: dict[str, Any] = {"pod": self.pod}
        if self.quota:
            said["quota"] = self.quota
        if self.nodes:
            by_reason: dict[str, list[str]] = {}
            for position, status in self.nodes.items():
                reason = ", ".join(status.reasons)
                if status.code is Code.UNRESOLVABLE and not status.plugin:
                    reason = "no pod on it may be a victim"
                by_reason.setdefault(reason, []).append(cache.nodes[position].name)
            said["nodes"] = {
                reason: {"count": len(names), "first": names[:_NAMED]}
                for reason, names in sorted(by_reason.items())
            }
        return said


def in_words(excess: Excess) -> str:
    """What a quota says to a pod that it does not let in."""
    if not excess.quota:
        return f"all quotas together would use more {excess.resource} than their min"
    return f"quota {excess.quota} would use more {excess.resource} than its {excess.bound}"
