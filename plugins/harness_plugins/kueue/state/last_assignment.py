"""The flavors that were tried for a workload, and the flavors of its admission."""

from __future__ import annotations

from typing import NamedTuple

START_OVER = -1

Tried = tuple[tuple[int, ...], ...]
"""The last considered flavor of each group of each pod set; `START_OVER` after the last flavor of a group."""

Chosen = tuple[tuple[int, ...], ...]
"""The number of the flavor, for each pod set and each resource group."""


class LastAssignment(NamedTuple):
    """The position where the next scan for flavors continues: a rule of Kueue, not a cached answer.

    Attributes:
        tried: the flavors that were considered.
        cycle: the number of the cycle.
        generation: the generation of the ClusterQueue.
    """

    tried: Tried
    cycle: int
    generation: int


class Admission(NamedTuple):
    """The admission of a workload.

    Attributes:
        chosen: the flavors.
        counts: the pods of each pod set.
    """

    chosen: Chosen
    counts: tuple[int, ...]
