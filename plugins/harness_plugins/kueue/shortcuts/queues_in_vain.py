"""Queues in which all is in vain: nothing would come of any head's turn but that its class is inadmissible.

Most queues do not change from one requeue to the next. What is free, and the shares of others, then stay
within the bounds in which all of it is in vain.

Valid for the generation of the ClusterQueue, and for those that come first in its pending queue. What others
do is looked at each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness_plugins.kueue.shortcuts.bounds import Bounds
from harness_plugins.kueue.shortcuts.cached_no_fit import CachedNoFits
from harness_plugins.kueue.state.pending_queue import PendingQueue


@final
class _Known:
    """What is known of a queue while nothing changes in it."""

    __slots__ = ("bounds", "classes", "generation", "looked", "turns")

    def __init__(self) -> None:
        self.generation = self.turns = -1
        self.looked = False
        self.classes = 0
        self.bounds: Bounds | None = None


@final
class QueuesInVain:
    """Tells in which queues all is in vain.

    Args:
        no_fits: the failed assignments of classes.
        pending: the pending queues, by number of the ClusterQueue.
    """

    __slots__ = ("_known", "_no_fits")

    def __init__(self, no_fits: CachedNoFits, pending: Sequence[PendingQueue]) -> None:
        self._no_fits = no_fits
        self._known = [_Known() for _ in pending]

    def classes(self, pending: PendingQueue) -> int:
        """How many classes a queue has in which everything is inadmissible, if all is in vain; else 0.

        The bounds are only looked for where nothing has changed since this was asked before.
        """
        queue, known = pending.queue, self._known[pending.queue.number]
        if known.generation != queue.generation or known.turns != pending.turns:
            known.generation, known.turns, known.looked = queue.generation, pending.turns, False
            return 0
        if not known.looked:
            self._look(pending, known)
        bounds = known.bounds
        if bounds is None or pending.preemptor is not None or not self._no_fits.are_kept(queue, bounds):
            return 0
        return known.classes

    def _look(self, pending: PendingQueue, known: _Known) -> None:
        heads = pending.in_turn()
        known.looked = True
        known.classes = 0 if heads is None else len(heads)
        known.bounds = None if heads is None else self._no_fits.bounds_of(heads)
