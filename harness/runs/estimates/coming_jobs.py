"""Draws future jobs by repeating whole days of the history.

A future day repeats a past day with the same weekday, and each job arrives at the same time of day. If the
history covers only part of a day, some jobs of that day are unknown. For this reason, only days between the
first and the last submission of the history are drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.base.units import DAY
from harness.policy import Arrival
from harness.runs.estimates.traits import Traits
from harness.trace.generate.uniform import uniform

WEEKS = 8
"""The number of past weeks from which days are drawn."""


class Past(NamedTuple):
    """A job of the history, with times in microseconds on the history's clock.

    The clock counts from 1970, or from the origin of the history.

    Attributes:
        arrival: how the job arrives in a replay of the history, with its run time and other properties.
        end: when it ended, or None if it had not ended, or if the end is unknown.
        start: when it first started, or None if it had not started, or if the start is unknown.
    """

    arrival: Arrival
    traits: Traits
    submit: int
    end: int | None
    start: int | None = None

    @property
    def run_time(self) -> int:
        """The duration of one uninterrupted run, in microseconds."""
        return self.arrival[1]


class Coming:
    """The days of a history, with the jobs that were submitted on each day.

    Args:
        jobs: the jobs of the history, sorted by submission.
        first, last: the first and last submission of the history, in microseconds on its clock.
        dated: whether the history's times are on the cluster's clock, so that their weekdays are known.

    Attributes:
        whole: whether the history covers all drawn days from midnight to midnight.
    """

    def __init__(self, jobs: Sequence[Past], first: int, last: int, *, dated: bool) -> None:
        self._dated = dated
        days = range(max(-(-first // DAY), first_day(last)), last // DAY)
        self.whole = bool(days)
        self._days = days or (range(first // DAY, last // DAY + 1) if jobs else ())
        begin = bisect_left(jobs, self._days[0] * DAY, key=_submit) if self._days else 0
        self._jobs = jobs[begin:]

    def future(self, seed: int, number: int, clock: int, horizon: int, first: int) -> Iterator[list[Arrival]]:
        """Yields the jobs that arrive in one future, day by day, with their `submit` relative to now.

        The current time (`clock`) is in microseconds since 1970, and the future ends at `horizon`
        microseconds from now. `first` is the index of the first job.
        """
        today, since = divmod(clock, DAY)
        count = 0
        for day in range(today, (clock + horizon) // DAY + 1):
            likely = self.days_like(day)
            if not likely:
                return
            drawn = likely[int(uniform(seed, number, day - today, "day") * len(likely))]
            shift = (day - drawn) * DAY - clock
            chunk: list[Arrival] = []
            for past in self.came_on(drawn, since if day == today else 0):
                job, *runs = past.arrival
                name = f"{job.id}+{count}"
                job = replace(job, index=first + count, id=name, uid=name, submit=past.submit + shift)
                chunk.append((job, *runs))
                count += 1
            if chunk:
                yield chunk

    def days_like(self, day: int) -> Sequence[int]:
        """Returns the recent past days with the same weekday, from which a future day is drawn.

        If there are no such days, the result is all recent days. An empty history has no days. `day` is in
        days since 1970.
        """
        same = [each for each in self._days if (each - day) % 7 == 0] if self._dated else []
        return same or self._days

    def came_on(self, day: int, since: int = 0) -> Sequence[Past]:
        """Returns the jobs submitted on a day of the history, starting at a given time of that day."""
        first = bisect_left(self._jobs, day * DAY + since, key=_submit)
        last = bisect_left(self._jobs, (day + 1) * DAY, key=_submit)
        return self._jobs[first:last]


def first_day(last: int) -> int:
    """Returns the earliest day from which future days are drawn, as a number of days on the history's clock.

    `last` is the last submission of the history, in microseconds on the same clock.
    """
    return last // DAY - 7 * WEEKS


def _submit(job: Past) -> int:
    return job.submit
