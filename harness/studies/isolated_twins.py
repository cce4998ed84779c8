"""A twin of a run with each of its quotas alone, as one piece of work that keeps only metrics.

A run may have many twins, so runs with one quota alone are not kept. They are made in a folder that is
deleted when the twin has been measured. After an interruption the work begins again with the twin.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from harness.analysis.metrics.finish_time import FINISH_TIMES, VIOLATIONS
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.runs.further import FurtherRequest
from harness.runs.plan import Plan
from harness.runs.run import ISOLATED, Run
from harness.runs.side_by_side import Watch
from harness.runs.store import added, aside
from harness.studies.idle_causes import Judging
from harness.studies.isolated import Isolated


class IsolatedTwin(FurtherRequest):
    """A request whose run is measured against each of its quotas alone."""

    def measured(
        self,
        run: Run,
        plugins: Plugins,
        plan: Plan | None,
        watch: Callable[[int, int], None] | None,
        command: str | None,
    ) -> Run:
        """Replays each quota alone, and adds the results to the run."""
        if ISOLATED in run.info:
            return run
        told = None if watch is None else _after(run.info["outcome"]["jobs"], watch)
        with aside() as folder:
            (found,) = Isolated([run], plugins, aside=folder).measured(workers=1, watch=told, command=command)
        return found


class JudgedTwin(IsolatedTwin):
    """A request whose run is measured against its quotas alone, and gets the causes of its jobs' waits."""

    whole = Judging


def is_measured(run: Run) -> bool:
    """Returns True if a run has been measured against its quotas alone, with results."""
    found = run.metrics.filter(metric=VIOLATIONS)["value"]
    return bool(found.is_not_null().any())


def measured_as(run: Run, before: Run) -> Run:
    """A twin that was replayed again, with its earlier measurements against its quotas alone."""
    if ISOLATED in run.info or ISOLATED not in before.info:
        return run
    rows = before.metrics.filter(pl.col("metric").is_in(FINISH_TIMES)).iter_rows(named=True)
    return added(run, [Measurement(**row) for row in rows], {ISOLATED: before.info[ISOLATED]})


def _after(jobs: int, watch: Callable[[int, int], None]) -> Watch:
    """A watch that reports consecutive replays as one; `jobs` have arrived in earlier replays."""
    arrived: dict[int, int] = {}

    def told(number: int, now: int, count: int) -> None:
        arrived[number] = count
        watch(now, jobs + sum(arrived.values()))

    return told
