"""Workloads that the scheduler cannot tell apart: Kueue's scheduling hash."""

from __future__ import annotations

from typing import final

SchedulingHash = tuple[int, int, tuple[int, ...]]
"""Priority, the number of the request, and how many pods of each pod set need quota."""


@final
class EquivalenceClass:
    """The pending workloads of a ClusterQueue that have one scheduling hash.

    With the gate SchedulingEquivalenceHashing, if one of them becomes inadmissible, all do.

    Attributes:
        scheduling_hash: their common hash.
        key: the same, and the ClusterQueue, as text.
        inadmissible: whether all of them wait for quota to become free.
    """

    __slots__ = ("inadmissible", "key", "scheduling_hash")

    def __init__(self, queue: str, scheduling_hash: SchedulingHash) -> None:
        self.scheduling_hash = scheduling_hash
        self.key = f"{queue}{scheduling_hash}"
        self.inadmissible = False
