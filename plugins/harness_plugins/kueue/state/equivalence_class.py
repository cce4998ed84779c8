"""Workloads that the scheduler cannot tell apart: Kueue's scheduling hash."""

from __future__ import annotations

from typing import final

SchedulingHash = tuple[int, int, tuple[int, ...]]
"""Priority, the number of what is asked for, and how many pods of each pod set need quota."""


@final
class EquivalenceClass:
    """The pending workloads of a ClusterQueue that have one scheduling hash.

    With the gate SchedulingEquivalenceHashing, what makes one of them inadmissible makes all so.

    Attributes:
        scheduling_hash: what they have in common.
        key: the same, and the ClusterQueue, as text.
        inadmissible: whether all of them wait for quota to become free.
    """

    __slots__ = ("inadmissible", "key", "scheduling_hash")

    def __init__(self, queue: str, scheduling_hash: SchedulingHash) -> None:
        self.scheduling_hash = scheduling_hash
        self.key = f"{queue}{scheduling_hash}"
        self.inadmissible = False
