"""Finds jobs in a trace that can never start, and the reasons why the policy would reject them.

This happens before a replay. In a longer trace, only one of several jobs with equal requests in the same
queue is examined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import polars as pl

from harness.base.errors import Fault, InputError, PluginError, TraceError
from harness.base.options import resolve
from harness.base.text import agreeing, counted
from harness.runs.cache import Lasting
from harness.runs.job_columns import job_columns
from harness.runs.questions import foresight
from harness.trace.homes import homed
from harness.trace.job_columns import JobColumns
from harness.trace.job_rows import ROW, count_jobs, has_pod_sets
from harness.trace.jobs import Jobs
from harness.trace.schema import column_of

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.plugins.registries import PolicySpec
    from harness.policy import Never, Possible
    from harness.trace.trace import Trace

_OWN = frozenset(
    (
        *("job_id", "submit_time", "duration", "priority", "priority_class", "preemption_policy", "user"),
        *("grace_period", "checkpoint_interval", "requested_time", "uid", "recorded_start", "recorded_end"),
    )
)
"""Columns of the schema that don't affect whether a job can ever start."""

_known: Lasting[tuple[Impossible, ...] | None] = Lasting()

_SHAPE = "harness.shape"
_FEW = 64  # The jobs of such a short trace are prepared for the replay anyway.
_NAMED = 3
_REASONS = 8


class Impossible(NamedTuple):
    """Jobs that can't start for the same reason.

    Attributes:
        where: the object that prevents them from starting, such as `ClusterQueue a` or `nodes`.
        why: the rule, with the numbers of the first job.
        jobs: the ids of the jobs, in the order of the trace.
    """

    where: str
    why: str
    jobs: tuple[str, ...]


class Verdict(NamedTuple):
    """The jobs of a trace that can never start on a cluster, and the plugins that find exactly these jobs."""

    plugins: tuple[str, ...]
    found: tuple[Impossible, ...]

    @property
    def jobs(self) -> frozenset[str]:
        """The ids of the jobs that can never start."""
        return frozenset(job for each in self.found for job in each.jobs)

    def told(self, total: int) -> Iterator[str]:
        """Yields sentences about the verdict, for a trace with `total` jobs."""
        for sentence in sentences(self.found, total):
            yield f"with {', '.join(self.plugins)}: {sentence}"


def impossible(
    trace: Trace, cluster: Cluster, policy: PolicySpec, options: Mapping[str, Any]
) -> tuple[Impossible, ...] | None:
    """Returns the jobs that can never start with a policy on a cluster, by reason.

    Returns None if this is not known in advance, because the policy registers no `never` function or can't be
    made for the cluster.

    Raises:
        PluginError: `never` failed, or returned an invalid answer.
    """
    if policy.never is None:
        return None
    return _known.answer(
        trace, cluster, lambda: _found(trace, cluster, policy, options), (policy.never, dict(options))
    )


def _found(
    trace: Trace, cluster: Cluster, policy: PolicySpec, options: Mapping[str, Any]
) -> tuple[Impossible, ...] | None:
    try:
        possible = foresight(policy, cluster, options)
    except PluginError:
        raise
    except InputError:
        return None
    if possible is None:
        return None
    found: dict[str, tuple[str, list[str]]] = {}
    for reason, job in _judged(trace, cluster, possible):
        found.setdefault(reason.where, (reason.why, []))[1].append(job)
    return tuple(Impossible(where, why, tuple(jobs)) for where, (why, jobs) in found.items())


def verdicts(trace: Trace, cluster: Cluster, plugins: Plugins) -> list[Verdict]:
    """Returns the jobs that can never start, according to each plugin with its default options.

    Plugins that are not suitable for the cluster are left out. A plugin that fails is left out with a
    warning. A plugin with which no job could ever start is left out, unless this is true for all plugins.
    """
    trace = homed(trace, cluster)
    by: dict[tuple[Impossible, ...], list[str]] = {}
    for policy in plugins.policies:
        options = resolve(policy.options, {}, owner=f"policy {policy.name}")
        try:
            found = impossible(trace, cluster, policy, options)
        except PluginError as error:
            warn(
                f"{error.message}; for this reason, harness does not check which jobs can never start",
                stacklevel=2,
            )
            continue
        if found is not None:
            by.setdefault(found, []).append(policy.name)
    total = count_jobs(trace.frame)
    agreed = [Verdict(tuple(names), found) for found, names in by.items()]
    return [each for each in agreed if len(each.jobs) < total] or agreed


