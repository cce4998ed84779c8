"""Tracks workloads that hold quota and are tried again because a node with some of their pods failed.

Upstream: pkg/cache/queue/second_pass_queue.go.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.base.units import SECOND
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_LONGEST = 30
"""The longest delay between two attempts, in seconds."""

_MOST = 6
"""Failed attempts are counted up to this number."""


class SecondPass(NamedTuple):
    """A workload, with its state at the time when its timer was first set.

    Attributes:
        node: the name of the node that failed.
        tries: the number of failed attempts, which is counted up to six.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    node: str
    tries: int = 0


@final
class SecondPasses:
    """Workloads to try again, with delays of one second, then two seconds, four seconds, and so on.

    Timers are never stopped. When a timer ends, its workload becomes ready if it waits for any of its timers.
    This can be an old timer. For example, the workload may have been evicted, admitted and marked again since
    the timer started.

    Attributes:
        ready: the workloads to try in the next cycle.
    """

    def __init__(self) -> None:
        self._now = 0
        self._timers: list[tuple[int, int, SecondPass]] = []
        self._serial = 0
        self._waiting: dict[Workload, None] = {}
        self.ready: dict[Workload, SecondPass] = {}

    @property
    def due(self) -> int | None:
        """The time when the next timer ends, or None if no timer runs. Timers of canceled workloads count."""
        return self._timers[0][0] if self._timers else None

    @property
    def in_vain(self) -> bool:
        """True if the next workload has failed so often that only other events can help it."""
        return bool(self._timers) and 1 << self._timers[0][2].tries > _LONGEST

    def add(self, one: SecondPass) -> None:
        """Sets a timer to try a workload again, unless the workload is already waiting for a timer."""
        if one.workload in self._waiting:
            return
        self._waiting[one.workload] = None
        self._serial += 1
        pause = min(1 << one.tries, _LONGEST)
        heappush(self._timers, (self._now + pause * SECOND, self._serial, one))

    def put_back(self, one: SecondPass) -> None:
        """Sets the next timer for a workload after a failed attempt."""
        self.add(one._replace(tries=min(one.tries + 1, _MOST)))

    def cancel(self, workload: Workload) -> None:
        """Removes a workload that finished or was evicted. Its timers keep running."""
        self._waiting.pop(workload, None)
        self.ready.pop(workload, None)

    def advance(self, now: int) -> bool:
        """Marks the workloads whose timers have ended as ready. Returns True if any timer has ended."""
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
        """Removes and returns all workloads that are ready, sorted by namespace and name."""
        found = sorted(self.ready.values(), key=_key)
        self.ready.clear()
        return found


def _key(one: SecondPass) -> str:
    return f"{one.workload.job.namespace}/{one.workload.job.id}"
