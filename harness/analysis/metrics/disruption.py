"""Disruption: how many preemptions happened, which jobs were hit, and how much work was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from operator import add

import numpy as np
import polars as pl

from harness.analysis.metrics.accrued import statistics
from harness.analysis.metrics.arrivals import rejected
from harness.analysis.metrics.causes import PREEMPTION, evictions, measure_causes, with_causes
from harness.analysis.metrics.chains import cascades, held_in_loops, hits_back, loops
from harness.analysis.metrics.levels import names_of_jobs
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.analysis.metrics.preemptions import preempted_pods, preemptions, restarts, with_held
from harness.analysis.metrics.resource_time import resource_time
from harness.analysis.metrics.shown import DISRUPTED, Shown
from harness.analysis.metrics.waiting import job_times
from harness.base.arrays import NEVER, numbers, quantile
from harness.base.tables.schemas import LOST_BEFORE
from harness.base.units import SECOND
from harness.plugins.measurement import MEAN, SHARE, Measurement, Window, resource_hours
from harness.plugins.scopes import BENEFICIARY, QUEUE, QUOTA, REASON, Scope
from harness.runs.run import Run

_POD, _LOST = "pod_number", "disruption.lost"
_SIDES = {QUEUE: "queue", QUOTA: "quota", BENEFICIARY: "by_queue"}
"""Maps each kind of scope to the column of `preempted_pods` by which preemptions are counted."""

SHOWN = (
    Shown("disruption.preemptions", "what each preemption cost", brief=True),
    Shown(
        "disruption.preemptions_per_1000_jobs",
        "what each preemption cost, and how long jobs run",
        DISRUPTED,
        last=True,
    ),
    Shown("disruption.failures_per_1000_jobs", "what each failure cost, and how long jobs run", alarm=True),
    Shown("disruption.lost", "how many jobs lost work", DISRUPTED, brief=True),
    Shown("disruption.lost_before", "how many jobs lost work"),
)


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the disruption metrics.

    Preemptions, evictions that repeat without progress, and losses also have values by queue and quota.
    """
    pods = with_held(run, preempted_pods(run, window))
    each = preemptions(pods)
    yield from _counts(run, window, pods, each)
    yield from _lost(run, window, pods)
    yield from _consequences(run, each)
    yield from measure_restarts(run, window, pods)
    yield _count("pdb_violations", _violations(pods))


def _counts(run: Run, window: Window, pods: pl.DataFrame, each: pl.DataFrame) -> Iterator[Measurement]:
    yield from _by_scope("preemptions", each, {REASON: "reason", **_SIDES})
    times = Counter(each["job"].to_list()).values()
    yield _count("preempted_jobs", len(times))
    yield _count("preempted_pods", int(pods["held"].sum()))
    yield _count("repeat_victims", sum(time >= 2 for time in times))
    yield _count("max_preemptions_of_a_job", max(times, default=0))
    arrived = job_times(run, window, "job").height
    per_jobs = 1000 * each.height / arrived if arrived else None
    yield _count("preemptions_per_1000_jobs", per_jobs, unit="per 1000 jobs")
    hours = _dominant_hours(run, window)
    per_hours = 1000 * each.height / hours if hours else None
    yield _count("preemptions_per_1000_hours", per_hours, unit="per 1000 h")
    victims = Counter(by for by in each["by"].to_list() if by is not None).values()
    yield from _spread("victims_per_preemptor", list(victims), "mean", "p95", "max")


def _dominant_hours(run: Run, window: Window) -> float | None:
    """Returns the allocated hours of the most allocated resource; None if the run records no capacity."""
    whole = {resource: run.capacity_time(resource, window) for resource in run.resources}
    parts = {
        resource: Fraction(resource_time(run, window, resource).allocated, there)
        for resource, there in whole.items()
        if there
    }
    if not parts:
        return None
    dominant = max(parts, key=parts.__getitem__)
    return resource_hours("", resource_time(run, window, dominant).allocated, dominant).value


def _lost(run: Run, window: Window, pods: pl.DataFrame) -> Iterator[Measurement]:
    parts = {resource: resource_time(run, window, resource) for resource in run.resources}
    for resource, became in parts.items():
        yield resource_hours(_LOST, became.lost, resource)
        share = became.lost / became.allocated if became.allocated else None
        yield Measurement("disruption.lost_of_allocated", share, SHARE, "lower", resource=resource)
    evicted = evictions(run, window)
    stints = with_causes(_thrown_away(run, window), evicted)
    for kind in (QUEUE, QUOTA):
        yield from _lost_by(kind, run, stints, _LOST)
    yield from _lost_for(run, stints.filter(pl.col("cause") == PREEMPTION), pods)
    yield from measure_causes(run, window, evicted, stints, job_times(run, window, "job").height)
    if LOST_BEFORE in run.micros("stints").collect_schema():
        # Work from before the replay is not part of integrals over the replay.
        yield from _lost_in(run, _thrown_away(run, window, LOST_BEFORE), "disruption.lost_before")


