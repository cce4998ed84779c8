"""Gives each list of reservations in a cycle a number. Equal lists have the same number in every cycle.

Lists of reservations recur, because a preemptor that waits for its targets to terminate makes the same
reservations in every cycle. Results for a list can therefore be cached by its number.
"""

from __future__ import annotations

from typing import TypeAlias, final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.snapshot import Snapshot

_Step: TypeAlias = tuple[int, int, object, object]
"""The number of the earlier reservations, and the node, the quota and the places of the next reservation."""


@final
class CycleStates:
    """Gives a number to each list of reservations that a cycle makes.

    The cache key consists of the earlier reservations of the cycle and the next reservation.
    """

    __slots__ = ("_counted", "_known", "_number", "_numbers", "_snapshot")

    def __init__(self) -> None:
        self._known: Memo[_Step, int] = Memo()
        self._numbers = 0
        self._snapshot: Snapshot | None = None
        self._counted = self._number = 0

    def of(self, snapshot: Snapshot) -> int:
        """Returns the number that identifies the current reservations of a snapshot."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._counted = self._number = 0
        for workload, amounts, places in snapshot.reserved[self._counted :]:
            step = self._number, workload.cluster_queue.node, amounts, places
            number = self._known.get(step)
            if number is None:
                self._numbers += 1
                number = self._known[step] = self._numbers
            self._number = number
        self._counted = len(snapshot.reserved)
        return self._number
