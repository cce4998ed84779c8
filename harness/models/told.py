"""The recorded reasons of a job's wait, so that a reason is recorded only when it changes.

Two reasons may alternate for a long time, for example for every job of a long queue at every event. A reason
that was recorded before is then recorded again only at the first, fourth, sixteenth, ... such return.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Told(NamedTuple):
    """The reasons recorded since a job began to wait.

    Attributes:
        last: the reason of the last attempt; None if it is unknown, or the attempt did not fail.
        known: the reasons that were recorded.
        returns: how often a known reason followed another reason.
    """

    last: Hashable | None = None
    known: frozenset[Hashable] = frozenset()
    returns: int = 0

    def then(self, reason: Hashable) -> Told:
        """Returns the state after one more failed attempt with another reason than the last attempt."""
        if reason in self.known:
            return Told(reason, self.known, self.returns + 1)
        return Told(reason, self.known | {reason}, self.returns)

    def tells(self, after: Told) -> bool:
        """Returns True if the reason must be recorded after one more attempt; `after` comes from `then`."""
        returns = after.returns
        return returns == self.returns or (not returns & (returns - 1) and returns % 3 == 1)


NOTHING_TOLD = Told()
