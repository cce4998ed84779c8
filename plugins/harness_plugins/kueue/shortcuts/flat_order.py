"""The order of fair sharing if all entries meet at one cohort: then it is a plain sort.

The outcome of one of them does not affect the order of the others, so nothing is computed again. Nothing is
kept from one cycle to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from harness_plugins.kueue.rules.entry import Entry
from harness_plugins.kueue.rules.entry_order import FairOrder


@final
class FlatOrder:
    """Sorts entries of one flat tree; all others are left to the tournament.

    Args:
        order: the tournament.
    """

    def __init__(self, order: FairOrder) -> None:
        self._order = order

    def __call__(self, entries: list[Entry]) -> Iterator[Entry]:
        """The entries in order; some of those with a reason from the start are left out."""
        if len(entries) < 2:
            return iter(entries)
        root = entries[0].workload.cluster_queue.root
        for entry in entries:
            queue = entry.workload.cluster_queue
            if queue.root != root or len(queue.path) > 1:
                return self._order(entries)
        waiting = [entry for entry in entries if not entry.reason]
        if len(waiting) > 1:
            waiting.sort(key=lambda entry: self._order.key(entry, entry.workload.cluster_queue.node))
        return iter(waiting)
