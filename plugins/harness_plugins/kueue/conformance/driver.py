"""Reproduces wake-ups of the scheduler that occurred only because of how cases were recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import final

from harness.base.errors import PolicyError
from harness.base.units import SECOND
from harness.policy import Admit, Decision, Job, Refuse, Wake, Why
from harness_plugins.kueue.conformance.node_events import NodeEvents
from harness_plugins.kueue.conformance.readiness import Interruptions
from harness_plugins.kueue.policy import KueuePolicy

_CYCLES = 1000
"""The maximum number of cycles at one time. No recorded replay needs as many."""


@final
class Driver:
    """Runs the policy, and wakes it also at every planned end of a job and at every usage sample.

    Args:
        durations: the run time of each job in microseconds, by the index of the job.
        inactive: the indices of deactivated jobs. The policy does not receive these jobs.
        plain: the sampling interval of LocalQueues whose usage does not affect the order of their
            ClusterQueue. None if there are no such LocalQueues.
        interruptions: the times at which pods are lost and recover.
    """

    def __init__(
        self,
        policy: KueuePolicy,
        durations: Sequence[int],
        inactive: Collection[int],
        until: int,
        plain: int | None,
        interruptions: Interruptions,
        events: Iterable[int],
        nodes: NodeEvents | None = None,
    ) -> None:
        self._durations = durations
        self._inactive = inactive
        self._policy = policy
        self._until = until
        self._plain = plain
        self._interruptions = interruptions
        self._alarms: list[int] = []
        self.ready = self._start_up if policy.ready is not None else None
        self._local_queues = policy.scheduler.local_queues
        self.changed = policy.changed
        self.timers = nodes
        self._instants = set(events)  # later also the planned ends of jobs
        self._news = False
        policy.scheduler.advance(0)

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Passes a job to the policy when the job arrives or returns to its queue."""
        self._news = True
        if job.index not in self._inactive:
            self._policy.submit(job, pods, now)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Tells the policy that a job finished or is gone."""
        self._news = True
        self._interruptions.gone(job)
        self._policy.release(job, pods, now, why)

    def _start_up(self, job: Job, pods: range, now: int) -> None:
        self._news = True
        assert self._policy.ready is not None
        self._policy.ready(job, pods, now)
        self._expect(self._interruptions.ready(job, now))

    def cycle(self, now: int) -> Iterator[Decision]:
        """Yields the policy's decisions except notes, and a wake-up at the end of each admitted job.

        A new usage sample can replace a planned sample. The timer of the replaced sample then has no effect.

        Raises:
            PolicyError: the policy runs cycles without end, although the recorded case ends.
        """
        for job, ready, following in self._interruptions.due(now):
            self._news = True
            self._policy.change_readiness(job, now, ready=ready)
            self._expect(following)
        for alarm in self._alarms:
            yield Wake(alarm)
        self._alarms.clear()
        failures = self._policy.failures
        if self.timers is not None:
            self.timers.leave(now)
            yield from self._policy.act(now)
        if (
            self._news
            or (failures is not None and failures.cycles)
            or now == self._next_term()
            or now in self._instants
            or now == self._next_sample(now - 1)
        ):
            yield from self._decide(now)
            self._news = False  # workloads that return after the policy's own evictions belong to this time
        if self.timers is not None:
            yield from self.timers.wakes()
        if failures is not None:
            yield from failures.wakes()
        sample = self._next_sample(now)
        if sample is not None and sample <= self._until:
            yield Wake(sample)
        term = self._next_term()
        if term is not None and term <= self._until:
            yield Wake(term)

    def _decide(self, now: int) -> Iterator[Decision]:
        scheduler = self._policy.scheduler
        last = scheduler.cycles + _CYCLES
        for decision in self._policy.cycle(now):
            if scheduler.cycles > last:
                raise PolicyError(f"more than {_CYCLES:,} cycles at {now / SECOND:g} s without an end")
            if isinstance(decision, Refuse):
                continue
            yield decision
            if isinstance(decision, Admit):
                ready = self._interruptions.admitted(decision.job)
                if ready is None:
                    continue
                due = now + ready + self._durations[decision.job.index]
                if now < due <= self._until:
                    self._instants.add(due)
                    yield Wake(due)

    def _next_term(self) -> int | None:
        return self._policy.next_term()

    def _expect(self, change: int | None) -> None:
        if change is not None and change <= self._until:
            self._alarms.append(change)

    def _next_sample(self, now: int) -> int | None:
        due = [self._local_queues.next_real_sample() if self._local_queues is not None else None]
        if self._plain is not None:
            due.append((now // self._plain + 1) * self._plain)
        return min((each for each in due if each is not None), default=None)
