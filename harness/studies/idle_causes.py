"""Runs of which it is judged why jobs wait, so that `idle.*` can be measured: they are replayed once more.

The judgements are kept with the run, as `causes.parquet`. What cannot be judged is said in a sentence, which
the run keeps with its metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace

import polars as pl

from harness.analysis.metrics.idle import Judged, measure
from harness.base.errors import PolicyError, RunError, blamed_on
from harness.plugins import Plugins, load
from harness.policy import Policy
from harness.runs.plan import Plan
from harness.runs.replaying import play_again
from harness.runs.request import Request
from harness.runs.request_of_run import request_of
from harness.runs.run import IDLE, Run
from harness.runs.side_by_side import Outcome, runs_of
from harness.runs.store import added, aside, with_windows
from harness.studies.waiting_causes import Causes

OPTION = "--idle-causes"


class Judging(Request):
    """A request of whose run it is judged why jobs wait, all in the same process."""

    @classmethod
    def of(cls, request: Request) -> Judging:
        """The same request, judged so."""
        return cls(**{item.name: getattr(request, item.name) for item in fields(request)})

    def run(
        self,
        *,
        plugins: Plugins | None = None,
        plan: Plan | None = None,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Carry it out, as `Request.run` does; then once more to judge, unless that has been done.

        Raises:
            HarnessError: whatever stopped one of the replays.
        """
        plugins = plugins or load()
        whole = {item.name: getattr(self, item.name) for item in fields(self)} | {"keep": "all"}
        run = Request(**whole).run(plugins=plugins, plan=plan, watch=watch, command=command)
        if IDLE not in run.info:
            run = _judged(run, plan or self.plan(plugins), watch)
        if self.keep != "all":
            run = with_windows(run, run.windows, self.keep)
        run.request = self
        return run


def judging(runs: Sequence[Run], plugins: Plugins) -> list[Judging]:
    """The requests that judge runs; a run that has been judged is only found again.

    Raises:
        RunError: a run cannot be replayed from what it says of itself; says why.
    """
    found = []
    for run in runs:
        request = request_of(run, plugins, option=OPTION)
        if request.plan(plugins).run_name != run.info["run"]:
            why = "what it was made of is not the same now"
            raise RunError(f"{run.path} cannot be replayed once more: {why}", hint="replay it anew")
        found.append(Judging.of(replace(request, output=run.path.parent.parent, force=False, keep="all")))
    return found


def judged_runs(requests: Sequence[Judging], outcomes: Mapping[int, Outcome]) -> list[Run]:
    """The runs of such requests, each as the answer to what had been asked for.

    Raises:
        ReplayError: some of several failed; names them, and has the runs of the others.
    """
    runs = runs_of(requests, outcomes)
    for run, request in zip(runs, requests, strict=True):
        run.request = Request(**{item.name: getattr(request, item.name) for item in fields(request)})
    return runs


def _judged(run: Run, plan: Plan, watch: Callable[[int, int], None] | None) -> Run:
    """A run with what is judged of it, which is kept."""
    if plan.policy.record:
        return _refused(run, "a record does not say why jobs waited")
    seen: list[Causes] = []

    def observe(policy: Policy) -> Policy:
        seen.append(Causes(policy, plan.cluster))
        return seen[0]

    jobs = run.info["outcome"]["jobs"]
    told = None if watch is None else lambda now, count: watch(now, jobs + count)
    with aside() as folder:
        again = play_again(folder, replace(plan, observe=observe), told)
    if any(again[name] != run.info[name] for name in ("window", "outcome")):
        return _refused(run, f"{run.label}, replayed once more, decides otherwise")
    with blamed_on(f"policy {plan.label} failed when it was asked why jobs wait", kind=PolicyError):
        judged = seen[0].judged(run.window.end)
    columns = {name: pl.Series(name, column) for name, column in zip(Judged._fields, judged, strict=True)}
    with_causes = added(run, [], {IDLE: []}, {"causes": columns})
    return added(with_causes, list(measure(with_causes, with_causes.window)), {IDLE: []})


def _refused(run: Run, why: str) -> Run:
    """A run of which nothing can be judged."""
    return added(run, list(measure(run, run.window)), {IDLE: [f"idle.*: not measured: {why}"]})
