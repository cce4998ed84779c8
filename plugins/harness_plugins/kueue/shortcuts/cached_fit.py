"""Assignments that fit, without going through the flavors again.

Whether a workload fits follows from what it asks for, from its queue's manifest, and from how the
flavor-resources stand that are looked at on the way. While those stand as they did, so does the assignment.

Valid by content.
"""

from __future__ import annotations

from typing import TypeAlias, final

from harness.base.memo import Memo
from harness_plugins.kueue.rules.assignment import FIT, Assignment
from harness_plugins.kueue.rules.preemption_oracle import available, height
from harness_plugins.kueue.shortcuts.recorded_oracle import Check, RecordedOracle
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload

_Question: TypeAlias = tuple[int, int, tuple[int, ...]]
"""Number of a queue, number of what is asked for, pods of each pod set."""


@final
class CachedFits:
    """The last assignment that fitted whoever asked for the same in the same queue.

    Args:
        cache: who holds which quota.
        placed: whether some flavor has a topology; nothing is kept then, since places are not looked at here.
    """

    __slots__ = ("_cache", "_known", "_placed")

    def __init__(self, cache: Cache, *, placed: bool) -> None:
        self._cache = cache
        self._placed = placed
        self._known: Memo[_Question, tuple[Assignment, list[Check]]] = Memo()

    def of(self, workload: Workload) -> Assignment | None:
        """What a workload is assigned from the first flavor on, if it is known that it fits."""
        cache, queue = self._cache, workload.cluster_queue
        known = self._known.get((queue.number, workload.asks.number, workload.counts))
        if known is None:
            return None
        for cell, amount, (was_available, was_height) in known[1]:
            if available(cache, queue, cell, amount) is not was_available:
                return None
            if height(cache, queue, cell, amount) != was_height:
                return None
        return known[0]

    def note(self, workload: Workload, assignment: Assignment, oracle: RecordedOracle) -> None:
        """Keep an assignment that fits, unless somebody was looked for who could be preempted.

        Args:
            workload: who was assigned.
            assignment: of all its pods, from the first flavor on.
            oracle: all that was asked to find it.
        """
        if self._placed or assignment.mode != FIT or oracle.searched:
            return
        question = workload.cluster_queue.number, workload.asks.number, workload.counts
        self._known[question] = assignment, oracle.checks
