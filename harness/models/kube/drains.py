"""Models node drains, where evictions wait for PodDisruptionBudgets as with `kubectl drain`.

Upstream: `evictPods` in k8s.io/kubectl/pkg/drain/drain.go. `Budgets.lets_go` models the eviction API. Drains
use the options `--ignore-daemonsets`, `--delete-emptydir-data` and `--force`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, final

from harness.base.units import SECOND
from harness.cluster.kinds.pod_reading import manifest_of
from harness.cluster.model import Node
from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.policy import Job, Preempt

EVICTED_BY_API = "EvictionByEvictionAPI"
"""The reason for an eviction by a drain, as in the pod's condition."""

RETRY = 5 * SECOND
"""The time after which `kubectl drain` repeats an eviction that a budget refused."""

_FAR: Final = 2**62 - 1


def is_left(job: Job, pod: int) -> bool:
    """Returns True if a drain ignores a pod because it belongs to a DaemonSet."""
    pod_set = job.pod_set_of(pod)
    if not pod_set.pod_template:
        return False
    found = manifest_of(pod_set)
    return found is not None and found.of_daemon_set


class Evicting(Protocol):
    """A scheduler that can evict pods."""

    @property
    def cache(self) -> Cache:
        """The nodes and the pods on them."""

    @property
    def budgets(self) -> Budgets:
        """All PodDisruptionBudgets, with the number of disruptions that each budget allows now."""

    @property
    def now(self) -> int:
        """The current time, in microseconds since the origin."""

    def evict(self, victim: PodInfo, by: Job | None, reason: str, detail: Mapping[str, Any]) -> Preempt:
        """Evicts a bound pod. The pod uses its resources until it is gone."""


@final
class Drain:
    """The drain of one node.

    Attributes:
        begun: when the drain started, in microseconds since the origin.
        end: when the drain times out, or a time far in the future if there is no timeout.
        pods: the pods that the drain still has to evict, by name.
    """

    __slots__ = ("begun", "end", "pods")

    def __init__(self, begun: int, timeout: int, pods: list[PodInfo]) -> None:
        self.begun = begun
        self.end = begun + timeout if timeout else _FAR
        self.pods: dict[PodInfo, None] = dict.fromkeys(pods)


@final
class Drains:
    """The drains of all nodes that are being drained.

    `kubectl` retries refused evictions at regular intervals. This model skips a retry if the budgets still
    don't allow the eviction of any pod, because the retry would change nothing.

    Args:
        scheduler: the scheduler that evicts the pods.
    """

    def __init__(self, scheduler: Evicting) -> None:
        self._scheduler = scheduler
        self._drains: dict[str, Drain] = {}
        self._planned = _FAR

    @property
    def due(self) -> int:
        """The next time at which budgets may allow an eviction. It is far in the future if there is none."""
        if self._planned == _FAR and self._drains:
            now = self._scheduler.now
            self._planned = min([self._next(drain, now) for drain in self._drains.values()])
        return self._planned

    def put(self, node: Node, now: int) -> Iterator[Preempt]:
        """Handles a new or changed node.

        If its drain starts, evicts all pods that budgets allow, in the order of their names.
        """
        if node.drain is None:
            self.drop(node.name)
        elif node.name not in self._drains:
            there = self._scheduler.cache.by_name[node.name].pods
            pods = [pod for pod in there if pod.job is not None and not is_left(pod.job, pod.pod)]
            drain = self._drains[node.name] = Drain(now, node.drain, sorted(pods, key=lambda pod: pod.name))
            self._planned = _FAR
            yield from self._try(node.name, drain)

    def drop(self, name: str) -> None:
        """Ends the drain of a node, because the node is gone or its drain was stopped."""
        if self._drains.pop(name, None) is not None:
            self._planned = _FAR

    def forget(self, pod: PodInfo) -> None:
        """Removes a pod that is gone."""
        for drain in self._drains.values():
            drain.pods.pop(pod, None)

    def tried(self, now: int) -> Iterator[Preempt]:
        """Repeats the evictions that are due now, sorted by node and then by pod name."""
        if self._planned > now:
            return
        self._planned = _FAR
        for name in sorted(self._drains):
            drain = self._drains[name]
            if (now - drain.begun) % RETRY == 0 and now < drain.end:
                yield from self._try(name, drain)

    def _next(self, drain: Drain, now: int) -> int:
        """Returns the time of the next retry for a pod whose eviction the budgets allow now."""
        if not any(map(self._scheduler.budgets.lets_go, drain.pods)):
            return _FAR
        at = now + RETRY - (now - drain.begun) % RETRY
        return at if at < drain.end else _FAR

    def _try(self, name: str, drain: Drain) -> Iterator[Preempt]:
        for pod in list(drain.pods):
            if pod.terminating:
                del drain.pods[pod]
            elif self._scheduler.budgets.lets_go(pod):
                del drain.pods[pod]
                yield self._scheduler.evict(pod, None, EVICTED_BY_API, {"drain": name})