def _lost_in(run: Run, stints: pl.DataFrame, metric: str) -> Iterator[Measurement]:
    for resource in run.resources:
        yield resource_hours(metric, int(stints[f"request.{resource}"].sum()), resource)
    for kind in (QUEUE, QUOTA):
        yield from _lost_by(kind, run, stints, metric)


def _thrown_away(run: Run, window: Window, which: str = "lost") -> pl.DataFrame:
    """Returns the stints that lost work.

    The columns are `job`, `queue`, `quota`, `start`, `end`, and one column of losses for each resource. A
    stint of a pod that runs independently of the job's other pods also has a `pod_number`. Runs older than
    schema 4 don't distinguish such pods.
    """
    amounts = [f"request.{each}" for each in run.resources]
    told = [_POD] if _POD in run.micros("stints").collect_schema() else []
    stints = (
        run.micros("stints")
        .filter((pl.col(which) > 0) & (pl.col("end") <= window.end))
        .select("job", "start", "end", *told, pl.col(amounts).cast(pl.Int128) * pl.col(which))
        .collect()
    )
    if not told:
        stints = stints.with_columns(pl.lit(None, pl.Int32).alias(_POD))
    return stints.hstack(names_of_jobs(run)[stints["job"], [QUEUE, QUOTA]])


def _lost_by(kind: str, run: Run, lost: pl.DataFrame, metric: str) -> Iterator[Measurement]:
    if lost.is_empty():
        return
    amounts = [f"request.{resource}" for resource in run.resources]
    sums = lost.drop_nulls(kind).group_by(kind).agg(pl.col(amounts).sum()).sort(kind)
    for name, *each in sums.iter_rows():
        for resource, amount in zip(run.resources, each, strict=True):
            yield resource_hours(metric, int(amount), resource, Scope(kind, name).text)


def _lost_for(run: Run, lost: pl.DataFrame, pods: pl.DataFrame) -> Iterator[Measurement]:
    """Yields the lost work for each queue that benefited from preemptions.

    If several preemptors took pods of a job at the same time, each preemptor is charged with a part of the
    job's loss. The part is proportional to the resource-time of the pods that the preemptor took. That
    resource-time begins when the pods were bound, or when the lost progress began if that was later. If none
    of the pods requests a resource, the loss of that resource is divided in proportion to time alone.
    """
    if lost.is_empty() or pods.is_empty():
        return
    amounts = [f"request.{resource}" for resource in run.resources]
    losses = lost.group_by("job", time="end").agg(pl.col("start").min(), pl.col(amounts).sum())
    taken = pods.join(losses, on=["job", "time"])
    several = pl.col("by_queue").n_unique().over("job", "time") > 1
    alone = taken.filter(~several).unique(["job", "time"]).group_by("by_queue").agg(pl.col(amounts).sum())
    sums: dict[str, list[Fraction]] = {name: [Fraction(each) for each in of] for name, *of in alone.rows()}
    for _, rows in taken.filter(several).group_by("job", "time", maintain_order=True):
        for name, parts in _divided(run, rows).items():
            before = sums.get(name, [Fraction(0)] * len(parts))
            sums[name] = list(map(add, before, parts))
    for name in sorted(sums):
        for resource, amount in zip(run.resources, sums[name], strict=True):
            yield resource_hours(_LOST, amount, resource, Scope(BENEFICIARY, name).text)


def _divided(run: Run, rows: pl.DataFrame) -> Mapping[str, Sequence[Fraction]]:
    job, pod, since, start, time, held = numbers(rows, "job", "pod", "since", "start", "time", "held")
    times = [a * b for a, b in zip(held.tolist(), (time - np.maximum(since, start)).tolist(), strict=True)]
    sizes = pod_sizes(run)
    found: dict[str, list[Fraction]] = {}
    for place, resource in enumerate(run.resources):
        weights = times
        if job[0] in sizes.unequal:
            each = sizes.each[place][sizes.of(job, pod)].tolist()
            weights = [a * b for a, b in zip(times, each, strict=True)]
            weights = weights if any(weights) else times
        lost, whole = int(rows[f"request.{resource}"][0]), sum(weights)
        for name, weight in zip(rows["by_queue"], weights, strict=True):
            if weight:
                parts = found.setdefault(name, [Fraction(0)] * len(run.resources))
                parts[place] += Fraction(lost * weight, whole)
    return found


