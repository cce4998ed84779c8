"""Models evictions by NoExecute taints. Pods must leave immediately, or when a toleration ends.

Node changes also start drains, which evict pods, too (`drains.py`).

Upstream: `processPodOnNode` in pkg/controller/tainteviction/taint_eviction.go. The model has no rate limits,
so the controller acts within the same second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import final

from harness.base.units import SECOND
from harness.cluster.kinds.selectors import Taint, Toleration
from harness.cluster.model import Cluster, Node
from harness.models.kube.drains import Drains, Evicting
from harness.models.kube.pod import PodInfo
from harness.policy import Preempt

DELETED_BY_TAINT = "DeletionByTaintManager"
"""The reason for an eviction by a taint, as in the pod's condition."""

ADMITTED = 300
"""How long a pod without its own toleration tolerates a node that is not ready or unreachable, in seconds.

Upstream: the DefaultTolerationSeconds admission plugin.
"""

_ADMITTED_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def no_execute(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Returns the taints with the effect NoExecute, which also affect running pods."""
    return tuple([taint for taint in taints if taint.effect == "NoExecute"])


def tolerated_for(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> int | None:
    """Returns for how many seconds a pod tolerates NoExecute taints.

    The value 0 means that it doesn't tolerate them, and None means that there is no limit. For each taint,
    the first toleration that tolerates the taint counts.
    """
    seconds: int | None = None
    for taint in taints:
        first = next((each for each in tolerations if each.tolerates(taint)), None)
        if first is None and not _is_admitted(tolerations, taint):
            return 0
        own = ADMITTED if first is None else first.seconds
        if own is not None:
            seconds = own if seconds is None else min(seconds, own)
    return seconds


def _is_admitted(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Returns True if admission added a toleration for a taint, because the pod had none with its key."""
    return taint.key in _ADMITTED_KEYS and not any(
        each.key in ("", taint.key) and each.effect in ("", "NoExecute") for each in tolerations
    )


@final
class TaintEvictions:
    """The nodes with NoExecute taints, and the timers of pods that tolerate a taint for a limited time.

    Args:
        cluster: the cluster with the nodes and their changes.
        scheduler: the scheduler that evicts pods.

    Attributes:
        tainted: the NoExecute taints of each node that has such taints.
        may_be: whether timers may be needed. They are needed if nodes get NoExecute taints, are drained, or
            are all removed.
    """

    def __init__(self, cluster: Cluster, scheduler: Evicting) -> None:
        self.tainted = {
            name: taints for name, node in cluster.nodes.items() if (taints := no_execute(node.taints))
        }
        self.may_be = bool(self.tainted) or _needs_timers(cluster)
        self._drains = Drains(scheduler)
        self._scheduler = scheduler
        self._timers: list[tuple[int, str, int, PodInfo]] = []
        self._begun = 0
        self._ends: dict[PodInfo, int] = {}

    @property
    def due(self) -> int:
        """The time of the next timer or drain retry, in microseconds. It is far ahead if there is none."""
        drains = self._drains.due
        return min(self._timers[0][0], drains) if self._timers else drains

    def put(self, node: Node, now: int) -> Iterator[Preempt]:
        """Handles a new or changed node, and evicts the pods that must leave it, sorted by name."""
        before, taints = self.tainted.pop(node.name, ()), no_execute(node.taints)
        if taints:
            self.tainted[node.name] = taints
        if taints != before:
            pods = sorted(self._scheduler.cache.by_name[node.name].pods, key=lambda pod: pod.name)
            yield from self._try(pods, taints, now)
        yield from self._drains.put(node, now)

    def drop(self, name: str) -> None:
        """Removes a node."""
        self.tainted.pop(name, None)
        self._drains.drop(name)

    def bound(self, pods: Iterable[PodInfo], node: str, now: int) -> Iterator[Preempt]:
        """Handles pods that were bound to a node with NoExecute taints: evicts them or starts timers."""
        yield from self._try(pods, self.tainted[node], now)

    def ended(self, now: int) -> Iterator[Preempt]:
        """Evicts the pods whose timers end now, sorted by name, and then retries drains."""
        pods = []
        while self._timers and self._timers[0][0] <= now:
            pod = heappop(self._timers)[3]
            del self._ends[pod]
            pods.append(pod)
        for pod in pods:
            yield from self._evict(pod)
        yield from self._drains.tried(now)

    def _try(self, pods: Iterable[PodInfo], taints: Sequence[Taint], now: int) -> Iterator[Preempt]:
        for pod in pods:
            if self._must_go(pod, taints, now):
                yield from self._evict(pod)

    def _evict(self, pod: PodInfo) -> Iterator[Preempt]:
        """Evicts a pod. A terminating pod keeps its deletion time, but no longer counts as preempted."""
        if pod.terminating:
            pod.preempted = False
            return
        taints = self.tainted.get(self._scheduler.cache.nodes[pod.node].name, ())
        detail = {"taints": [f"{taint.key}={taint.value}:{taint.effect}" for taint in taints]}
        yield self._scheduler.evict(pod, None, DELETED_BY_TAINT, detail)

    def _must_go(self, pod: PodInfo, taints: Sequence[Taint], now: int) -> bool:
        """Returns True if a pod must leave a node with these NoExecute taints now.

        Otherwise, starts the timer of the pod. The method is called whenever these taints of the pod's node
        change, and when the pod is bound to such a node.
        """
        seconds = tolerated_for(pod.template.spec.tolerations, taints)
        if seconds is None:
            self._stay(pod)
            return False
        if seconds <= 0:
            return True
        if pod not in self._ends:  # a timer that is running keeps its time
            self._ends[pod] = now + seconds * SECOND
            self._begun += 1
            heappush(self._timers, (now + seconds * SECOND, pod.name, self._begun, pod))
        return False

    def forget(self, pod: PodInfo) -> None:
        """Removes the timer of a pod that is gone."""
        self._drains.forget(pod)
        self._stay(pod)

    def _stay(self, pod: PodInfo) -> None:
        if self._ends.pop(pod, None) is not None:
            self._timers = [timer for timer in self._timers if timer[3] is not pod]
            heapify(self._timers)


def _needs_timers(cluster: Cluster) -> bool:
    """Returns True if changes taint or drain a node, or if there is a time without nodes.

    Without nodes, attempts end with errors, and are repeated after some time.
    """
    count = fewest = len(cluster.nodes)
    for edit in (edit for instant in cluster.changes for edit in instant.edits if edit.kind == "Node"):
        node: Node | None = edit.after
        if node is not None and (node.drain is not None or no_execute(node.taints)):
            return True
        count += (node is not None) - (edit.before is not None)
        fewest = min(fewest, count)
    return cluster.nodes_change and not fewest
