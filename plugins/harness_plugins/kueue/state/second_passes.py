"""Workloads that hold quota and are tried once more, because a node with pods of theirs failed.

Upstream: pkg/cache/queue/second_pass_queue.go.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.base.units import SECOND
from harness_plugins.kueue.state.topology.flavors import Placed
from harness_plugins.kueue.state.workload import Workload

_LONGEST = 30
"""Seconds, the longest pause between two tries."""

_MOST = 6
"""After this many tries the count stops."""


class SecondPass(NamedTuple):
    """A workload at the time when its timer was first set.

    Attributes:
        workload: the workload.
        placed: the places of its pods.
        node: the node that had failed.
        tries: how often it was tried in vain, at most six times.
    """

    workload: Workload
    placed: tuple[Placed, ...]
    node: str
    tries: int = 0

    @property
    def key(self) -> str:
        """Namespace and name, which order ready ones."""
        job = self.workload.job
        return f"{job.namespace}/{job.id}"


@final
class SecondPasses:
    """Workloads to try once more, with their times: after a second, then after two, four and so on.

    A timer that was set runs to its end. Its workload is then ready if it waits for any timer. This is so
    even if the mark of the node was taken back, or if the workload was evicted, admitted and marked again.

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
        """When the next timer ends, even if it no longer matters; None if none runs."""
        return self._timers[0][0] if self._timers else None

    @property
    def in_vain(self) -> bool:
        """Returns True if the next timer's workload was tried so often that only others could help."""
        return bool(self._timers) and 1 << self._timers[0][2].tries > _LONGEST

    def add(self, one: SecondPass) -> None:
        """A workload must be tried once more, unless it already waits for that."""
        if one.workload in self._waiting:
            return
        self._waiting[one.workload] = None
        self._serial += 1
        pause = min(1 << one.tries, _LONGEST)
        heappush(self._timers, (self._now + pause * SECOND, self._serial, one))

    def put_back(self, one: SecondPass) -> None:
        """A workload was tried in vain."""
        self.add(one._replace(tries=min(one.tries + 1, _MOST)))

    def cancel(self, workload: Workload) -> None:
        """A workload is over, or told to leave; its timers still run to their end."""
        self._waiting.pop(workload, None)
        self.ready.pop(workload, None)

    def advance(self, now: int) -> bool:
        """Moves the time on: workloads whose timers have ended become ready; returns whether any has."""
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
        """All ready workloads, by namespace and name."""
        found = sorted(self.ready.values(), key=lambda one: one.key)
        self.ready.clear()
        return found
