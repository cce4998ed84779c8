"""Leaps over what repeats itself: a policy that is only woken comes back to where it stood.

A timer of a policy fires for nothing as long as nothing happens, perhaps for years. Where a policy stands as
it stood before, and nothing but its idle wakes came in between, what followed then follows again, for the
engine is deterministic. So all further rounds are counted instead of played.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from harness.base.units import HOUR

if TYPE_CHECKING:
    from harness.engine.lifecycle import Lifecycle
    from harness.engine.sources import Wakes
    from harness.policy import Standing

LONG = 6 * HOUR
"""To play what comes to nothing for less than this takes no longer than to see that it recurs."""

Stand: TypeAlias = "Callable[[int], Standing | None]"
"""See `Policy`."""

Skip: TypeAlias = Callable[[int, Sequence[int]], None]
"""See `Policy`."""


class _Seen(NamedTuple):
    """Where a policy stood.

    Attributes:
        quiet: when something else is due, and when something last happened: the same while nothing does.
        state: what it decides by, and when it wants to be woken, from then.
        counts: what it counts.
        now: when that was.
        cycles: how many cycles there had been.
    """

    quiet: tuple[int, int]
    state: tuple[object, tuple[int, ...]]
    counts: Sequence[int]
    now: int
    cycles: int


@final
class Recurrence:
    """Finds out that a policy stands where it stood, as Brent's algorithm finds cycles.

    Args:
        stand: tells where the policy stands.
        skip: has the policy skip what recurs.
        wakes: its idle wakes.
        lifecycle: the clock, and when something last happened.
    """

    def __init__(self, stand: Stand, skip: Skip, wakes: Wakes, lifecycle: Lifecycle) -> None:
        self._stand = stand
        self._skip = skip
        self._wakes = wakes
        self._lifecycle = lifecycle
        self._kept: _Seen | None = None
        self._left = self._limit = 1

    def leap(self, until: int) -> bool:
        """Leap over the rounds that end before something else is due, if the policy stands where it stood.

        Args:
            until: when something else is due.

        Returns:
            Whether the policy told where it stands; else its wakes are to be played some other way.
        """
        lifecycle, kept = self._lifecycle, self._kept
        now = lifecycle.now
        standing = self._stand(now)
        if standing is None:
            self._kept = None
            return False
        state = standing.state, self._wakes.after(now)
        seen = _Seen((until, lifecycle.last), state, standing.counts, now, lifecycle.cycles)
        if kept is None or kept.quiet != seen.quiet:
            self._kept, self._left, self._limit = seen, 1, 1
        elif kept.state == state:
            self._repeat(kept, seen, (until - 1 - now) // (now - kept.now))
            self._kept = None
        else:
            self._left -= 1
            if not self._left:
                self._limit *= 2
                self._kept, self._left = seen, self._limit
        return True

    def _repeat(self, kept: _Seen, seen: _Seen, rounds: int) -> None:
        """What happened between two times happens this many times more."""
        span, lifecycle = rounds * (seen.now - kept.now), self._lifecycle
        self._skip(span, [rounds * (now - then) for then, now in zip(kept.counts, seen.counts, strict=True)])
        self._wakes.skip(span)
        lifecycle.now += span
        lifecycle.cycles += rounds * (seen.cycles - kept.cycles)
