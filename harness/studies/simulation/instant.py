"""Simulates a replay up to one instant, including all cycles of that instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from harness.base.copies import in_a_copy
from harness.base.units import SECOND
from harness.cluster.changes.edits import Change as Changed
from harness.cluster.changes.edits import Edit
from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import (
    ADMIT,
    BIND,
    EVICT,
    FINISH,
    GONE,
    NEVER,
    NOMINATE,
    PREEMPT,
    PROGRESS,
    REFUSE,
    REJECT,
    START,
    SUBMIT,
    UNNOMINATE,
    Fact,
    NullRecorder,
)
from harness.engine.losses import Losses
from harness.plugins.registries import PolicySpec
from harness.policy import Arrival, Job, Policy

T = TypeVar("T")

Turn = tuple[bool, tuple[str, ...]]
"""Whether a job is admitted, and the ids of the jobs that are preempted for it."""

_ANY_NUMBER = 1 << 62
"""The assumed number of pods without requests that fit on a node without a pod limit."""


class Scheduler(NamedTuple):
    """The scheduler and the cost of its preemptions.

    Attributes:
        losses: the progress that a preempted job loses.
    """

    policy: PolicySpec
    options: Mapping[str, Any]
    losses: Losses


class Lost(NamedTuple):
    """The progress that pods of a job lose to an eviction.

    Attributes:
        ran: how long these pods had made progress, in microseconds.
        lost: how much of this progress each pod loses, in microseconds.
    """

    pods: int
    ran: int
    lost: int


@dataclass
class Life:
    """The state of a job.

    Attributes:
        before: how long the job had run when it arrived, in microseconds.
        admitted: the latest admission of the job; None after an eviction.
        bound: the number of the job's pods on each node.
        nominated: the latest decision that nominates a node for a pod, or that withdraws a nomination.
        started: when the job got everything that it needs to make progress; `NEVER` before that.
        refusals: the refusals since the job last got quota or other resources, earliest first.
        evicted: the evictions of the job at the given instant.
        lost: what the job loses through these evictions.
        left: the last eviction of the job, or None.
        rejected: the reason why a component rejected the job for good, or "".
        ended: when the job ended or was rejected, in microseconds since the origin; `NEVER` before that.
    """

    job: Job
    before: int = 0
    admitted: Fact | None = None
    bound: Counter[str] = field(default_factory=Counter)
    nominated: Fact | None = None
    started: int = NEVER
    refusals: list[Fact] = field(default_factory=list)
    evicted: list[Fact] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    left: Fact | None = None
    rejected: str = ""
    ended: int = NEVER

    @property
    def over(self) -> bool:
        """Returns True if the job ended or was rejected."""
        return self.ended != NEVER

    @property
    def back_at(self) -> int:
        """The end of a backoff after the last eviction, in microseconds since the origin, or `NEVER`."""
        told = None if self.left is None or self.left.detail is None else self.left.detail.get("requeueAt")
        return told * SECOND if isinstance(told, int) else NEVER

    @property
    def pods_bound(self) -> int:
        """The number of pods that have a node."""
        return sum(self.bound.values())


class Instant(NullRecorder):
    """The decisions of a replay up to its last instant.

    The instant `at` is in microseconds since the origin.

    Attributes:
        at: the instant.
        lives: the jobs that have arrived, by their ids.
        preempted_by: the preemptions at the instant, by the id of the preemptor.
        anybody_gone: whether an evicted job has released its resources.
        policy: the policy that decides; None before it is known.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.policy: Policy | None = None
        self.lives: dict[str, Life] = {}
        self.preempted_by: dict[str, list[Fact]] = {}
        self.anybody_gone = False
        self._before: dict[int, int] = {}

    def starts(self, names: Iterable[str]) -> bool:
        """Returns True if all of these jobs have started. A job without any pods does not take part."""
        lives = self.lives
        return all(name in lives and lives[name].started != NEVER for name in names)

    def untried_up_to(self, names: Iterable[str]) -> int | None:
        """Returns a priority up to which these jobs would not be tried, whatever they request.

        The result is None if one of the jobs was tried, or if the policy does not know such a priority.
        """
        method: Callable[[Job], int | None] | None = getattr(self.policy, "untried_up_to", None)
        if method is None:
            return None
        found = [method(self.lives[name].job) for name in names]
        known = [each for each in found if each is not None]
        return min(known) if len(known) == len(found) else None

    def victims(self, names: Iterable[str]) -> list[str]:
        """Returns the ids of the jobs that are preempted for the given jobs, in order."""
        facts = (fact for name in names for fact in self.preempted_by.get(name, ()))
        return list(dict.fromkeys(fact.job.id for fact in facts))

    def stays(self, job: Job) -> bool:
        """Returns True if a job would hold its resources for some time after its preemption."""
        life = self.lives.get(job.id)
        return life is not None and job.grace_period > 0 and (life.started != NEVER or life.pods_bound > 0)

    def record(self, fact: Fact) -> None:
        """Records a decision or an event; see `harness.engine.events.Recorder`."""
        job, action = fact.job, fact.action
        if action == SUBMIT:
            self.lives[job.id] = Life(job, self._before.pop(job.index, 0))
            return
        life = self.lives[job.id]
        if action == ADMIT:
            life.admitted = fact
            life.refusals.clear()
            if fact.holding == 1:
                life.started = fact.time
        elif action == START:
            life.started = fact.time
        elif action == BIND:
            assert fact.node is not None
            life.bound[fact.node] += fact.pods
            life.nominated = None
            life.refusals.clear()
            wanted = job.pods if life.admitted is None else life.admitted.pods
            if life.started == NEVER and (life.pods_bound >= wanted or not job.gang):
                life.started = fact.time
        elif action in (PREEMPT, EVICT):
            self._evict(life, fact)
        elif action in (NOMINATE, UNNOMINATE):
            life.nominated = fact
        elif action == REFUSE:
            life.refusals.append(fact)
        elif action == REJECT:
            life.rejected, life.ended = fact.reason or "", fact.time
        elif action == FINISH and fact.alive == -1:
            life.ended = fact.time
        elif action == GONE:
            life.before = 0
            self.anybody_gone = True

    def _evict(self, life: Life, fact: Fact) -> None:
        life.started = NEVER
        life.admitted = None
        life.left = fact
        life.refusals.clear()
        if fact.pod == NEVER or fact.node is None:
            life.bound.clear()
        else:
            life.bound[fact.node] -= fact.pods
        if fact.time == self.at:
            life.evicted.append(fact)
            if fact.by is not None:
                self.preempted_by.setdefault(fact.by.id, []).append(fact)

    def stint(self, *about: Any) -> None:
        """Records the progress that a job loses; see `harness.engine.events.Recorder`."""
        job, pods, _, start, end, state, lost, *more = about
        if state == PROGRESS and end == self.at:
            life = self.lives[job.id]
            lost_before = more[0] if more else 0
            life.lost.append(Lost(pods, end - start + life.before, lost + lost_before))

    def watched(self, chunks: Iterable[list[Arrival]]) -> Iterator[list[Arrival]]:
        """Yields arrivals unchanged, and records the initial state of their jobs."""
        return map(self.noted, chunks)

    def noted(self, chunk: list[Arrival]) -> list[Arrival]:
        """Records the initial state of the jobs in some arrivals, and returns the arrivals."""
        self._before.update((each[0].index, each[4]) for each in chunk if len(each) == 5)
        return chunk


