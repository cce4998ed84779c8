"""The time that an eviction takes beyond the victim's grace period, and the slowing of eviction loops.

A scheduler can preempt and start the same work again and again. In a cluster each round takes time: pods
stop, controllers notice. Here each round of one loop takes twice as long as the one before. So a loop becomes
visible, but does not go on for ever at one instant. Kueue's plugins and those that bind pods share this.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, NamedTuple, Protocol, TypeVar, final

from harness.base.options import Option
from harness.base.units import MINUTE, SECOND, parse_duration
from harness.policy import Wake

LATENCY = Option(
    "evictionLatency",
    SECOND,
    "from the end of a victim's grace period until what it held is free; doubles in loops of evictions",
    type=parse_duration,
)

LONGEST = 10 * MINUTE
"""The longest round of a loop; a victim that held its resources for longer than this was not in a loop."""

_SHORTEST = SECOND // 2
"""The first latency of a loop, which then doubles, if evictions are otherwise noticed at once."""

_IDLE_ROUNDS = 10
"""After this many evictions in a row without progress in the cluster, a victim is in a loop.

This holds even if its preemptors differ.
"""

V = TypeVar("V")


class Preemptor(Protocol):
    """The job for which a victim leaves."""

    @property
    def admissions(self) -> int:
        """The number of times it was given resources."""


class Round(NamedTuple):
    """The last eviction of a victim.

    Attributes:
        number: the number of evictions in a row without effect, from 1.
        at: when it was.
        preemptor: the preemptor, if there is one.
        admissions: how often the preemptor had been given resources.
        progress: the progress in the cluster by then, see `Evictions.progressed`.
        idle: the number of evictions in a row between which nothing progressed, from 1.
    """

    number: int
    at: int
    preemptor: Preemptor | None
    admissions: int
    progress: int
    idle: int


@final
class Evictions(Generic[V]):
    """The victims whose resources are not yet free for the scheduler, although their pods are gone.

    Args:
        latency: how long it takes until the scheduler knows, in microseconds. None if it always knows at
            once, so that a loop of evictions goes on for ever.

    Attributes:
        progressed: how often a job arrived, was given resources for the first time, or ended; callers
            increase it.
        returning: those victims.
        alarms: the instants that have yet to be requested.
    """

    def __init__(self, latency: int | None) -> None:
        self.progressed = 0
        self._latency = latency
        self.returning: list[tuple[int, str, int, V]] = []
        self.alarms: list[int] = []
        self._serial = 0

    def begin(self, last: Round | None, preemptor: Preemptor | None, held: int, now: int) -> Round:
        """A victim was told to leave; returns the round of the loop, if it is in one.

        It is a further round if the victim leaves twice at one instant. It is also one if the victim could
        not hold its resources for long and

        - its previous preemptor has got nothing since; or
        - it has left often since anything in the cluster progressed, whatever its preemptors.

        Args:
            last: its eviction before this one.
            preemptor: its preemptor now.
            held: for how long it had its resources.
            now: the time.
        """
        number = idle = 1
        if last is not None:
            before, again = last.preemptor, last.at == now
            if held <= LONGEST:
                if last.progress == self.progressed:
                    idle = last.idle + 1
                in_vain = before is not None and before.admissions == last.admissions
                again = again or in_vain or idle > _IDLE_ROUNDS
            if again:
                number = last.number + 1
        admissions = preemptor.admissions if preemptor is not None else 0
        return Round(number, now, preemptor, admissions, self.progressed, idle)

    def leave(self, victim: V, name: str, last: Round | None, now: int) -> int:
        """The pods of a victim are gone; returns the time at which its resources are free.

        Args:
            victim: the victim to return then, unless that is now.
            name: orders those of one instant.
            last: its eviction; None for one that was in progress when the replay began.
            now: the time.
        """
        latency, number = self._latency, last.number if last is not None else 1
        if latency is None:
            return now
        due = now + latency
        if number > 1:
            longer = max(latency, _SHORTEST) << min(number - 1, 40)
            due = now + min(longer, max(LONGEST, latency))
        if due > now:
            self._serial += 1
            heappush(self.returning, (due, name, self._serial, victim))
            self.alarms.append(due)
        return due

    def due(self, now: int) -> Sequence[V]:
        """The victims whose resources are free now, by name."""
        returning = self.returning
        if not returning or returning[0][0] > now:
            return ()  # as nearly always, and this is asked in every cycle
        victims = []
        while returning and returning[0][0] <= now:
            victims.append(heappop(returning)[3])
        return victims

    def wakes(self) -> Sequence[Wake]:
        """Requests the instants at which victims that have left since the last cycle are due."""
        if not self.alarms:
            return ()
        alarms, self.alarms = self.alarms, []
        return [Wake(due) for due in alarms]
