"""Recomputes the jobs, stints and timeline of a run from its decisions, and checks the rule *identity*."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from harness.base.units import HOUR, unit_of
from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import History
from harness.testing.checks.life import Life
from harness.trace.schema import REQUEST

_SLICE = re.compile(r"nvidia\.com/mig-([1-9])g\.[1-9][0-9]{0,2}gb([.+]me)?$")
"""The name of a GPU slice, which contains its number of compute slices."""


def check_tables(history: History) -> Iterator[Broken]:
    """Yields differences between tables and decisions. The history must have processed all decisions."""
    facts = history.facts
    for name in facts.missing:
        yield Broken("invented.job", f"jobs.parquet, {name}", "is not in the trace")
    states = {name: life.close(facts.end) for name, life in history.lives.items()}
    for name, life in history.lives.items():
        yield from _job(facts, life, states[name])
    yield from _stints(facts, list(history.lives.values()))
    yield from _timeline(history)
    yield from _identity(facts)
    yield from _outcome(facts, history)


def _differs(rule: str, where: str, said: object, own: object) -> Iterator[Broken]:
    if said != own:
        yield Broken(rule, where, f"is {said}, but {own} according to the decisions")


def _job(facts: Facts, life: Life, state: str) -> Iterator[Broken]:
    asked, row = life.asked, facts.table[life.asked.number]
    rows = len(life.evictions)
    spans = [(span, len(pods)) for span, pods in life.spans.items()]
    idle = sum((end - start) * count for (start, end, kind, _), count in spans if kind != "progress")
    own: dict[str, Any] = {
        "submit_time": asked.submit,
        "pods": asked.pods,
        "duration": asked.duration,
        "state": state,
        "admitted_time": life.first_admitted,
        "start_time": life.started,
        "finish_time": life.finished,
        "progress_lost": sum(lost * count for (*_, lost), count in spans),
        "held_idle": idle,
        **{f"{REQUEST}{each}": amount for each, amount in asked.amounts(range(asked.pods)).items()},
    }
    where = f"jobs.parquet, {asked.name}"
    for column, value in own.items():
        yield from _differs(f"jobs.{column}", where, row[column], value)
    # One preemption of several pods has a row per pod.
    least = rows if life.admitted or life.first_admitted is not None else len(set(life.evictions))
    if not least <= row["preemptions"] <= rows:
        yield from _differs("jobs.preemptions", where, row["preemptions"], rows)


def _stints(facts: Facts, lives: list[Life]) -> Iterator[Broken]:
    """Check the pod-time in each state, so that a stint of three pods equals three stints of one pod."""
    resources = [f"{REQUEST}{each}" for each in facts.run.resources]
    told: dict[tuple[Any, ...], list[int]] = {}
    for row in facts.run.micros("stints").collect().iter_rows(named=True):
        key = row["job_id"], row["start"], row["end"], row["state"], row["lost"]
        amounts = told.setdefault(key, [0] * (1 + len(resources)))
        for place, column in enumerate(("pods", *resources)):
            amounts[place] += row[column]
    for life in lives:
        for span, pods in life.spans.items():
            asked = life.asked.amounts(pods)
            own = [len(pods), *(asked.get(each, 0) for each in facts.run.resources)]
            said = told.pop((life.asked.name, *span), None)
            if said != own:
                start, end, state, _lost = span
                where = f"stints.parquet, {life.asked.name} from {start} to {end} microseconds, {state}"
                what = f"pods and amounts are {said}, but the decisions give {own}"
                yield Broken("stints.amounts", where, what)
    for name, start, end, state, lost in told:
        where = f"stints.parquet, {name} from {start} to {end} microseconds, {state}"
        yield Broken("stints.invented", where, f"no decision explains this stint (lost {lost} microseconds)")


def _timeline(history: History) -> Iterator[Broken]:
    facts, levels = history.facts, dict(history.levels)
    resources = facts.run.resources
    columns = ("allocated", "pending", "held", "running_jobs", "pending_jobs")
    now: dict[str, tuple[tuple[int, ...], ...]] = {}
    for row in facts.run.micros("timeline").collect().iter_rows(named=True):
        key = row["time"], row["queue"]
        if key in levels:
            now[row["queue"]] = levels[key]
        of_queue = now.get(row["queue"])
        own = (0,) * len(columns) if of_queue is None else of_queue[resources.index(row["resource"])]
        said = tuple(row[column] for column in columns)
        if said != own:
            where = f"timeline.parquet, {row['resource']} of {row['queue']} at {row['time']} microseconds"
            what = f"{columns} are {said}, but {own} according to the decisions"
            yield Broken("timeline.levels", where, what)
            return
        if row["resource"] == resources[-1]:
            levels.pop(key, None)
    for time, queue in levels:
        where = f"timeline.parquet, {queue} at {time} microseconds"
        yield Broken("timeline.levels", where, "the table lacks this change")


def _identity(facts: Facts) -> Iterator[Broken]:
    """Check that allocated = useful + lost + idle + unfinished to the microsecond, also in the metrics."""
    run = facts.run
    state_of = [row["state"] for row in facts.table]
    timeline = run.micros("timeline").collect().to_dicts()
    metrics = {
        (row["metric"], row["resource"]): row["value"]
        for row in run.metrics.iter_rows(named=True)
        if row["scope"] == "all"
    }
    stints = run.micros("stints").collect().to_dicts()
    slices: dict[str, int] = {}
    for resource in run.resources:
        allocated, level, since = 0, dict[str, int](), facts.start
        for row in timeline:
            if row["resource"] == resource:
                allocated += sum(level.values()) * (row["time"] - since)
                level[row["queue"]], since = row["allocated"], row["time"]
        allocated += sum(level.values()) * (facts.end - since)
        parts = dict.fromkeys(("useful", "lost", "idle_held", "unfinished"), 0)
        for row in stints:
            amount = row[f"{REQUEST}{resource}"]
            span, lost = row["end"] - row["start"], row["lost"]
            # Progress kept from before can be lost too, so that more may be lost than this span's time.
            kind = "useful" if state_of[row["job"]] == "finished" else "unfinished"
            parts[kind if row["state"] == "progress" else "idle_held"] += amount * (span - lost)
            parts["lost"] += amount * lost
        if sum(parts.values()) != allocated:
            what = f"'allocated' is {allocated}, but the sum of {parts} is {sum(parts.values())}"
            yield Broken("identity.allocated", f"{resource} over the run", what)
        compute = int(found[1]) if (found := _SLICE.match(resource)) else 0
        for name, part in {"allocated": allocated, **parts}.items():
            yield from _hours(metrics, name, resource, part)
            if compute:
                slices[name] = slices.get(name, 0) + compute * part
    for name, part in slices.items():
        yield from _hours(metrics, name, "nvidia.com/mig", part)


def _hours(
    metrics: Mapping[tuple[str, str | None], float | None], name: str, resource: str, part: int
) -> Iterator[Broken]:
    said = metrics.get((f"utilization.{name}.hours", resource))
    hours = part / (HOUR * unit_of(resource).size)
    if said is not None and not isclose(said, hours, rel_tol=1e-9):
        what = f"is {said}, but {hours} according to stints and timeline"
        yield Broken("identity.metrics", f"utilization.{name}.hours of {resource}", what)


def _outcome(facts: Facts, history: History) -> Iterator[Broken]:
    info, lives = facts.run.info, history.lives.values()
    own = {
        "jobs": len(facts.table),
        "half_bound_gangs": sorted(
            (life.asked.name, bound, len(life.wanted))
            for life in lives
            if life.state == "alive" and life.asked.gang and facts.on_nodes
            for bound in (sum(hold.due is None for hold in life.holds.values()),)
            if 0 < bound < len(life.wanted)
        ),
    }
    said = dict(info["outcome"])
    said["half_bound_gangs"] = sorted(
        (each["job"], each["bound"], each["pods"]) for each in said["half_bound_gangs"]
    )
    for key, value in own.items():
        yield from _differs(f"outcome.{key}", "run.json", said[key], value)
    for life in lives:
        if life.state == "absent":
            yield Broken("invented.job", f"jobs.parquet, {life.asked.name}", "never arrived")
