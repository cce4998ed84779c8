"""Finds the spans in which jobs and pods held quota or resources, and the preemptions of a run.

The module derives both from the decisions of a run, which it reads once. A job's span begins with the
decision that gave the job quota or resources, and ends when the job has neither of them. A pod's span begins
when the pod is bound, and ends when the pod is gone or has completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from harness.plugins.measurement import Window
from harness.runs.folder import reading
from harness.runs.older import require_holding
from harness.runs.run import Run

FINISHED = "finished"
IN_PART = "all its bound pods finished; its other pods waited"
AT_THE_END = "still held it at the end of the run"

_READ = (
    "time", "action", "job", "pod_number", "successor", "pods", "holding", "by", "by_job", "reason", "node",
)  # fmt: skip
_SILENT = ("refuse", "nominate", "unnominate", "mark", "unmark", "replace")
_EVICTIONS = ("preempt", "evict")


@dataclass(slots=True)
class Stay:
    """A span in which a job had quota or resources, or in which a pod was on a node.

    Attributes:
        job: the job's row in `jobs.parquet`.
        pod: the pod's number and how often the pod had been recreated; None for a whole job.
        start: the beginning, in microseconds since the trace's origin.
        waited: how long the job had held nothing, or how long the pod had been in its queue, before the span
            began.
        held: when the job began to hold resources, or None if it never did.
        end: the end of the span, or of the run.
        how: how the span ended, in words.
        hits: the numbers of the preemptions that hit the job or some of its pods.
    """

    job: int
    start: int
    pod: tuple[int, int] | None = None
    node: str | None = None
    waited: int = 0
    held: int | None = None
    end: int = 0
    how: str = AT_THE_END
    hits: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Preemption:
    """A single decision to preempt.

    Attributes:
        number: the index of the preemption among all preemptions of the run.
        time: the time of the decision, in microseconds since the trace's origin.
        by: the preemptor's name, or "" if none is recorded.
        by_job: the preemptor's row in `jobs.parquet`, or None if the preemptor isn't a job of the run.
        victim: the row of the victim's job.
        pods: how many of the victim's pods are preempted.
        reason: the name of the rule behind the decision.
    """

    number: int
    time: int
    by: str
    by_job: int | None
    victim: int
    pods: int
    reason: str


@dataclass(frozen=True)
class Holding:
    """The spans and preemptions of a run that are at least partly within a window.

    Attributes:
        jobs: the spans in which jobs held quota or resources, sorted by start.
        pods: the spans in which pods were on nodes, sorted by start.
        preemptions: the preemptions within the window, in order.
    """

    jobs: Sequence[Stay]
    pods: Sequence[Stay]
    preemptions: Sequence[Preemption]


def holding(run: Run, window: Window) -> Holding:
    """Returns the spans in which jobs and pods held something, and the preemptions, within a window.

    Raises:
        RunError: a table is damaged, or the run is so old that it does not record when jobs hold resources.
    """
    require_holding(run.info)
    with reading(run.path):
        over = run.micros("jobs").select("finish_time").collect()["finish_time"].to_list()
        ledger = _Ledger(over)
        for batch in run.batches("decisions", _READ):
            for row in batch.filter(~pl.col("action").is_in(_SILENT)).iter_rows(named=True):
                ledger.take(row)
    ledger.close(run.window.end)
    found = [each for each in ledger.preemptions if window.start <= each.time <= window.end]

    def within(stays: list[Stay]) -> list[Stay]:
        seen = [stay for stay in stays if stay.end >= window.start and stay.start <= window.end]
        return sorted(seen, key=lambda stay: (stay.start, stay.job, stay.pod or (0, 0)))

    return Holding(within(ledger.stays), within(ledger.pod_stays), found)


class _Ledger:
    """The quota and resources that jobs and pods hold. Each decision updates them.

    `over` contains the time at which the last pod of each job completed; None if it did not complete.
    """

    def __init__(self, over: Sequence[int | None]) -> None:
        self._over = over
        self._admitted: set[int] = set()
        self._holds: set[int] = set()
        self._since: dict[int, int] = {}  # The time since which each job has held nothing.
        self._back: dict[int, int] = {}  # The time at which each whole job entered its queue.
        # The later times at which single pods of each job returned to the queue.
        self._back_of_pods: dict[int, dict[int, int]] = {}
        self._open: dict[int, Stay] = {}
        self._pods: dict[int, dict[tuple[int, int], Stay]] = {}
        self._evicted: dict[int, str] = {}
        self.stays: list[Stay] = []
        self.pod_stays: list[Stay] = []
        self.preemptions: list[Preemption] = []

    def take(self, row: Mapping[str, Any]) -> None:
        time, action, job = row["time"], row["action"], row["job"]
        if action in ("submit", "requeue"):
            if row["pod_number"] is None:
                self._back[job], self._back_of_pods[job] = time, {}
            else:
                self._back_of_pods[job][row["pod_number"]] = time
            self._since.setdefault(job, time)
        elif action in _EVICTIONS:
            self._evict(row)
        elif action == "bind":
            key = row["pod_number"], row["successor"]
            waited = time - self._back_of_pods[job].get(row["pod_number"], self._back[job])
            stay = Stay(job, time, key, row["node"], waited, held=time)
            self._pods.setdefault(job, {})[key] = stay
        elif action in ("gone", "finish"):
            self._release(row)
        if action == "admit":
            self._admitted.add(job)
        if action == "admit" or row["holding"] == 1:
            stay = self._open.get(job) or self._begin(job, time)
            if row["holding"] == 1:
                self._holds.add(job)
                stay.held = time if stay.held is None else stay.held
        elif row["holding"] == -1:
            self._holds.discard(job)
            if action == "finish" and self._over[job] == time:
                self._end(job, time, FINISHED)
            elif job not in self._admitted:  # otherwise, the job's waiting pods keep the quota
                self._end(job, time, IN_PART if action == "finish" else self._evicted.get(job, action))

    def close(self, end: int) -> None:
        for stay in self._open.values():
            stay.end = end
            self.stays.append(stay)
        for pods in self._pods.values():
            for stay in pods.values():
                stay.end = end
                self.pod_stays.append(stay)

    def _begin(self, job: int, time: int) -> Stay:
        stay = self._open[job] = Stay(job, time, waited=time - self._since[job])
        return stay

    def _end(self, job: int, time: int, how: str) -> None:
        stay = self._open.pop(job)
        stay.end, stay.how = time, how
        self._since[job] = time
        self.stays.append(stay)

    def _evict(self, row: Mapping[str, Any]) -> None:
        time, job, reason = row["time"], row["job"], row["reason"] or ""
        by = row["by"] or ""
        how = (
            f"evicted ({reason})"
            if row["action"] == "evict"
            else f"preempted by {by or 'the scheduler'} ({reason})"
        )
        self._evicted[job] = how
        stay = self._open.get(job)
        if row["action"] == "preempt":
            if stay is not None:
                stay.hits.append(len(self.preemptions))
            self.preemptions.append(
                Preemption(len(self.preemptions), time, by, row["by_job"], job, row["pods"], reason)
            )
        pods = self._pods.get(job, {})
        key = (row["pod_number"], row["successor"])
        for each in pods.values() if row["pod_number"] is None else [pods[key]] if key in pods else []:
            each.how = how
        if row["pod_number"] is None:
            self._admitted.discard(job)
        if stay is not None and job not in self._holds:
            self._end(job, time, how)  # The job had only quota, and it loses the quota immediately.

    def _release(self, row: Mapping[str, Any]) -> None:
        pods = self._pods.get(row["job"], {})
        for key in self._released(row, pods):
            stay = pods.pop(key)
            stay.end = row["time"]
            if row["action"] == "finish":
                stay.how = FINISHED
            self.pod_stays.append(stay)

    @staticmethod
    def _released(row: Mapping[str, Any], pods: Mapping[Any, Stay]) -> Iterator[tuple[int, int]]:
        """Yields the pods on nodes that a row is about, which are all of the job's pods if it names none."""
        if row["pod_number"] is None:
            yield from list(pods)
        elif (row["pod_number"], row["successor"]) in pods:
            yield row["pod_number"], row["successor"]
