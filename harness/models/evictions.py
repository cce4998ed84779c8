"""The time that an eviction takes beyond the victim's grace period, and the slowing of eviction loops.

A scheduler can preempt and start the same work again and again. In a cluster each round takes time: pods
stop, controllers notice. Here each round of a loop takes twice as long as the previous round. So a loop
becomes visible, but does not last forever at one instant. Kueue's plugins and the plugins that bind pods
share this model.
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
    "from the end of a victim's grace period until its resources are free; doubles in loops of evictions",
    type=parse_duration,
)

LONGEST = 10 * MINUTE
"""The longest round of a loop; a victim that held its resources for longer than this was not in a loop."""

_SHORTEST = SECOND // 2
"""The first latency of a loop if evictions are otherwise noticed immediately; it doubles in each round."""

_IDLE_ROUNDS = 10
"""After this many consecutive evictions without progress in the cluster, a victim is in a loop.

This holds even if its preemptors differ.
"""

V = TypeVar("V")


class Preemptor(Protocol):
    """The job for which a victim is evicted."""

    @property
    def admissions(self) -> int:
        """How often the job was given resources."""


class Round(NamedTuple):
    """The last eviction of a victim.

    Attributes:
        number: the number of consecutive evictions without effect, from 1.
        at: the time of the eviction.
        preemptor: the preemptor, or None.
        admissions: how often the preemptor had been given resources.
        progress: the progress in the cluster at that time, see `Evictions.progressed`.
        idle: the number of consecutive evictions without progress between them, from 1.
    """

    number: int
    at: int
    preemptor: Preemptor | None
    admissions: int
    progress: int
    idle: int


@final
class Evictions(Generic[V]):
    """The victims whose pods are gone, but whose resources the scheduler does not see as free yet.

    Args:
        latency: how long it takes until the scheduler knows, in microseconds. None if it always knows
            immediately, so that a loop of evictions never ends.

    Attributes:
        progressed: how often a job arrived, was given resources for the first time, or ended; callers
            increase it.
        returning: these victims.
        alarms: the instants for which no wake was requested yet.
    """

    def __init__(self, latency: int | None) -> None:
        self.progressed = 0
        self._latency = latency
        self.returning: list[tuple[int, str, int, V]] = []
        self.alarms: list[int] = []
        self._serial = 0

    def begin(self, last: Round | None, preemptor: Preemptor | None, held: int, now: int) -> Round:
        """Notes that a victim was evicted; returns the eviction, with its round if it is in a loop.

        The eviction is a further round if the victim is evicted twice at one instant. It also is if the
        victim held its resources only for a short time and

        - its previous preemptor has not been given resources since; or
        - it was evicted often since the last progress in the cluster, by any preemptors.

        Args:
            last: the victim's previous eviction.
            preemptor: the preemptor of this eviction.
            held: for how long the victim held its resources.
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
        """Notes that a victim's pods are gone; returns the time at which its resources are free.

        Args:
            victim: the victim; `due` returns it at that time, unless that time is now.
            name: orders victims of one instant.
            last: its eviction; None if the eviction began before the replay.
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
        """Returns the victims whose resources are free now, by name."""
        returning = self.returning
        if not returning or returning[0][0] > now:
            return ()  # as nearly always; this method is called in every cycle
        victims = []
        while returning and returning[0][0] <= now:
            victims.append(heappop(returning)[3])
        return victims

    def wakes(self) -> Sequence[Wake]:
        """Returns wakes for the instants at which victims that left since the last cycle are due."""
        if not self.alarms:
            return ()
        alarms, self.alarms = self.alarms, []
        return [Wake(due) for due in alarms]