def sentences(found: Sequence[Impossible], total: int) -> Iterator[str]:
    """Yields a sentence for each reason, with the number of jobs and some of their ids."""
    for each in found[:_REASONS]:
        count, named = len(each.jobs), ", ".join(each.jobs[:_NAMED])
        more = f" and {count - _NAMED:,} more" if count > _NAMED else ""
        yield f"{count:,} of {counted(total, 'job')} can never start ({named}{more}): {each.why}"
    if len(found) > _REASONS:
        rest = sum(len(each.jobs) for each in found[_REASONS:])
        reasons = counted(len(found) - _REASONS, "other reason")
        yield f"{rest:,} of {counted(total, 'job')} can never start for {reasons}"


def without(trace: Trace, jobs: Iterable[str]) -> Trace:
    """Returns the trace without those jobs that can never start.

    `left_out`, `notes` and `calibration` record which jobs were removed.

    Raises:
        TraceError: no job is left.
    """
    out = list(dict.fromkeys(jobs))
    if not out:
        return trace
    frame = trace.frame.filter(~pl.col("job_id").is_in(out))
    if not frame.height:
        raise TraceError(str(trace.path), [Fault("", "no job can ever start, so none is left to replay")])
    reason = "can never start, removed by --drop-impossible"
    return replace(
        trace,
        frame=frame,
        left_out={**trace.left_out, reason: len(out)},
        notes=(
            *trace.notes,
            f"--drop-impossible: {agreeing(len(out), 'job', 'are')} left out, because they can never start",
        ),
        calibration={**trace.calibration, "drop_impossible": f"{len(out)} jobs"},
    )


def _judged(trace: Trace, cluster: Cluster, possible: Possible) -> Iterator[tuple[Never, str]]:
    """Yields the reason and the id of each job that can never start, in the order of the trace."""
    frame = trace.frame
    # Whether a job fits onto changing nodes does not depend on its arrival; see `OverTime`.
    others_change = any(edit.kind != "Node" for each in cluster.changes for edit in each.edits)
    own = _OWN - {"submit_time"} if others_change else _OWN
    names = [name for name in frame.columns if name not in own and column_of(name) is not None]
    if frame.height <= _FEW or has_pod_sets(frame) or any(frame.schema[name].is_nested() for name in names):
        known = dict(_never(job_columns(trace, cluster), possible))
        for job in frame["job_id"].unique(maintain_order=True) if known else ():
            if job in known:
                yield known[job], job
        return
    rows = frame.with_row_index(ROW)
    shape = rows.select("job_id", ROW, pl.col(ROW).first().over(names).alias(_SHAPE))
    one_each = replace(trace, frame=frame.filter(shape[ROW] == shape[_SHAPE]))
    most = 2 * one_each.frame.height > frame.height  # then prepare all jobs, as for the replay
    known = dict(_never(job_columns(trace, cluster) if most else JobColumns(one_each, cluster), possible))
    if not known:
        return
    first = pl.col(ROW) == pl.col(_SHAPE)
    numbers = shape.filter(first & pl.col("job_id").is_in(list(known))).select(_SHAPE, "job_id").rows()
    why = {number: known[job] for number, job in numbers}
    for number, job in shape.filter(pl.col(_SHAPE).is_in(list(why))).select(_SHAPE, "job_id").iter_rows():
        yield why[number], job


def _never(columns: JobColumns, possible: Possible) -> Iterator[tuple[str, Never]]:
    for chunk in Jobs(columns).chunks():
        for job, *_ in chunk:
            if (never := possible(job)) is not None:
                yield job.id, never
