"""Jobs of a batch system for tests of `backfill`: they state how long they may run, and whose they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness import Cluster, Job
from harness.base.options import resolve
from harness.base.units import SECOND
from harness.policy import Arrival
from harness.testing import Decisions, Script, replayed
from harness_plugins.backfill import OPTIONS, backfilling


class Batch(Script):
    """A script whose jobs state a requested run time and a user; clairvoyant."""

    def __init__(self) -> None:
        super().__init__()
        self._stated: dict[str, tuple[float | None, str]] = {}

    def asks(self, name: str, *, requested: float | None = None, user: str = "", **job: Any) -> Batch:
        """Add a job that asks for so many seconds; without them, for as long as it runs."""
        self._stated[name] = (job.get("seconds", 1) if requested is None else requested, user)
        self.job(name, **job)
        return self

    def chunks(self) -> Any:
        """The jobs as the engine takes them."""
        for chunk in super().chunks():
            yield [self._with(*arrival) for arrival in chunk]

    def _with(self, job: Job, work: int, *rest: Any) -> Arrival:
        requested, user = self._stated.get(job.id, (None, ""))
        asked = None if requested is None else round(requested * SECOND)
        return (replace(job, requested=asked, user=user, duration=work), work, *rest)


def backfilled(jobs: Script, cluster: Cluster, **options: Any) -> Decisions:
    """A replay with `backfill`, unnamed options at their defaults."""
    return replayed(backfilling, jobs, cluster, options=resolve(OPTIONS, options, owner="backfill"))
