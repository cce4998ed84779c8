"""Represents a workload as Kueue's scheduler sees it, with its request, its quota, and its history."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from harness.models.told import NOTHING_TOLD, Told
from harness.policy import Job
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.local_queue_usage import LocalQueueUsage
from harness_plugins.kueue.state.topology.flavors import Placed

Rank = tuple[bool, int, int, str]


START_OVER: Final = -1

Tried = tuple[tuple[int, ...], ...]
"""The flavor that was considered last in each group of each pod set, or `START_OVER` after the last flavor of
a group.
"""

Chosen = tuple[tuple[int, ...], ...]
"""The index of the chosen flavor, for each pod set and each resource group."""


class LastAssignment(NamedTuple):
    """The position at which the next scan continues. This is one of Kueue's rules, and not an optimization.

    Attributes:
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


SchedulingHash = tuple[int, int, tuple[int, ...]]
"""The priority, the request's `number`, and how many pods of each pod set need quota."""


@final
class EquivalenceClass:
    """The pending workloads of a ClusterQueue that have the same scheduling hash.

    With the SchedulingEquivalenceHashing gate, they become inadmissible together.

    Args:
        queue: the name of the ClusterQueue.
        inadmissible: the queue's inadmissible classes.

    Attributes:
        key: the ClusterQueue and the hash, as a string.
    """

    __slots__ = ("_inadmissible", "key", "scheduling_hash")

    def __init__(
        self, queue: str, scheduling_hash: SchedulingHash, inadmissible: Container[EquivalenceClass]
    ) -> None:
        self.scheduling_hash = scheduling_hash
        self.key = f"{queue}{scheduling_hash}"
        self._inadmissible = inadmissible

    @property
    def inadmissible(self) -> bool:
        """True if all workloads of the class wait until quota becomes free."""
        return self in self._inadmissible


@final
@dataclass(slots=True, eq=False, repr=False)
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
        ticket: the number of the valid entry of the workload in its queue, or 0 if it has none.
        equivalence_class: the class of equal workloads in the queue.
        last_assignment: the flavors that were tried before, or None if the scan starts over.
        namespace_mismatch: whether the queue does not admit workloads from the workload's namespace.
        told: the reasons that were recorded for failed attempts since the workload was queued.
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

    name: str
    uid: str
    priority: int
    created: int
    timestamp: int = field(init=False)
    job: Job = field(init=False)  # these three are set on submission
    asks: Asks = field(init=False)
    counts: tuple[int, ...] = field(init=False)
    cluster_queue: ClusterQueueState = field(init=False)  # set on submission, or with the quota
    local_queue: LocalQueueUsage | None = None
    ticket: int = 0
    equivalence_class: EquivalenceClass = field(init=False)  # set when the workload is queued
    last_assignment: LastAssignment | None = None
    namespace_mismatch: bool = False
    told: Told = NOTHING_TOLD
    has_quota: bool = False
    usage: Amounts = ()
    uses: int = 0
    placed: tuple[Placed, ...] = ()
    unhealthy: str = ""
    reserved: int = 0
    evicted: bool = False
    spared: bool = False
    held_back: str = ""
    rank: Rank = (True, 0, 0, "")
    admission: Admission | None = None
    admissions: int = 0
    wanted: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.timestamp = self.created

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
    newer reservation, and smaller UID. Upstream also ranks other queues before the preemptor's own. The
    searches do this in a step of their own.
    """
    return (not workload.evicted, workload.priority, -workload.reserved, workload.uid)


def ended_so_far(workload: Workload, pods: range) -> tuple[int, ...]:
    """Returns the number of finished pods in each pod set, including `pods`."""
    pod_sets = workload.asks.pod_sets
    ended = list(workload.ended) or [0] * len(pod_sets)
    first = 0
    for number, pod_set in enumerate(pod_sets):
        last = first + pod_set.count
        ended[number] += max(0, min(pods.stop, last) - max(pods.start, first))
        first = last
    return tuple(ended)
