"""Workloads with quota that are tried once more, because a node with some of their pods failed.

Upstream: pkg/cache/queue/second_pass_queue.go.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.base.units import SECOND
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_LONGEST = 30
"""The longest pause between two tries, in seconds."""

_MOST = 6
"""The count of tries stops at this number."""


class SecondPass(NamedTuple):
    """A workload in its state at the time when its timer was first set.

    Attributes:
        workload: the workload.
        placed: the places of its pods.
        node: the node that had failed.
        tries: the number of tries without success; the count stops at six.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    node: str
    tries: int = 0

    @property
    def key(self) -> str:
        """Namespace and name, which order ready workloads."""
        job = self.workload.job
        return f"{job.namespace}/{job.id}"


@final
class SecondPasses:
    """Workloads to try once more, with their times: after a second, then after two, four and so on.

    A timer is never stopped. When it ends, its workload becomes ready if the workload waits for any timer,
    even if it was evicted, admitted and marked again meanwhile.

    Attributes:
        ready: the workloads that must be tried in the next cycle.
    """

    def __init__(self) -> None:
        self._now = 0
        self._timers: list[tuple[int, int, SecondPass]] = []
        self._serial = 0
        self._waiting: dict[Workload, None] = {}
        self.ready: dict[Workload, SecondPass] = {}

    @property
    def due(self) -> int | None:
        """When the next timer ends, even if it no longer matters; None if no timer runs."""
        return self._timers[0][0] if self._timers else None

    @property
    def in_vain(self) -> bool:
        """True if the next timer's workload was tried so often that only other events could help it."""
        return bool(self._timers) and 1 << self._timers[0][2].tries > _LONGEST

    def add(self, one: SecondPass) -> None:
        """Sets a timer to try a workload once more, unless the workload already waits for one."""
        if one.workload in self._waiting:
            return
        self._waiting[one.workload] = None
        self._serial += 1
        pause = min(1 << one.tries, _LONGEST)
        heappush(self._timers, (self._now + pause * SECOND, self._serial, one))

    def put_back(self, one: SecondPass) -> None:
        """Sets the next timer of a workload that was tried without success."""
        self.add(one._replace(tries=min(one.tries + 1, _MOST)))

    def cancel(self, workload: Workload) -> None:
        """Removes a workload that is over or evicted; its timers still run to their end."""
        self._waiting.pop(workload, None)
        self.ready.pop(workload, None)

    def advance(self, now: int) -> bool:
        """Makes workloads ready whose timers have ended; returns whether any timer has ended."""
        ended = False
        self._now = now
        while self._timers and self._timers[0][0] <= now:
            one = heappop(self._timers)[2]
            ended = True
            if one.workload in self._waiting:
                del self._waiting[one.workload]
                self.ready[one.workload] = one
        return ended

    def take(self) -> list[SecondPass]:
        """Takes and returns all ready workloads, by namespace and name."""
        found = sorted(self.ready.values(), key=lambda one: one.key)
        self.ready.clear()
        return found
