"""Records why a pod waits: its requests, the resources that nodes lack, and why it preempts no pod."""

from __future__ import annotations

from dataclasses import dataclass
from operator import gt
from typing import Any, Final, final

from harness.models.kube.cache import Cache
from harness.models.kube.most_room import MostRoom, amounts_of
from harness.models.kube.placement.scheduling import Diagnosis
from harness.models.kube.placement.shape_nodes import ShapeNodes, count
from harness.models.kube.pod import PodInfo, Refusal, Verdicts
from harness.policy import Refuse

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason for a refusal, as in a pod's PodScheduled condition."""

DISABLED: Final = "nobody is preempted"
NO_VICTIMS: Final = "no node can be freed for it"


@final
@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The refusal of a pod that fits on no node, and for which no pod is preempted.

    Attributes:
        diagnosis: the reasons why each node rejected the pod.
        preemption: the reason why no pod is preempted for it.
    """

    diagnosis: Diagnosis
    preemption: str

    def detail(self) -> dict[str, Any]:
        """Returns the numbers for the record. If the numbers have not changed, it returns the same object."""
        return node_detail(self.diagnosis, self.preemption)


@final
class NoRoom:
    """The refusal of a pod that requests more than any node could offer, even if pods were preempted for it.

    While the refusal is valid, the same plugins reject equal pods, and an attempt has no other effect. Every
    node that isn't excluded has too few resources for these pods, regardless of nominated pods and budgets.

    Args:
        nodes: the results of the pod's shape on nodes.
        most_room: the upper bound of what these nodes offer.
        cache: the nodes and pods.
        seen: the version of the cache at which the refusal was valid, or -1 if it was not checked yet.
        by_others: whether some node rejected the pod because of other pods.
    """

    __slots__ = (
        "_cache", "_excluded", "_nodes", "_seen", "amounts", "keeps_figures", "most_room", "verdicts",
    )  # fmt: skip

    def __init__(
        self, nodes: ShapeNodes, most_room: MostRoom, cache: Cache, seen: int, *, by_others: bool
    ) -> None:
        self.most_room = most_room
        self.verdicts: Verdicts | None = None
        self.amounts = amounts_of(nodes.shape, len(cache.names))
        self.keeps_figures = not (by_others or most_room.may_preempt)
        self._nodes = nodes
        self._cache = cache
        self._seen = seen
        by_position = by_others or nodes.rules.named is not None
        self._excluded = None if by_position else nodes.rules.excluded

    def holds(self, pod: PodInfo, version: int = -1) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`. Equal pods have also failed at the given version."""
        if self.keeps_figures:
            return self._nodes.still_none()
        amounts, most_room = self.amounts, self.most_room
        for room in most_room.since(max(version, self._seen)):
            if not any(map(gt, amounts, room)):  # the node may lack something else
                return not most_room.has_victims and self._nodes.still_none()
        self._seen = self._cache.version
        return True

    def outlives_nodes(self) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`. The same plugins must still reject the pods."""
        rules = self._nodes.rules
        rules.follow()
        return self._excluded == rules.excluded and len(self.amounts) == len(self._cache.names)


@final
class NoNodes:
    """The refusal of a pod whose attempt ended with an error because the cluster has no nodes."""

    def detail(self) -> dict[str, Any]:
        """See `Refusal`."""
        return {"nodes": {"the cluster has no node": {"count": 0}}, "most_free": {}}


NO_NODES: Final = NoNodes()


def node_detail(diagnosis: Diagnosis, preemption: str = "") -> dict[str, Any]:
    """Returns a pod's request, the number of nodes for each reason, and the largest free quantities.

    For each resource that is short, `most_free` has the largest free quantity on any node that could ever run
    the pod. `preemption` is the reason why no pod is preempted.
    """
    nodes, statuses = diagnosis.nodes, diagnosis.statuses
    nodes.refresh()  # pods may have been placed since the attempt
    moment, known, detail = nodes.said
    now = None if statuses else (*nodes.moment, preemption)
    if now is not None and moment == now:
        return detail  # most pods fail because an equal pod has just failed
    reasons, most = nodes.tally()
    for position, status in statuses.items():
        if nodes.fits(position):  # its resources are reserved for others, or rules about other pods fail
            count(reasons, status)
        elif (node := diagnosis.all_nodes[position]).nominated:
            count(reasons, status)  # the status is more specific than the node's own state
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
    """Returns the refusal to record for a pending pod."""
    assert pod.job is not None, "a pod of a replay belongs to a job"
    detail = why.detail()
    return Refuse(pod.job, UNSCHEDULABLE, {"pod": pod.name, **detail} if pod.job.pods > 1 else detail)
