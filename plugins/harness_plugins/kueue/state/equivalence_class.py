"""Represents classes of workloads that have the same scheduling hash in Kueue."""

from __future__ import annotations

from typing import final

SchedulingHash = tuple[int, int, tuple[int, ...]]
"""The priority, the request's `number`, and how many pods of each pod set need quota."""


@final
class EquivalenceClass:
    """The pending workloads of a ClusterQueue that have the same scheduling hash.

    With the SchedulingEquivalenceHashing gate, they become inadmissible together.

    Attributes:
        key: the ClusterQueue and the hash, as a string.
        inadmissible: whether all workloads of the class wait until quota becomes free.
    """

    __slots__ = ("inadmissible", "key", "scheduling_hash")

    def __init__(self, queue: str, scheduling_hash: SchedulingHash) -> None:
        self.scheduling_hash = scheduling_hash
        self.key = f"{queue}{scheduling_hash}"
        self.inadmissible = False
