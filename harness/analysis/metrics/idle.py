"""Measures why capacity is idle while jobs wait.

At any time, the idle capacity and the requests of waiting jobs are known exactly. The smaller of these two
quantities is divided among the waiting jobs in proportion to their requests. Each part counts toward the
cause that was last determined for its job. If more capacity is idle than waiting jobs request, the rest
counts as idle without demand. A run does not record the causes, so harness determines them only on request,
in an additional replay (`harness.studies.waiting_causes`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from harness.analysis.metrics.pod_moves import COLUMNS, PodMoves
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.analysis.metrics.shown import Shown
from harness.base.arrays import Bools, Ints, numbers
from harness.base.units import MINUTE
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.runs.run import IDLE, Run

RESERVED, QUOTA, FRAGMENTED, POLICY = range(4)
"""The causes of a job's wait. If several causes apply, the first one counts."""

CAUSES = ("reserved", "quota", "fragmented", "policy")
"""The names of the causes, in the order of their numbers."""

METRICS = ("idle.no_demand", *(f"idle.{name}" for name in CAUSES))

SHOWN = (
    Shown("idle.no_demand", "jobs that wait while nothing is idle", brief=True),
    Shown("idle.reserved", "whether the reserved resources are worth the wait", brief=True),
    Shown(
        "idle.quota",
        "whether quota is kept free for other jobs, and waits under plugins that report no cause",
        brief=True,
    ),
    Shown("idle.fragmented", "which running jobs could move to make room for waiting jobs", brief=True),
    Shown("idle.policy", "why the policy lets jobs wait, and jobs that start within the minute", brief=True),
)


