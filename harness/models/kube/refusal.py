"""Why a pod waits, for the record: its requests, what the nodes lack, and why it preempts no pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from harness.models.kube.cache import Cache
from harness.models.kube.most_room import MostRoom, amounts_of, is_within
from harness.models.kube.placement.scheduling import Diagnosis
from harness.models.kube.placement.shape_nodes import ShapeNodes, count
from harness.models.kube.pod import PodInfo, Refusal
from harness.policy import Refuse

UNSCHEDULABLE = "Unschedulable"
"""The reason of a refusal, as in a pod's condition PodScheduled."""

DISABLED = "nobody is preempted"
NO_VICTIMS = "no node can be freed for it"


@final
@dataclass(frozen=True, slots=True)
class Unschedulable:
    """A pod that fits no node, and for which no pod is preempted.

    Attributes:
        diagnosis: why each node rejected it.
        preemption: why no pod is preempted for it.
    """

    diagnosis: Diagnosis
    preemption: str

    def detail(self) -> dict[str, Any]:
        """The figures for the record; the same object for the same figures."""
        return node_detail(self.diagnosis, self.preemption)


@final
class NoRoom:
    """A pod that asks for more than any node could offer, even without those whom it may preempt.

    As long as that is so, its equals are rejected by the same plugins, and nothing else comes of an attempt.
    A node that is not ruled out has too little for them, whatever nominated pods or budgets add.

    Args:
        nodes: what its shape finds on nodes.
        most_room: the bound on what these offer.
        cache: nodes and pods.
        seen: the version of the cache at which that was so; -1 where it is still to be found out.
    """

    __slots__ = ("_cache", "_nodes", "_seen", "amounts", "most_room")

    def __init__(self, nodes: ShapeNodes, most_room: MostRoom, cache: Cache, seen: int) -> None:
        self.most_room = most_room
        self.amounts = amounts_of(nodes.shape, len(cache.names))
        self._nodes = nodes
        self._cache = cache
        self._seen = seen

    def holds(self, pod: PodInfo) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        amounts, most_room = self.amounts, self.most_room
        for room in most_room.since(self._seen):
            if is_within(amounts, room):  # a node may lack something else for it
                return not most_room.has_victims and self._nodes.still_none()
        self._seen = self._cache.version
        return True


@final
class NoNodes:
    """A pod whose attempt is an error, since there is no node."""

    def detail(self) -> dict[str, Any]:
        """See `Refusal`."""
        return {"nodes": {"the cluster has no node": {"count": 0}}, "most_free": {}}


NO_NODES = NoNodes()


def node_detail(diagnosis: Diagnosis, preemption: str = "") -> dict[str, Any]:
    """The request of a pod, reason -> the number of nodes that rejected it, and the most that is free.

    `most_free` gives, for each resource that is short, the largest free amount on any one node that could
    ever run the pod. `preemption` says why no pod is preempted.
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
    """The refusal to record for a pod that waits."""
    assert pod.job is not None, "a pod of a replay belongs to a job"
    detail = why.detail()
    return Refuse(pod.job, UNSCHEDULABLE, {"pod": pod.name, **detail} if pod.job.pods > 1 else detail)
