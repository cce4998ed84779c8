"""How long jobs run, drawn from how long jobs like them ran.

A job that has run for some time is drawn among those of its group that ran longer. Where too few of a group
did, a wider group is taken. Where no job at all did, the job runs to its limit. Without a limit it goes on as
long again: of what has run for a time t, half still runs at 2 t. That is a Pareto tail with exponent 1, the
least informative of those that do not depend on a unit of time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple, final

from harness.policy import ENDLESS
from harness.runs.estimates.traits import LEVELS, Traits, key_of_group
from harness.trace.generate.uniform import uniform

LEAST = 20
"""This many jobs of a group must have run longer for a job to be drawn among them."""

RECENT = 1000
"""This many of them are taken, the latest ones."""

PARTS = 4
"""A future draws the jobs of one group from so large a part of it: a quarter."""

STEPS = 16
"""At this many places of a group its parts are weighed by what runs now."""

ALL = "all jobs"
LIMIT, TAIL = "the requested limit", "the time run so far"
"""What a run time is drawn from where groups are too small, and where no job of the history ran so long."""

EVER = "nothing, for they never end by themselves"
"""Of pods that something keeps running for ever, such as a DaemonSet."""

_LONGEST_TAIL = 64


class Draws(NamedTuple):
    """What the run time of one job is drawn from.

    Attributes:
        source: the jobs that it is drawn from, `jobs of the same queue and size` or `ALL`; else `LIMIT`,
            `TAIL` or `EVER`.
        group: names the group; jobs of one group run alike.
        elapsed: how long it has run, microseconds.
        values: run times, in the order of their ends.
        limit: the longest that it may run; None for no limit.
        likely: how likely the part of a future begins up to each of this many equal steps of the group; empty
            where one step is as likely as another.
    """

    source: str
    group: tuple[str, ...]
    elapsed: int
    values: Sequence[int]
    limit: int | None
    likely: Sequence[float] = ()

    def drawn(self, seed: int, future: int | str, name: str) -> int:
        """The run time in one future of what is called so, microseconds; longer than what has elapsed.

        Args:
            seed: of all draws.
            future: which one: its number, or the twin of a replay.
            name: whose run time it is.
        """
        return self.run_time(
            uniform(seed, future, name, "run time"), uniform(seed, future, *self.group, "part")
        )

    def run_time(self, number: float, part: float) -> int:
        """The run time for two numbers in [0, 1), microseconds; longer than what has elapsed.

        Jobs that end one after the other run alike, more so than any two of their group (one user's series,
        one week's experiment). So one future draws all jobs of a group from one part of it.

        Args:
            number: which of that part.
            part: where the part begins, if any is as likely as another.
        """
        if self.values:
            count = len(self.values)
            found = self.values[int(self._begin(part) * count + number * _size(count)) % count]
        elif self.source == TAIL:
            found = round(self.elapsed / max(1 - number, 1 / _LONGEST_TAIL))
        else:
            assert self.limit is not None
            found = self.limit
        if self.limit is not None:
            found = min(found, self.limit)
        return max(found, self.elapsed + 1)

    def beside(self, running: Sequence[int]) -> Draws:
        """The same for one that waits, given how long jobs of its group have run that run now.

        A part of the group is as likely as it is that jobs of it run longer than these have (Bayes' rule). A
        user's series of long jobs shows by those that still run, and it waits longer than one of short ones.

        Args:
            running: how long each has run, microseconds.
        """
        if not running or not self.values:
            return self
        count = len(self.values)
        size = _size(count)
        weights = []
        for step in range(STEPS):
            first = (2 * step + 1) * count // (2 * STEPS)
            part = sorted(self.values[(first + place) % count] for place in range(size))
            weights.append([(size - bisect_right(part, time) + 0.5) / (size + 1) for time in running])
        likely = [1.0] * STEPS
        for factors in zip(*weights, strict=True):
            likely = [each * by for each, by in zip(likely, factors, strict=True)]
            most = max(likely)
            likely = [each / most for each in likely]
        total = sum(likely)
        return self._replace(likely=tuple(each / total for each in accumulate(likely)))

    def _begin(self, part: float) -> float:
        """Where the part begins, as a share of the group."""
        if not self.likely:
            return part
        step = min(bisect_right(self.likely, part), STEPS - 1)
        below = self.likely[step - 1] if step else 0.0
        width = self.likely[step] - below
        return (step + ((part - below) / width if width else 0.5)) / STEPS


def ever(elapsed: int) -> Draws:
    """The run time of what has run for so long, and never ends by itself."""
    return Draws(EVER, (), elapsed, (), ENDLESS)


def _size(count: int) -> int:
    """How many of a group make a part."""
    return max(count // PARTS, min(LEAST, count))


class Ran(NamedTuple):
    """A job that has ended.

    Attributes:
        traits: what is known of it.
        time: how long it ran, microseconds.
        end: when it ended, microseconds on any clock.
    """

    traits: Traits
    time: int
    end: int


class Ended:
    """The jobs of a history that ended, by group: made once for all the times by which something is asked.

    Args:
        jobs: in the order that says which are the latest; ascending by end where `by` is asked.
    """

    def __init__(self, jobs: Iterable[Ran]) -> None:
        self._ends: list[int] = []
        self._groups: dict[tuple[int, tuple[str, ...]], tuple[list[int], list[int]]] = {}
        keys: dict[Traits, list[tuple[int, tuple[str, ...]]]] = {}
        for traits, time, end in jobs:
            self._ends.append(end)
            found = keys.get(traits)
            if found is None:
                of_level = ((level, key_of_group(traits, names)) for level, names in LEVELS)
                found = keys[traits] = [(level, key) for level, key in of_level if key is not None]
            for each in found:
                group = self._groups.get(each)
                if group is None:
                    group = self._groups[each] = ([], [])
                group[0].append(end)
                group[1].append(time)

    def count(self, now: int | None) -> int:
        """How many had ended by a time; all of them where that is None."""
        return len(self._ends) if now is None else bisect_right(self._ends, now)

    def group(self, level: int, key: tuple[str, ...], now: int | None) -> Sequence[int]:
        """How long the jobs of a group ran that had ended by a time, in order; of all where that is None."""
        ends, times = self._groups.get((level, key), ((), ()))
        return times if now is None else times[: bisect_right(ends, now)]


class RunTimes:
    """How long the jobs of a history ran, by group.

    Args:
        ended: the jobs.
        now: the time by which they have ended; None where all of them count.
    """

    def __init__(self, ended: Ended, now: int | None = None) -> None:
        self._ended = ended
        self._now = now
        self.count = ended.count(now)
        self._groups: dict[tuple[int, tuple[str, ...]], _Group] = {}
        self._known: dict[tuple[int, tuple[str, ...], int], Sequence[int]] = {}

    def draws(self, traits: Traits, elapsed: int, limit: int | None) -> Draws | None:
        """What the run time of a job is drawn from; None where neither the history nor a limit says anything.

        Args:
            traits: of the job.
            elapsed: how long it has run, microseconds.
            limit: the longest that it may run, microseconds; None for no limit.
        """
        widest: Draws | None = None
        for level, names in LEVELS:
            key = key_of_group(traits, names)
            if key is None:
                continue
            group = self._group(level, key)
            longer = len(group.times) - bisect_right(group.ascending, elapsed)
            if longer:
                widest = Draws(_told(names), (str(level), *key), elapsed, (), limit)
            if longer >= LEAST:
                break
        if widest is not None:
            key = widest.group[1:]
            return widest._replace(values=self._longer(int(widest.group[0]), key, elapsed))
        if limit is not None:
            return Draws(LIMIT, (LIMIT,), elapsed, (), limit)
        return Draws(TAIL, (TAIL,), elapsed, (), limit) if elapsed else None

    def _longer(self, level: int, key: tuple[str, ...], elapsed: int) -> Sequence[int]:
        """The latest of a group that ran longer than so long."""
        known = self._known.get((level, key, elapsed))
        if known is None:
            latest = (time for time in reversed(self._group(level, key).times) if time > elapsed)
            known = self._known[level, key, elapsed] = list(islice(latest, RECENT))[::-1]
        return known

    def _group(self, level: int, key: tuple[str, ...]) -> _Group:
        group = self._groups.get((level, key))
        if group is None:
            group = self._groups[level, key] = _Group(self._ended.group(level, key, self._now))
        return group


def _told(names: tuple[str, ...]) -> str:
    return f"jobs of the same {' and '.join(names)}" if names else ALL


@final
class _Group:
    """Run times of one group, in the order in which they were told and in ascending order."""

    def __init__(self, times: Sequence[int]) -> None:
        self.times = times

    @cached_property
    def ascending(self) -> list[int]:
        """From the shortest to the longest."""
        return sorted(self.times)
