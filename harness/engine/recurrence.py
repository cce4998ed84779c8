"""Skips idle wakes that repeat earlier ones because a policy has returned to an earlier state.

While nothing else happens, the timer of a policy fires without any effect, perhaps for years. If only idle
wakes happen until a policy returns to an earlier state, the same wakes will follow again, because the engine
is deterministic. The engine counts all further rounds instead of simulating them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from harness.base.units import HOUR

if TYPE_CHECKING:
    from harness.engine.lifecycle import Lifecycle
    from harness.engine.sources import Wakes
    from harness.policy import Standing

LONG: Final = HOUR
"""Shorter idle times are simulated, because detecting a repetition would take as long."""

Stand: TypeAlias = "Callable[[int], Standing | None]"
"""See `Policy`."""

Skip: TypeAlias = Callable[[int, Sequence[int]], None]
"""See `Policy`."""


class _Seen(NamedTuple):
    """An earlier state of a policy.

    `quiet` contains when the next other event is due, and the time of the last event. These stay the same
    while nothing happens. `state` determines the policy's decisions, with the times until its next wakes.
    """

    quiet: tuple[int, int]
    state: tuple[object, tuple[int, ...]]
    counts: Sequence[int]
    now: int
    cycles: int


@final
class Recurrence:
    """Detects when a policy has returned to an earlier state, with Brent's cycle-finding algorithm."""

    def __init__(self, stand: Stand, skip: Skip, wakes: Wakes, lifecycle: Lifecycle) -> None:
        self._stand = stand
        self._skip = skip
        self._wakes = wakes
        self._lifecycle = lifecycle
        self._kept: _Seen | None = None
        self._left = self._limit = 1

    def leap(self, until: int) -> bool:
        """If the policy has returned to an earlier state, skip as many rounds as possible.

        A round is the time between two equal states. Rounds are skipped if they end before `until`, when
        another event is due.

        Returns:
            True if the policy provided its state. If False, the engine must simulate every wake.
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
        span, lifecycle = rounds * (seen.now - kept.now), self._lifecycle
        self._skip(span, [rounds * (now - then) for then, now in zip(kept.counts, seen.counts, strict=True)])
        self._wakes.skip(span)
        lifecycle.now += span
        lifecycle.cycles += rounds * (seen.cycles - kept.cycles)
