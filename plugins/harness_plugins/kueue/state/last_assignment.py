"""Represents the flavors that were tried for a workload, and the flavors of its admission."""

from __future__ import annotations

from typing import NamedTuple

START_OVER = -1

Tried = tuple[tuple[int, ...], ...]
"""The flavor that was considered last in each group of each pod set, or `START_OVER` after the last flavor of
a group.
"""

Chosen = tuple[tuple[int, ...], ...]
"""The index of the chosen flavor, for each pod set and each resource group."""


class LastAssignment(NamedTuple):
    """The position at which the next scan continues. This is one of Kueue's rules, and not an optimization.

    Attributes:
        tried: the flavors that were considered.
        cycle: the number of the cycle.
        generation: the generation of the ClusterQueue at that time.
    """

    tried: Tried
    cycle: int
    generation: int


class Admission(NamedTuple):
    """The admission of a workload.

    Attributes:
        counts: the number of admitted pods in each pod set.
    """

    chosen: Chosen
    counts: tuple[int, ...]
