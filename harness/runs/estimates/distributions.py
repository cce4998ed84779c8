"""Draws the run times of jobs from the run times of similar jobs.

If a job has already run for some time, its run time is drawn only from jobs of its group that ran longer. If
a group contains too few such jobs, a wider group is used. If no job ran longer, the job runs until its limit.
If the job has no limit, the remaining time follows a Pareto tail with exponent 1. In that case, half of the
jobs that have run for a time t are still running at 2 t. This is the least informative distribution that does
not depend on a unit of time.
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
"""A run time is drawn from the narrowest group in which at least this many jobs ran longer.

If there is no such group, it is drawn from the widest group in which any job ran longer.
"""

RECENT = 1000
"""If more jobs of a group ran longer, only this many of the most recent ones are used."""

PARTS = 4
"""The number of parts of a group. In each future, all jobs of a group are drawn from a single part."""

STEPS = 16
"""The number of positions in a group at which running jobs affect the weights of its parts."""

ALL = "all jobs"
LIMIT, TAIL = "the requested limit", "the time that they have run so far"
"""The sources of run times if no job in the history ran long enough."""

EVER = "nothing, because they never end on their own"
"""The source for pods that never end on their own, such as those of a DaemonSet."""

_LONGEST_TAIL = 64


class Draws(NamedTuple):
    """The distribution of the run time of one job.

    Attributes:
        source: what to draw from: `jobs of the same queue and size` or similar, `ALL`, `LIMIT`, `TAIL` or
            `EVER`.
        group: the name of the group. Jobs of the same group have similar run times.
        elapsed: how long the job has run, in microseconds.
        values: the run times of the group, in the order in which its jobs ended.
        limit: the maximum run time, or None.
        likely: A future draws all run times of a group from one part of `values`. `values` is divided into
            `STEPS` equal sections. Entry i is the probability that the part begins in one of the sections 0
            to i. The tuple is empty if the part begins anywhere with equal probability.
    """

    source: str
    group: tuple[str, ...]
    elapsed: int
    values: Sequence[int]
    limit: int | None
    likely: Sequence[float] = ()

    def drawn(self, seed: int, future: int | str, name: str) -> int:
        """Returns the job's run time in one future, in microseconds. It is longer than the elapsed time.

        `future` identifies the future in a forecast, or the twin in a replay. A twin is a version of the
        trace with slightly shifted arrivals.
        """
        return self.run_time(
            uniform(seed, future, name, "run time"), uniform(seed, future, *self.group, "part")
        )

    def run_time(self, number: float, part: float) -> int:
        """Converts two random numbers to a run time in microseconds, which is longer than the elapsed time.

        Jobs that end one after another, such as a user's series, often have similar run times. For this
        reason, a future draws all run times of a group from one part of `values`.

        Both numbers are in [0, 1). `number` selects the position within the part, and `part` selects where
        the part begins.
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
        """Returns the distribution for a waiting job, adapted to the running jobs of its group.

        If jobs of a group have been running for a long time, the waiting jobs of this group are probably long
        too. So parts of `values` with long run times become more likely, by Bayes' rule.

        `running` says how long each running job of the group has run so far, in microseconds.
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
        if not self.likely:
            return part
        step = min(bisect_right(self.likely, part), STEPS - 1)
        below = self.likely[step - 1] if step else 0.0
        width = self.likely[step] - below
        return (step + ((part - below) / width if width else 0.5)) / STEPS


def ever(elapsed: int) -> Draws:
    """Returns the distribution for a job that has run for `elapsed` and never ends on its own."""
    return Draws(EVER, (), elapsed, (), ENDLESS)


def _size(count: int) -> int:
    return max(count // PARTS, min(LEAST, count))


class Ran(NamedTuple):
    """A job that has ended.

    Attributes:
        time: how long it ran, in microseconds.
        end: when it ended, in microseconds on any clock.
    """

    traits: Traits
    time: int
    end: int


class Ended:
    """The ended jobs of a history by group, prepared for queries about any time.

    If queries specify a time, the jobs must be sorted by their ends, the earliest first.
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
        """Returns how many jobs had ended by a given time. None counts all jobs."""
        return len(self._ends) if now is None else bisect_right(self._ends, now)

    def group(self, level: int, key: tuple[str, ...], now: int | None) -> Sequence[int]:
        """Returns the run times of a group's jobs that had ended by a given time. None includes all jobs."""
        ends, times = self._groups.get((level, key), ((), ()))
        return times if now is None else times[: bisect_right(ends, now)]


class RunTimes:
    """The run times of the jobs in a history, by group.

    Only jobs that had ended by `now` count. None includes all jobs.
    """

    def __init__(self, ended: Ended, now: int | None = None) -> None:
        self._ended = ended
        self._now = now
        self.count = ended.count(now)
        self._groups: dict[tuple[int, tuple[str, ...]], _Group] = {}
        self._known: dict[tuple[int, tuple[str, ...], int], Sequence[int]] = {}

    def draws(self, traits: Traits, elapsed: int, limit: int | None) -> Draws | None:
        """Returns the distribution of a run time, or None if neither the history nor a limit provides it.

        Times are in microseconds. The job has run for `elapsed`, and can run at most for `limit`.
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
    """The run times of one group, both in their original order and sorted."""

    def __init__(self, times: Sequence[int]) -> None:
        self.times = times

    @cached_property
    def ascending(self) -> list[int]:
        return sorted(self.times)
