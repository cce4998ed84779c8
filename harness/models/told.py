"""Tracks which reasons for a job's wait have been recorded, so that only changes are recorded.

Two reasons can alternate for a long time, for example for every job in a long queue at every event. If a
recorded reason returns, it is recorded again only the first, fourth, sixteenth, ... time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple


class Told(NamedTuple):
    """The reasons that were recorded since a job started to wait.

    Attributes:
        last: the reason of the last attempt, or None if it is unknown or the attempt did not fail.
        known: the reasons that were recorded.
        returns: how often a known reason came after a different reason.
    """

    last: Hashable | None = None
    known: frozenset[Hashable] = frozenset()
    returns: int = 0

    def then(self, reason: Hashable) -> Told:
        """Returns the state after another failed attempt with a different reason."""
        if reason in self.known:
            return Told(reason, self.known, self.returns + 1)
        return Told(reason, self.known | {reason}, self.returns)

    def again(self, reason: Hashable, returns: int) -> Told:
        """Returns the state after known reasons returned some times, the last one being `reason`."""
        return Told(reason, self.known, self.returns + returns)

    @property
    def quiet(self) -> int:
        """How often known reasons can return until one of them must be recorded."""
        digits = self.returns.bit_length()
        return (1 << digits + (digits & 1)) - self.returns - 1

    def tells(self, after: Told) -> bool:
        """Returns True if the reason of the latest attempt must be recorded.

        Args:
            after: the state after this attempt, which `then` returned.
        """
        returns = after.returns
        return returns == self.returns or (not returns & (returns - 1) and returns % 3 == 1)


NOTHING_TOLD: Final = Told()
