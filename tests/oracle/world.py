"""A run as the oracle sees it: its decisions, what its jobs ask for, and the cluster."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import polars as pl

import harness
from oracle.history import NEVER, Job, Losses, histories
from oracle.pods import Amounts, Moved, Part, Pods, parts_of, place_of, total

SECOND, HOUR = 10**6, 3600 * 10**6
DAY = 24 * HOUR
GIB = 2**30


class Preemption(NamedTuple):
    """One job for one other at one instant."""

    time: int
    job: int
    by: int


Cell: TypeAlias = tuple[int, str]
"""A resource, by its place, and a flavor; "" where nobody says which."""


class Epoch(NamedTuple):
    """What there is of the cluster from an instant on."""

    begin: int
    cluster: Mapping[str, Any]
    sizes: Sequence[int | None]  # of each resource; None without an end


class State(NamedTuple):
    """What was so for some time, group by group and resource by resource."""

    start: int
    length: int
    epoch: Epoch
    allocated: Mapping[Any, Sequence[int]]
    wanted: Mapping[Any, Sequence[int]]  # of pending and running pods
    quota: Mapping[Any, Mapping[Cell, int]]  # held by admitted jobs, and by evicted ones for a while

    def held(self, group: Any, place: int) -> int:
        """The quota of a resource that is held, in all flavors."""
        return sum(amount for (of, _), amount in self.quota[group].items() if of == place)


class World:
    """What all metrics are computed from.

    Args:
        run: a finished run.
        trace: its jobs.
        end: where integrals end; by default where the run's own window does.
        until: when values of jobs are taken; by default the same.
    """

    def __init__(
        self, run: harness.Run, trace: pl.DataFrame, end: int | None = None, until: int | None = None
    ) -> None:
        self.info = run.info
        self.cluster: Mapping[str, Any] = run.info["cluster"]
        self.resources: list[str] = list(run.info["trace"]["resources"])
        self.nodes = bool(self.cluster["nodes"])
        self.start, self.own_end = run.info["window"]
        self.end = self.own_end if end is None else end
        self.until = self.end if until is None else until
        self.own_end = min(self.own_end, self.until)  # own windows are cut where any run was cut
        self.epochs = list(_epochs(self.cluster, self.resources))
        rows = list(_rows(run, trace, self.resources))
        origin = run.info["trace"]["origin_us"]
        times = run.decisions["time"].cast(pl.Int64) - origin
        self.decisions: list[dict[str, Any]] = [
            {**row, "time": time}
            for row, time in zip(run.decisions.iter_rows(named=True), times.to_list(), strict=True)
        ]
        if end is None and run.info["settings"]["until_us"] is None and "stopped" not in run.info["outcome"]:
            assert self.own_end == max(row["time"] for row in self.decisions)
        losses = _losses(run.info["settings"]["on_preemption"])
        self.parts: list[list[Part]] = [row["parts"] for row in rows]
        self.asks = [total(parts, [part.pods for part in parts]) for parts in self.parts]  # of whole jobs
        pods = [Pods(parts) for parts in self.parts]
        self.moved: list[tuple[Moved, list[Amounts]]] = []  # by decisions, with what waits of the job then
        for row in self.decisions:
            of_job = pods[row["job"]]
            self.moved.append((of_job.take(row, holds=self.holds(row)), of_job.waiting))
        self.moved_by = {row["seq"]: each for row, each in zip(self.decisions, self.moved, strict=True)}

        def all_jobs(end: int) -> list[Job]:
            return histories(rows, self.decisions, losses, self.nodes, self.holds, end)

        self.jobs = all_jobs(self.until)  # as they are when values of jobs are taken
        self.runs_out = all_jobs(max(self.own_end, self.end))  # in the run's own window
        arrivals = [job.submit for job in self.jobs if job.submit is not None]
        assert not arrivals or self.start == min(arrivals)
        self.counted = [
            job for job in self.jobs if job.submit is not None and job.reject != job.submit
        ]  # who counts: all but those rejected at their arrival
        # Of some work that a dump says is there nobody knows how long it runs.
        self.timed = [job for job in self.counted if job.row["duration"] is not None]
        self.duration = [row["duration"] for row in rows]
        self.user: list[str] = [row["user"] or "" for row in rows]
        self.priority: list[int] = [row["priority"] for row in rows]
        self.names: list[str] = [row["job_id"] for row in rows]
        quota_of = self.cluster["quota_of"]
        timeline = [
            row.get("timeline_queue")
            or (row["queue"] if row["queue"] in quota_of else f"{row['namespace']}/{row['queue']}")
            for row in rows
        ]
        self.queue: list[str] = [
            row["queue"] if "timeline_queue" in row else name
            for row, name in zip(rows, timeline, strict=True)
        ]
        self.counts_against: list[str | None] = [quota_of[name] for name in timeline]
        self.holder: list[str] = [quota_of[name] or name for name in timeline]
        self.quota: dict[int, list[tuple[int, Cell, int]]] = defaultdict(
            list
        )  # when -> of a job how much more
        self.follow_quota()
        # Of all jobs, also those that arrive after the end; with the work that a dump says is there.
        lengths = dict(
            zip(trace["job_id"].to_list(), trace["duration"].cast(pl.Int64).to_list(), strict=True)
        )
        lengths |= {row["job_id"]: row["duration"] for row in rows if row["duration"] is not None}
        self.mean_duration = Fraction(sum(lengths.values()), len(lengths))
        self.preempts = [
            row for row in self.decisions if row["action"] == "preempt" and row["time"] <= self.until
        ]
        self.preemptions: list[Preemption] = []
        for row in self.preempts:
            each = Preemption(row["time"], row["job"], row["by_job"])
            if each not in self.preemptions:
                self.preemptions.append(each)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether pods hold resources from a decision on; without nodes an admitted job may have to wait."""
        if self.nodes:
            return bool(row["action"] == "bind")
        return row["action"] == "start" or (row["action"] == "admit" and row["holding"] == 1)

    def states(self, group: Callable[[int], Any]) -> Iterator[State]:
        """What is so between two decisions, up to the end; no state lasts no time at all.

        Args:
            group: number of a job -> what it is added up in.
        """
        width = len(self.resources)
        held: dict[Any, list[int]] = defaultdict(lambda: [0] * width)
        wanted: dict[Any, list[int]] = defaultdict(lambda: [0] * width)
        quota: dict[Any, dict[Cell, int]] = defaultdict(lambda: defaultdict(int))
        for time, following, rows in self.instants():
            for row in rows:
                job = row["job"]
                moved, _ = self.moved_by[row["seq"]]
                for of, counts in ((held, moved.holding), (wanted, moved.asking)):
                    for place, amount in enumerate(total(self.parts[job], counts)):
                        of[group(job)][place] += amount
            for job, cell, more in self.quota.get(time, []):
                quota[group(job)][cell] += more
            if following > time:
                yield State(time, following - time, self.epoch(time), held, wanted, quota)

    def epoch(self, time: int) -> Epoch:
        """What there is of the cluster at a time."""
        return [each for each in self.epochs if each.begin <= time][-1]

    @property
    def turns(self) -> list[int]:
        """When the cluster changes within what is measured."""
        return [each.begin for each in self.epochs if self.start < each.begin < self.until]

    def given(self) -> dict[str, dict[str, Any]]:
        """What is said of each quota, and of which resources it has any at some time."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.epochs:
            for name, quota in each.cluster["queues"].items():
                known = found.setdefault(name, {**quota, "nominal": {}})
                known["nominal"] = {**known["nominal"], **(quota["nominal"] or {})}
        return found

    def whole(self, place: int) -> int | None:
        """All that there is of a resource over time; None if that has no end at any time."""
        borders = [self.start, *(each for each in self.turns if each < self.end), self.end]
        total = 0
        for begin, until in pairwise(borders):
            size = self.epoch(begin).sizes[place]
            if size is None:
                return None
            total += size * (until - begin)
        return total

    def instants(self) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
        """Each instant, the next one, and what was decided; also those at which only quota is given back."""
        at: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self.decisions:
            at[row["time"]].append(row)
        for time in (*self.quota, *self.turns):
            at.setdefault(time, [])  # an instant without decisions
        times = [time for time in sorted(at) if time < self.end]
        for time, following in pairwise([*times, self.end]):
            yield time, following, at[time]

    def follow_quota(self) -> None:
        """Quota is held from the admission until the end or, after an eviction, the last pod is gone.

        A job that was evicted before any pod was bound holds it until `evictionLatency` ends.
        """
        latency = self.info["policy"]["options"].get("evictionLatency", 0)
        # How many pods of each pod set ask for something, and hold quota.
        asking, pods = ([[0] * len(parts) for parts in self.parts] for _ in range(2))
        chosen: dict[int, Mapping[str, Mapping[str, str]]] = {}
        there: dict[int, int] = defaultdict(int)  # pods that hold something
        evicted: set[int] = set()
        for row in self.decisions:
            job, action, time, pod = row["job"], row["action"], row["time"], row["pod_number"]
            moved, _ = self.moved_by[row["seq"]]
            there[job] += sum(moved.holding)
            asking[job] = [count + more for count, more in zip(asking[job], moved.asking, strict=True)]
            held, of_flavors = list(pods[job]), chosen.get(job, {})
            until = time
            if action == "admit":
                chosen[job] = of_flavors = json.loads(row["flavors"] or "{}")
                pods[job] = list(asking[job])
                evicted.discard(job)
            elif action == "finish":
                ends = list(held) if pod is None else [0] * len(held)
                if pod is not None and any(held):
                    ends[place_of(self.parts[job], pod)] = 1
                pods[job] = [each - end for each, end in zip(held, ends, strict=True)]
            elif action in ("preempt", "evict") and any(held) and row["pod"] is None:
                evicted.add(job)
                if not there[job]:
                    pods[job], until = [0] * len(held), time + latency
            elif not there[job] and (
                (action == "gone" and job in evicted) or (action == "requeue" and row["pod"] is None)
            ):
                pods[job] = [0] * len(held)
            for part, after, before in zip(self.parts[job], pods[job], held, strict=True):
                of_part = of_flavors.get(part.name) or next(iter(of_flavors.values()), {})
                for place, (resource, ask) in enumerate(zip(self.resources, part.asks, strict=True)):
                    if after != before:
                        cell = place, of_part.get(resource, "")
                        self.quota[until].append((job, cell, (after - before) * ask))

    def of(self, holder: str) -> str:
        """The scope of what is measured of a quota, or of a queue without one."""
        return f"quota={holder}" if holder in self.given() else f"queue={holder}"

    def holders(self) -> list[str]:
        """All quotas that there ever are, and all queues that have none."""
        return sorted({*self.holder, *self.given()})

    def unit(self, resource: str) -> int:
        """What one core, GiB or device is."""
        return 1000 if resource == "cpu" else GIB if resource == "memory" else 1

    def hours(self, amount: Fraction | int | None, resource: str) -> Fraction | None:
        """Resource-microseconds as core-hours, GiB-hours, device-hours."""
        return None if amount is None else Fraction(amount) / (HOUR * self.unit(resource))

    def demand(self, job: Job, place: int) -> int:
        """What a job needs in all: its pods, what they ask for, its duration.

        Without what ran before the replay, as far as that has been kept.
        """
        if job.duration is None:
            return 0
        again = sum(each.held[place] * each.length for each in job.before if each.time <= self.end)
        return self.asks[job.number][place] * (job.duration - job.row["done"]) + again


def _epochs(cluster: Mapping[str, Any], resources: Sequence[str]) -> Iterator[Epoch]:
    """What `run.json` says of a cluster, and from each change on."""
    facts = {name: dict(cluster.get(name, {})) for name in ("capacity", "queues", "cohorts")}
    for event in ({"at_us": -NEVER}, *cluster.get("events", ())):
        for name, before in facts.items():
            known = {**before, **event.get(name, {})}
            facts[name] = {key: value for key, value in known.items() if value is not None}
        now = {**cluster, **facts, "allocatable": event.get("allocatable", {})}
        yield Epoch(event["at_us"], now, [facts["capacity"].get(each) for each in resources])


def _rows(run: harness.Run, trace: pl.DataFrame, resources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The jobs in order of arrival with all that is known of them; amounts are of one pod."""
    of_trace = {row["job_id"]: row for row in trace.iter_rows(named=True)}
    times = [name for name in ("duration", "ran_before") if name in run.jobs.columns]
    for row in run.jobs.with_columns(pl.col(times).cast(pl.Int64)).iter_rows(named=True):
        known = of_trace.get(row["job_id"], {})
        interval = known.get("checkpoint_interval")
        yield {
            **row,
            "gang": known.get("gang") is not False,
            "done": row.get("ran_before") or 0,
            "interval": None if interval is None else int(interval.total_seconds() * SECOND),
            "startup": _startup(run, known),
            "parts": parts_of(row, resources),
        }


def _startup(run: harness.Run, known: Mapping[str, Any]) -> tuple[int, int]:
    """How long the pods of a job take until they are ready, the first time and later; null is never.

    Pods of a dump that were not ready have a `first_startup`, and start up at once later.
    """
    first = known.get("first_startup")
    if first is not None:
        return int(first.total_seconds() * SECOND), 0
    if "startup" not in known:
        always = run.info["settings"].get("startup_us", 0) if known else 0
    else:
        startup = known["startup"]
        always = NEVER if startup is None else int(startup.total_seconds() * SECOND)
    return always, always


def _losses(text: str) -> Losses:
    mode = text.split("=")[0]
    parts = dict(re.findall(r"(checkpoint|restore)=(\d+)s", text))
    return Losses(mode, int(parts.get("checkpoint", 0)) * SECOND, int(parts.get("restore", 0)) * SECOND)
