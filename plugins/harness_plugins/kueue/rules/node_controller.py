"""Kueue's node controller, which finds the workloads that lost pods when a node failed.

Upstream: pkg/controller/tas/node_controller.go, and `nodeHandler` in pkg/controller/tas/resource_flavor.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import final

from harness.base.units import SECOND
from harness.models.cluster import Node, ResourceFlavor, Taint
from harness.models.constraints import PERMANENT, UNTOLERATED, Constraints
from harness.policy import Edit, PodSet
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.topology.flavors import TopologyFlavors
from harness_plugins.kueue.state.workload import Workload

_BATCH = SECOND // 10
"""How long the controller waits for more pods to leave a node."""

_DELAY = 30 * SECOND
"""How long a node must be not ready before its pods count as lost for that reason alone."""


@final
class Timers:
    """The times at which something is due, by the name of a node or a flavor."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}

    def set(self, name: str, at: int) -> None:
        """Sets a timer, unless the timer with this name ends earlier."""
        self._due[name] = min(at, self._due.get(name, at))

    @property
    def due(self) -> int | None:
        """The time when the next timer ends, or None if there is no timer."""
        return min(self._due.values(), default=None)

    def take(self, now: int) -> list[str]:
        """Removes the timers that have ended, and returns their names in alphabetical order."""
        found = sorted(name for name, due in self._due.items() if due <= now)
        for name in found:
            del self._due[name]
        return found


def wake_queues(wakes: Timers, edit: Edit, flavors: TopologyFlavors, now: int) -> None:
    """Schedules a wake-up of all queues for each flavor that a changed node had or has."""
    for name, flavor in flavors.by_name.items():
        if any(flavor.tree.is_of(node) for node in (edit.before, edit.after) if isinstance(node, Node)):
            wakes.set(name, now + SECOND)


@final
class NodeController:
    """Checks nodes when they change and when pods leave them.

    Args:
        nodes: the initial nodes. A node that is not ready at the start counts as not ready for a long time.
        on: returns True if a node has pods of a namespace. Pods that are terminating do not count.
        flavors: returns the flavors of a workload's pod set, given the name of the pod set.

    Attributes:
        replaces: whether the controller marks workloads at all (the TASFailedNodeReplacement gate).
    """

    def __init__(
        self,
        gates: Gates,
        nodes: Iterable[Node],
        on: Callable[[str, str], bool],
        flavors: Callable[[Workload, str], Iterable[ResourceFlavor]],
    ) -> None:
        self._flavors = flavors
        self.nodes = {node.name: node for node in nodes}
        self._gates = gates
        self.replaces = gates.tas_failed_node_replacement
        self._on = on
        self._ready_changed: dict[str, int] = {}
        self.checks = Timers()

    def change(self, edit: Edit, now: int) -> bool:
        """Adds, removes or changes a node. Returns True if the controller must check the node now.

        As in node conditions, the time of a change is rounded down to a whole second.
        """
        before, after = self.nodes.pop(edit.name, None), edit.after
        if after is not None:
            self.nodes[edit.name] = after
        if after is None:
            self._ready_changed.pop(edit.name, None)
        elif before is None or before.ready != after.ready:
            self._ready_changed[edit.name] = now // SECOND * SECOND
        if not self.replaces:
            return False
        if before is None or after is None or before.ready != after.ready:
            return True
        return self._gates.tas_replace_node_on_node_taints and before.taints != after.taints

    def pods_left(self, node: str, now: int) -> None:
        """Schedules a check of an unhealthy node that pods have left."""
        there = self.nodes.get(node)
        if there is not None and (
            not there.ready or any(taint.effect in ("NoSchedule", "NoExecute") for taint in there.taints)
        ):
            self.checks.set(node, now + _BATCH)

    def look(self, name: str, assigned: Iterable[Workload], now: int) -> Iterator[tuple[Workload, bool]]:
        """Yields each workload with places on a node, and whether these places are lost.

        If the node is gone or has not been ready for too long, all of these places are lost.
        """
        gates, node = self._gates, self.nodes.get(name)
        overdue = node is None
        if node is not None and not node.ready:
            since = self._ready_changed.get(name, -_DELAY)
            if now < since + _DELAY:
                if not gates.tas_replace_node_on_pod_termination:
                    self.checks.set(name, since + _DELAY)
                    return
            else:
                overdue = gates.tas_replace_node_due_to_not_ready_over_fixed_time
        for workload in assigned:
            if overdue:
                yield workload, True
            if node is not None and not (overdue and workload.unhealthy not in ("", name)):
                yield workload, self._is_lost(workload, node)

    def _is_lost(self, workload: Workload, node: Node) -> bool:
        """Returns True if a workload lost its place on a node, usually because no pod is left there.

        As in Kueue, all pods of the namespace count, including those of other workloads.
        """
        at_once = not self._gates.tas_replace_node_on_pod_termination
        if node.ready:
            if not self._gates.tas_replace_node_on_node_taints:
                return False
            tolerated = self._tolerated(workload, node)
            if tolerated == PERMANENT:
                return False
            at_once = at_once and tolerated == UNTOLERATED
        return at_once or not self._on(node.name, workload.job.namespace)

    def _tolerated(self, workload: Workload, node: Node) -> int:
        """Returns how long a workload's least tolerant pods tolerate a node's taints."""
        found = PERMANENT
        for placed in workload.placed:
            if placed.on(node.name):
                found = min(found, self.tolerance(workload, placed.pod_set, node.taints))
        return found

    def tolerance(self, workload: Workload, pod_set: PodSet, taints: Iterable[Taint]) -> int:
        """Returns the time for which the pods of a pod set tolerate taints. See `Constraints.tolerance`."""
        return Constraints(pod_set).tolerance(taints, self._flavors(workload, pod_set.name))