def lost_by_jobs(run: Run, window: Window, only: pl.Series) -> Iterator[Measurement]:
    """Yields the work that the selected jobs lost: in total, by queue and by quota.

    `only` says for each job of the run whether it is selected.
    """
    lost = _thrown_away(run, window)
    yield from _lost_in(run, lost.filter(only.gather(lost["job"])), _LOST)


def _consequences(run: Run, each: pl.DataFrame) -> Iterator[Measurement]:
    within = mean_duration(run)
    yield from _spread("cascade_depth", cascades(each, within).depth, "mean", "max")
    hits = hits_back(each, within)
    yield _count("thrash", hits.thrash)
    yield _count("rework", hits.rework)
    pairs = loops(run, each)
    yield from _by_scope("ping_pong", pairs, _SIDES)
    for resource, held in zip(run.resources, held_in_loops(run, pairs), strict=True):
        yield resource_hours("disruption.ping_pong_held", held, resource)


def mean_duration(run: Run) -> int:
    """Returns the mean duration of all jobs in the trace, whether or not they arrived.

    Older runs record the durations of only those jobs that arrived.
    """
    known: int | None = run.info["trace"].get("mean_duration_us")
    if known is not None:
        return known
    durations = run.micros("jobs").select(pl.col("duration").drop_nulls()).collect()["duration"]
    return int(durations.cast(pl.Int128).sum()) // max(1, len(durations))


def measure_restarts(run: Run, window: Window, pods: pl.DataFrame | None = None) -> Iterator[Measurement]:
    """Yields how long preempted jobs took to restart, and how many preemptions had no restart.

    If a job hasn't restarted by the end of the window, the time until then counts. If a victim was later
    rejected, it no longer waits and has no restart time. Callers that have the rows of `preempted_pods` can
    pass them as `pods`.
    """
    pods = preempted_pods(run, window) if pods is None else pods
    each = preemptions(pods)
    again = restarts(run, window, pods)
    job, time = numbers(each, "job", "time")
    (again_at,) = numbers(again.to_frame("again"), "again")
    refused = np.zeros(run.columns("jobs", "submit_time").height, np.bool_)
    refused[rejected(run, window).to_numpy()] = True
    going = again_at == NEVER
    counts = ~(going & refused[job])
    waits = np.where(going, window.end, again_at) - time
    names = ("p50", "p95")
    figures = statistics(waits[counts], going[counts], names)
    for name, (value, at_least) in zip(names, figures, strict=True):
        seconds = None if value is None else value / SECOND
        metric = f"disruption.time_to_restart.{name}"
        yield Measurement(metric, seconds, "s", "lower", at_least=at_least)
    yield _count("not_restarted", again.null_count())


def _violations(pods: pl.DataFrame) -> int | None:
    """Counts the victims whose preemption violated a disruption budget, from the details of decisions.

    A decision is recorded once for each of its victims, so equal details with the same preemptor and time
    count only once. The details may include victims that were already terminating. Such victims belong to the
    decision that evicted them, so a decision never counts for more victims than it evicts. The result is None
    if preemptions record no budgets.
    """
    if pods.is_empty():
        return 0
    number = pl.col("detail").str.json_path_match("$.pdb_violations").cast(pl.Int64, strict=False)
    decisions = (
        pods.filter(pl.col("detail").str.contains("pdb_violations", literal=True))
        .group_by("time", "by", "detail")
        .agg(evicted=pl.col("pods").sum())
        .select(violations=number, evicted="evicted")
        .drop_nulls("violations")
    )
    if decisions.is_empty():
        return None
    return int(decisions.select(pl.min_horizontal("violations", "evicted").sum()).item())


def _by_scope(name: str, rows: pl.DataFrame, scopes: Mapping[str, str]) -> Iterator[Measurement]:
    yield _count(name, rows.height)
    for kind, column in scopes.items():
        counts = Counter(rows[column].to_list())
        unknown = counts.pop(None, 0)
        if unknown and kind == REASON:
            yield _count(name, unknown, Scope(kind, str(None)).text)
        for value in sorted(counts):
            yield _count(name, counts[value], Scope(kind, value).text)


def _spread(name: str, values: Sequence[int], *statistics: str) -> Iterator[Measurement]:
    for each in statistics:
        yield _count(f"{name}.{each}", _statistic(values, each), unit=MEAN if each == "mean" else "count")


def _statistic(values: Sequence[int], name: str) -> float | None:
    if not values:
        return None
    if name == "mean":
        return sum(values) / len(values)
    if name == "max":
        return max(values)
    return quantile(np.sort(values), int(name[1:]) / 100)


def _count(name: str, value: float | None, scope: str = "all", *, unit: str = "count") -> Measurement:
    return Measurement(f"disruption.{name}", value, unit, "lower", scope)
