"""Models how long evictions take after the victim's grace period, and slows down eviction loops.

A scheduler can preempt and start the same jobs again and again. In a real cluster, each round of this loop
takes time, because pods must stop and controllers must notice the change. In this model, each round takes
twice as long as the previous round. A loop is therefore visible, but it can't continue forever while the
clock stands still. Kueue's plugins and the plugins that bind pods share this model.
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
    "the time from the end of a victim's grace period until its resources are free; it doubles in loops of "
    "evictions",
    type=parse_duration,
)

LONGEST = 10 * MINUTE
"""The longest round of a loop. If a victim used its resources for a longer time, it was not in a loop."""

_SHORTEST = SECOND // 2
"""If evictions have no latency, a loop of evictions begins with this latency and doubles it in each round."""

_IDLE_ROUNDS = 10
"""A victim is in a loop after this many consecutive evictions without progress, for whichever jobs."""

V = TypeVar("V")


class Preemptor(Protocol):
    """The job for which a victim is evicted."""

    @property
    def admissions(self) -> int:
        """The number of times that the job has received resources."""


class Round(NamedTuple):
    """The last eviction of a victim.

    Attributes:
        number: the number of this eviction within a loop of evictions, counted from 1.
        at: the time of the eviction.
        preemptor: the preemptor, or None if there was none.
        admissions: how often the preemptor had received resources at the time of the eviction.
        progress: the value of `Evictions.progressed` at the time of the eviction.
        idle: the number of consecutive evictions of the victim while `Evictions.progressed` had this value.
    """

    number: int
    at: int
    preemptor: Preemptor | None
    admissions: int
    progress: int
    idle: int


@final
class Evictions(Generic[V]):
    """Tracks victims whose pods are gone, although the scheduler does not yet see their resources as free.

    Args:
        latency: the time until the scheduler sees the resources as free, in microseconds. If it is None, the
            scheduler always sees this immediately, and eviction loops never end.

    Attributes:
        progressed: how often a job arrived, received resources for the first time, or ended. Callers
            increment this number.
        returning: the victims whose resources the scheduler does not see as free yet.
        alarms: the times at which it will see them as free, without times that `wakes` has returned.
    """

    def __init__(self, latency: int | None) -> None:
        self.progressed = 0
        self._latency = latency
        self.returning: list[tuple[int, str, int, V]] = []
        self.alarms: list[int] = []
        self._serial = 0

    def begin(self, last: Round | None, preemptor: Preemptor | None, held: int, now: int) -> Round:
        """Records that a victim was evicted, and returns the eviction. It may be the next round of a loop.

        It is the next round if the previous eviction of the victim was at the same time. It is also the next
        round if the victim used its resources only for a short time, and one of these conditions is met:

        - The preemptor of the previous eviction has not received resources since then.
        - The victim has been evicted often since the last progress in the cluster, by any preemptors.

        Args:
            last: the previous eviction of the victim.
            preemptor: the preemptor of this eviction.
            held: how long the victim used its resources.
            now: the current time.
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
        """Records that the pods of a victim are gone, and returns the time at which its resources are free.

        Args:
            victim: the victim. `due` returns it at that time, unless that time is now.
            name: the name of the victim. It determines the order of victims at the same time.
            last: the eviction that removed the pods, or None if it began before the replay.
            now: the current time.
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
        """Returns the victims whose resources are free now, sorted by name."""
        returning = self.returning
        if not returning or returning[0][0] > now:
            return ()  # nearly always the case; every cycle calls this method
        victims = []
        while returning and returning[0][0] <= now:
            victims.append(heappop(returning)[3])
        return victims

    def wakes(self) -> Sequence[Wake]:
        """Returns a wake-up for each time at which the resources of victims become free.

        Wake-ups that an earlier call returned are not repeated.
        """
        if not self.alarms:
            return ()
        alarms, self.alarms = self.alarms, []
        return [Wake(due) for due in alarms]
