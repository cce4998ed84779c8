"""Losses and returns of pods in recorded cases, after they were ready."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple, final

from harness.policy import ENDLESS, Job

Spans = tuple[int | None, ...]
"""Microseconds for the first admission, the second...; the last one for all later ones. None is never."""


class Readiness(NamedTuple):
    """The readiness of a workload's pods over time.

    Attributes:
        after: from an admission until its pods are ready.
        lost: from there until they are lost.
        back: from there until they are ready again.
    """

    after: Spans
    lost: Spans
    back: Spans

    @property
    def startup(self) -> tuple[int, ...] | None:
        """The time until pods are ready, in the engine's form."""
        return tuple(ENDLESS if each is None else each for each in self.after) or None


@final
class Interruptions:
    """The losses and returns that are due, for workloads that still hold quota.

    Args:
        readiness: by index of the job.
    """

    def __init__(self, readiness: list[Readiness]) -> None:
        self._readiness = readiness
        self._admissions = [0] * len(readiness)
        self._changes: list[tuple[int, str, int, bool, Job]] = []

    def admitted(self, job: Job) -> int | None:
        """A workload is admitted; returns how long its pods take until they are ready."""
        self._admissions[job.index] += 1
        after = self._readiness[job.index].after
        return self._now(after, job) if after else 0

    def gone(self, job: Job) -> None:
        """A workload ended or was evicted: the future of its pods no longer matters."""
        self._changes = [each for each in self._changes if each[4] is not job]
        self._changes.sort()

    def ready(self, job: Job, now: int) -> int | None:
        """Its pods are ready for the first time; answers when they will be lost."""
        return self._expect(job, now, self._readiness[job.index].lost, ready=False)

    def due(self, now: int) -> Iterator[tuple[Job, bool, int | None]]:
        """The jobs whose pods change now, their new readiness, and the time of the next change; by name."""
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
        """The span of the present admission."""
        return spans[min(self._admissions[job.index], len(spans)) - 1] if spans else None
