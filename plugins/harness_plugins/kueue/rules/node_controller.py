"""Kueue's node controller: it finds the workloads that lost pods with a failed node, and when to check.

Upstream: pkg/controller/tas/node_controller.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, final

from harness.base.units import SECOND
from harness.models.cluster import Node, ResourceFlavor, Taint
from harness.models.constraints import PERMANENT, UNTOLERATED, Constraints
from harness.policy import Decision, Edit, PodSet
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_BATCH = SECOND // 10
"""How long the controller waits for more pods to leave a node."""

_DELAY = 30 * SECOND
"""How long a node must be not ready before its pods count as lost for that reason alone."""


class Pods(Protocol):
    """The pods of workloads with places in topologies."""

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if pods of a namespace are on a node and not terminating."""

    def leave(self, workload: Workload, pods: range) -> Iterable[str]:
        """Returns the nodes that pods of a workload have left."""

    def move(self, workload: Workload, placed: Sequence[Placed], node: str) -> Iterator[Decision]:
        """Moves the pods of a workload on a node to other places."""


@final
class NodeController:
    """Checks nodes when they change, and when pods leave them.

    Args:
        gates: the feature gates.
        nodes: the nodes at the beginning; if not ready then, a node counts as not ready for a long time.
        pods: the pods.
        flavors: finds the flavors of a workload's pod set, by its name.

    Attributes:
        nodes: the nodes.
    """

    def __init__(
        self,
        gates: Gates,
        nodes: Iterable[Node],
        pods: Pods,
        flavors: Callable[[Workload, str], Iterable[ResourceFlavor]],
    ) -> None:
        self._flavors = flavors
        self.nodes = {node.name: node for node in nodes}
        self._gates = gates
        self._pods = pods
        self._ready_changed: dict[str, int] = {}
        self._runs: dict[str, int] = {}
        self._constraints: dict[PodSet, Constraints] = {}

    def change(self, edit: Edit, now: int) -> bool:
        """Adds, removes or changes a node; returns whether the controller checks it now.

        The times of conditions are whole seconds.
        """
        before, after = self.nodes.pop(edit.name, None), edit.after
        if after is not None:
            self.nodes[edit.name] = after
        if after is None:
            self._ready_changed.pop(edit.name, None)
        elif before is None or before.ready != after.ready:
            self._ready_changed[edit.name] = now // SECOND * SECOND
        gates = self._gates
        if not gates.tas_failed_node_replacement:
            return False
        if before is None or after is None or before.ready != after.ready:
            return True
        return gates.tas_replace_node_on_node_taints and before.taints != after.taints

    def pods_left(self, node: str, now: int) -> None:
        """Schedules a check of a node that pods have left, if it is unhealthy."""
        there = self.nodes.get(node)
        if there is not None and (not there.ready or _repels(there)):
            self._look(node, now + _BATCH)

    @property
    def due(self) -> int | None:
        """The time of the next check of any node, or None."""
        return min(self._runs.values(), default=None)

    def take(self, now: int) -> list[str]:
        """Takes and returns the nodes to check now, by name."""
        found = sorted(node for node, due in self._runs.items() if due <= now)
        for node in found:
            del self._runs[node]
        return found

    def look(self, name: str, assigned: Iterable[Workload], now: int) -> Iterator[tuple[Workload, bool]]:
        """Yields workloads with places on a node, with True if these places are lost, else False.

        If the node is gone, or not ready for too long, all workloads lost their places.

        Args:
            name: the node.
            assigned: the workloads with places on the node.
            now: the time.
        """
        gates, node = self._gates, self.nodes.get(name)
        overdue = node is None
        if node is not None and not node.ready:
            since = self._ready_changed.get(name, -_DELAY)
            if now < since + _DELAY:
                if not gates.tas_replace_node_on_pod_termination:
                    self._look(name, since + _DELAY)
                    return
            else:
                overdue = gates.tas_replace_node_due_to_not_ready_over_fixed_time
        for workload in assigned:
            if overdue:
                yield workload, True
            if node is not None and not (overdue and workload.unhealthy not in ("", name)):
                yield workload, self._is_lost(workload, node)

    def _is_lost(self, workload: Workload, node: Node) -> bool:
        """Returns True if a workload lost its place on a node, usually when no pod is left there.

        Pods of the whole namespace count, including those of other workloads, as in Kueue.
        """
        at_once = not self._gates.tas_replace_node_on_pod_termination
        if node.ready:
            if not self._gates.tas_replace_node_on_node_taints:
                return False
            tolerated = self._tolerated(workload, node)
            if tolerated == PERMANENT:
                return False
            at_once = at_once and tolerated == UNTOLERATED
        return at_once or not self._pods.on(node.name, workload.job.namespace)

    def _tolerated(self, workload: Workload, node: Node) -> int:
        """Returns how far pods on a node tolerate its repelling taints; the least tolerant pod decides."""
        found = PERMANENT
        for placed in workload.placed:
            if placed.on(node.name):
                found = min(found, self.tolerance(workload, placed.pod_set, node.taints))
        return found

    def tolerance(self, workload: Workload, pod_set: PodSet, taints: Iterable[Taint]) -> int:
        """Returns how far pods of a workload tolerate taints, see `Constraints.tolerance`."""
        known = self._constraints.get(pod_set)
        if known is None:
            known = self._constraints[pod_set] = Constraints(pod_set)
        return known.tolerance(taints, self._flavors(workload, pod_set.name))

    def _look(self, node: str, at: int) -> None:
        self._runs[node] = min(at, self._runs.get(node, at))


def _repels(node: Node) -> bool:
    return any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.taints)
