"""Combines the previews of one replay, and applies their effects over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from harness.policy import Wake
from harness_plugins.kueue.previews.minimum_run_time import MinimumRunTime
from harness_plugins.kueue.previews.preemption_rate import PreemptionRate
from harness_plugins.kueue.scheduler import Scheduler
from harness_plugins.kueue.state.workload import Workload


@final
class Previews:
    """Applies the effects of previews to the scheduler as time passes."""

    def __init__(
        self, scheduler: Scheduler, run_time: MinimumRunTime | None, rate: PreemptionRate | None
    ) -> None:
        self._scheduler = scheduler
        self._run_time = run_time
        self._rate = rate
        self._woken = -1

    def it_is(self, now: int) -> None:
        """Sets the current time. A caller may also do this while a cycle is paused."""
        if self._rate is not None:
            self._rate.now = now

    def admitted(self, workload: Workload, at: int, now: int) -> None:
        """Records a workload that has reserved quota and is admitted at `at`, which can be later than now."""
        if self._run_time is not None:
            self._run_time.admitted(workload, at)
            self.follow(now)

    def follow(self, now: int) -> None:
        """Applies the changes that are due by now."""
        if self._run_time is not None:
            for workload, spared in self._run_time.due(now):
                self._scheduler.spare(workload, spared=spared)
        if self._rate is not None:
            for workload in self._rate.due():
                self._scheduler.try_again(workload)

    def wakes(self, now: int) -> Iterator[Wake]:
        """Yields a wake-up for the next change, if there is one."""
        times = [each.next_wake() for each in (self._run_time, self._rate) if each is not None]
        soonest = min((each for each in times if each is not None), default=None)
        if soonest is None or now < self._woken <= soonest or not self._scheduler.anybody_waits():
            return
        self._woken = max(now + 1, soonest)
        yield Wake(self._woken)
