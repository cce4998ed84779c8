"""One instant of a replay, as it stands when all of its cycles are over: the replay is cut there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.engine import Engine
from harness.engine.events import (
    ADMIT,
    BIND,
    EVICT,
    FINISH,
    GONE,
    NEVER,
    PREEMPT,
    PROGRESS,
    REFUSE,
    REJECT,
    START,
    SUBMIT,
    Fact,
    NullRecorder,
)
from harness.engine.losses import Losses
from harness.policy import Arrival, Job

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins.registries import PolicySpec


class Scheduler(NamedTuple):
    """Who schedules, and what its preemptions cost.

    Attributes:
        policy: the plugin's policy.
        options: all of its options.
        losses: what a preempted job loses.
    """

    policy: PolicySpec
    options: Mapping[str, Any]
    losses: Losses


class Lost(NamedTuple):
    """What an eviction cost pods of a job.

    Attributes:
        pods: how many.
        ran: how long they had made progress, microseconds.
        lost: how much of it is thrown away, microseconds of each pod.
    """

    pods: int
    ran: int
    lost: int


@dataclass
class Life:
    """How a job stands.

    Attributes:
        job: the job.
        before: how long it had run when it arrived, microseconds.
        admitted: its latest admission, while that holds.
        bound: node -> how many of its pods are there.
        started: when it got all that it needs to make progress; `NEVER` while it has not.
        refusals: why it was not helped since it last got something, in order.
        evicted: its evictions at the instant that is looked at.
        lost: what these cost.
        rejected: why it can never start; "" where nobody said so.
        over: whether it ended, or was rejected.
    """

    job: Job
    before: int = 0
    admitted: Fact | None = None
    bound: Counter[str] = field(default_factory=Counter)
    started: int = NEVER
    refusals: list[Fact] = field(default_factory=list)
    evicted: list[Fact] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    rejected: str = ""
    over: bool = False

    @property
    def pods_bound(self) -> int:
        """How many pods have a node."""
        return sum(self.bound.values())


class Instant(NullRecorder):
    """What a replay has decided up to an instant, which is its last one.

    Args:
        at: the instant, microseconds since the origin.

    Attributes:
        at: the instant.
        lives: the jobs that have arrived, by their ids.
        preempted_by: by the ids of preemptors what was preempted for them at the instant.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.lives: dict[str, Life] = {}
        self.preempted_by: dict[str, list[Fact]] = {}
        self._before: dict[int, int] = {}

    def starts(self, names: Iterable[str]) -> bool:
        """Whether all of these jobs have started."""
        return all(self.lives[name].started != NEVER for name in names)

    def victims(self, names: Iterable[str]) -> list[str]:
        """The ids of those that are preempted for these jobs, in order."""
        facts = (fact for name in names for fact in self.preempted_by.get(name, ()))
        return list(dict.fromkeys(fact.job.id for fact in facts))

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
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
            life.refusals.clear()
            wanted = job.pods if life.admitted is None else life.admitted.pods
            if life.started == NEVER and (life.pods_bound >= wanted or not job.gang):
                life.started = fact.time
        elif action in (PREEMPT, EVICT):
            self._evict(life, fact)
        elif action == REFUSE:
            life.refusals.append(fact)
        elif action == REJECT:
            life.rejected, life.over = fact.reason or "", True
        elif action == FINISH and fact.alive == -1:
            life.over = True
        elif action == GONE:
            life.before = 0

    def _evict(self, life: Life, fact: Fact) -> None:
        life.started = NEVER
        life.admitted = None
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
        """See `harness.engine.events.Recorder`."""
        job, pods, _, start, end, state, lost, *more = about
        if state == PROGRESS and end == self.at:
            life = self.lives[job.id]
            lost_before = more[0] if more else 0
            life.lost.append(Lost(pods, end - start + life.before, lost + lost_before))

    def watched(self, chunks: Iterable[list[Arrival]]) -> Iterator[list[Arrival]]:
        """The same arrivals, with what they have done noted."""
        for chunk in chunks:
            self._before.update((each[0].index, each[4]) for each in chunk if len(each) == 5)
            yield chunk


def played(chunks: Iterable[list[Arrival]], cluster: Cluster, scheduler: Scheduler, at: int = 0) -> Instant:
    """What is decided by the end of an instant.

    Args:
        chunks: the jobs in order of arrival.
        cluster: what there is.
        scheduler: who decides.
        at: the instant, microseconds since the origin; nothing after it is played.

    Raises:
        PolicyError: the policy failed.
    """
    instant = Instant(at)
    engine = Engine(instant.watched(chunks), cluster, instant, losses=scheduler.losses, until=at)
    policy = scheduler.policy.factory(cluster, engine.view, scheduler.options)
    engine.run(policy, name=scheduler.policy.name)
    return instant
