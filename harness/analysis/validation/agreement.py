"""Compares what jobs hold over time in a simulation and in a record.

The module finds the time at which the two begin to differ, and the size of the differences.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import NamedTuple

from harness.analysis.validation.history import History
from harness.base.units import HOUR, MINUTE

TOLERANCE = 2 * MINUTE
"""A difference ends the agreement only if it lasts at least this long."""

_SCALE = 4 * HOUR
"""Later differences count less. The weight of a difference falls to 1/e within this time."""


class Difference(NamedTuple):
    """A span in which a job runs only in the record or only in the simulation.

    Attributes:
        start, end: the span, in microseconds since the origin.
        amount: what the job holds. It is negative if the job runs only in the record, and 0 if only the
            record evicts the job.
    """

    start: int
    end: int
    amount: int
    job: str


class Record:
    """A record of what happened in a cluster, with which simulations are compared.

    A job without a ClusterQueue has the queue "". The record's end is in microseconds since the origin.

    Attributes:
        instants: all times at which a job is submitted, begins or ends, in order. A change of the cluster
            between two instants has the same effect at any time in between.
        sudden: in order, the times at which jobs begin although no job ended or was submitted in the last
            minute.
    """

    def __init__(
        self,
        history: History,
        amounts: Mapping[str, int],
        queues: Mapping[str, str],
        submits: Iterable[int],
        end: int,
    ) -> None:
        self.history = history
        self.queues = queues
        self.end = end
        every = [span for spans in history.spans.values() for span in spans]
        begins, ends = {start for start, _ in every}, {end for _, end in every}
        submits = set(submits)
        self.instants = sorted(begins | ends | submits)
        causes = sorted(ends | submits)
        self.sudden = sorted(each for each in begins if not _any(causes, each - MINUTE, each))
        self._amounts = amounts

    def error(self, simulated: History, until: int) -> float:
        """Returns the mean absolute error of waits. A start after `until` counts as a start at `until`."""
        errors = [
            abs(min(simulated.first(job, until), until) - min(spans[0][0], until))
            for job, spans in self.history.spans.items()
            if spans
        ]
        return sum(errors) / max(len(errors), 1)

    def used(self, time: int) -> int:
        """Returns what all jobs hold at a given time."""
        spans = self.history.spans
        return sum(
            amount
            for job, amount in self._amounts.items()
            if any(start <= time < end for start, end in spans.get(job, ()))
        )

    def differences(self, simulated: History, until: int, least: int = 1) -> list[Difference]:
        """Returns, in order, differences of at least `least` microseconds that begin before `until`."""
        found: list[Difference] = []
        ours, theirs = self.history.spans, simulated.spans
        for job, amount in self._amounts.items():
            recorded = [(start, min(end, until)) for start, end in ours.get(job, ()) if start < until]
            others = [(start, min(end, until)) for start, end in theirs.get(job, ()) if start < until]
            if recorded == others:
                continue
            moves: dict[int, int] = {}
            for spans, sign in ((recorded, -1), (others, 1)):
                for start, end in spans:
                    moves[start] = moves.get(start, 0) + sign
                    moves[end] = moves.get(end, 0) - sign
            level = since = 0
            for time in sorted(moves):
                if level and time - since >= least:
                    found.append(Difference(since, time, level * amount, job))
                level, since = level + moves[time], time
        return sorted(found)

    def lost(self, simulated: History, since: int, until: int) -> dict[int, frozenset[str]]:
        """Maps each time to the jobs that the record evicts at that time, but the simulation does not."""
        found = {
            time: jobs - simulated.evicted.get(time, frozenset())
            for time, jobs in self.history.evicted.items()
            if since <= time < until
        }
        return {time: jobs for time, jobs in sorted(found.items()) if jobs}

    def breaks(self, simulated: History, after: int, until: int) -> list[Difference]:
        """Returns the differences after the time `after` that end the agreement with the simulation.

        These are differences that last at least `TOLERANCE`, and evictions that only the record has.
        """
        found = [each for each in self.differences(simulated, until, TOLERANCE) if each.end > after]
        for time, jobs in self.lost(simulated, after, until).items():
            found += (Difference(time, time + TOLERANCE, 0, job) for job in jobs)
        return sorted(found)

    def cost(self, simulated: History, at: int, until: int) -> float:
        """Returns the sum of `amount * length` over all differences.

        The longer a difference is after the time `at`, the less it counts.
        """
        return sum(
            abs(each.amount) * (_weight(each.end - at) - _weight(each.start - at))
            for each in self.differences(simulated, until)
        )


def _any(times: Sequence[int], first: int, last: int) -> bool:
    return bisect_left(times, first) < bisect_right(times, last)


def _weight(time: int) -> float:
    """Returns the integral of the weight from 0 to a time."""
    return time if time <= 0 else _SCALE * (1 - exp(-time / _SCALE))
