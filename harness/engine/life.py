"""Represents a live job, with the resources that its pods hold and with their progress."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import final

from harness.engine.events import NEVER, PENDING, RUNNING, Amounts
from harness.engine.sources import Ticket
from harness.policy import Job, Startup

_NOTHING: Amounts = MappingProxyType({})


@final
class Hold:
    """The resources that one pod holds on a node.

    Attributes:
        since: when the current state of the pod began.
        terminating: whether the pod has been evicted but is not gone yet.
        departure: the scheduled event at which the evicted pod, or its whole job, is gone. It is None while
            the pod is not terminating.
    """

    __slots__ = ("departure", "node", "since", "terminating")

    def __init__(self, node: str, since: int) -> None:
        self.node = node
        self.since = since
        self.terminating = False
        self.departure: Ticket | None = None


@final
class Unit:
    """Pods that make progress together: a gang, a job that starts as a whole, or a single independent pod.

    Attributes:
        pod: the number of an independent pod, or NEVER if the unit is the whole job.
        bound: how many pods of the unit hold resources and are not terminating. The unit makes progress only
            when `bound` equals `pods`.
        done: the progress before the job arrived, in microseconds; 0 once the first stint has begun.
        kept: the progress that survived earlier evictions, in microseconds.
        began: when the current stint began, or NEVER between stints.
        ready: when the pods are ready in this stint, or NEVER if the pods need no time to start up.
        since: when progress began in this stint. This is later than `began` by the start-up time and the time
            to restore a checkpoint, but earlier than `began` if the job ran before it arrived.
        starts: how many stints the unit has begun, if its pods need time to become ready.
        alarm: the scheduled event at which the unit's pods become ready, if the policy listens for it.
        due: when the unit will complete, or NEVER if it makes no progress.
        end: the scheduled event at which the unit completes, or None if it makes no progress or will never
            complete.
        name: the sort key for completions at the same time, which is known when the unit starts.
        amounts: what the pods hold in total, or None if the number of pods determines the total.
    """

    __slots__ = (
        "alarm", "amounts", "began", "bound", "done", "due", "end", "kept", "life", "name", "pod", "pods",
        "ready", "since", "starts",
    )  # fmt: skip

    def __init__(self, life: Life, pods: int, amounts: Amounts | None = None, pod: int = NEVER) -> None:
        self.life = life
        self.pod = pod
        self.pods = pods
        self.bound = 0
        self.done = life.done
        self.kept = 0
        self.began = NEVER
        self.ready = NEVER
        self.since = NEVER
        self.starts = 0
        self.alarm: Ticket | None = None
        self.due = NEVER
        self.end: Ticket | None = None
        self.name = ""
        self.amounts = amounts


@final
class Life:
    """A job from its arrival until its end.

    Attributes:
        work: the run time of the job without interruptions, in microseconds.
        interval: the job's own checkpoint interval, or None.
        startup: how long pods take to become ready, or None if pods are ready immediately.
        done: how much of `work` had been done when the job arrived, in microseconds.
        wanted: how many pods should run, which is fewer than all after a partial admission.
        counts: the number of pods in each pod set after a partial admission, otherwise None.
        amounts: the total request of the wanted pods, or None if the number of pods determines the total.
        asked: in a cluster without nodes, the admitted request by resource.
        admitted: whether the job currently holds quota, so that it can only be preempted as a whole.
        startable: the earliest time at which a job that holds quota can start.
        delay: in a cluster without nodes, the scheduled event at which an admitted job starts, or None.
        terminating: whether the job was evicted as a whole while it held resources, and is not gone yet.
        unit: the unit of a gang, of a job that started as a whole, or of the only pod. None for independent
            pods on nodes.
        holds: maps the number of each pod that holds resources on a node to its `Hold`.
        ended: independent pods that have ended, while other pods of the job have not.
        successors: how often each pod was recreated, for recreated pods only.
    """

    __slots__ = (
        "admitted", "amounts", "asked", "counts", "delay", "done", "ended", "every_pod", "first_admitted",
        "holds", "idle", "interval", "job", "lost", "preemptions", "startable", "started", "startup",
        "successors", "terminating", "unit", "units", "wanted", "work",
    )  # fmt: skip

    def __init__(
        self, job: Job, work: int, interval: int | None, startup: Startup | None, done: int = 0
    ) -> None:
        self.job = job
        self.work = work
        self.interval = interval
        self.startup = startup
        self.done = done
        self.wanted = pods = job.pods
        self.every_pod = range(pods)
        self.counts: Mapping[str, int] | None = None
        self.amounts: Amounts | None = None
        self.asked: Amounts = _NOTHING
        self.admitted = False
        self.startable = NEVER
        self.delay: Ticket | None = None
        self.terminating = False
        self.unit: Unit | None = None
        self.units: dict[int, Unit] = {}
        self.holds: dict[int, Hold] = {}
        self.ended: set[int] = set()
        self.successors: dict[int, int] = {}
        self.first_admitted = NEVER
        self.started = NEVER
        self.preemptions = 0
        self.lost = 0
        self.idle = 0

    @property
    def holding(self) -> bool:
        """True if any pod of the job holds resources, including pods that are terminating."""
        return bool(self.holds) or self.terminating or (self.unit is not None and self.unit.bound > 0)

    @property
    def held(self) -> dict[str, int]:
        """The resources that the job's bound pods hold, without pods that are terminating."""
        amounts: dict[str, int] = {}
        for pod in sorted(pod for pod, hold in self.holds.items() if not hold.terminating):
            for resource, amount in self.job.pod_set_of(pod).requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return amounts

    @property
    def state(self) -> int:
        """`RUNNING` while the job holds resources, otherwise `PENDING`."""
        return RUNNING if self.holding else PENDING

    def successor(self, pod: int) -> int:
        """Returns how often a pod was recreated after an eviction."""
        return self.successors.get(pod, 0)

    def current_name(self, pod: int) -> str:
        """Returns the name of a pod, including the number of its current successor."""
        return self.job.pod_name(pod, self.successors.get(pod, 0))

    def is_wanted(self, pod: int) -> bool:
        """Returns True if a pod should run or has ended.

        A partial admission omits the last pods of a pod set.
        """
        if pod not in self.every_pod:
            return False
        if self.counts is None or pod in self.ended:
            return True
        first = 0
        for pod_set in self.job.pod_sets:
            if pod < first + pod_set.count:
                before = pod - first
                later = sum(pod < each < first + pod_set.count for each in self.ended)
                return before + later < self.counts.get(pod_set.name, pod_set.count)
            first += pod_set.count
        return False

    def amounts_of(self, pod: int) -> Amounts | None:
        """Returns the resources that a pod holds, or None if all pods of the job hold the same resources."""
        return None if len(self.job.pod_sets) == 1 else self.job.pod_set_of(pod).requests

    def all_units(self) -> list[Unit]:
        """Returns the job's units, sorted by their pods."""
        if self.unit is not None:
            return [self.unit]
        return [unit for _, unit in sorted(self.units.items())]

    def reduce(self, counts: Mapping[str, int]) -> None:
        """Reduce each pod set to its number of admitted pods, but not below its number of ended pods."""
        if self.ended:
            counts = {**counts, **self._ended_of(counts)}
        self.counts = counts
        self.wanted = sum(counts.get(each.name, each.count) for each in self.job.pod_sets)
        if len(self.job.pod_sets) > 1:
            amounts: dict[str, int] = {}
            for each in self.job.pod_sets:
                for resource, amount in each.requests.items():
                    amounts[resource] = amounts.get(resource, 0) + counts.get(each.name, each.count) * amount
            self.amounts = amounts

    def _ended_of(self, counts: Mapping[str, int]) -> dict[str, int]:
        found, first = {}, 0
        for each in self.job.pod_sets:
            ended = sum(first <= pod < first + each.count for pod in self.ended)
            if ended > counts.get(each.name, each.count):
                found[each.name] = ended
            first += each.count
        return found

    @property
    def dropped(self) -> dict[str, int]:
        """The quantities that a partial admission no longer requests."""
        counts = self.counts or {}
        amounts: dict[str, int] = {}
        for each in self.job.pod_sets:
            fewer = each.count - counts.get(each.name, each.count)
            for resource, amount in each.requests.items():
                amounts[resource] = amounts.get(resource, 0) + fewer * amount
        return amounts

    def returning(self, gone: list[int]) -> tuple[int, Amounts | None]:
        """Returns how many pods of an evicted job wait again, and their total request.

        These are the `gone` pods, and the pods that the partial admission had omitted. The request is None if
        all pods are equal, because their number then determines it.
        """
        if self.counts is None and len(self.job.pod_sets) == 1:
            return len(gone), None
        amounts = self.dropped
        for pod in gone:
            for resource, amount in self.job.pod_set_of(pod).requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return len(gone) + self.job.pods - self.wanted, amounts

    def unused(self, bound: list[int]) -> Amounts | None:
        """Returns the total request of admitted pods that have not ended and are not among `bound`.

        If there are no such pods, the result is None.
        """
        done = self.ended.union(bound)
        if len(done) == self.wanted:
            return None
        amounts: dict[str, int] = {}
        first = 0
        for each in self.job.pod_sets:
            wanted = each.count if self.counts is None else self.counts.get(each.name, each.count)
            left = wanted - sum(first <= pod < first + each.count for pod in done)
            for resource, amount in each.requests.items():
                amounts[resource] = amounts.get(resource, 0) + left * amount
            first += each.count
        return amounts

    def readmittable(self) -> None:
        """Reset a job that was evicted as a whole, so that it can be admitted again with all of its pods."""
        self.terminating = self.admitted = False
        self.counts = self.amounts = None
        self.wanted = self.job.pods

    def let_go(self) -> None:
        """Break the reference cycle of a life and its units, so that Python frees both immediately."""
        self.unit = None
        self.units.clear()

    def unit_of(self, pod: int) -> Unit:
        """Returns the unit of a pod that is bound to a node, and creates the unit if it is missing."""
        if self.unit is not None:
            return self.unit
        if self.job.gang:
            self.unit = Unit(self, self.wanted, self.amounts)
            return self.unit
        if self.job.pods == 1:
            self.unit = Unit(self, 1, self.amounts_of(pod), pod)
            return self.unit
        unit = self.units.get(pod)
        if unit is None:
            unit = self.units[pod] = Unit(self, 1, self.amounts_of(pod), pod)
        return unit


def runs(pods: list[int]) -> list[range]:
    """Returns pod numbers in ascending order as ranges of consecutive numbers."""
    found: list[range] = []
    for pod in pods:
        if found and found[-1].stop == pod:
            found[-1] = range(found[-1].start, pod + 1)
        else:
            found.append(range(pod, pod + 1))
    return found
