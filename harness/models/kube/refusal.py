"""Why a pod waits, as the record says it: what it asks for, what the nodes lack, why nobody is preempted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from harness.models.kube.cache import Cache
from harness.models.kube.placement.scheduling import Diagnosis, nominated_may_add
from harness.models.kube.placement.shape_nodes import count
from harness.models.kube.pod import PodInfo, Refusal
from harness.policy import Refuse

UNSCHEDULABLE = "Unschedulable"
"""The reason of a refusal, as in a pod's condition PodScheduled."""

DISABLED = "nobody is preempted"
NO_VICTIMS = "no node can be freed for it"


@final
@dataclass(frozen=True, slots=True)
class Unschedulable:
    """A pod that fits no node, and for which nobody is preempted.

    Attributes:
        diagnosis: why each node rejected it.
        preemption: why nobody is preempted for it.
    """

    diagnosis: Diagnosis
    preemption: str

    def detail(self) -> dict[str, Any]:
        """The figures for the record; the same object for the same figures."""
        return node_detail(self.diagnosis, self.preemption)

    def holds(self, pod: PodInfo) -> bool:
        """Whether equal pods still find no node with room, see `LastingRefusal`.

        It may be asked where nobody is preempted and nodes by themselves decided. Which plugins reject a pod
        does not change then: what rules out a node, and whether it is too small, lasts as long as the node.
        """
        return self.diagnosis.nodes.still_none()


@final
class NobodyLower:
    """The same where pods are preempted, of a pod for which there is nobody to be preempted.

    Args:
        refusal: what was said.
        cache: the pods on nodes.
    """

    __slots__ = ("_cache", "_refusal")

    def __init__(self, refusal: Unschedulable, cache: Cache) -> None:
        self._refusal = refusal
        self._cache = cache

    def holds(self, pod: PodInfo) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`.

        Room that is kept for nominated pods only makes fewer nodes fit, and for the same reason. It is
        different if they have affinities, or if nodes lack something else with them in place.
        """
        cache, shape = self._cache, pod.template.shape
        if cache.expecting and (cache.repelling or cache.attracting):
            return False
        for node in cache.expecting:
            if nominated_may_add(shape, node):
                return False
        return not cache.has_lower(pod.priority) and self._refusal.holds(pod)


@final
class NoNodes:
    """A pod whose attempt is an error, since there is no node."""

    def detail(self) -> dict[str, Any]:
        """See `Refusal`."""
        return {"nodes": {"the cluster has no node": {"count": 0}}, "most_free": {}}


NO_NODES = NoNodes()


def node_detail(diagnosis: Diagnosis, preemption: str = "") -> dict[str, Any]:
    """What a pod asks for, how many nodes rejected it for which reason, and what is free at most.

    `most_free` says for each resource that is short how much of it any one node has, of those that could
    ever run the pod; `preemption` why nobody is preempted.
    """
    nodes, statuses = diagnosis.nodes, diagnosis.statuses
    nodes.refresh()  # pods may have been placed since the attempt
    moment, known, detail = nodes.said
    now = None if statuses else (*nodes.moment, preemption)
    if now is not None and moment == now:
        return detail  # as of most pods that fail because an equal one has just failed
    reasons, most = nodes.tally()
    for position, status in statuses.items():
        if nodes.fits(position):  # its room is kept, or filters that look at other nodes object
            count(reasons, status)
        elif (node := diagnosis.all_nodes[position]).nominated:
            count(reasons, status)  # which says more than what the node has no room for by itself
            alone = nodes.status(node)
            assert alone is not None
            count(reasons, alone, -1)
    if known != (reasons, most, preemption):
        detail = {
            "request": {name: amount for name, amount in nodes.shape.spec.requests.items() if amount},
            "nodes": {reason: {"count": number} for reason, number in sorted(reasons.items()) if number},
            "most_free": most,
            **({"preemption": preemption} if preemption else {}),
        }
    nodes.said = now, (reasons, most, preemption), detail
    return detail


def refuse(pod: PodInfo, why: Refusal) -> Refuse:
    """What is recorded of a pod that waits."""
    assert pod.job is not None, "a pod of a replay belongs to a job"
    detail = why.detail()
    return Refuse(pod.job, UNSCHEDULABLE, {"pod": pod.name, **detail} if pod.job.pods > 1 else detail)
