"""Judges a run of a task by its decisions alone: nothing else that its folder says is believed.

The outside checker of `harness.testing.checks` follows the decisions and finds out whether the tables are
what they lead to. What `run.json` says of the trace, the cluster and the settings is made anew from the task,
and the metrics are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
"""What a run says of its cluster that depends on whether its policy goes by elastic quotas."""


class Judgement(NamedTuple):
    """What comes of a run.

    Attributes:
        faults: why it cannot be a result of the task, in sentences; empty if it can.
        rows: what was measured anew; nothing where there are faults.
    """

    faults: list[str]
    rows: list[Measurement]


class Expected(NamedTuple):
    """A replay that a run may be of.

    Attributes:
        info: what its `run.json` says, whatever happens in it.
        plan: makes its plan.
    """

    info: Mapping[str, Any]
    plan: Callable[[], Plan]

    def has_quotas_of(self, info: Mapping[str, Any]) -> bool:
        """Whether another `run.json` has the same queues and quotas."""
        return all(info["cluster"].get(name) == self.info["cluster"].get(name) for name in _OF_RUNS)


def info_of(plan: Plan) -> dict[str, Any]:
    """What `run.json` says of a replay, whatever happens in it."""
    with aside() as place:
        nothing = plan.with_choices(
            losses=plan.losses,
            grace_period=plan.grace_period,
            startup=plan.startup,
            until=0,
            scale_arrivals=plan.scale_arrivals,
        )
        return told_by(place, nothing)


def judge(folder: Path, expected: Iterable[Expected], plugins: Plugins, *, check: bool = True) -> Judgement:
    """Judge a run.

    Args:
        folder: of the run.
        expected: the replays that it may be of, which differ in the policy, and so in which quotas count.
        plugins: give the metrics.
        check: whether the outside checker follows the decisions.
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
    except Exception as error:  # whatever a forged table leads to is said, and no other run suffers from it
        return Judgement([f"its tables cannot be followed: {told(error)}"], [])
    return Judgement(list(failed.values()), rows)


def _trusted(run: Run, expected: Iterable[Expected]) -> tuple[Plan, Run]:
    """The plan that a run is of, and the run with what that plan says instead of what its folder says.

    Raises:
        InputError: its queues are those of no plan.
    """
    for each in expected:
        if each.has_quotas_of(run.info):
            plan = each.plan()
            tables = seal_tables(run.path, _TABLES)
            own = {name: run.info[name] for name in ("window", "outcome", "label")}
            whole = {**each.info, **own, "settings": plan.settings, "tables": tables}
            nobody_measured = pl.DataFrame(schema=schemas.METRICS)
            return plan, Run(run.path, whole, checked=_TABLES, metrics=nobody_measured)
    raise InputError("its queues and quotas are not those of the task")


def _settings(run: Run, plan: Plan) -> Iterator[str]:
    """What was chosen otherwise than the task says."""
    for name, expected in plan.settings.items():
        found = run.info["settings"].get(name)
        if found != expected:
            yield f"setting {name} is {found!r}, and the task has {expected!r}"
    if run.stopped is not None:
        yield f"its replay went nowhere: {run.stopped.told()}"


def _arrivals(run: Run, plan: Plan) -> Iterator[str]:
    """Jobs that did not arrive as the task says."""
    frame = jobs_of(plan).frame
    expected = frame.select(pl.col("job_id").cast(pl.String), "submit")
    if plan.until is not None:
        expected = expected.filter(pl.col("submit") <= plan.until)
    found = run.micros("jobs").select("job_id", "submit_time").collect()
    both = expected.join(found, on="job_id", how="full")
    wrong = both.filter(pl.col("submit").ne_missing(pl.col("submit_time")))
    if not wrong.is_empty():
        row: dict[str, Any] = wrong.row(0, named=True)
        name = row["job_id"] or row["job_id_right"]
        yield f"{agreeing(wrong.height, 'job', 'do')} not arrive when the task says, first {name}"


def _end(run: Run, plan: Plan) -> Iterator[str]:
    """What is wrong with the time that it covers: it goes on as long as any job makes progress."""
    first = run.micros("jobs").select(pl.col("submit_time").min()).collect().item()
    last = run.micros("decisions").select(pl.col("time").max()).collect().item()
    stuck = [each["job"] for each in run.info["outcome"]["half_bound_gangs"]]
    runs = (pl.col("state") == "running") & pl.col("start_time").is_not_null()
    going_on = run.micros("jobs").filter(runs, ~pl.col("job_id").is_in(stuck))
    running = going_on.select(pl.len()).collect().item()
    if run.window.start != first:
        yield f"its time begins at {run.window.start:,} us, and its first job arrives at {first:,} us"
    if run.window.end != plan.until and (running or run.window.end != last):
        yield f"its time ends at {run.window.end:,} us, and its last decision is at {last:,} us"
