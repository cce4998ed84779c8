"""Which flavors a workload was offered, tried and admitted to."""

from __future__ import annotations

from typing import NamedTuple

START_OVER = -1

Tried = tuple[tuple[int, ...], ...]
"""Pod set by pod set and group by group the last flavor that was looked at, `START_OVER` for the last one
of the list."""

Chosen = tuple[tuple[int, ...], ...]
"""Pod set by pod set and group by group the number of the flavor."""


class LastAssignment(NamedTuple):
    """Where the next scan for flavors goes on: a rule of Kueue's, not an answer that is kept.

    Attributes:
        tried: the flavors that were looked at.
        cycle: the number of the cycle.
        generation: of the ClusterQueue.
    """

    tried: Tried
    cycle: int
    generation: int


class Admission(NamedTuple):
    """What a workload was admitted with.

    Attributes:
        chosen: the flavors.
        counts: pods of each pod set.
    """

    chosen: Chosen
    counts: tuple[int, ...]
