"""What the recording added to Kueue: instants at which nothing happens, and workloads that never queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import final

from harness.errors import PolicyError
from harness.job import Job
from harness.policy import Admit, Decision, Refuse, Wake
from harness.units import SECOND
from harness_plugins.kueue.policy import KueuePolicy

_CYCLES = 1000
"""Cycles at one instant; no recorded replay needs as many."""


@final
class Driver:
    """The policy, and an instant at every end that was ever due.

    Args:
        policy: the policy.
        durations: how long jobs run, by index.
        inactive: the jobs that are deactivated; nobody hears of them.
        until: the end of the replay.
    """

    def __init__(
        self, policy: KueuePolicy, durations: Sequence[int], inactive: Collection[int], until: int
    ) -> None:
        self._durations = durations
        self._inactive = inactive
        self._policy = policy
        self._until = until
        self.release = policy.release

    def submit(self, job: Job, pods: range, now: int) -> None:
        """A job arrived, or is back in its queue."""
        if job.index not in self._inactive:
            self._policy.submit(job, pods, now)

    def cycle(self, now: int) -> Iterator[Decision]:
        """The policy's decisions but for notes, each admission with a wake at the end that is due then.

        Raises:
            PolicyError: it goes on for ever; what was recorded came to rest.
        """
        scheduler = self._policy.scheduler
        last = scheduler.cycles + _CYCLES
        for decision in self._policy.cycle(now):
            if scheduler.cycles > last:
                raise PolicyError(f"more than {_CYCLES:,} cycles at {now / SECOND:g} s, and no end of it")
            if isinstance(decision, Refuse):
                continue
            yield decision
            if isinstance(decision, Admit):
                due = now + self._durations[decision.job.index]
                if now < due <= self._until:
                    yield Wake(due)
