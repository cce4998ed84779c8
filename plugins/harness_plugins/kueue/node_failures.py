"""Models how node failures and other node changes affect workloads with places in topologies.

The node controller marks workloads that lost a node, removes such marks, and evicts workloads that lost a
second node. The scheduler looks for new places for marked workloads. One second after a node changes, pending
workloads are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, final

from harness.models.cluster import Cluster
from harness.policy import MARK, REPLACE, UNMARK, Decision, Edit, Note, Preempt, Wake
from harness_plugins.kueue.record.admissions import counts_of
from harness_plugins.kueue.record.places import as_manifests, spans
from harness_plugins.kueue.rules.entry import Replaced
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.node_controller import NodeController, Timers, wake_queues
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.rules.second_pass import NODE_FAILURES
from harness_plugins.kueue.rules.topology.replacement import added
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_NO_PLACE = "there is no other place for its pods"


class Pods(Protocol):
    """The pods of workloads that are placed in topologies."""

    def on(self, node: str, namespace: str) -> bool:
        """Returns True if a node has pods of this namespace. Pods that are terminating do not count."""

    def leave(self, workload: Workload, pods: range) -> Iterable[str]:
        """Returns the nodes that the pods of a workload have left."""

    def move(self, workload: Workload, placed: Sequence[Placed], node: str) -> Iterator[Decision]:
        """Moves the pods of a workload from a node to other places."""


@final
class NodeFailures:
    """The node controller with its timers, and its effects on workloads and queues.

    Args:
        leave: a function that evicts a workload.

    Attributes:
        cycles: whether a timer that is due now makes Kueue run cycles.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        gates: Gates,
        pods: Pods,
        leave: Callable[[Target], None],
    ) -> None:
        self._scheduler = scheduler
        self._leave = leave
        self._wakes = Timers()
        self._pods = pods
        self.controller = NodeController(gates, cluster.nodes.values(), pods.on, scheduler.flavors)
        self.cycles = False
        self._asked: set[tuple[int, bool]] = set()

    def begin(self, now: int) -> Iterator[Decision]:
        """Marks the workloads from before the replay that have places on nodes that do not exist."""
        placed = [placed for each in self._scheduler.cache.everybody() for placed in each.placed]
        hosts = {values[-1] for each in placed if each.flavor.tree.by_host for values, _ in each.domains}
        for node in sorted(hosts - self.controller.nodes.keys()) if self.controller.replaces else ():
            yield from self._look(node, now)

    def advance(self, now: int) -> None:
        """Advances to `now`. Workloads whose second pass is due by now enter the next cycle."""
        if self._asked:
            self._asked -= {(now, False), (now, True)}
        self.cycles = self._scheduler.second_passes.advance(now)

    def change(self, edit: Edit, now: int) -> Iterator[Decision]:
        """Handles a node change. The capacity of topologies must already be updated."""
        assert self._scheduler.topologies is not None
        wake_queues(self._wakes, edit, self._scheduler.topologies, now)
        if self.controller.change(edit, now):
            yield from self._look(edit.name, now)

    def act(self, now: int) -> Iterator[Decision]:
        """Checks the nodes that are due now, and requeues inadmissible workloads if a wake-up is due."""
        for node in self.controller.checks.take(now):
            yield from self._look(node, now)
        if self._wakes.take(now):
            self.cycles = True
            self._scheduler.requeue_all()

    def leave(self, workload: Workload, pods: range, now: int) -> None:
        """Informs the controller about the nodes that a workload's pods have left."""
        for node in self._pods.leave(workload, pods):
            self.controller.pods_left(node, now)

    def replace(self, replaced: Replaced) -> Iterator[Decision]:
        """Moves a workload to its new places, after one of its nodes failed."""
        workload, placed, node = replaced
        detail: dict[str, Any] = {"topology": as_manifests(placed), "spans": spans(placed)}
        admission = workload.admission
        if admission is not None and (counts := counts_of(workload, admission.counts)):
            detail["counts"] = counts
        detail["replacedBy"] = _hosts(added(placed, workload.placed))
        yield Note(workload.job, REPLACE, node, detail)
        yield from self._pods.move(workload, placed, node)

    def wakes(self) -> Iterator[Wake]:
        """Yields wake-ups for the next timers. Repeated tries to replace a node don't prolong a replay."""
        second = self._scheduler.second_passes
        for due, idle in (
            (second.due, second.in_vain),
            (self.controller.checks.due, False),
            (self._wakes.due, False),
        ):
            if due is not None and (due, idle) not in self._asked:
                self._asked.add((due, idle))
                yield Wake(due, idle)

    def _look(self, node: str, now: int) -> Iterator[Decision]:
        assigned = [
            each
            for each in self._scheduler.cache.everybody()
            if not each.evicted and any(placed.on(node) for placed in each.placed)
        ]
        assigned.sort(key=lambda workload: workload.name)
        leaving = []
        for workload, lost in self.controller.look(node, assigned, now):
            if lost and workload.unhealthy not in ("", node):
                leaving.append(workload)
            elif lost is not (workload.unhealthy == node):
                self._scheduler.mark(workload, node if lost else "")
                yield Note(workload.job, MARK if lost else UNMARK, node)
        for workload in leaving:
            failed = [workload.unhealthy, node]
            yield self.evict(workload, failed, "a second node failed before the first one was replaced")

    def evict(self, workload: Workload, nodes: Sequence[str], why: str = _NO_PLACE) -> Preempt:
        """Evicts a workload because of nodes that failed."""
        self._leave(Target(workload, NODE_FAILURES))
        message = f"{'nodes' if len(nodes) > 1 else 'node'} {' and '.join(nodes)} failed: {why}"
        return Preempt(workload.job, None, NODE_FAILURES, detail={"failed": [*nodes], "message": message})


def _hosts(placed: Iterable[Placed]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in placed:
        for values, pods in each.domains:
            found[values[-1]] = found.get(values[-1], 0) + pods
    return found
