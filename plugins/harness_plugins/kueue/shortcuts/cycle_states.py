"""Numbers the actions of a cycle so that equal actions have equal numbers in every cycle.

Preemptors that wait for their targets to terminate do the same in every cycle. The effects of a cycle on the
quota tree therefore recur.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.nomination import Deed


@final
class CycleStates:
    """Numbers the states that a cycle goes through.

    The cache key consists of the earlier actions of the cycle and the next action.
    """

    __slots__ = ("_counted", "_done", "_known", "_number", "_numbers")

    def __init__(self) -> None:
        self._known: Memo[tuple[int, Deed], int] = Memo()
        self._numbers = 0
        self._done: Sequence[Deed] = ()
        self._counted = self._number = 0

    def after(self, done: Sequence[Deed]) -> int:
        """Returns the number of the state after some actions.

        Args:
            done: the actions of the cycle. It must be the same growing list throughout the cycle.
        """
        if done is not self._done:
            self._done = done
            self._counted = self._number = 0
        while self._counted < len(done):
            step = self._number, done[self._counted]
            number = self._known.get(step)
            if number is None:
                self._numbers += 1
                number = self._known[step] = self._numbers
            self._number = number
            self._counted += 1
        return self._number
