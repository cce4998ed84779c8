"""The books of a run, kept anew in plain Python from its decisions: what explanations are checked against."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

GPU = "nvidia.com/gpu"
LONGEST = 10 * 60 * 1_000_000
"""No eviction of a loop takes longer until it is noticed, microseconds."""
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Asked:
    """What the trace says of a job: its queue, priority, number of pods, and GPUs of one pod."""

    queue: str
    priority: int
    pods: int
    gpus: int


@dataclass(frozen=True)
class Eviction:
    """An eviction of some or all pods of a job: what it cost, and what both queues used right before.

    `lost` is summed over pods, in microseconds; `used` is what each queue holds, `leaving` what of it is
    about to be given back; `late` is what was given back so recently that a scheduler may not know it yet.
    """

    time: int
    victim: str
    by: str
    reason: str
    pods: int
    lost: int
    used: Mapping[str, int]
    leaving: Mapping[str, int]
    late: Mapping[str, int]
    detail: Mapping[str, Any]


@dataclass
class _Job:
    holding: int = 0
    leaving: int = 0
    began: int | None = None


def asked_for(trace: Path) -> dict[str, Asked]:
    """The jobs of a trace."""
    rows = pl.read_parquet(trace).iter_rows(named=True)
    return {
        row["job_id"]: Asked(row["queue"], row["priority"], row["pods"], row[f"request.{GPU}"])
        for row in rows
    }


def _since(time: int, given: list[tuple[int, int]]) -> int:
    """What was given back at some time or later."""
    return sum(amount for at, amount in given if at >= time)


def evictions(run: Path, asked: Mapping[str, Asked]) -> Iterator[Eviction]:
    """Play the decisions of a run that loses all progress when it preempts; every job is one unit."""
    rows = pl.read_parquet(run / "decisions.parquet").to_dicts()
    origin = json.loads((run / "run.json").read_text())["trace"]["origin_us"]
    whole = not any(row["action"] == "bind" for row in rows)  # jobs start as a whole
    jobs = {name: _Job() for name in asked}
    used = dict.fromkeys(sorted({each.queue for each in asked.values()}), 0)
    leaving = dict(used)
    given: dict[str, list[tuple[int, int]]] = {name: [] for name in used}
    for row in rows:
        job, about, queue = jobs[row["job_id"]], asked[row["job_id"]], row["queue"]
        time = (row["time"] - EPOCH) // timedelta(microseconds=1) - origin
        pods = row["pods"]
        match row["action"]:
            case "admit" | "start" if whole and row["holding"] == 1:
                job.holding, job.began = pods, time
                used[queue] += pods * about.gpus
            case "bind":
                job.holding += pods
                used[queue] += pods * about.gpus
                if job.holding - job.leaving == about.pods:
                    job.began = time
            case "preempt" | "evict":
                lost = (time - job.began) * about.pods if job.began is not None else 0
                job.began = None
                yield Eviction(
                    time, row["job_id"], row["by"], row["reason"], pods, lost, dict(used), dict(leaving),
                    {name: _since(time - LONGEST, each) for name, each in given.items()},
                    json.loads(row["detail"] or "{}"),
                )  # fmt: skip
                bound = min(pods, job.holding - job.leaving)  # what was admitted may not be bound yet
                job.leaving += bound
                leaving[queue] += bound * about.gpus
            case "gone":
                job.holding -= pods
                job.leaving -= pods
                used[queue] -= pods * about.gpus
                leaving[queue] -= pods * about.gpus
                given[queue].append((time, pods * about.gpus))
            case "finish":
                job.holding -= pods
                used[queue] -= pods * about.gpus
