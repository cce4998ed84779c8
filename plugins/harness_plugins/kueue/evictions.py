"""How long an eviction takes, beyond the victim's own grace period, and how loops of evictions slow down.

Kueue can preempt and admit the same workload again and again. In a cluster each round takes time: pods stop,
controllers notice. Here each round of one loop takes twice as long as the one before, so that a loop is
visible without going on for ever at one instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.units import MINUTE
from harness_plugins.kueue.workload import Workload

LONGEST = 10 * MINUTE
"""No round of a loop takes longer; who held its quota for longer than this was not in a loop."""


class Round(NamedTuple):
    """The last eviction of a workload: for whom, how often that one had been admitted, and which in a row."""

    preemptor: Workload
    admissions: int
    number: int


@final
class Evictions:
    """The evicted workloads whose quota is not free yet although their pods are gone.

    Args:
        latency: how long it takes until the scheduler knows, microseconds.
    """

    def __init__(self, latency: int) -> None:
        self._latency = latency
        self._returning: list[tuple[int, str, int, Workload]] = []
        self._serial = 0

    def begin(self, victim: Workload, preemptor: Workload, now: int) -> int:
        """A workload was told to go; answers how often in a row this happened to no avail.

        It is to no avail when workloads of the same queue evict it again although the one for which it went
        before was not admitted in between, and it could not hold its quota for long either.
        """
        last = victim.round
        number = 1
        if (
            last is not None
            and last.preemptor.home is preemptor.home
            and last.preemptor.admissions == last.admissions
            and now - victim.reserved <= LONGEST
        ):
            number = last.number + 1
        victim.round = Round(preemptor, preemptor.admissions, number)
        return number

    def leave(self, workload: Workload, now: int) -> int:
        """The pods of an evicted workload are gone; answers when its quota will be free."""
        rounds = workload.round.number if workload.round is not None else 1
        due = now + min(self._latency << min(rounds - 1, 40), max(LONGEST, self._latency))
        if due > now:
            self._serial += 1
            heappush(self._returning, (due, workload.name, self._serial, workload))
        return due

    def due(self, now: int) -> Iterator[Workload]:
        """The workloads whose quota is free now, by name."""
        while self._returning and self._returning[0][0] <= now:
            yield heappop(self._returning)[3]
