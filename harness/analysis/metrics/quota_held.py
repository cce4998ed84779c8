"""Determines how much quota the jobs of each ClusterQueue or ElasticQuota hold over time.

This includes the quota of evicted jobs until it is released. An evicted job with a bound pod holds its quota
until its last pod is gone, and timelines record that time. An evicted job without a bound pod is gone
immediately, but its quota is released only after the policy's `evictionLatency`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from harness.analysis.metrics.arrivals import request_columns
from harness.analysis.metrics.levels import holder_of_jobs, level_names, moves
from harness.analysis.metrics.pieces import Moves
from harness.analysis.metrics.pod_moves import waiting_after
from harness.base.arrays import codes, numbers
from harness.plugins.measurement import Window
from harness.runs.known import once
from harness.runs.run import Run

_LATENCY = "evictionLatency"
_ENDS = ("preempt", "evict", "gone", "requeue")


def held_moves(run: Run, window: Window, kinds: Sequence[str]) -> Iterator[Moves]:
    """Yields the same changes as `levels.moves`, but `held` includes quota that evicted jobs still hold."""
    yield from _merged(moves(run, window, kinds), _late(run, window, kinds))


def latency_of(run: Run) -> int:
    """Returns how long an evicted job without a bound pod keeps its quota, in microseconds."""
    return int(run.info["policy"]["options"].get(_LATENCY) or 0)


@once
def unbound_evictions(run: Run) -> pl.DataFrame:
    """Returns `seq`, `time`, `job` and `pods` of the evictions of jobs without a bound pod."""
    steps = run.micros("decisions").filter(pl.col("action").is_in(_ENDS))
    return (
        steps.with_columns(then=pl.col("action").shift(-1).over("job"))
        .filter(pl.col("action").is_in(_ENDS[:2]) & pl.col("pod_number").is_null())
        .filter(pl.col("then") == "requeue")
        .select("seq", "time", "job", "pods")
        .collect()
    )


def _late(run: Run, window: Window, kinds: Sequence[str]) -> Moves:
    """Returns the quota that jobs without bound pods hold after their eviction, and its later release."""
    latency, columns = latency_of(run), request_columns(run)
    names = level_names(run, kinds)
    nothing = np.zeros(0, np.int64)
    if not latency or not columns:
        return Moves(nothing, nothing, dict.fromkeys(names, nothing))
    steps = unbound_evictions(run)
    (time,) = numbers(steps, "time")
    holder = codes(holder_of_jobs(run).gather(steps["job"]))
    of_jobs = run.columns("jobs", "pods", *columns)
    every, *totals = (of_jobs[name].gather(steps["job"]) for name in ("pods", *columns))
    levels = dict.fromkeys(names, np.zeros(2 * len(time), np.int64))
    unequal = waiting_after(run, steps)
    for number, total in enumerate(totals):
        asked = (total.cast(pl.Int128) * steps["pods"] // every).cast(pl.Int64).to_numpy(writable=True)
        for row, amounts in unequal.items():
            asked[row] = amounts[number]
        levels[f"held{number}"] = np.concatenate((asked, -asked))
    both = Moves(np.concatenate((time, time + latency)), np.tile(holder, 2), levels)
    both = _in_order(both)
    return both.part(slice(int(both.time.searchsorted(window.end))))


def _merged(found: Iterable[Moves], others: Moves) -> Iterator[Moves]:
    done = 0
    for batch in found:
        until = int(others.time.searchsorted(batch.time[-1], side="right")) if len(batch.time) else done
        if until > done:
            yield _in_order(batch.then(others.part(slice(done, until))))
            done = until
        else:
            yield batch
    yield others.part(slice(done, None))


def _in_order(some: Moves) -> Moves:
    order = np.argsort(some.time, kind="stable")
    return Moves(
        some.time[order], some.holder[order], {name: level[order] for name, level in some.levels.items()}
    )
