"""How long an eviction takes, beyond the victim's own grace period, and how loops of evictions slow down.

Kueue can preempt and admit the same workload again and again. In a cluster each round takes time: pods stop,
controllers notice. Here each round of one loop takes twice as long as the one before, so that a loop is
visible without going on for ever at one instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.units import MINUTE, SECOND
from harness_plugins.kueue.workload import Workload

_SHORTEST = SECOND // 2
"""What the latency of a loop doubles from where it takes no time to notice an eviction."""

LONGEST = 10 * MINUTE
"""No round of a loop takes longer; who held its quota for longer than this was not in a loop."""


class Round(NamedTuple):
    """A workload's last eviction: for whom, how often that one was admitted before, when, which in a row."""

    preemptor: Workload
    admissions: int
    at: int
    number: int


@final
class Evictions:
    """The evicted workloads whose quota is not free yet although their pods are gone.

    Args:
        latency: how long it takes until the scheduler knows, microseconds; None where it knows at once
            whatever happens, so that a loop of evictions goes on for ever.
    """

    def __init__(self, latency: int | None) -> None:
        self._latency = latency
        self._returning: list[tuple[int, str, int, Workload]] = []
        self._serial = 0

    def begin(self, victim: Workload, preemptor: Workload, now: int) -> int:
        """A workload was told to go; answers how often in a row this happened to no avail.

        It is to no avail when it is evicted again although the one for which it went before was not admitted
        in between, and it could not hold its quota for long either; or when it goes twice at one instant.
        """
        last = victim.round
        number = 1
        if last is not None and (
            (last.preemptor.admissions == last.admissions and now - victim.reserved <= LONGEST)
            or last.at == now
        ):
            number = last.number + 1
        victim.round = Round(preemptor, preemptor.admissions, now, number)
        return number

    def leave(self, workload: Workload, now: int) -> int:
        """The pods of an evicted workload are gone; answers when its quota will be free."""
        if self._latency is None:
            return now
        rounds = workload.round.number if workload.round is not None else 1
        due = now + self._latency
        if rounds > 1:
            longer = max(self._latency, _SHORTEST) << min(rounds - 1, 40)
            due = now + min(longer, max(LONGEST, self._latency))
        if due > now:
            self._serial += 1
            heappush(self._returning, (due, workload.name, self._serial, workload))
        return due

    def due(self, now: int) -> Iterator[Workload]:
        """The workloads whose quota is free now, by name."""
        while self._returning and self._returning[0][0] <= now:
            yield heappop(self._returning)[3]
