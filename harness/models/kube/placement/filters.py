"""Implements the filters that depend only on the node itself, in kube-scheduler's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.base.memo import Memo
from harness.cluster.kinds.pods import HostPort, PodSpec
from harness.cluster.kinds.selectors import Taint, Toleration
from harness.cluster.model import Node
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import (
    NODE_RESOURCES_FIT,
    NOT_SELECTED,
    OTHER_NODE,
    UNSCHEDULABLE_NODE,
    UNTOLERATED,
    Code,
    Status,
)
from harness.models.kube.pod import Shape

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def unchanging(shape: Shape, node: NodeInfo) -> Status | None:
    """Returns the rejection by the first filter that rejects a pod whatever pods are on the node, or None.

    These filters are NodeUnschedulable, NodeName, TaintToleration and NodeAffinity.
    """
    return ruled_out(shape.spec, node)


def ruled_out(spec: PodSpec, node: Node | NodeInfo) -> Status | None:
    """Returns the same as `unchanging`, but accepts the `spec` of a pod, and also the manifest of a node."""
    if node.unschedulable and not tolerated(_CORDONED, spec.tolerations):
        return UNSCHEDULABLE_NODE
    if spec.node_name and spec.node_name != node.name:
        return OTHER_NODE
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not tolerated(taint, spec.tolerations):
            return UNTOLERATED
    if not spec.allows(node.name, node.labels):
        return NOT_SELECTED
    return None


def fits_empty(spec: PodSpec, node: Node) -> bool:
    """Returns True if the requests of a pod fit on an empty node."""
    has = node.allocatable
    return has.get("pods", 1) >= 1 and all(
        amount <= has.get(name, 0) for name, amount in spec.requests.items() if amount > 0 and name != "pods"
    )


def could_run(spec: PodSpec, node: Node) -> bool:
    """Returns True if an empty node could run a pod."""
    return ruled_out(spec, node) is None and fits_empty(spec, node)


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Returns True if one of the tolerations covers a taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def ports_taken(ports: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Returns True if a port is already in use (NodePorts)."""
    return any(port.conflicts(other) for other in taken for port in ports)


def oversized(shape: Shape, node: NodeInfo) -> bool:
    """Returns True if a request exceeds the node's total capacity, so that preemption can't help."""
    total = node.allocatable
    for resource, amount in shape.requests:
        if amount > total[resource]:
            return True
    return bool(shape.missing)


def resources_short(
    shape: Shape, node: NodeInfo, free: Sequence[int], slots: int, names: Sequence[str]
) -> Status:
    """Returns NodeResourcesFit's rejection if a node has too few free resources. Its reasons are sorted.

    Args:
        shape: the requests.
        node: the node.
        free: the free quantities on the node, by resource.
        slots: how many more pods the node accepts.
        names: the names of the resources.
    """
    short = [names[resource] for resource, amount in shape.requests if amount > free[resource]]
    question = (*short, *shape.missing), slots < 1, oversized(shape, node)
    status = _SHORT.get(question)
    if status is None:
        status = _SHORT[question] = _short(*question)
    return status


_SHORT: Memo[tuple[tuple[str, ...], bool, bool], Status] = Memo()


def _short(names: Sequence[str], full: bool, oversized: bool) -> Status:
    """Returns the rejection for the resources that are short, and for too many pods if the node is full."""
    reasons = [f"Insufficient {name}" for name in names]
    if full:
        reasons.append("Too many pods")
    code = Code.UNRESOLVABLE if oversized else Code.UNSCHEDULABLE
    return Status(code, NODE_RESOURCES_FIT, tuple(sorted(reasons)))
