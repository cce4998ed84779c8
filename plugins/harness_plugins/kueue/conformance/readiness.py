"""Models losses and recoveries of pods in recorded cases, after the pods were ready."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.policy import ENDLESS, Job

Spans = tuple[int | None, ...]
"""Durations in microseconds, one for each admission, where None means never.

The last duration applies to all later admissions.
"""


class Readiness(NamedTuple):
    """The readiness of a workload's pods over time.

    Attributes:
        after: the time from each admission until the pods are ready.
        lost: the time from becoming ready until the pods are lost.
        back: the time from the loss until the pods are ready again.
    """

    after: Spans
    lost: Spans
    back: Spans

    @property
    def startup(self) -> tuple[int, ...] | None:
        """The times until pods are ready, in the format of the engine."""
        return tuple(ENDLESS if each is None else each for each in self.after) or None


@final
class Interruptions:
    """The losses and recoveries of pods that are still to come, for workloads that hold quota."""

    def __init__(self, readiness: list[Readiness]) -> None:
        self._readiness = readiness
        self._admissions = [0] * len(readiness)
        self._changes: list[tuple[int, str, int, bool, Job]] = []

    def admitted(self, job: Job) -> int | None:
        """Counts an admission, and returns how long its pods take to become ready.

        The result is None if they never become ready.
        """
        self._admissions[job.index] += 1
        after = self._readiness[job.index].after
        return self._now(after, job) if after else 0

    def gone(self, job: Job) -> None:
        """Removes the planned changes of a workload that finished or was evicted."""
        self._changes = [each for each in self._changes if each[4] is not job]
        self._changes.sort()

    def ready(self, job: Job, now: int) -> int | None:
        """Schedules the loss of pods that have just become ready. Returns the time of the loss, if any."""
        return self._expect(job, now, self._readiness[job.index].lost, ready=False)

    def due(self, now: int) -> Iterator[tuple[Job, bool, int | None]]:
        """Yields each job whose pods change now, their new readiness, and the time of the next change."""
        while self._changes and self._changes[0][0] <= now:
            _, _, _, ready, job = heappop(self._changes)
            following = None
            if not ready:
                following = self._expect(job, now, self._readiness[job.index].back, ready=True)
            yield job, ready, following

    def _expect(self, job: Job, now: int, spans: Spans, *, ready: bool) -> int | None:
        after = self._now(spans, job)
        if after is None:
            return None
        heappush(self._changes, (now + after, job.id, job.index, ready, job))
        return now + after

    def _now(self, spans: Spans, job: Job) -> int | None:
        return spans[min(self._admissions[job.index], len(spans)) - 1] if spans else None
