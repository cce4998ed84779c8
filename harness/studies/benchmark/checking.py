"""Judges a run of a task by its decisions, without trusting anything else in the run's folder.

The independent checker in `harness.testing.checks` follows the decisions and compares the resulting state
with the tables. The entries of `run.json` about the trace, the cluster and the settings are derived from the
task again. The metrics are computed again, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from harness.base.errors import HarnessError, InputError, told
from harness.base.tables import schemas
from harness.base.text import agreeing
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.runs.measuring import measure
from harness.runs.plan import Plan
from harness.runs.replaying import jobs_of, told_by
from harness.runs.run import Run
from harness.runs.seal import seal_tables
from harness.runs.store import aside
from harness.testing.checks import check_run

_SHOWN = 3
_TABLES = ("jobs", "decisions", "stints", "timeline")
_OF_RUNS = ("quota_of", "queues", "cohorts")
"""The entries about the cluster that depend on whether the policy applies elastic quotas."""


class Judgement(NamedTuple):
    """The judgement of a run.

    Attributes:
        faults: sentences that explain why the run can't be a result of the task; empty if it can.
        rows: the recomputed measurements; empty if there are faults.
    """

    faults: list[str]
    rows: list[Measurement]


class Expected(NamedTuple):
    """One of the replays that may have produced a run.

    Attributes:
        info: the entries of the replay's `run.json` that do not depend on decisions.
        plan: a function that creates the plan of the replay.
    """

    info: Mapping[str, Any]
    plan: Callable[[], Plan]

    def has_quotas_of(self, info: Mapping[str, Any]) -> bool:
        """Returns True if another run's `run.json` has the same queues and quotas."""
        return all(info["cluster"].get(name) == self.info["cluster"].get(name) for name in _OF_RUNS)


def info_of(plan: Plan) -> dict[str, Any]:
    """Returns the entries of a replay's `run.json` that do not depend on decisions."""
    with aside() as place:
        return told_by(place, plan.with_settings(replace(plan.settings, until=0)))


def judge(folder: Path, expected: Iterable[Expected], plugins: Plugins, *, check: bool = True) -> Judgement:
    """Judges a run.

    The replays in `expected` use different policies, which may apply different quotas. If `check` is true,
    the independent checker also checks the decisions.
    """
    try:
        run = Run.open(folder)
        plan, trusted = _trusted(run, expected)
        faults = [*_settings(run, plan), *_arrivals(trusted, plan), *_end(trusted, plan)]
        if check and not faults:
            rules = ["placement"] if trusted.info["cluster"]["nodes"] else []
            broken = check_run(trusted, plan.cluster, plan.played, rules=rules)
            more = [f"and {len(broken) - _SHOWN:,} more"] if len(broken) > _SHOWN else []
            faults = [*map(str, broken[:_SHOWN]), *more]
        if faults:
            return Judgement(faults, [])
        rows, failed = measure(trusted, plugins.metrics)
    except HarnessError as error:
        return Judgement([error.message], [])
    except Exception as error:  # A forged table may raise any error. The other runs must still be judged.
        return Judgement([f"the checker cannot read its tables: {told(error)}"], [])
    return Judgement(list(failed.values()), rows)


def _trusted(run: Run, expected: Iterable[Expected]) -> tuple[Plan, Run]:
    for each in expected:
        if each.has_quotas_of(run.info):
            plan = each.plan()
            tables = seal_tables(run.path, _TABLES)
            own = {name: run.info[name] for name in ("window", "outcome", "label")}
            whole = {**each.info, **own, "settings": plan.recorded, "tables": tables}
            nobody_measured = pl.DataFrame(schema=schemas.METRICS)
            return plan, Run(run.path, whole, checked=_TABLES, metrics=nobody_measured)
    raise InputError("its queues and quotas are not those of the task")


def _settings(run: Run, plan: Plan) -> Iterator[str]:
    for name, expected in plan.recorded.items():
        found = run.info["settings"].get(name)
        if found != expected:
            yield f"setting {name} is {found!r}, but the task has {expected!r}"
    if run.stopped is not None:
        yield f"its replay made no progress: {run.stopped.told()}"


def _arrivals(run: Run, plan: Plan) -> Iterator[str]:
    """Yields at most one sentence, about jobs that do not arrive when the task says."""
    expected = jobs_of(plan).frame.select(pl.col("job_id").cast(pl.String), "submit")
    if plan.settings.until is not None:
        expected = expected.filter(pl.col("submit") <= plan.settings.until)
    found = run.micros("jobs").select("job_id", "submit_time").collect()
    both = expected.join(found, on="job_id", how="full")
    wrong = both.filter(pl.col("submit").ne_missing(pl.col("submit_time")))
    if not wrong.is_empty():
        row: dict[str, Any] = wrong.row(0, named=True)
        name = row["job_id"] or row["job_id_right"]
        yield f"{agreeing(wrong.height, 'job', 'do')} not arrive at the time in the task, for example {name}"


def _end(run: Run, plan: Plan) -> Iterator[str]:
    """Yields faults of the run's time span, which must last as long as any job makes progress."""
    first = run.micros("jobs").select(pl.col("submit_time").min()).collect().item()
    last = run.micros("decisions").select(pl.col("time").max()).collect().item()
    stuck = [each["job"] for each in run.info["outcome"]["half_bound_gangs"]]
    runs = (pl.col("state") == "running") & pl.col("start_time").is_not_null()
    going_on = run.micros("jobs").filter(runs, ~pl.col("job_id").is_in(stuck))
    running = going_on.select(pl.len()).collect().item()
    if run.window.start != first:
        begins = run.window.start
        yield f"its time span begins at {begins:,} microseconds, but its first job arrives at {first:,}"
    if run.window.end != plan.settings.until and (running or run.window.end != last):
        yield f"its time span ends at {run.window.end:,} microseconds, but its last decision is at {last:,}"
