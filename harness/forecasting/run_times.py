"""How long jobs run, drawn from how long jobs like them ran.

A job that has run for some time is drawn among those of its group that ran longer. Where too few of a group
did, a wider group is taken; where no job at all did, the job runs to its limit, and without one it goes
on as long again: of what has run for a time t, half still runs at 2 t (a Pareto tail with exponent 1, the
least informative of those that do not depend on a unit of time).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from harness.forecasting.traits import GROUPS, Traits, key_of_group

LEAST = 20
"""So many jobs of a group must have run longer for a job to be drawn among them."""

RECENT = 1000
"""So many of them are taken, the latest ones."""

PARTS = 4
"""A future draws the jobs of one group from so large a part of it: a quarter."""

ALL = "all jobs"
LIMIT, TAIL = "the requested limit", "the time run so far"
"""What a run time is drawn from where groups are too small, and where no job of the history ran so long."""

_LONGEST_TAIL = 64


class Draws(NamedTuple):
    """What the run time of one job is drawn from.

    Attributes:
        source: the jobs that it is drawn from, `jobs of the same queue and size` or `ALL`; else `LIMIT` or
            `TAIL`.
        group: names the group; jobs of one group run alike.
        elapsed: how long it has run, microseconds.
        values: run times, in the order of their ends.
        limit: the longest that it may run; None for no limit.
    """

    source: str
    group: tuple[str, ...]
    elapsed: int
    values: Sequence[int]
    limit: int | None

    def run_time(self, number: float, part: float) -> int:
        """The run time for two numbers in [0, 1), microseconds; longer than what has elapsed.

        Jobs that end one after the other run alike, more so than any two of their group (one user's series,
        one week's experiment). So one future draws all jobs of a group from one part of it.

        Args:
            number: which of that part.
            part: where the part begins.
        """
        if self.values:
            count = len(self.values)
            size = max(count // PARTS, min(LEAST, count))
            found = self.values[int(part * count + number * size) % count]
        elif self.source == TAIL:
            found = round(self.elapsed / max(1 - number, 1 / _LONGEST_TAIL))
        else:
            assert self.limit is not None
            found = self.limit
        if self.limit is not None:
            found = min(found, self.limit)
        return max(found, self.elapsed + 1)


class RunTimes:
    """How long the jobs of a history ran, by group.

    Args:
        ran: traits and run time of each job, microseconds, in the order of their ends.
    """

    def __init__(self, ran: Iterable[tuple[Traits, int]]) -> None:
        self._groups: dict[tuple[int, tuple[str, ...]], _Group] = {}
        self.count = 0
        for traits, time in ran:
            self.count += 1
            for level, names in enumerate(GROUPS):
                key = key_of_group(traits, names)
                if key is not None:
                    self._groups.setdefault((level, key), _Group()).add(time)
        for group in self._groups.values():
            group.close()
        self._known: dict[tuple[int, tuple[str, ...], int], Sequence[int]] = {}

    def draws(self, traits: Traits, elapsed: int, limit: int | None) -> Draws | None:
        """What the run time of a job is drawn from; None where neither the history nor a limit says anything.

        Args:
            traits: of the job.
            elapsed: how long it has run, microseconds.
            limit: the longest that it may run, microseconds; None for no limit.
        """
        widest: Draws | None = None
        for level, names in enumerate(GROUPS):
            key = key_of_group(traits, names)
            group = None if key is None else self._groups.get((level, key))
            if group is None or key is None:
                continue
            longer = group.count - bisect_right(group.ascending, elapsed)
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
            latest = (time for time in reversed(self._groups[level, key].times) if time > elapsed)
            known = self._known[level, key, elapsed] = list(islice(latest, RECENT))[::-1]
        return known


def _told(names: tuple[str, ...]) -> str:
    return f"jobs of the same {' and '.join(names)}" if names else ALL


class _Group:
    """Run times of one group, in the order in which they were added and in ascending order."""

    __slots__ = ("ascending", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.ascending: list[int] = []

    @property
    def count(self) -> int:
        return len(self.times)

    def add(self, time: int) -> None:
        self.times.append(time)

    def close(self) -> None:
        """No more is added."""
        self.ascending = sorted(self.times)
