"""Simulates futures with random run times, in which jobs arrive as on days of the history.

A future depends only on the seed and on its number. Every draw is a function of the seed, of that number, and
of the drawn object's name. The same futures can therefore also be simulated with one more job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Unpack

from harness.cluster.model import Cluster
from harness.engine import Engine
from harness.engine.events import ADMIT, BIND, EVICT, NEVER, PREEMPT, REJECT, START, Fact, NullRecorder
from harness.engine.losses import Losses
from harness.plugins import Plugins
from harness.plugins.registries import PolicySpec
from harness.policy import Arrival
from harness.runs.estimates.coming_jobs import Coming
from harness.runs.estimates.distributions import Draws
from harness.runs.estimates.present import Now, Present
from harness.runs.executors import InParallel, results_of

NOBODY, LATER_ONE = -1, -2
"""The values that replace a preemptor's index if the preemptor is not a present workload."""


class Preemption(NamedTuple):
    """A preemption or eviction of a present workload.

    Attributes:
        at: the time, in microseconds from now.
        victim: the index of the victim among the present workloads.
        by: the index of the preemptor; `LATER_ONE` if the preemptor arrives later, `NOBODY` if there is none.
        reason: the scheduler's reason for an eviction without a preemptor, such as a time-out of
            `waitForPodsReady`; "" for preemptions.
    """

    at: int
    victim: int
    by: int
    reason: str = ""


class Future(NamedTuple):
    """What happens to the present workloads in one future.

    Attributes:
        starts: the first start of each workload, in the order of `World.asked` and in microseconds from now;
            -1 if the workload has not started by the end.
        preemptions: the preemptions, in chronological order.
        end: when the future ended, in microseconds from now. A future ends when all requested workloads have
            started, or at the horizon.
        stopped: a description of the livelock that stopped the future early; "" if there was none.
    """

    number: int
    starts: tuple[int, ...]
    preemptions: tuple[Preemption, ...]
    end: int
    stopped: str


class Settings(NamedTuple):
    """The settings of all futures.

    Attributes:
        plugin: the name of the scheduling policy.
        horizon: the longest simulated time of a future, in microseconds.
    """

    plugins: Plugins
    plugin: str
    options: Mapping[str, Any]
    losses: Losses
    horizon: int
    seed: int

    @property
    def policy(self) -> PolicySpec:
        """The scheduling policy."""
        return self.plugins.policy(self.plugin)


@dataclass(frozen=True)
class World:
    """The input that all futures of a forecast share. Futures differ only in their index.

    Attributes:
        cluster: the cluster with its present Workloads and Pods.
        now: the present state of the cluster.
        draws: the distribution of each present workload's run time.
        never: the indexes of the workloads that can never start.
        coming: the jobs that may arrive; None if no jobs arrive.
        names: the names of the requested waiting workloads; if empty, all waiting workloads.
        dated: whether the history and the cluster have the same clock.
    """

    cluster: Cluster
    settings: Settings
    now: Now
    draws: Sequence[Draws]
    never: Collection[int]
    coming: Coming | None
    names: frozenset[str] = frozenset()
    dated: bool = False

    @cached_property
    def asked(self) -> Sequence[int]:
        """The indexes of the requested waiting workloads among the present workloads."""
        return [
            place
            for place, each in enumerate(self.now.present)
            if each.waits and (not self.names or each.job.id in self.names)
        ]

    def future(self, number: int) -> Future:
        """Simulates a future until all requested workloads have started, or until the horizon.

        Raises:
            PolicyError: the policy failed.
        """
        settings = self.settings
        seen = _Seen(self.now.present, self.asked, self.never)
        engine = Engine(
            self._arrivals(number),
            self.cluster,
            seen,
            losses=settings.losses,
            until=settings.horizon,
            enough=seen.enough,
        )
        policy = settings.policy.factory(self.cluster, engine.view, settings.options)
        outcome = engine.run(policy, name=settings.plugin)
        return Future(
            number,
            tuple(seen.starts.get(place, NEVER) for place in self.asked),
            tuple(seen.preemptions),
            outcome.end,
            "" if outcome.stopped is None else outcome.stopped.told(),
        )

    def _arrivals(self, number: int) -> Iterator[list[Arrival]]:
        """Yields the present jobs first, and then the arriving jobs, day by day."""
        seed, horizon = self.settings.seed, self.settings.horizon
        yield [
            (each.job, _run_time(each, draws, seed, number), None, None, each.elapsed)
            for each, draws in zip(self.now.present, self.draws, strict=True)
        ]
        if self.coming is not None:
            yield from self.coming.future(seed, number, self.now.at or 0, horizon, len(self.now.present))


