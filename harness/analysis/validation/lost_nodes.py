"""Finds the missing nodes, by the jobs that the record evicts when the nodes leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from harness.runs.run import Run

_EVICTIONS = ("evict", "preempt")


def went_at(recorded: Run, first: int, last: int) -> tuple[int, frozenset[str]]:
    """The instant at which the record evicts most jobs, and these jobs; the first instant if it evicts none.

    Args:
        recorded: the run of the record.
        first: the first instant to examine, in microseconds since the origin.
        last: the last instant to examine.
    """
    evicted = (
        recorded.micros("decisions")
        .filter(pl.col("action").is_in(_EVICTIONS) & pl.col("time").is_between(first, last))
        .group_by("time")
        .agg(pl.col("job_id").unique())
        .collect()
    )
    jobs = {time: frozenset(names) for time, names in evicted.iter_rows()}
    if not jobs:
        return first, frozenset()
    time = min(jobs, key=lambda each: (-len(jobs[each]), each))
    return time, jobs[time]


def nodes_of(
    simulated: Run, time: int, evicted: frozenset[str], nodes: Mapping[str, int], missing: int
) -> list[str]:
    """The nodes that ran the evicted jobs and few others, enough for the missing amount; at least one.

    Args:
        simulated: a run that matches the record until then, as far as is known.
        time: when the nodes left, in microseconds since the origin.
        evicted: the jobs that the record evicts then.
        nodes: node -> its amount of the missing resource. Among equally likely nodes, the last ones are
            chosen first.
        missing: the missing amount.
    """
    score = Counter(dict.fromkeys(nodes, 0))
    for job, on in _running(simulated, time).items():
        for node in on & score.keys():
            score[node] += 1 if job in evicted else -1
    order = list(nodes)[::-1]
    if evicted:
        order.sort(key=lambda node: -score[node])
    found: list[str] = []
    for node in order:
        amount = nodes[node]
        likely = score[node] > 0 or not evicted  # else only an idle node that is missing as a whole
        if amount and (not found or missing >= amount or (likely and 2 * missing >= amount)):
            found.append(node)
            missing -= amount
        if missing <= 0:
            break
    return sorted(found, key=list(nodes).index)


def _running(run: Run, time: int) -> dict[str, set[str]]:
    """Job -> the nodes that its pods are on just before a time."""
    rows = (
        run.micros("decisions")
        .filter(pl.col("action").is_in(("bind", "gone", "finish")) & (pl.col("time") <= time))
        .filter((pl.col("action") != "bind") | (pl.col("time") < time))
        .select("job_id", "action", "pod_number", "node")
        .collect()
    )
    on: dict[str, dict[int | None, str]] = {}
    for job, action, pod, node in rows.iter_rows():
        if action == "bind":
            on.setdefault(job, {})[pod] = node
        elif pod is None:
            on.pop(job, None)
        else:
            on.get(job, {}).pop(pod, None)
    return {job: set(pods.values()) for job, pods in on.items()}
