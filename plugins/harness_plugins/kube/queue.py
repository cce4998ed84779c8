"""The scheduling queue: pods to try now, pods that back off, and pods that wait for an event.

Times within one instant are told apart by stamps: a stamp is an instant followed by a counter.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import final

from harness.units import MINUTE, SECOND
from harness_plugins.kube.hints import Hints
from harness_plugins.kube.pod import PodInfo
from harness_plugins.kube.status import INTER_POD_AFFINITY, NODE_RESOURCES_FIT, POD_TOPOLOGY_SPREAD

_COUNTER_BITS = 40
_LONGEST_BACKOFF = 10
_BACKOFFS = (0, 1, 2, 4, 8)
"""Seconds of backoff by the number of failures; more failures mean the longest backoff."""

_FLUSH_EVERY = 30 * SECOND
_LONGEST_IN_POOL = 5 * MINUTE


@final
class SchedulingQueue:
    """The queue. Backoff only orders retries: with nothing else to try, the next one backing off is tried.

    Attributes:
        now: the instant that is being played.
        attempts: how many pods were tried.
        failed_alike: pods that failed for the first time, at once because an equal one had failed; the
            scheduler takes them out.
    """

    def __init__(self, hints: Hints) -> None:
        self.now = -1
        self.attempts = 0
        self.failed_alike: list[PodInfo] = []
        self._hints = hints
        self._count = 0
        # Sorted, the next one last: by priority and age, and before that by the end of the backoff.
        self._active: list[tuple[int, int, PodInfo]] = []
        self._backoff: list[tuple[int, int, int, PodInfo]] = []
        # The unschedulable pool, in the order of stamps: pods that NodeResourcesFit rejected, whom every
        # deletion may help, and the others.
        self._short: dict[PodInfo, None] = {}
        self._others: dict[PodInfo, None] = {}
        self._by_bindings: dict[PodInfo, None] = {}  # those of both whom a binding may help

    def hear(self, now: int) -> None:
        """It is `now`; at a new instant the timers come first."""
        if now != self.now:
            self.now = now
            if now % _FLUSH_EVERY == 0:
                self._flush(now)

    def stamp(self) -> int:
        """A stamp later than all before."""
        self._count += 1
        return (self.now << _COUNTER_BITS) + self._count

    # --- pods that are tried ------------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> None:
        """A new pod waits."""
        pod.timestamp = self.stamp()
        insort(self._active, (pod.priority, -pod.timestamp, pod))

    def pop(self, version: int) -> PodInfo | None:
        """The next pod to try; None when all wait for events.

        A pod fails at once if an equal one has failed and nothing has changed since.

        Args:
            version: of the cache; see `Peers.hopeless`.
        """
        active, backoff = self._active, self._backoff
        failed: list[PodInfo] = []
        found: PodInfo | None = None
        while active or backoff:
            pod = active.pop()[2] if active else backoff.pop()[3]
            peers = pod.peers
            if peers.hopeless != version or pod.nominated:
                found = pod
                break
            pod.rejected_by = peers.rejected_by
            failed.append(pod)
        self.attempts += len(failed) + (found is not None)
        self.failed_alike += [pod for pod in failed if not pod.failures]
        self._wait(failed)
        return found

    def add_unschedulable(self, pod: PodInfo, rejected_by: frozenset[str]) -> None:
        """An attempt has failed: the pod waits in the pool until an event may help it."""
        pod.rejected_by = rejected_by
        self._wait((pod,))

    def _wait(self, pods: Iterable[PodInfo]) -> None:
        """Attempts have failed in this order: the pods wait in the pool.

        Every end of a pod brings all that wait through here, so each of them has to cost little.
        """
        second, stamp = self.now // SECOND, (self.now << _COUNTER_BITS) + self._count
        before, pool, by_bindings = None, self._others, False
        for pod in pods:
            rejected_by = pod.rejected_by
            if rejected_by is not before:  # most have failed for the same
                before = rejected_by
                pool = self._short if NODE_RESOURCES_FIT in rejected_by else self._others
                by_bindings = INTER_POD_AFFINITY in rejected_by or POD_TOPOLOGY_SPREAD in rejected_by
            failures = pod.failures = pod.failures + 1
            stamp += 1
            pod.timestamp = stamp
            pod.backoff = second + (_BACKOFFS[failures] if failures < 5 else _LONGEST_BACKOFF)
            pool[pod] = None
            if by_bindings:
                self._by_bindings[pod] = None
        self._count = stamp - (self.now << _COUNTER_BITS)

    def discard(self, pod: PodInfo) -> None:
        """A waiting pod is no longer to be scheduled."""
        for pool in (self._short, self._others, self._by_bindings):
            pool.pop(pod, None)
        self._active = [entry for entry in self._active if entry[2] is not pod]
        self._backoff = [entry for entry in self._backoff if entry[3] is not pod]

    def activate(self, pod: PodInfo) -> None:
        """A pod that waits, wherever it does, is tried in its turn without any backoff."""
        self.discard(pod)
        insort(self._active, (pod.priority, -pod.timestamp, pod))

    # --- events -------------------------------------------------------------------------------------------

    def pod_deleted(self, gone: PodInfo, *, was_bound: bool) -> None:
        """A bound pod, or one with a nomination, is gone."""
        helped = list(self._short)
        self._short.clear()
        if self._others:
            hints = self._hints
            helped += [pod for pod in self._others if hints.after_deletion(pod, gone, was_bound=was_bound)]
        self._move(helped)

    def nomination_withdrawn(self, other: PodInfo) -> None:
        """A nomination is gone: to pods that are not more important, as if the pod itself were gone."""
        hints, most = self._hints, other.priority
        helped = [pod for pod in self._short if pod.priority <= most]
        helped += [
            pod
            for pod in self._others
            if pod.priority <= most and hints.after_deletion(pod, other, was_bound=False)
        ]
        self._move(helped)

    def pod_bound(self, bound: PodInfo) -> None:
        """A pod was bound."""
        if self._by_bindings:
            hints = self._hints
            self._move([pod for pod in self._by_bindings if hints.after_binding(pod, bound)])

    def next_flush(self) -> int | None:
        """When the timer will move the next pod if no event does before; None when the pool is empty.

        Every 30 s pods that have been in the pool for more than 5 minutes are tried, whatever happened.
        """
        oldest = [next(iter(pool)).timestamp for pool in (self._short, self._others) if pool]
        if not oldest:
            return None
        since = min(oldest) >> _COUNTER_BITS
        return ((since + _LONGEST_IN_POOL) // _FLUSH_EVERY + 1) * _FLUSH_EVERY

    def _flush(self, now: int) -> None:
        late = (now - _LONGEST_IN_POOL) << _COUNTER_BITS
        moved: list[PodInfo] = []
        for pool in (self._short, self._others):
            for pod in pool:
                if pod.timestamp >= late:
                    break
                moved.append(pod)
        self._move(moved)

    def _move(self, pods: Sequence[PodInfo]) -> None:
        """Move pods out of the pool: to be tried now, or once their backoff is over."""
        if not pods:
            return
        second = self.now // SECOND
        for pool in (self._short, self._others, self._by_bindings):
            for pod in pods if pool else ():
                pool.pop(pod, None)
        ready = [(pod.priority, -pod.timestamp, pod) for pod in pods if pod.backoff < second]
        if ready:
            self._active += ready
            self._active.sort()
        if len(ready) < len(pods):
            self._backoff += [
                (-pod.backoff, pod.priority, -pod.timestamp, pod) for pod in pods if pod.backoff >= second
            ]
            self._backoff.sort()