def _run_time(each: Present, draws: Draws, seed: int, number: int) -> int:
    return draws.drawn(seed, number, each.job.id) if each.gone_in is None else each.gone_in


class _Seen(NullRecorder):
    """Records the first starts of waiting jobs, and all preemptions, in a replay."""

    def __init__(self, present: Sequence[Present], asked: Iterable[int], never: Collection[int]) -> None:
        self.starts: dict[int, int] = {}
        self.preemptions: list[Preemption] = []
        self._count = len(present)
        self._waiting = {place for place, each in enumerate(present) if each.waits}
        self._leaving = {place for place, each in enumerate(present) if each.leaving}
        self._open = set(asked).difference(never)
        self._wanted: dict[int, int] = {}
        self._bound: dict[int, int] = {}

    def enough(self) -> bool:
        return not self._open

    def record(self, fact: Fact) -> None:
        place = fact.job.index
        if place >= self._count:
            return
        action = fact.action
        if action in (PREEMPT, EVICT):
            self._taken_from(place, fact)
        elif place not in self._waiting or place in self.starts or place in self._leaving:
            return
        elif action == ADMIT:
            self._wanted[place] = fact.pods
            if fact.holding == 1:
                self._started(place, fact.time)
        elif action == START:
            self._started(place, fact.time)
        elif action == BIND:
            self._bound[place] = bound = self._bound.get(place, 0) + 1
            if bound >= self._wanted.get(place, fact.job.pods) or not fact.job.gang:
                self._started(place, fact.time)
        elif action == REJECT:
            self._open.discard(place)

    def _started(self, place: int, time: int) -> None:
        self.starts[place] = time
        self._open.discard(place)

    def _taken_from(self, place: int, fact: Fact) -> None:
        if place in self._bound:  # If a whole job is evicted, only some of its pods may have been on nodes.
            self._bound[place] = 0 if fact.pod == NEVER else self._bound[place] - 1
        if place in self._leaving:
            self._leaving.discard(place)
        elif fact.action == EVICT:
            self.preemptions.append(Preemption(fact.time, place, NOBODY, fact.reason or ""))
        else:
            by = NOBODY if fact.by is None else fact.by.index if fact.by.index < self._count else LATER_ONE
            self.preemptions.append(Preemption(fact.time, place, by))


def futures_of(worlds: tuple[World, ...], count: int, **how: Unpack[InParallel]) -> list[list[Future]]:
    """Simulates `count` futures of each `World`, and returns them in the order of `worlds`.

    For `how`, see `InParallel`.

    Raises:
        OptionError: both `workers` and `executor` are given, or the number of processes is invalid.
        ReplayError: a future could not be simulated, or the executor has shut down.
    """
    items = [(world, number) for number in range(count) for world in range(len(worlds))]
    found: list[list[Future]] = [[] for _ in worlds]
    work = partial(_future, worlds)
    with closing(results_of(work, items, "a future could not be simulated", **how)) as news:
        for world, future in news:
            found[world].append(future)
    return [sorted(each) for each in found]


def _future(worlds: Sequence[World], item: tuple[int, int]) -> tuple[int, Future]:
    world, number = item
    return world, worlds[world].future(number)