class Change(NamedTuple):
    """What happens next in a prepared instant: the cluster changes, and then jobs are submitted.

    Attributes:
        arrivals: the jobs that are submitted.
        edits: the changes of the cluster before these arrivals.
    """

    arrivals: list[Arrival]
    edits: Sequence[Edit] = ()


class Prepared:
    """An instant at which all holders have their resources, but no waiting job has been tried.

    Holders are jobs that hold quota or nodes.

    The instant is prepared once, and then continues for each question in a copy of the process. If the system
    can't copy the process, the instant is prepared again for each question.

    Args:
        holders: the jobs that hold quota or nodes, in order of arrival.
        waiting: the waiting jobs, except for submitted jobs.
        cluster: the cluster with the submitted jobs.
    """

    def __init__(
        self, holders: list[Arrival], waiting: list[Arrival], cluster: Cluster, scheduler: Scheduler
    ) -> None:
        self._holders = holders
        self._waiting = waiting
        self._cluster = cluster
        self._scheduler = scheduler
        self._ready: tuple[Engine, Policy, Instant] | None = None
        self._times_known: dict[tuple[tuple[str, int], ...], int] = {}

    @cached_property
    def whole(self) -> bool:
        """Returns True if waiting jobs can arrive after the holders' first cycle without changing the result.

        Returns False if an evicted job is gone after this cycle, because waiting jobs that arrive with the
        holders could have taken its capacity.
        """
        return not self._made()[2].anybody_gone

    @cached_property
    def hears(self) -> bool:
        """Returns True if the policy can handle changes of the cluster."""
        return getattr(self._made()[1], "changed", None) is not None

    def lacks_room(self, job: Job) -> bool:
        """Returns True if a submitted job can't start because its pods don't fit on any nodes.

        The pods are compared with the free capacity of the prepared instant. It does not grow within the
        instant, unless a holder releases its resources immediately. Other arrivals only reduce it. A policy
        that evicts jobs gives each of them its own grace period; see `harness.policy.Preempt`.
        """
        free = self._room
        if free is None:
            return False
        rooms = [self._times_on_nodes(each.requests, free) for each in job.pod_sets]
        if not job.gang:
            return not any(rooms)
        return any(room < each.min_count for room, each in zip(rooms, job.pod_sets, strict=True))

    def _times_on_nodes(self, requests: Mapping[str, int], free: Sequence[Mapping[str, int]]) -> int:
        """Returns how many pods fit on all nodes together; see `_times`."""
        key = tuple(requests.items())
        if key not in self._times_known:
            self._times_known[key] = sum(_times(requests, there) for there in free)
        return self._times_known[key]

    @cached_property
    def _room(self) -> list[Mapping[str, int]] | None:
        """The free capacity of each node; None without nodes or if evicted holders may go immediately."""
        if not self._cluster.nodes or not all(arrival[0].grace_period for arrival in self._holders):
            return None
        view = self._made()[0].view
        return [dict(view.free_on(name)) for name in self._cluster.nodes]

    def asked(self, change: Change, tell: Callable[[Instant], T]) -> T:
        """Applies a change to a copy of the prepared instant, simulates it, and returns the result of `tell`.

        `tell` is called with the simulated instant.

        Raises:
            PolicyError: the policy failed.
        """
        ready = self._made()

        def told() -> T:
            return tell(self._gone_on(ready, change))

        answer = in_a_copy(told)
        if answer is None:
            self._ready = None
            return told()
        return answer[0]

    def turns(self, change: Change, names: Sequence[str]) -> list[Turn] | None:
        """Returns the policy's decisions about submitted jobs after a change, without simulating the instant.

        The result is None if the policy cannot foresee its decisions.
        """
        engine, policy, instant = self._made()
        method = getattr(policy, "turns", None)
        if method is None or not self._all_work or not all(arrival[1] for arrival in change.arrivals):
            return None
        jobs = [arrival[0] for arrival in change.arrivals]
        with engine.blamed():
            found: list[Turn] | None = method(names, jobs, self._changes(change), instant.stays)
            return found

    @cached_property
    def _all_work(self) -> bool:
        """Returns True if no job ends as soon as it starts."""
        return all(arrival[1] for arrival in (*self._holders, *self._waiting))

    def _made(self) -> tuple[Engine, Policy, Instant]:
        if self._ready is None:
            instant = Instant(0)
            scheduler, arrivals = self._scheduler, instant.watched([self._holders])
            engine = Engine(arrivals, self._cluster, instant, losses=scheduler.losses, until=0)
            policy = scheduler.policy.factory(self._cluster, engine.view, scheduler.options)
            instant.policy = policy
            engine.begin(policy, name=scheduler.policy.name)
            engine.wake(instant.at)
            engine.play()
            engine.submit(instant.noted(self._waiting))
            self._ready = engine, policy, instant
        return self._ready

    def _gone_on(self, ready: tuple[Engine, Policy, Instant], change: Change) -> Instant:
        engine, _, instant = ready
        self._apply(engine, instant, change)
        engine.wake(instant.at)
        engine.play()
        return instant

    def _apply(self, engine: Engine, instant: Instant, change: Change) -> None:
        for changed in self._changes(change):
            engine.change(changed)
        engine.submit(instant.noted(change.arrivals))

    def _changes(self, change: Change) -> list[Changed]:
        cluster, found = self._cluster, []
        for edit in change.edits:
            cluster = edit.on(cluster)
            found.append(Changed(edit, cluster))
        return found


def _times(requests: Mapping[str, int], free: Mapping[str, int]) -> int:
    """Returns how many pods fit into free capacity, judging only by their requests."""
    amounts = [(free.get(name, 0), amount) for name, amount in requests.items() if amount]
    if "pods" in free:
        amounts.append((free["pods"], 1))
    return max(0, min((there // amount for there, amount in amounts), default=_ANY_NUMBER))


def played(chunks: Iterable[list[Arrival]], cluster: Cluster, scheduler: Scheduler, at: int = 0) -> Instant:
    """Replays jobs up to an instant, and returns the decisions.

    `at` is in microseconds since the origin. Nothing after this instant is simulated.

    Raises:
        PolicyError: the policy failed.
    """
    instant = Instant(at)
    engine = Engine(instant.watched(chunks), cluster, instant, losses=scheduler.losses, until=at)
    policy = scheduler.policy.factory(cluster, engine.view, scheduler.options)
    instant.policy = policy
    engine.run(policy, name=scheduler.policy.name)
    return instant
