"""What was recorded of why a job waits, so that a reason is recorded when it is another one than before.

Two reasons may come and go for long, such as for every job of a long queue with everything that happens. Then
a reason that was recorded before is recorded again only at the first, fourth, sixteenth, ... such return.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Told(NamedTuple):
    """What was recorded since a job waits.

    Attributes:
        last: the reason of the last attempt; None where that is not known, or it was no failure.
        known: the reasons that were recorded.
        returns: how often one of them came again after another one.
    """

    last: Hashable | None = None
    known: frozenset[Hashable] = frozenset()
    returns: int = 0

    def then(self, reason: Hashable) -> Told:
        """The same after one more attempt that failed, for another reason than the last one."""
        if reason in self.known:
            return Told(reason, self.known, self.returns + 1)
        return Told(reason, self.known | {reason}, self.returns)

    def tells(self, after: Told) -> bool:
        """Whether the last reason after one more attempt is to be recorded; asked of `then` alone."""
        returns = after.returns
        return returns == self.returns or (not returns & (returns - 1) and returns % 3 == 1)


NOTHING_TOLD = Told()
