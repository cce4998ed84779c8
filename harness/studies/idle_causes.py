"""Replays runs again to find out why their jobs waited, so that `idle.*` can be measured.

The causes are stored with the run as `causes.parquet`. If the causes can't be determined, a sentence in
`run.json` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Unpack

import polars as pl

from harness.analysis.metrics.idle import Judged, measure
from harness.base.errors import PolicyError, blamed_on
from harness.plugins import Plugins
from harness.policy import Policy
from harness.runs.further import FurtherRequest, How, settings_of
from harness.runs.plan import Plan
from harness.runs.replaying import play_again
from harness.runs.request import Request
from harness.runs.request_of_run import request_of
from harness.runs.run import IDLE, Run
from harness.runs.side_by_side import SideBySide, carry_out, runs_of
from harness.runs.store import added
from harness.studies.waiting_causes import Causes

OPTION = "--idle-causes"


class Judging(FurtherRequest):
    """A request that also records why the jobs of its run waited."""

    def measured(self, run: Run, how: How) -> Run:
        """Replays the run again to determine why its jobs waited."""
        return run if IDLE in run.info else _judged(run, how.plan or self.plan(how.plugins), how.watch)


def judging(runs: Sequence[Run], plugins: Plugins) -> list[Judging]:
    """Returns, for each run, a request that finds out why the run's jobs waited.

    Raises:
        RunError: a run cannot be replayed from its own record. The message says why.
    """
    found = []
    for run in runs:
        request = request_of(run, plugins, option=OPTION)
        found.append(Judging.of(replace(request, output=run.path.parent.parent, force=False, keep="all")))
    return found


def judged_runs(requests: Sequence[Judging], plugins: Plugins, **how: Unpack[SideBySide]) -> list[Run]:
    """Carries out requests from `judging`, and returns their runs.

    Raises:
        ReplayError: some requests failed. The error names these requests, and contains the runs of the other
            requests.
    """
    runs = runs_of(requests, carry_out(requests, plugins, **how))
    for run, request in zip(runs, requests, strict=True):
        run.request = Request(**settings_of(request))
    return runs


def _judged(run: Run, plan: Plan, watch: Callable[[int, int], None] | None) -> Run:
    if plan.policy.record:
        return _refused(run, "recorded times do not say why jobs waited")
    seen: list[Causes] = []

    def observe(policy: Policy) -> Policy:
        seen.append(Causes(policy, plan.cluster))
        return seen[0]

    jobs = run.info["outcome"]["jobs"]
    told = None if watch is None else lambda now, count: watch(now, jobs + count)
    again = play_again(replace(plan, observe=observe), told)
    if any(again[name] != run.info[name] for name in ("window", "outcome")):
        return _refused(run, f"a second replay of {run.label} made other decisions")
    with blamed_on(f"policy {plan.label} failed when harness asked why jobs wait", kind=PolicyError):
        judged = seen[0].judged(run.window.end)
    columns = {name: pl.Series(name, column) for name, column in zip(Judged._fields, judged, strict=True)}
    with_causes = added(run, [], {IDLE: []}, {"causes": columns})
    return added(with_causes, list(measure(with_causes, with_causes.window)), {IDLE: []})


def _refused(run: Run, why: str) -> Run:
    return added(run, list(measure(run, run.window)), {IDLE: [f"idle.*: not measured: {why}"]})
