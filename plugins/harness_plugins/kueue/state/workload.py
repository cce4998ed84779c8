"""A workload as Kueue's scheduler sees it: its request, the quota that it holds, and its history."""

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
        name: the name in decisions and messages.
        uid: the last tie-break of every order.
        priority: the effective priority, boost included.
        created: the time of creation, in microseconds, at whole seconds.
        timestamp: the time that orders equal priorities; the creation, unless an eviction moved it.
        cluster_queue: the ClusterQueue to which it was submitted, and whose quota it may hold.
        has_quota: whether it holds quota.
        usage: the quota that it holds.
        uses: the flavor-resources to which it was admitted, as a bit mask, even if it (now) holds none of
            them.
        placed: the places of its pods in the topologies of its flavors.
        unhealthy: the failed node in `placed` that its pods must leave; "" for none.
        reserved: the time of its quota reservation, in microseconds.
        evicted: whether it was evicted and still holds its quota.
        spared: whether it is not a preemption candidate yet (a preview, see `minimum_run_time`).
        held_back: why it must not be queued, in words; "" if it may be queued.
        rank: its place among preemption candidates; smaller goes first.
        job: the job of the replay.
        asks: the request.
        counts: the pods of each pod set that need quota; ended pods do not.
        local_queue: the usage of its LocalQueue; None if usage does not order its queue.
        place: its place in its queue.
        admission: the last admission, or None.
        admissions: how often it was admitted.
        wanted: the pods of each pod set since the last admission, including pods that had ended before.
        ended: the pods of each pod set that have ended; () before the first has ended.
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

    job: Job  # these three are set when a job is submitted; a workload that only holds quota has none
    asks: Asks
    counts: tuple[int, ...]
    cluster_queue: ClusterQueueState  # set when the workload is submitted or gets quota

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
        """Returns the pods of each pod set if `counts` get quota, including ended pods."""
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
    """Returns the rank of a workload among the candidates of its queue (upstream's CandidatesOrdering).

    Workloads that are already leaving come first, then lower priority, then the newest reservation, then the
    smaller UID.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)
