"""A job while it is alive: which of its pods hold what, and the progress that they make."""

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
    """Resources of a node that one pod holds.

    Attributes:
        node: the node.
        since: when its present state began.
        terminating: whether it was evicted and is not gone yet.
        departure: its entry, or that of its whole job, among those that will be gone; None where it stays.
    """

    __slots__ = ("departure", "node", "since", "terminating")

    def __init__(self, node: str, since: int) -> None:
        self.node = node
        self.since = since
        self.terminating = False
        self.departure: Ticket | None = None


@final
class Unit:
    """Pods that make progress as one: a gang, a job that was started as a whole, or one independent pod.

    Attributes:
        life: the job it belongs to.
        pod: the number of an independent pod, NEVER for a unit of the whole job.
        pods: how many pods make it up.
        bound: how many of them hold resources and are not terminating; it progresses when all do.
        done: progress that was made before the job arrived, until its first stint begins, microseconds.
        kept: progress that survived earlier evictions, microseconds.
        began: when the present stint began, NEVER between stints.
        ready: when its pods are ready in it, NEVER where they need no time for it.
        since: when progress began in it, later than `began` by start-up and the time to restore a checkpoint;
            earlier where the job ran before it arrived.
        starts: how often it began a stint, where its pods need time until they are ready.
        alarm: its entry among those that will be ready, for a policy that listens.
        due: when it will end, NEVER when it is not progressing.
        end: its entry among the ends while it is progressing, if it is to end.
        name: orders ends of one instant; known when it starts.
        amounts: what its pods hold together, None where that follows from their number.
    """

    __slots__ = (
        "alarm",
        "amounts",
        "began",
        "bound",
        "done",
        "due",
        "end",
        "kept",
        "life",
        "name",
        "pod",
        "pods",
        "ready",
        "since",
        "starts",
    )

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
    """A job from its arrival to its end.

    Attributes:
        job: the job.
        work: its undisturbed run time, microseconds.
        interval: its own checkpoint interval, or None.
        startup: how long its pods take until they are ready; None where they are at once.
        done: how much of its work was done when it arrived, microseconds.
        every_pod: the numbers of all its pods.
        wanted: pods that are to run: all, or fewer after a partial admission.
        counts: pod set -> pods after a partial admission, else None.
        amounts: what the wanted pods ask for together, None where that follows from their number.
        asked: what it was admitted with, without nodes: resource -> amount.
        admitted: whether it holds quota now: others can preempt it as a whole only.
        startable: when it may start at the earliest since it holds quota.
        delay: its entry among those whose delay will be over, without nodes.
        terminating: whether it was evicted as a whole while it held resources, and is not gone yet.
        unit: the unit of a gang, of a job started as a whole or of an only pod; None for independent pods on
            nodes.
        units: the units of independent pods, by pod.
        holds: the pods that hold resources of a node, by pod.
        ended: independent pods that have ended, while others have not.
        successors: how often each pod was recreated, for pods that were.
    """

    __slots__ = (
        "admitted",
        "amounts",
        "asked",
        "counts",
        "delay",
        "done",
        "ended",
        "every_pod",
        "first_admitted",
        "holds",
        "idle",
        "interval",
        "job",
        "lost",
        "preemptions",
        "startable",
        "started",
        "startup",
        "successors",
        "terminating",
        "unit",
        "units",
        "wanted",
        "work",
    )

    def __init__(
        self, job: Job, work: int, interval: int | None, startup: Startup | None, done: int = 0
    ) -> None:
        self.job = job
        self.work = work
        self.interval = interval
        self.startup = startup
        self.done = done
        self.every_pod = range(job.pods)
        self.wanted = job.pods
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
        """Whether any of its pods holds resources, terminating ones included."""
        return bool(self.holds) or self.terminating or (self.unit is not None and self.unit.bound > 0)

    @property
    def held(self) -> dict[str, int]:
        """Resource -> what its bound pods hold, without those that are terminating."""
        amounts: dict[str, int] = {}
        for pod in sorted(pod for pod, hold in self.holds.items() if not hold.terminating):
            for resource, amount in self.job.pod_set_of(pod).requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return amounts

    @property
    def state(self) -> int:
        """`RUNNING` while it holds resources, else `PENDING`."""
        return RUNNING if self.holding else PENDING

    def successor(self, pod: int) -> int:
        """How often a pod was recreated after an eviction."""
        return self.successors.get(pod, 0)

    def current_name(self, pod: int) -> str:
        """A pod's name, with the number of its present successor."""
        return self.job.pod_name(pod, self.successors.get(pod, 0))

    def is_wanted(self, pod: int) -> bool:
        """Whether a pod is to run at all; partial admission leaves out the last ones of a pod set.

        Pods that have ended count for it, wherever they are.
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
        """What a pod holds; None where all pods of the job hold the same."""
        return None if len(self.job.pod_sets) == 1 else self.job.pod_set_of(pod).requests

    def all_units(self) -> list[Unit]:
        """Its units, in the order of their pods."""
        if self.unit is not None:
            return [self.unit]
        return [unit for _, unit in sorted(self.units.items())]

    def reduce(self, counts: Mapping[str, int]) -> None:
        """Run fewer pods: what partial admission gave to each pod set, but at least what has ended of it."""
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
        """The pod sets with more ended pods than these counts say, and how many more."""
        found, first = {}, 0
        for each in self.job.pod_sets:
            ended = sum(first <= pod < first + each.count for pod in self.ended)
            if ended > counts.get(each.name, each.count):
                found[each.name] = ended
            first += each.count
        return found

    @property
    def dropped(self) -> dict[str, int]:
        """What a partial admission no longer asks for."""
        counts = self.counts or {}
        amounts: dict[str, int] = {}
        for each in self.job.pod_sets:
            fewer = each.count - counts.get(each.name, each.count)
            for resource, amount in each.requests.items():
                amounts[resource] = amounts.get(resource, 0) + fewer * amount
        return amounts

    def returning(self, gone: list[int]) -> tuple[int, Amounts | None]:
        """How many pods wait again when these are gone, the dropped ones included, and what they ask for.

        What equal pods ask for together follows from their number: None.
        """
        if self.counts is None and len(self.job.pod_sets) == 1:
            return len(gone), None
        amounts = self.dropped
        for pod in gone:
            for resource, amount in self.job.pod_set_of(pod).requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return len(gone) + self.job.pods - self.wanted, amounts

    def unused(self, bound: list[int]) -> Amounts | None:
        """What pods ask for that were admitted, and neither ended nor are `bound`; None if there are none."""
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
        """Back in its queue after an eviction as a whole: it holds no quota and wants all its pods again."""
        self.terminating = self.admitted = False
        self.counts = self.amounts = None
        self.wanted = self.job.pods

    def let_go(self) -> None:
        """Break the circle of a life and its units, so that both are freed without the collector."""
        self.unit = None
        self.units.clear()

    def unit_of(self, pod: int) -> Unit:
        """The unit that a pod belongs to on nodes, made when its first pod is bound."""
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
    """Ascending pod numbers as ranges of neighbours."""
    found: list[range] = []
    for pod in pods:
        if found and found[-1].stop == pod:
            found[-1] = range(found[-1].start, pod + 1)
        else:
            found.append(range(pod, pod + 1))
    return found
