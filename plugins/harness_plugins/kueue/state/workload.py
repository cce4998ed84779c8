"""A workload as Kueue's scheduler sees it: its request, the quota that it holds, and its past."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.queue_place import QueuePlace

if TYPE_CHECKING:
    from harness.policy import Job
    from harness_plugins.kueue.state.asks import Asks
    from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
    from harness_plugins.kueue.state.last_assignment import Admission
    from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsage
    from harness_plugins.kueue.state.topology.flavors import Placed

Rank = tuple[bool, int, int, str]


@final
class Workload:
    """A workload that is pending or holds quota.

    Attributes:
        name: its name in decisions and messages.
        uid: the last tie-break of every order.
        priority: its effective priority, boost included.
        created: when it was created, in microseconds, at whole seconds.
        timestamp: its place in the queue among equals; its creation, unless an eviction moved it.
        cluster_queue: the ClusterQueue that it was submitted to, whose quota it may hold.
        has_quota: whether it holds quota.
        usage: the quota that it holds.
        uses: the flavor-resources to which it was admitted, as a bit mask, even if it holds nothing of them
            (any more).
        placed: the places of its pods in the topologies of its flavors.
        unhealthy: the failed node of these, which its pods must leave; "" for none.
        reserved: when it got its quota, in microseconds.
        evicted: whether it was told to leave and still holds its quota.
        spared: whether it is no candidate for preemption yet (a preview, see `minimum_run_time`).
        held_back: why it must not be queued, in words; "" if it may.
        rank: its place among candidates for preemption; smaller goes first.
        job: the job of the replay.
        asks: its request.
        counts: the pods of each pod set that need quota; those that have ended do not.
        local_queue: the usage of its LocalQueue; None if that does not count.
        place: its place in its queue.
        admission: its last admission, or None.
        admissions: how often it was admitted.
        wanted: the pods of each pod set since then, including those that had ended before.
        ended: pods of each pod set that have ended, () while there is none.
    """

    __slots__ = (
        "admission",
        "admissions",
        "asks",
        "cluster_queue",
        "counts",
        "created",
        "ended",
        "evicted",
        "has_quota",
        "held_back",
        "job",
        "local_queue",
        "name",
        "place",
        "placed",
        "priority",
        "rank",
        "reserved",
        "spared",
        "timestamp",
        "uid",
        "unhealthy",
        "usage",
        "uses",
        "wanted",
    )

    job: Job  # these three are set when a job is submitted; workloads that only hold quota go without
    asks: Asks
    counts: tuple[int, ...]
    cluster_queue: ClusterQueueState  # set when it is submitted, or holds quota

    def __init__(self, name: str, uid: str, priority: int, created: int) -> None:
        self.name = name
        self.uid = uid
        self.priority = priority
        self.created = created
        self.timestamp = created
        self.local_queue: LocalQueueUsage | None = None
        self.place = QueuePlace()
        self.has_quota = False
        self.usage: Amounts = ()
        self.uses = 0
        self.placed: tuple[Placed, ...] = ()
        self.unhealthy = ""
        self.reserved = 0
        self.evicted = False
        self.spared = False
        self.held_back = ""
        self.rank: Rank = (True, 0, 0, "")
        self.admission: Admission | None = None
        self.admissions = 0
        self.wanted: tuple[int, ...] = ()
        self.ended: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<Workload {self.name}>"

    def running(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        """The number of pods of each pod set when this many get quota: ended ones count, too."""
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
    """The order of candidates within a queue (upstream's CandidatesOrdering).

    First those that are already leaving, then lower priority, then the newest reservation, then the smaller
    UID.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)