class Judged(NamedTuple):
    """The causes of waits, with a row for each job whose cause changed since the previous determination.

    Attributes:
        minute: the time in minutes since the run's first arrival, in ascending order.
        job: the index of the job.
        cause: the job's cause from this time on.
    """

    minute: Ints
    job: Ints
    cause: Ints


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the share of each resource's capacity that is idle for each cause, or null without causes.

    The window must begin at the start of the run.
    """
    found = _idle(run, window) if has_causes(run) and pod_sizes(run).each else None
    for place, resource in enumerate(run.resources):
        whole = run.capacity_time(resource, window)
        for number, metric in enumerate(METRICS):
            share = found[place][number] / whole if found is not None and whole else None
            yield Measurement(metric, share, SHARE, "lower" if number else "", resource=resource)


def has_causes(run: Run) -> bool:
    """Returns True if the run contains the causes of waiting."""
    return IDLE in run.info and "causes" in run.info["tables"]


class _Moved(NamedTuple):
    """The changes in jobs' pods and requests, in order of time.

    Attributes:
        waiting: the change in the number of waiting pods.
        asked, held: for each resource, the change in what waiting pods request, and in what is held.
    """

    time: Ints
    job: Ints
    waiting: Ints
    asked: Sequence[Ints]
    held: Sequence[Ints]


def _moved(run: Run) -> _Moved:
    pods, each = PodMoves(run), pod_sizes(run).each
    parts = []
    for batch in run.batches("decisions", ("time", *COLUMNS)):
        time, job = numbers(batch, "time", "job")
        row, size, waiting, holding = pods.of(batch)
        amounts = [amount[size] for amount in each]
        parts.append((time[row], job[row], waiting, *(amount * waiting for amount in amounts)))
        parts[-1] += tuple(amount * holding for amount in amounts)
    time, job, waiting, *levels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Moved(time, job, waiting, levels[: len(each)], levels[len(each) :])


def _idle(run: Run, window: Window) -> list[list[int]]:
    """Returns the idle capacity of each resource, without demand and by cause, in resource-microseconds."""
    moved = _moved(run)
    minute, job, cause = numbers(run.columns("causes", "minute", "job", "cause"), "minute", "job", "cause")
    at = run.window.start + minute * MINUTE
    waits = _waits(moved, at, job)
    at, job, cause = at[waits], job[waits], cause[waits]
    causes = np.full(int(max(moved.job.max(initial=-1), job.max(initial=-1))) + 1, POLICY)
    # The order is reversed so that the first cause of each job remains.
    causes[job[::-1]] = cause[::-1]
    found = []
    for place, resource in enumerate(run.resources):
        asked, held = moved.asked[place], moved.held[place]
        some = (asked != 0) | (held != 0)
        capacity = [(begin, cluster["capacity"].get(resource, 0)) for begin, cluster in run.epochs]
        split = _Split(capacity, causes.tolist(), window.start)
        time = np.append(moved.time[some], at)
        order = time.argsort(kind="stable")
        both = np.append(moved.job[some], job), np.append(asked[some], cause), np.append(held[some], cause)
        is_cause = np.append(np.zeros(int(some.sum()), np.bool_), np.ones(len(at), np.bool_))
        order = order[time[order] < window.end]
        columns = (column[order].tolist() for column in (time, *both, is_cause))
        reached = window.start
        for when, whose, more, holds, judged in zip(*columns, strict=True):
            if when != reached:
                split.reach(when)
                reached = when
            if judged:
                split.judge(whose, more)
            else:
                split.move(whose, more, holds)
        split.reach(window.end)
        found.append(split.sums)
    return found


def _waits(moved: _Moved, at: Ints, job: Ints) -> Bools:
    if not len(at):
        return np.zeros(0, np.bool_)
    order = np.lexsort((np.arange(len(moved.time)), moved.time, moved.job))
    of_job, times = moved.job[order], moved.time[order]
    begins = np.append(True, of_job[1:] != of_job[:-1])
    total = moved.waiting[order].cumsum()
    before = total - moved.waiting[order]
    level = total - before[begins][begins.cumsum() - 1]
    every = np.unique(np.append(times, at))
    width = len(every) + 1
    keys = of_job * width + every.searchsorted(times)
    place = keys.searchsorted(job * width + every.searchsorted(at), side="right") - 1
    there = (place >= 0) & (of_job[place.clip(0)] == job)
    found: Bools = there & (level[place.clip(0)] > 0)
    return found


class _Split:
    """Adds up the idle capacity of one resource by cause.

    Attributes:
        sums: the capacity that is idle without demand, followed by the idle capacity for each cause.
    """

    def __init__(self, capacity: list[tuple[int, int]], causes: list[int], begin: int) -> None:
        self.sums = [0] * len(METRICS)
        self._capacity = 0
        self._capacities = list(reversed(capacity))
        self._causes = causes
        self._since = begin
        self._held = 0
        self._asks: dict[int, int] = {}
        self._asked = [0] * len(CAUSES)
        # Maps each quantity to the jobs that request it, in order, and to the number of these jobs with each
        # cause.
        self._jobs: dict[int, list[int]] = {}
        self._counts: dict[int, list[int]] = {}

    def reach(self, time: int) -> None:
        while self._capacities and self._capacities[-1][0] < time:
            begin, capacity = self._capacities.pop()
            self._reach(begin)
            self._capacity = capacity
        self._reach(time)

    def _reach(self, time: int) -> None:
        """Adds up the current levels until a given time, before which the capacity must not change."""
        span = time - self._since
        if span <= 0:
            return
        self._since = time
        idle, asked = max(0, self._capacity - self._held), sum(self._asked)
        if not idle:
            return
        parts = self._asked if asked <= idle else self._parts(idle, asked)
        self.sums[0] += max(0, idle - asked) * span
        for cause, part in enumerate(parts, 1):
            self.sums[cause] += part * span

    def move(self, job: int, asks: int, holds: int) -> None:
        self._held += holds
        if not asks:
            return
        before = self._asks.pop(job, 0)
        if before:
            self._leave(job, before)
        after = before + asks
        if after:
            self._asks[job] = after
            insort(self._jobs.setdefault(after, []), job)
            self._count(job, after, 1)

    def judge(self, job: int, cause: int) -> None:
        asks = self._asks.get(job, 0)
        if asks:
            self._count(job, asks, -1)
        self._causes[job] = cause
        if asks:
            self._count(job, asks, 1)

    def _leave(self, job: int, asks: int) -> None:
        self._count(job, asks, -1)
        jobs = self._jobs[asks]
        del jobs[bisect_left(jobs, job)]
        if not jobs:
            del self._jobs[asks], self._counts[asks]

    def _count(self, job: int, asks: int, sign: int) -> None:
        cause = self._causes[job]
        self._asked[cause] += sign * asks
        self._counts.setdefault(asks, [0] * len(CAUSES))[cause] += sign

    def _parts(self, idle: int, asked: int) -> list[int]:
        """Divides the idle capacity among the causes in proportion to requests, by the largest remainder.

        Jobs with equal requests get equal parts. The units that are left over go to the jobs with the largest
        remainders, one unit each. If remainders are equal, earlier jobs come first.
        """
        reserved = quota = fragmented = policy = 0
        left = idle
        by_remainder: dict[int, list[int]] = {}
        for asks, (of_reserved, of_quota, of_fragmented, of_policy) in self._counts.items():
            part, remainder = divmod(idle * asks, asked)
            if part:
                left -= part * len(self._jobs[asks])
                reserved += part * of_reserved
                quota += part * of_quota
                fragmented += part * of_fragmented
                policy += part * of_policy
            by_remainder.setdefault(remainder, []).append(asks)
        found = [reserved, quota, fragmented, policy]
        while left:
            group = by_remainder.pop(max(by_remainder))
            number = sum(len(self._jobs[asks]) for asks in group)
            if left < number:
                first = list(chain.from_iterable(self._jobs[asks][:left] for asks in group))
                first = sorted(first)[:left] if len(group) > 1 else first
                for cause, count in Counter(map(self._causes.__getitem__, first)).items():
                    found[cause] += count
                break
            left -= number
            for asks in group:
                for cause, count in enumerate(self._counts[asks]):
                    found[cause] += count
        return found
