"""Represents a workload as Kueue's scheduler sees it, with its request, its quota, and its history."""

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
        name: the name that appears in decisions and messages.
        uid: the UID, which is the last tie-breaker in every order.
        priority: the effective priority, which includes the boost.
        created: the creation time in microseconds, rounded to whole seconds.
        timestamp: the time that orders workloads of equal priority. It is the creation time unless an
            eviction changed it.
        cluster_queue: the ClusterQueue to which the workload was submitted. The workload can hold quota of
            this queue.
        uses: a bit mask of the flavor-resources to which the workload was admitted, even if it does not hold,
            or no longer holds, quota for them.
        unhealthy: the failed node in `placed` that the pods must leave, or "" if there is none.
        reserved: the time of the quota reservation, in microseconds.
        evicted: whether the workload was evicted and still holds its quota.
        spared: whether the workload is not a preemption candidate yet. This is a preview, see
            `minimum_run_time`.
        held_back: a description of why the workload must not be queued, or "" if it can be queued.
        rank: the rank among preemption candidates. The lowest rank comes first.
        counts: the number of pods in each pod set that need quota. Finished pods do not count.
        local_queue: the usage of the LocalQueue, or None if the queue is not ordered by usage.
        admission: the last admission, or None if there was none.
        wanted: the number of pods in each pod set as of the last admission, including pods that finished
            before.
        ended: the number of finished pods in each pod set, or () until the first pod finishes.
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

    job: Job  # these three are set on submission, so a workload that only holds quota does not have them
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
        """Returns the number of pods in each pod set if `counts` pods get quota, including finished pods."""
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
    """Returns the rank of a workload among the candidates in its queue (upstream's CandidatesOrdering).

    Workloads that are already evicted come first. The other criteria, in this order, are lower priority,
    newer reservation, and smaller UID.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)
