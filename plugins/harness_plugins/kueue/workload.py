"""A workload as Kueue's scheduler sees it: its rank among others, the quota that it holds, and its past."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from harness.models.evictions import Round
    from harness.policy import Job
    from harness_plugins.kueue.asks import Asks
    from harness_plugins.kueue.assignment import Assignment, ScanMemory
    from harness_plugins.kueue.cache import Queue
    from harness_plugins.kueue.ledger import Account
    from harness_plugins.kueue.nomination import Nomination
    from harness_plugins.kueue.pending import Kin, Pending
    from harness_plugins.kueue.topology.flavors import Placed

Amounts = tuple[tuple[int, int], ...]
"""Amounts by number of a flavor-resource, in ascending order of the numbers."""

Rank = tuple[bool, int, int, str]


@final
class Workload:
    """A workload that is pending or holds quota.

    Attributes:
        name: how decisions and messages call it.
        uid: the last tie-break of every order.
        priority: its effective priority, boost included.
        created: when it was created, microseconds, whole seconds.
        timestamp: its place in the queue among equals; its creation, unless an eviction moved it.
        queue: the ClusterQueue whose quota it holds, or None.
        usage: what it holds there.
        uses: the flavor-resources that it was admitted to as a bit mask, also those of which it holds
            nothing (any more).
        placed: where its pods are in the topologies of its flavors.
        reserved: when it got its quota, microseconds.
        evicted: whether it was told to go and still holds its quota.
        holding: whether it was admitted and is not gone; also where the scheduler only hears of the one or
            the other when its cycle is over.
        leaving: whether its pods are gone, but the scheduler does not know yet.
        rank: its place among candidates for preemption; smaller goes first.
        job: the job of the replay.
        asks: what it asks for.
        counts: the pods of each pod set that need quota; those that have ended do not.
        home: the queue that it was submitted to.
        kin: those in its queue that are just like it.
        welcome: whether its queue takes workloads from its namespace.
        account: of its LocalQueue; None where the usage of LocalQueues does not count.
        ticket: tells its valid entry in the queue; 0 while it has none.
        memory: the flavors that were tried before, or None.
        nomination: what was found last, for as long as nothing changes.
        assignment: what it was admitted with last, or None.
        refused: why nothing could help it when it was head, since it waits.
        admissions: how often it was admitted.
        wanted: the pods of each pod set that make it up since then, those that had ended before included.
        ended: pods of each pod set that have ended, () while there is none.
        round: its last eviction, or None.
    """

    __slots__ = (
        "account",
        "admissions",
        "asks",
        "assignment",
        "counts",
        "created",
        "ended",
        "evicted",
        "holding",
        "home",
        "job",
        "kin",
        "leaving",
        "memory",
        "name",
        "nomination",
        "placed",
        "priority",
        "queue",
        "rank",
        "refused",
        "reserved",
        "round",
        "ticket",
        "timestamp",
        "uid",
        "usage",
        "uses",
        "wanted",
        "welcome",
    )

    job: Job  # these six are set when a job is submitted; workloads that only hold quota go without
    asks: Asks
    counts: tuple[int, ...]
    home: Pending
    kin: Kin
    welcome: bool

    def __init__(self, name: str, uid: str, priority: int, created: int) -> None:
        self.name = name
        self.uid = uid
        self.priority = priority
        self.created = created
        self.account: Account | None = None
        self.timestamp = created
        self.queue: Queue | None = None
        self.usage: Amounts = ()
        self.uses = 0
        self.placed: tuple[Placed, ...] = ()
        self.reserved = 0
        self.evicted = False
        self.holding = False
        self.leaving = False
        self.rank: Rank = (True, 0, 0, "")
        self.ticket = 0
        self.memory: ScanMemory | None = None
        self.nomination: Nomination | None = None
        self.assignment: Assignment | None = None
        self.refused: tuple[str, ...] = ()
        self.admissions = 0
        self.wanted: tuple[int, ...] = ()
        self.ended: tuple[int, ...] = ()
        self.round: Round | None = None

    def __repr__(self) -> str:
        return f"<Workload {self.name}>"

    def running(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """How many pods of each pod set make it up when so many get quota: those that have ended, too."""
        asks = self.asks
        if counts == asks.present and self.counts == asks.present:
            return counts
        return tuple(
            min(count + before - left, present)
            for count, before, left, present in zip(
                counts, asks.counts, self.counts, asks.present, strict=True
            )
        )


def rank_of(workload: Workload) -> Rank:
    """The order of candidates within a queue.

    Those that are going anyway, then lower priority, then the newest reservation, then the smaller UID.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)
