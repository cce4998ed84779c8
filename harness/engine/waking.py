"""Detects a policy that keeps waking itself without any effect.

An effect is an arrival, the first start of a job, a completion, a rejection or a preemption. The result
depends only on simulated time and counts, as in `harness.engine.livelock`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

from harness.base.units import SECOND
from harness.engine.sources import FAR, Source

if TYPE_CHECKING:
    from harness.engine.lifecycle import Lifecycle
    from harness.engine.livelock import Watch

MOST = 1_000_000
"""The maximum number of consecutive wakes without an effect, if no other event is due.

Up to twice as many wakes can happen, because the engine checks for an effect only after this many wakes.
"""

_LEAST = SECOND // 1000
"""The minimum mean interval between wakes before another event, so that the replay reaches the event."""

_IDLE = "no other event will happen, so yield Wake(..., idle=True), which does not keep a replay alive"
_SELDOM = "the wakes are less than a millisecond apart; request a wake when something can change"


@final
class Waking:
    """Counts the simulated times at which a wake of the policy was due, since the policy last had an effect.

    Args:
        others: the sources of all other events.
        ends: whether the replay ends at some time even if no source in `others` has another event.
        refuse: receives the reason why there are too many wakes, and what to do about it.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        watch: Watch,
        others: Sequence[Source],
        *,
        ends: bool,
        refuse: Callable[[str, str], None],
    ) -> None:
        self._lifecycle = lifecycle
        self._watch = watch
        self._others = others
        self._ends = ends
        self._refuse = refuse
        self._came = (-1, -1, -1)
        self._since = 0
        self._times = 0

    def look(self, now: int) -> int:
        """Look for effects, and return after how many wakes this method must be called again.

        To save time, it is called only at the first wake after an effect, and after more than `MOST` wakes.
        """
        lifecycle = self._lifecycle
        came = lifecycle.progressed, len(lifecycle.lives), self._watch.preemptions
        if came != self._came:
            self._came, self._since, self._times = came, now, 1
            return MOST
        self._times = max(self._times, MOST) + 1
        for_ever = not self._ends and all(other.due >= FAR for other in self._others)
        if for_ever or now - self._since < self._times * _LEAST:
            self._refuse(
                f"the policy's decisions never end: {self._times:,} times in a row it was woken at "
                "its own request, "
                "but no job arrived, started for the first time, ended or was preempted",
                _IDLE if for_ever else _SELDOM,
            )
        return 1
