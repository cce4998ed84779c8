"""Derives the states of jobs over time from the decisions of a run.

A job has quota from its admission until it is evicted. A job has resources from its first binding or start
until its last pod has finished or is gone. An evicted pod returns to its queue when it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_EVICTIONS = ("preempt", "evict")
_ENDS = ("gone", "finish")
_RETURNS = ("submit", "requeue")


class Standing(Enum):
    """The state of a job, as a clause for a sentence."""

    WAITING = "it waited"
    ADMITTED = "it held quota"
    BOUND = "it held nodes"
    RUNNING = "it ran"
    PREEMPTED = "it was terminating after a preemption"
    EVICTED = "it was terminating after an eviction"
    REJECTED = "it had been rejected"


def standings(rows: Iterable[Mapping[str, Any]], *, on_nodes: bool) -> list[tuple[int, Standing]]:
    """Returns the state of a job after each time at which a decision concerned it.

    `rows` contains these decisions in order. `on_nodes` says whether pods are bound to nodes one by one.
    Otherwise, a job holds resources as a whole from its admission or start on.
    """
    found: dict[int, Standing] = {}
    held: dict[int | None, str] = {}  # for each pod, the action that made it terminate, or ""
    quota = False
    for row in rows:
        action, pod = row["action"], row["pod_number"]
        if action == "admit":
            quota = True
            if not on_nodes and row.get("holding") != 0:
                held[pod] = ""
        elif action in ("bind", "start"):
            held[pod] = ""
        elif action in _EVICTIONS:
            quota = quota and pod is not None
            held |= dict.fromkeys(held if pod is None else [pod], action)
        elif action in _ENDS and pod is not None:
            held.pop(pod, None)
        elif action in _ENDS or (action == "requeue" and pod is None):
            held.clear()
        found[row["time"]] = (
            Standing.REJECTED if action == "reject" else _standing(held, quota=quota, on_nodes=on_nodes)
        )
    return list(found.items())


def _standing(held: Mapping[int | None, str], *, quota: bool, on_nodes: bool) -> Standing:
    if not held:
        return Standing.ADMITTED if quota else Standing.WAITING
    if "" in held.values():
        return Standing.BOUND if on_nodes else Standing.RUNNING
    return Standing.PREEMPTED if "preempt" in held.values() else Standing.EVICTED


def time_in(state: Standing, standings: Iterable[tuple[int, Standing]], end: int) -> int:
    """Returns the total time in microseconds that a job was in a state.

    `end` is the end of the job or of the run.
    """
    total, since = 0, None
    for time, standing in standings:
        if standing is not state and since is not None:
            total, since = total + time - since, None
        elif standing is state and since is None and time < end:
            since = time
    return total if since is None else total + end - since


def waiting(decisions: pl.LazyFrame) -> pl.LazyFrame:
    """Finds the jobs that have neither quota nor resources after the given decisions, because they wait.

    `decisions` contains all decisions of a run up to a time, with times in microseconds. Rejected jobs are
    left out. The result also contains finished jobs whose pods were bound one by one. Its columns are `job`,
    `job_id` and `since`, which is the time when the wait began.
    """
    import polars as pl  # not for sentences about an instant, which need no tables

    action, pods = pl.col("action"), pl.col("pods").cast(pl.Int64)
    bound = pods.filter(action == "bind").sum() - pods.filter(action.is_in(_ENDS)).sum()
    # A pod that waits again belongs to a job that keeps its quota or never had any.
    of_job = pl.col("pod").is_null()
    moved = action.filter(action.is_in([*_RETURNS, *_EVICTIONS, "admit"]) & of_job)
    return (
        decisions.group_by("job")
        .agg(
            pl.col("job_id").last(),
            bound=bound,
            moved=moved.last(),
            rejected=(action == "reject").any(),
            since=pl.col("time").filter(action.is_in([*_RETURNS, *_ENDS])).last(),
        )
        .filter((pl.col("bound") <= 0) & pl.col("moved").is_in(_RETURNS) & ~pl.col("rejected"))
        .select("job", "job_id", "since")
    )
