"""The scheduling queue: pods to try now, pods that back off, and pods that wait for an event.

Times within one instant are told apart by stamps: a stamp is an instant followed by a counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import final

from harness.units import MINUTE, SECOND
from harness_plugins.kube.hints import Hints
from harness_plugins.kube.pod import PodInfo
from harness_plugins.kube.status import INTER_POD_AFFINITY, NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD

_COUNTER_BITS = 40
_LONGEST_BACKOFF = 10
_FLUSH_EVERY = 30 * SECOND
_LONGEST_IN_POOL = 5 * MINUTE


def stamp(now: int, count: int) -> int:
    """The stamp of the event number `count` at an instant."""
    return (now << _COUNTER_BITS) + count


def instant(stamp: int) -> int:
    """The instant of a stamp."""
    return stamp >> _COUNTER_BITS


@final
class SchedulingQueue:
    """The queue. Backoff only orders retries: with nothing else to try, the next one backing off is tried."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._active: list[tuple[int, int, PodInfo]] = []
        self._backoff: list[tuple[int, int, int, PodInfo]] = []
        # The unschedulable pool, in the order of stamps: pods that NodeResourcesFit rejected, whom every
        # deletion may help, and the others.
        self._short: dict[PodInfo, None] = {}
        self._others: dict[PodInfo, None] = {}
        self._by_bindings: dict[PodInfo, None] = {}  # those of both whom a binding may help

    def add(self, pod: PodInfo, at: int) -> None:
        """A new pod waits."""
        pod.timestamp = at
        heappush(self._active, (-pod.priority, at, pod))

    def pop(self) -> PodInfo | None:
        """The next pod to try; None when all wait for events."""
        if self._active:
            return heappop(self._active)[2]
        return heappop(self._backoff)[3] if self._backoff else None

    def add_unschedulable(self, pod: PodInfo, at: int, rejected_by: frozenset[str]) -> None:
        """An attempt has failed: the pod waits in the pool until an event may help it."""
        pod.failures += 1
        pod.timestamp = at
        pod.rejected_by = rejected_by
        delay = _LONGEST_BACKOFF if pod.failures > 4 else 1 << (pod.failures - 1)
        pod.backoff = instant(at) // SECOND + delay
        (self._short if NODE_RESOURCES_FIT in rejected_by else self._others)[pod] = None
        if INTER_POD_AFFINITY in rejected_by or POD_TOPOLOGY_SPREAD in rejected_by:
            self._by_bindings[pod] = None

    def discard(self, pod: PodInfo) -> None:
        """A waiting pod is no longer to be scheduled."""
        self._leave_pool(pod)
        self._active = [entry for entry in self._active if entry[2] is not pod]
        self._backoff = [entry for entry in self._backoff if entry[3] is not pod]
        heapify(self._active)
        heapify(self._backoff)

    # --- events -------------------------------------------------------------------------------------------

    def pod_deleted(self, gone: PodInfo, now: int, *, was_bound: bool) -> None:
        """A bound pod, or one with a nomination, is gone."""
        hints = self._hints
        helped = [pod for pod in self._others if hints.after_deletion(pod, gone, was_bound=was_bound)]
        helped += self._short
        self._move(helped, now)

    def nomination_withdrawn(self, other: PodInfo, now: int) -> None:
        """A nomination is gone: to pods that are not more important, as if the pod itself were gone."""
        hints, most = self._hints, other.priority
        helped = [pod for pod in self._short if pod.priority <= most]
        helped += [
            pod
            for pod in self._others
            if pod.priority <= most and hints.after_deletion(pod, other, was_bound=False)
        ]
        self._move(helped, now)

    def pod_bound(self, bound: PodInfo, now: int) -> None:
        """A pod was bound."""
        if self._by_bindings:
            hints = self._hints
            self._move([pod for pod in self._by_bindings if hints.after_binding(pod, bound)], now)

    def flush(self, now: int) -> None:
        """Every 30 s pods that have been in the pool for more than 5 minutes are tried whatever happened."""
        if now % _FLUSH_EVERY == 0:
            late = now - _LONGEST_IN_POOL
            for pool in (self._short, self._others):
                moved = []
                for pod in pool:
                    if instant(pod.timestamp) >= late:
                        break
                    moved.append(pod)
                self._move(moved, now)

    def next_flush(self) -> int | None:
        """When `flush` will move the next pod if no event does before; None when the pool is empty."""
        oldest = [next(iter(pool)).timestamp for pool in (self._short, self._others) if pool]
        if not oldest:
            return None
        return ((instant(min(oldest)) + _LONGEST_IN_POOL) // _FLUSH_EVERY + 1) * _FLUSH_EVERY

    def _move(self, pods: Iterable[PodInfo], now: int) -> None:
        """Move pods out of the pool: to be tried now, or once their backoff is over."""
        second = now // SECOND
        for pod in pods:
            self._leave_pool(pod)
            if pod.backoff < second:
                heappush(self._active, (-pod.priority, pod.timestamp, pod))
            else:
                heappush(self._backoff, (pod.backoff, -pod.priority, pod.timestamp, pod))

    def _leave_pool(self, pod: PodInfo) -> None:
        self._short.pop(pod, None)
        self._others.pop(pod, None)
        self._by_bindings.pop(pod, None)
