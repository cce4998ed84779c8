"""Enforces time limits by evicting, requeueing and rejecting workloads.

The limits are `waitForPodsReady` and `maximumExecutionTimeSeconds`. Evicted workloads are queued again after
a backoff. Deactivated workloads release their quota immediately, and are rejected when their pods are gone.
If a workload is in a backoff when the replay starts, Kueue waits for the end of the backoff. This holds even
if `waitForPodsReady` is off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import maxsize
from typing import final

from harness.policy import Preempt, Reject, Wake
from harness_plugins.kueue.executions import Executions
from harness_plugins.kueue.record.time_outs import detail_of
from harness_plugins.kueue.rules.maximum_execution_time import EXCEEDED
from harness_plugins.kueue.rules.preemption import Target
from harness_plugins.kueue.rules.wait_for_pods_ready import DEACTIVATED, TIMED_OUT, PodsReady, Terms
from harness_plugins.kueue.state.workload import Workload


@final
class TimeLimits:
    """The effects of time limits.

    Args:
        evict: a function that informs the scheduler about an eviction at a given time.
        release: a function that releases the quota of a workload whose pods are not gone yet.

    Attributes:
        active: whether any workload may have a limit. If none has, no timers are needed.
        backoffs: the workloads that stay out of their queues, with the times at which they return.
    """

    def __init__(
        self,
        executions: Executions,
        pods_ready: PodsReady | None,
        evict: Callable[[Target, int], None],
        release: Callable[[Workload], None],
        enqueue: Callable[[Workload], None],
        forget: Callable[[Workload], None],
    ) -> None:
        self._executions = executions
        self._times = executions.times
        self._pods_ready = pods_ready
        self._evict = evict
        self._release = release
        self._enqueue = enqueue
        self._forget = forget
        self._given_up: list[Workload] = []
        self._expired: list[tuple[Workload, str]] = []
        self._deactivated: dict[Workload, str] = {}
        self.active = pods_ready is not None
        self.backoffs = Terms()
        self._terms = [self.backoffs, self._times.terms]
        if pods_ready is not None:
            self._terms.insert(0, pods_ready.deadlines)

    def limit(self, workload: Workload, left: int) -> None:
        """Limits how long a workload can stay admitted, in microseconds."""
        self.active = True
        self._times.limit(workload, left)

    def stay_out(self, workload: Workload, until: int) -> None:
        """Keeps a workload out of its queue until the end of a backoff."""
        self.active = True
        self.backoffs.set(workload, until)

    def deactivated(self, workload: Workload, why: str) -> None:
        """Records a workload that is deactivated when the replay begins. It is rejected when it is gone."""
        self.active = True
        self._deactivated[workload] = why

    def is_deactivated(self, workload: Workload) -> bool:
        """Returns True if a workload was deactivated when the replay began, and its pods are not gone yet."""
        return workload in self._deactivated

    def keeps_out(self, workload: Workload) -> bool:
        """Returns True if a workload whose pods are gone stays out of its queue, in a backoff or permanently.

        The execution time is not checked during a backoff (upstream's Reconcile). If the time has run out,
        the workload is deactivated when it is admitted again.
        """
        if workload in self._deactivated:
            self._expired.append((workload, self._deactivated.pop(workload)))
            return True
        if self._pods_ready is not None and self._pods_ready.gives_up(workload):
            self._given_up.append(workload)
            return True
        if workload in self.backoffs:
            return True
        if workload in self._times.over:
            self._expired.append((workload, f"{EXCEEDED}: it was admitted for its maximum execution time"))
            return True
        return False

    def ends_at_once(self, workload: Workload) -> bool:
        """Returns True if a workload would be evicted as soon as it is admitted."""
        return workload in self._times.over

    def are_due(self, now: int) -> bool:
        """Returns True if `enforce` may yield decisions now, which is rare."""
        pods_ready = self._pods_ready
        if self._times.terms.first <= now or self.backoffs.first <= now:
            return True
        if pods_ready is not None and pods_ready.deadlines.first <= now:
            return True
        return bool(self._expired or self._given_up)

    def enforce(self, now: int) -> Iterator[Preempt | Reject]:
        """Yields the decisions that the limits require now."""
        yield from self._end_executions(now)
        if self._pods_ready is not None:
            yield from self._time_out(self._pods_ready, now)
        for workload in self.backoffs.due(now):
            if not self._executions.holds(workload):
                self._enqueue(workload)
            elif workload in self._times.over:
                self._release(workload)
        if self._pods_ready is not None:
            yield from self._deactivate(self._pods_ready)

    def wakes(self, now: int) -> Sequence[Wake]:
        """Returns wake-ups for the next limits that were not requested yet."""
        wakes = []
        for terms in self._terms:
            first = terms.first
            if first == maxsize or now < terms.woken <= first:
                continue  # the most common case
            at = terms.next_wake(now)
            if at is not None:
                wakes.append(Wake(at))
        return wakes

    def _end_executions(self, now: int) -> Iterator[Preempt | Reject]:
        """Evicts workloads that reached their maximum execution time, and rejects them when they are gone.

        A workload that was evicted before only releases its quota, unless it is in a backoff. Workloads that
        were deactivated before the replay are also rejected when they are gone.
        """
        for workload in self._times.due(now):
            if workload in self._times.going:
                if workload not in self.backoffs:
                    self._release(workload)
                continue
            self._executions.goes_for_nobody(workload, now)
            self._evict(Target(workload, EXCEEDED), now)
            self._release(workload)
            yield Preempt(workload.job, None, EXCEEDED)
        for workload, why in self._expired:
            if self._pods_ready is not None:
                self._pods_ready.forget(workload)
            self._forget(workload)
            yield Reject(workload.job, why)
        self._expired.clear()

    def _time_out(self, pods_ready: PodsReady, now: int) -> Iterator[Preempt]:
        """Evicts the workloads whose pods were not ready in time."""
        for workload in pods_ready.deadlines.due(now):
            self._executions.goes_for_nobody(workload, now)
            timed_out = pods_ready.time_out(workload, now)
            until = timed_out.requeue_at
            reason = DEACTIVATED if until is None else TIMED_OUT
            if until is not None and until > now:
                self.backoffs.set(workload, until)
            self._evict(Target(workload, reason), now)
            if until is None:
                self._release(workload)
            yield Preempt(workload.job, None, reason, detail=detail_of(timed_out, pods_ready.settings))

    def _deactivate(self, pods_ready: PodsReady) -> Iterator[Reject]:
        for workload in self._given_up:
            times = pods_ready.forget(workload)
            missed = "once" if times == 1 else f"{times:,} times"
            self._forget(workload)
            yield Reject(workload.job, f"{DEACTIVATED}: its pods missed their time limit {missed}")
        self._given_up.clear()
