"""A twin of a run together with each quota of it alone: one piece of work that leaves metrics.

The twins of a run are many, so those with one quota alone are not kept: they are made in a folder that goes
when the twin has been measured. What is interrupted begins with the twin again.
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
        """Replay it with each quota alone, and add what that says."""
        if ISOLATED in run.info:
            return run
        told = None if watch is None else _after(run.info["outcome"]["jobs"], watch)
        with aside() as folder:
            (found,) = Isolated([run], plugins, aside=folder).measured(workers=1, watch=told, command=command)
        return found


class JudgedTwin(IsolatedTwin):
    """The same for a run with a judgement of why jobs wait."""

    whole = Judging


def is_measured(run: Run) -> bool:
    """Whether a run has been measured against its quotas alone, and that could be done."""
    found = run.metrics.filter(metric=VIOLATIONS)["value"]
    return bool(found.is_not_null().any())


def measured_as(run: Run, before: Run) -> Run:
    """A twin that was replayed again, with what was measured of it before against its quotas alone."""
    if ISOLATED in run.info or ISOLATED not in before.info:
        return run
    rows = before.metrics.filter(pl.col("metric").is_in(FINISH_TIMES)).iter_rows(named=True)
    return added(run, [Measurement(**row) for row in rows], {ISOLATED: before.info[ISOLATED]})


def _after(jobs: int, watch: Callable[[int, int], None]) -> Watch:
    """Tells of replays one after the other as of a single one, which so many jobs have arrived in before."""
    arrived: dict[int, int] = {}

    def told(number: int, now: int, count: int) -> None:
        arrived[number] = count
        watch(now, jobs + sum(arrived.values()))

    return told
