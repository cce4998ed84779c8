"""Workloads that are equal for the scheduler, by Kueue's scheduling hash."""

from __future__ import annotations

from typing import final

SchedulingHash = tuple[int, int, tuple[int, ...]]
"""The priority, the number of the request, and how many pods of each pod set need quota."""


@final
class EquivalenceClass:
    """The pending workloads of a ClusterQueue that have the same scheduling hash.

    With the gate SchedulingEquivalenceHashing, they become inadmissible together.

    Attributes:
        scheduling_hash: the common hash.
        key: the hash and the ClusterQueue, as text.
        inadmissible: whether all workloads of the class wait for quota to become free.
    """

    __slots__ = ("inadmissible", "key", "scheduling_hash")

    def __init__(self, queue: str, scheduling_hash: SchedulingHash) -> None:
        self.scheduling_hash = scheduling_hash
        self.key = f"{queue}{scheduling_hash}"
        self.inadmissible = False
