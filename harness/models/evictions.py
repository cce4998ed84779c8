"""How long an eviction takes, beyond the victim's own grace period, and how loops of evictions slow down.

A scheduler can preempt and start the same work again and again. In a cluster each round takes time: pods
stop, controllers notice. Here each round of one loop takes twice as long as the one before, so that a loop is
visible without going on for ever at one instant. Kueue's plugins and those that bind pods share this.
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
"""No round of a loop takes longer; who held its resources for longer than this was not in a loop."""

_SHORTEST = SECOND // 2
"""What the latency of a loop doubles from where it takes no time to notice an eviction."""

_IDLE_ROUNDS = 10
"""After so many evictions without any progress in the cluster a victim is in a loop, whoever it goes for."""

V = TypeVar("V")


class Preemptor(Protocol):
    """Whom a victim goes for."""

    @property
    def admissions(self) -> int:
        """How often it was given resources."""


class Round(NamedTuple):
    """The last eviction of a victim.

    Attributes:
        number: which in a row it is that is to no avail, from 1.
        at: when it was.
        preemptor: for whom it was, if for anybody.
        admissions: how often that one had been given resources.
        progress: what had progressed in the cluster by then, see `Evictions.progressed`.
        idle: which in a row it is between which nothing progressed, from 1.
    """

    number: int
    at: int
    preemptor: Preemptor | None
    admissions: int
    progress: int
    idle: int


@final
class Evictions(Generic[V]):
    """The victims whose resources are not free yet for the scheduler, although their pods are gone.

    Args:
        latency: how long it takes until the scheduler knows, microseconds; None where it knows at once
            whatever happens, so that a loop of evictions goes on for ever.

    Attributes:
        progressed: how often a job arrived, was given resources for the first time, or ended; whoever
            sees it happen adds to it.
        returning: those victims.
        alarms: the instants that are yet to be asked for.
    """

    def __init__(self, latency: int | None) -> None:
        self.progressed = 0
        self._latency = latency
        self.returning: list[tuple[int, str, int, V]] = []
        self.alarms: list[int] = []
        self._serial = 0

    def begin(self, last: Round | None, preemptor: Preemptor | None, held: int, now: int) -> Round:
        """A victim was told to go; answers which round of a loop this is.

        It is a further one when the victim goes twice at one instant, or could not hold its resources for
        long and

        - the one for which it went before was given nothing since; or
        - it has gone often since anything in the cluster progressed, whoever for.

        Args:
            last: its eviction before this one.
            preemptor: for whom it goes now.
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
        """The pods of a victim are gone; answers when its resources are free.

        Args:
            victim: who is to be returned then, unless that is now.
            name: orders those of one instant.
            last: its eviction; None for one that was under way when the replay began.
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
        """Asks for the instants at which victims that have left since the last cycle are due."""
        if not self.alarms:
            return ()
        alarms, self.alarms = self.alarms, []
        return [Wake(due) for due in alarms]
