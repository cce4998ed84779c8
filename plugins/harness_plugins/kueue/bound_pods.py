"""Connects workloads that have places in topologies to their pods, which the binder assigns to nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import final

from harness.policy import Decision
from harness_plugins.kueue.binding import Binder
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload


@final
class BoundPods:
    """Implements `rules.node_controller.Pods` with the pods that a binder manages.

    Args:
        binder: the binder of the pods.
    """

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if a node has pods of a namespace that are not terminating."""
        return self._binder.on(node, namespace)

    def leave(self, workload: Workload, pods: range) -> Iterable[str]:
        """Returns the nodes that pods were on. If all pods are gone, adds the workload's assigned nodes."""
        nodes = self._binder.nodes_of(workload.job, pods)
        if len(pods) < workload.job.pods:
            return nodes
        return [*nodes, *(values[-1] for placed in workload.placed for values, _ in placed.domains)]

    def move(self, workload: Workload, placed: Sequence[Placed], node: str) -> Iterator[Decision]:
        """Moves the pods of a workload that are on a node to other places."""
        yield from self._binder.move(workload.job, placed, node)
