"""The flavors that a workload was offered, tried and admitted to."""

from __future__ import annotations

from typing import NamedTuple

START_OVER = -1

Tried = tuple[tuple[int, ...], ...]
"""The last considered flavor of each group of each pod set; `START_OVER` if it is the last of the list."""

Chosen = tuple[tuple[int, ...], ...]
"""Pod set by pod set and group by group the number of the flavor."""


class LastAssignment(NamedTuple):
    """The place where the next scan for flavors continues: a rule of Kueue's, not a cached answer.

    Attributes:
        tried: the flavors that were considered.
        cycle: the number of the cycle.
        generation: of the ClusterQueue.
    """

    tried: Tried
    cycle: int
    generation: int


class Admission(NamedTuple):
    """The admission of a workload.

    Attributes:
        chosen: the flavors.
        counts: pods of each pod set.
    """

    chosen: Chosen
    counts: tuple[int, ...]
