"""A workload as Kueue's scheduler sees it: its rank among others, and the quota that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from harness_plugins.kueue.cache import Queue

Amounts = tuple[tuple[int, int], ...]
"""Amounts by number of a flavor-resource, in ascending order of the numbers."""


@final
class Workload:
    """A workload that is pending or holds quota.

    Attributes:
        name: how decisions and messages call it.
        uid: the last tie-break of every order.
        priority: its effective priority, boost included.
        timestamp: its place in the queue among equals, microseconds.
        queue: the ClusterQueue whose quota it holds, or None.
        usage: what it holds there.
        uses: the flavor-resources that it was admitted to as a bit mask, also those of which it holds
            nothing (any more).
        reserved: when it got its quota, microseconds.
        evicted: whether it was told to go and still holds its quota.
        rank: its place among candidates for preemption; smaller goes first.
    """

    __slots__ = (
        "evicted",
        "name",
        "priority",
        "queue",
        "rank",
        "reserved",
        "timestamp",
        "uid",
        "usage",
        "uses",
    )

    def __init__(self, name: str, uid: str, priority: int, timestamp: int) -> None:
        self.name = name
        self.uid = uid
        self.priority = priority
        self.timestamp = timestamp
        self.queue: Queue | None = None
        self.usage: Amounts = ()
        self.uses = 0
        self.reserved = 0
        self.evicted = False
        self.rank: Rank = (True, 0, 0, "")

    def __repr__(self) -> str:
        return f"<Workload {self.name}>"


Rank = tuple[bool, int, int, str]


def rank_of(workload: Workload) -> Rank:
    """The order of candidates within a queue.

    Those that are going anyway, then lower priority, then the newest reservation, then the smaller UID.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)
