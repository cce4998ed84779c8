"""Every metric once more: plain Python over decisions and what jobs ask for, as the definitions read.

It shares no code with `harness.metrics` and reads neither stints nor timeline. Covered are the loss models
`restart` and `resume`, and jobs of equal pods.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, fsum
from typing import Any, NamedTuple

import polars as pl
import pytest

import harness

SECOND, HOUR = 10**6, 3600 * 10**6
DAY = 24 * HOUR
SIZES = {"cpu": 1000, "memory": 2**30}
"""How many of the integers that are computed with are a core, or a GiB."""
Key = tuple[str, str, str]


class Span(NamedTuple):
    """Pods of a job that hold resources; `lost` says whether an eviction ended it in vain."""

    job: int
    pods: int
    start: int
    end: int
    progress: bool
    lost: bool = False
    pod: str | None = None


class Job:
    """What happened to one job, followed decision by decision."""

    def __init__(self, number: int, row: Mapping[str, Any], restarts: bool) -> None:
        self.number, self.row, self.restarts = number, row, restarts
        self.pods = row["pods"]
        self.bound: dict[str | None, int] = {}  # pod -> since when it is in its present state
        self.ending: dict[str | None, int] = {}
        self.since: int | None = None  # since when the gang progresses
        self.complete = 0  # when it last began to
        self.begun: dict[str | None, int] = {}  # pod -> when it last began to hold resources
        self.submit = self.finish = self.reject = self.first = self.admitted = None
        self.spans: list[Span] = []
        self.binds: list[tuple[int, str, int]] = []
        self.again: list[int] = []  # the decisions that gave it something again
        self.held: dict[int, int] = {}  # decision to preempt -> the pods that held something
        self.lost: dict[int, int] = {}  # decision to preempt -> how long these had held it, or progressed
        self.left = self.pods

    @property
    def together(self) -> bool:
        """Whether all of its pods progress together or not at all."""
        return bool(self.row["gang"]) or self.pods == 1

    def size(self, pod: str | None) -> int:
        return self.pods if pod is None else 1

    def turn(self, time: int, action: str, pod: str | None, seq: int) -> None:
        name = None if pod is None else re.sub(r"-r\d+$", "", pod.removeprefix(self.row["job_id"]))
        if action == "submit":
            self.submit = time
        elif action == "reject":
            self.reject = time
        elif action in ("admit", "start", "bind"):
            again = re.search(r"-r(\d+)$", pod or "")
            if name is not None:
                self.binds.append((time, name, int(again[1]) if again else 0))
            if again:
                self.again.append(seq)
            if self.together:
                self.cut(time)
            self.bound[name] = self.begun[name] = time
            if self.together and sum(map(self.size, self.bound)) == self.pods:
                self.since = self.complete = time
        elif action in ("preempt", "evict"):
            taken = list(self.bound) if name is None else [name]
            self.held[seq] = sum(map(self.size, taken))
            started = {each: self.begun[each] for each in taken}
            self.lost[seq] = sum(
                self.size(each) * (time - max(since, self.complete if self.together else 0))
                for each, since in started.items()
            )
            self.cut(time, in_vain=True, only=None if self.together else name)
            for each in list(self.bound) if name is None else [name]:
                self.bound.pop(each)
                self.ending[each] = time
        elif action == "gone":
            for each in list(self.ending) if name is None else [name]:
                self.span(self.ending.pop(each), time, self.size(each), progress=False)
        elif action == "finish":
            self.cut(time, only=None if self.together or name is None else name)
            for each in list(self.bound) if name is None else [name]:
                self.left -= self.size(each)
                self.bound.pop(each)
            if not self.left:
                self.finish = time

    def cut(self, time: int, *, in_vain: bool = False, only: str | None = None) -> None:
        """End what goes on now, of one pod or all, and let it go on as something new."""
        for pod in [only] if only is not None else list(self.bound):
            progress = not self.together or self.since is not None
            self.span(self.bound[pod], time, self.size(pod), progress, in_vain, pod)
            self.bound[pod] = time
        if self.together:
            self.since = None

    def span(
        self,
        start: int,
        end: int,
        pods: int,
        progress: bool,
        in_vain: bool = False,
        pod: str | None = None,
    ) -> None:
        lost = progress and in_vain and self.restarts
        self.spans.append(Span(self.number, pods, start, end, progress, lost, pod))

    @property
    def kept(self) -> int:
        """Progress that nothing has thrown away: of all pods together, or of the least advanced one."""
        there = [span for span in self.spans if span.progress and not span.lost]
        if self.together or any(span.pod is None for span in there):
            return union(there)
        of_pods = [union(span for span in there if span.pod == pod) for pod in {span.pod for span in there}]
        return min(of_pods) if len(of_pods) == self.pods else 0

    @property
    def counts(self) -> bool:
        """Whether it was not refused at once."""
        return self.reject is None or self.reject > self.submit

    def close(self, end: int) -> None:
        """Measure what has not ended; what lasted no time at all is a first start, and nothing else."""
        self.cut(end)
        for pod, since in self.ending.items():
            self.span(since, end, self.size(pod), progress=False)
        self.first = min((span.start for span in self.spans if span.progress), default=self.finish)
        self.spans = [span for span in self.spans if span.end > span.start]


class Preemption(NamedTuple):
    """One job for one other at one instant."""

    time: int
    job: int
    by: int


class Slow:
    """All metrics of a run, by metric, scope and resource."""

    def __init__(self, run: harness.Run, trace: pl.DataFrame) -> None:
        self.run, self.info = run, run.info
        self.resources = list(run.info["trace"]["resources"])
        self.capacity = run.info["cluster"]["capacity"]
        origin = run.info["trace"]["origin_us"]
        asks = {row["job_id"]: row for row in trace.iter_rows(named=True)}
        defaults = {"pods": 1, "gang": None, "priority": 0}
        rows = [
            {**defaults, **asks[row["job_id"]], **row}
            for row in run.jobs.select(
                pl.col("job_id", "queue", "namespace", "priority", "pods"), pl.col("^timeline_queue$")
            ).iter_rows(named=True)
        ]
        self.number = {row["job_id"]: number for number, row in enumerate(rows)}
        restarts = run.info["settings"]["on_preemption"] == "restart"
        self.jobs = [
            Job(number, {**row, "gang": row["gang"] is not False}, restarts)
            for number, row in enumerate(rows)
        ]
        self.rows = rows
        self.asks = [[row.get(f"request.{each}") or 0 for each in self.resources] for row in rows]
        self.duration = [int(row["duration"].total_seconds() * SECOND + 0.5) for row in rows]
        times = run.decisions["time"].cast(pl.Int64) - origin
        self.decisions = [
            {**row, "time": time}
            for row, time in zip(run.decisions.iter_rows(named=True), times.to_list(), strict=True)
        ]
        self.held_by = {"bind"} if self.info["cluster"]["nodes"] else {"admit", "start"}
        for row in self.decisions:
            job = self.jobs[row["job"]]
            if row["action"] == "admit":
                job.again.append(row["seq"])
            if row["action"] == "admit" and job.admitted is None:
                job.admitted = row["time"]
            if row["action"] in ("admit", "start", "bind") and not self.holds(row):
                continue
            job.turn(row["time"], row["action"], row["pod"], row["seq"])
        self.start, self.end = run.info["window"]
        assert self.start == min(job.submit for job in self.jobs)
        if run.info["settings"]["until_us"] is None:
            assert self.end == max(row["time"] for row in self.decisions)
        for job in self.jobs:
            job.close(self.end)
        self.spans = [span for job in self.jobs for span in job.spans]
        quota_of = run.info["cluster"]["quota_of"]
        names = [
            row.get("timeline_queue")
            or (row["queue"] if row["queue"] in quota_of else f"{row['namespace']}/{row['queue']}")
            for row in rows
        ]
        self.counts_against = [quota_of[name] for name in names]
        self.holder = [quota_of[name] or name for name in names]
        self.queue = [row["queue"] for row in rows]
        self.mean_duration = Fraction(
            sum(int(each.total_seconds() * SECOND + 0.5) for each in trace["duration"]), trace.height
        )
        self.preemptions: list[Preemption] = []
        for row in self.decisions:
            if row["action"] == "preempt":
                each = Preemption(row["time"], row["job"], self.number[row["by"]])
                if each not in self.preemptions:
                    self.preemptions.append(each)
        self.values: dict[Key, float | None] = {}
        self.least: dict[Key, bool | None] = {}
        self.utilization()
        self.waiting()
        self.fairness()
        self.disruption()
        self.quota()
        self.reclaim()
        self.users()
        self.fragmentation()

    def say(
        self,
        metric: str,
        value: float | None,
        scope: str = "all",
        resource: str = "",
        least: bool | None = False,
    ) -> None:
        assert (metric, scope, resource) not in self.values
        self.least[metric, scope, resource] = least
        self.values[metric, scope, resource] = None if value is None else float(value)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether pods hold resources from a row on; without nodes an admitted job may have to wait."""
        return row["action"] in self.held_by and (row["action"] != "admit" or row["holding"] == 1)

    def parts(self, place: int, inside: Callable[[int], bool] = lambda _: True) -> dict[str, int]:
        """What became of a resource, of some of the jobs."""
        sums = dict.fromkeys(("useful", "lost", "idle_held", "unfinished"), 0)
        for span in self.spans:
            if not inside(span.job):
                continue
            amount = span.pods * self.asks[span.job][place] * (span.end - span.start)
            done = self.jobs[span.job].finish is not None
            kind = "lost" if span.lost else "useful" if done else "unfinished"
            sums[kind if span.progress else "idle_held"] += amount
        return sums

    def levels(
        self, whose: Sequence[str] | None = None
    ) -> Iterator[tuple[int, dict[str, list[int]], dict[str, list[int]]]]:
        """How long whose jobs hold and ask for how much; their holders' by default."""
        whose = self.holder if whose is None else whose
        held: dict[str, list[int]] = defaultdict(lambda: [0] * len(self.resources))
        asked: dict[str, list[int]] = defaultdict(lambda: [0] * len(self.resources))
        moves: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in self.decisions:
            moves[row["time"]].append(row)
        times = sorted(moves)
        for time, following in pairwise([*times, self.end]):
            for row in moves[time]:
                action, queue = row["action"], whose[row["job"]]
                hold = self.holds(row) - (action in ("gone", "finish"))
                ask = (action in ("submit", "requeue")) - (action in ("gone", "finish", "reject"))
                for place, amount in enumerate(self.asks[row["job"]]):
                    held[queue][place] += hold * row["pods"] * amount
                    asked[queue][place] += ask * row["pods"] * amount
            yield following - time, held, asked

    def utilization(self) -> None:
        """Of all, and by queue and user, of whom there are fewer than 200 here."""
        users = [row.get("user") or "(none)" for row in self.rows]
        self.allocated = self.used(["all"] * len(self.jobs))["all"]
        self.used([f"queue={queue}" for queue in self.queue])
        self.used([f"user={user}" for user in users])
        for place, resource in enumerate(self.resources):
            whole = self.capacity.get(resource, 0) * (self.end - self.start)
            known = whole if resource in self.capacity else None
            self.say("utilization.capacity.hours", self.hours(known, resource), resource=resource)
            waited = sum(
                span * sum(asked[queue][place] - held[queue][place] for queue in asked)
                for span, held, asked in self.levels()
            )
            length = (self.end - self.start) * SIZES.get(resource, 1)
            self.say("backlog", waited / length if length else None, resource=resource)

    def used(self, whose: Sequence[str]) -> dict[str, list[int]]:
        """What was used of the cluster by jobs, by scopes with one that counts; what they held."""
        scopes = sorted({whose[job.number] for job in self.jobs if job.submit is not None and job.counts})
        allocated, wanted = ({scope: [0] * len(self.resources) for scope in scopes} for _ in range(2))
        for span, held, asked in self.levels(whose):
            for scope in scopes:
                for place, resource in enumerate(self.resources):
                    asks = asked[scope][place]
                    allocated[scope][place] += span * held[scope][place]
                    wanted[scope][place] += span * min(asks, self.capacity.get(resource, asks))
        for scope in scopes:
            for place, resource in enumerate(self.resources):
                parts = self.parts(place, lambda job, scope=scope: whose[job] == scope)
                took = allocated[scope][place]
                assert sum(parts.values()) == took
                whole = self.capacity.get(resource, 0) * (self.end - self.start)
                for name, part in {"allocated": took, **parts}.items():
                    self.say(f"utilization.{name}", part / whole if whole else None, scope, resource)
                    self.say(f"utilization.{name}.hours", self.hours(part, resource), scope, resource)
                demand = wanted[scope][place] if resource in self.capacity else 0
                self.say("utilization.of_demand", took / demand if demand else None, scope, resource)
                needed = sum(
                    job.pods * self.asks[job.number][place] * self.duration[job.number]
                    for job in self.jobs
                    if job.submit is not None and job.counts and whose[job.number] == scope
                )
                for name, most in (("allocated", took), ("capacity", whole), ("demand", needed)):
                    value = parts["useful"] / most if most else None
                    self.say(f"goodput.of_{name}", value, scope, resource)
        return allocated

    def waiting(self) -> None:
        self.slowdown: dict[int, float] = {}
        first, total, delay, jct = ({} for _ in range(4))
        unstarted, unfinished = set(), set()
        for job in self.jobs:
            if not job.counts:
                continue
            number, length = job.number, self.duration[job.number]
            until = self.end if job.finish is None else job.finish
            first[number] = (self.end if job.first is None else job.first) - job.submit
            total[number] = until - job.submit - union(s for s in job.spans if s.progress)
            jct[number] = until - job.submit + (length - job.kept if job.finish is None else 0)
            delay[number] = jct[number] - length
            self.slowdown[number] = max(1.0, jct[number] / max(length, 10 * SECOND))
            unstarted |= {number} if job.first is None else set()
            unfinished |= {number} if job.finish is None else set()
        self.unfinished, self.delay, self.first_start = unfinished, delay, first
        shapes = ("mean", "p50", "p90", "p95", "p99", "max")
        few = ("mean", "p50", "p95")
        for kind in ("all", "queue", "priority"):
            for value in {job.row[kind] for job in self.jobs} if kind != "all" else {""}:
                scope = f"{kind}={value}" if value != "" else "all"
                inside = {job.number for job in self.jobs if kind == "all" or job.row[kind] == value}
                for metric, values, going, stats, unit in (
                    ("wait.first_start", first, unstarted, shapes, SECOND),
                    ("wait.total", total, unfinished, shapes, SECOND),
                    ("delay", delay, unfinished, few, SECOND),
                    *([("jct", jct, unfinished, few, SECOND)] if kind == "all" else []),
                    ("slowdown.bounded", self.slowdown, unfinished, ("mean", "p50", "p95", "p99"), 1),
                ):
                    some = {number: each for number, each in values.items() if number in inside}
                    self.accrued(metric, some, going, stats, scope, unit)
                waits = {number: each for number, each in first.items() if number in inside}
                never = waits.keys() & unstarted
                self.say("wait.never_started", len(never) / len(waits) if waits else None, scope)
                for name, limit in (("1m", 1), ("10m", 10), ("1h", 60), ("4h", 240)):
                    limit *= 60 * SECOND
                    soon = sum(wait <= limit for number, wait in waits.items() if number not in never)
                    least = any(waits[number] < limit for number in never)
                    share = soon / len(waits) if waits else None
                    self.say(f"wait.within_{name}", share, scope, least=least)
        admitted = {
            job.number: (self.end if job.first is None else job.first) - job.admitted
            for job in self.jobs
            if job.admitted is not None and job.counts
        }
        few = ("mean", "p50", "p95", "max")
        self.accrued("wait.admission_to_start", admitted, unstarted, few, "all", SECOND)
        self.slowdowns()
        ends = [job.finish for job in self.jobs if job.finish is not None]
        rejected = sum(job.reject is not None for job in self.jobs)
        hours = (self.end - self.start) / HOUR
        over = len(ends) + rejected == len(self.jobs)
        makespan = max(ends) - min(job.submit for job in self.jobs) if ends and over else None
        self.say("makespan", None if makespan is None else makespan / SECOND)
        self.say("jobs.finished", len(ends))
        self.say("jobs.unfinished", len(self.jobs) - len(ends) - rejected)
        self.say("jobs.rejected", rejected)
        self.say("throughput", len(ends) / hours if hours else None)

    def accrued(
        self,
        metric: str,
        values: Mapping[int, float],
        going: set[int],
        shapes: Iterable[str],
        scope: str,
        unit: float,
    ) -> None:
        """Statistics of what has accrued, some of which goes on."""
        ranked = sorted(values.values())
        open_ = [each for number, each in values.items() if number in going]
        for shape in shapes:
            value = statistic(ranked, shape)
            least = bool(open_)
            if open_ and shape != "mean":
                place = Fraction(100 if shape == "max" else int(shape[1:]), 100) * (len(ranked) - 1)
                least = min(open_) <= ranked[ceil(place)]
            self.say(f"{metric}.{shape}", None if value is None else value / unit, scope, least=least)

    def slowdowns(self) -> None:
        weight = {
            number: max(
                [
                    self.jobs[number].pods * Fraction(ask, self.capacity[resource])
                    for ask, resource in zip(self.asks[number], self.resources, strict=True)
                    if self.capacity.get(resource)
                ],
                default=Fraction(0),
            )
            * self.duration[number]
            for number in self.slowdown
        }
        whole = sum(weight.values())
        total = sum(each * Fraction(self.slowdown[number]) for number, each in weight.items())
        value = total / whole if whole else None
        self.say("slowdown.weighted", value, least=value is not None and bool(self.unfinished))
        starved = [
            self.jobs[number].row["queue"]
            for number, late in self.delay.items()
            if (late > 24 * HOUR and late > 10 * max(self.duration[number], 10 * SECOND))
            or self.first_start[number] > 7 * 24 * HOUR
        ]
        self.say("starvation", len(starved))
        for queue in {job.row["queue"] for job in self.jobs if job.counts}:
            self.say("starvation", starved.count(queue), f"queue={queue}")

    def spread(
        self, metric: str, values: Sequence[float], shapes: Iterable[str], scope: str = "all", unit: float = 1
    ) -> None:
        for shape in shapes:
            value = statistic(sorted(values), shape)
            self.say(f"{metric}.{shape}", None if value is None else value / unit, scope)

    def fairness(self) -> None:
        known = self.info["cluster"]["queues"]
        weight = {
            name: Fraction(known[name]["weight"]) if name in known else Fraction(1) for name in self.holder
        }
        places = [place for place, each in enumerate(self.resources) if self.capacity.get(each)]
        sizes = [self.capacity.get(each, 0) for each in self.resources]
        off = ideal_sum = jain_sum = Fraction(0)
        compared = 0
        owed: dict[tuple[str, int], int] = defaultdict(int)
        now = self.start
        days: dict[int, dict[str, list[Fraction]]] = defaultdict(
            lambda: defaultdict(lambda: [Fraction(0), Fraction(0)])
        )
        for span, held, asked in self.levels():
            if not span:
                continue
            share = {
                queue: max((Fraction(each[place], sizes[place]) for place in places), default=Fraction(0))
                for queue, each in held.items()
            }
            parts = {
                queue: {place: Fraction(each[place], sizes[place]) for place in places}
                for queue, each in asked.items()
            }
            ideal = filled(parts, weight)
            end = now + span
            while now < end:
                day = (now - self.start) // DAY
                part = min(end, self.start + (day + 1) * DAY) - now
                for queue in share:
                    days[day][queue][0] += part * share[queue]
                    days[day][queue][1] += part * ideal[queue]
                now += part
            off += span * sum(abs(share[queue] - ideal[queue]) for queue in share) / 2
            ideal_sum += span * sum(ideal.values())
            ratios = [share[queue] / ideal[queue] for queue in share if ideal[queue] > 0]
            square = sum(ratio * ratio for ratio in ratios)
            if len(ratios) >= 2 and square:
                jain_sum += span * sum(ratios) ** 2 / (len(ratios) * square)
                compared += span
            for queue in held:
                for place, resource in enumerate(self.resources):
                    nominal = (known[queue]["nominal"] or {}).get(resource) if queue in known else None
                    due = min(nominal or 0, asked[queue][place]) - held[queue][place]
                    owed[queue, place] += span * max(0, due)
        self.say("fairness.share_deviation", off / ideal_sum if ideal_sum else None)
        self.say("fairness.jain_share", jain_sum / compared if compared else None)
        self.daily(days)
        for place, resource in enumerate(self.resources):
            total = None
            for queue in {*self.holder, *known}:
                guaranteed = queue in known and resource in (known[queue]["nominal"] or {})
                value = owed[queue, place] if guaranteed else None
                if value is not None:
                    total = (total or 0) + value
                self.say("fairness.guarantee_deficit", self.hours(value, resource), self.of(queue), resource)
            self.say("fairness.guarantee_deficit", self.hours(total, resource), resource=resource)
        of_queues: dict[str, list[float]] = defaultdict(list)
        for number, slowdown in self.slowdown.items():
            of_queues[self.holder[number]].append(slowdown)
        means = [fsum(each) / len(each) for each in of_queues.values()]
        squares = fsum(mean * mean for mean in means)
        index = fsum(means) ** 2 / (len(means) * squares) if means else None
        self.say("fairness.jain_slowdown", index, least=None)
        self.say("fairness.max_min_slowdown", max(means) / min(means) if means else None, least=None)

    def sharing(self, alone: Mapping[str, Slow]) -> None:
        """How jobs fare against the runs in which their quota is alone."""
        means, every = {}, []
        for quota in sorted({each for each in self.counts_against if each is not None}):
            other = {job.row["job_id"]: job for job in alone[quota].jobs} if quota in alone else {}
            ratios, later = [], []
            for job, behind in zip(self.jobs, self.counts_against, strict=True):
                by_itself = other.get(job.row["job_id"])
                if behind != quota or by_itself is None or not (job.counts and by_itself.counts):
                    continue
                took, apart = self.took(job), alone[quota].took(by_itself)
                if apart:
                    later.append(took > apart)
                if apart and job.finish is not None and by_itself.finish is not None:
                    ratios.append(Fraction(took, apart))
            if ratios:
                means[quota] = sum(ratios) / len(ratios)
            self.say("fairness.finish_time", means.get(quota), f"quota={quota}", least=None)
            share = sum(later) / len(later) if later else None
            self.say("fairness.finish_time_above_1", share, f"quota={quota}", least=None)
            every += later
        worse = sum(mean > Fraction(105, 100) for mean in means.values())
        for holder, behind in sorted(set(zip(self.holder, self.counts_against, strict=True)), key=str):
            if behind is None:
                self.say("fairness.finish_time", None, f"queue={holder}", least=None)
                self.say("fairness.finish_time_above_1", None, f"queue={holder}", least=None)
        self.say("fairness.finish_time_above_1", sum(every) / len(every) if every else None, least=None)
        self.say("fairness.sharing_violations", worse / len(means) if means else None)

    def took(self, job: Job) -> int:
        """From a job's arrival to its end; the least that it can be of one that goes on."""
        if job.finish is not None:
            return job.finish - job.submit
        return self.end - job.submit + self.duration[job.number] - job.kept

    def daily(self, days: Mapping[int, Mapping[str, Sequence[Fraction]]]) -> None:
        due = sum(each[1] for of_day in days.values() for each in of_day.values())
        off = sum(abs(each[0] - each[1]) for of_day in days.values() for each in of_day.values()) / 2
        self.say("fairness.share_deviation_daily", off / due if due else None)
        found = []
        for day, of_day in days.items():
            parts = [held / own for held, own in of_day.values() if own]
            if len(parts) >= 2 and sum(parts):
                length = min(DAY, self.end - self.start - day * DAY)
                pairs = sum(abs(one - other) for one in parts for other in parts)
                index = sum(parts) ** 2 / (len(parts) * sum(each * each for each in parts))
                found.append((length, index, pairs / (2 * len(parts) * sum(parts))))
        whole = sum(each[0] for each in found)
        for place, name in ((1, "jain_share_daily"), (2, "gini_share_daily")):
            total = sum(each[0] * each[place] for each in found)
            self.say(f"fairness.{name}", total / whole if whole else None)

    def hours(self, amount: Fraction | int | None, resource: str) -> float | None:
        return None if amount is None else amount / (HOUR * SIZES.get(resource, 1))

    def disruption(self) -> None:
        found = self.preemptions
        rows = [row for row in self.decisions if row["action"] == "preempt"]
        reason = {}
        for row in rows:
            reason.setdefault((row["time"], row["job"], self.number[row["by"]]), row["reason"])
        self.say("disruption.preemptions", len(found))
        self.counted("preemptions", "reason", [reason[tuple(each)] for each in found])
        self.counted("preemptions", "queue", [self.queue[each.job] for each in found])
        self.counted("preemptions", "quota", [self.counts_against[each.job] for each in found])
        self.counted("preemptions", "beneficiary", [self.queue[each.by] for each in found])
        times = defaultdict(int)
        for each in found:
            times[each.job] += 1
        self.say("disruption.preempted_jobs", len(times))
        self.say("disruption.preempted_pods", sum(self.jobs[row["job"]].held[row["seq"]] for row in rows))
        self.say("disruption.repeat_victims", sum(count >= 2 for count in times.values()))
        self.say("disruption.max_preemptions_of_a_job", max(times.values(), default=0))
        arrived = sum(job.submit is not None for job in self.jobs)
        self.say("disruption.preemptions_per_1000_jobs", 1000 * len(found) / arrived)
        shares = [
            (Fraction(self.allocated[place], self.capacity[each]), -place)
            for place, each in enumerate(self.resources)
            if self.capacity.get(each)
        ]
        most = -max(shares)[1] if shares else 0
        hours = self.hours(self.allocated[most], self.resources[most]) if shares else None
        self.say("disruption.preemptions_per_1000_hours", 1000 * len(found) / hours if hours else None)
        victims = defaultdict(int)
        for each in found:
            victims[each.by] += 1
        self.spread("disruption.victims_per_preemptor", list(victims.values()), ("mean", "p95", "max"))
        mean = self.mean_duration
        depth: dict[int, tuple[int, int]] = {}
        depths = []
        for each in found:
            time, before = depth.get(each.by, (-(10**18), 0))
            depth[each.job] = each.time, 1 + before if each.time - time <= mean else 0
            depths.append(depth[each.job][1])
        self.spread("disruption.cascade_depth", depths, ("mean", "max"))
        hits = {True: 0, False: 0}
        for each in found:
            earlier = [other for other in found if 0 < each.time - other.time <= mean]
            winner, victim = self.holder[each.by], self.holder[each.job]
            inside = winner == victim
            hits[inside] += any(
                self.holder[other.job] == winner
                and (other.by == each.job if inside else self.holder[other.by] == victim)
                for other in earlier
            )
        self.say("disruption.thrash", hits[False])
        self.say("disruption.rework", hits[True])
        self.lost()
        self.restarts()
        self.loops()
        evicted: dict[tuple[int, str, str | None], int] = defaultdict(int)
        for row in rows:
            evicted[row["time"], row["by"], row["detail"]] += row["pods"]
        told = []
        for (_, _, detail), pods in evicted.items():
            number = json.loads(detail or "{}").get("pdb_violations")
            told += [] if number is None else [min(number, pods)]
        self.say("disruption.pdb_violations", sum(told) if told else None if rows else 0)

    def quota(self) -> None:
        """Where no quota has a limit and no cohort a parent: queues of a cohort are over together."""
        known = self.info["cluster"]["queues"]
        admits = any(row["action"] == "admit" for row in self.decisions)
        pods: dict[int, int] = defaultdict(int)
        over: dict[tuple[str, int], int] = defaultdict(int)
        unbound: dict[tuple[str, int], int] = defaultdict(int)
        borrowed: dict[tuple[str, int], int] = defaultdict(int)
        lent: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        for span, bound, _ in self.levels():
            for queue, amounts in bound.items():
                for place, amount in enumerate(amounts):
                    unbound[queue, place] -= amount * span
        times = [row["time"] for row in self.decisions[1:]] + [self.end]
        held: dict[str, list[int]] = defaultdict(lambda: [0] * len(self.resources))
        for row, following in zip(self.decisions, times, strict=True):
            job, action = row["job"], row["action"]
            more = row["pods"] if action == "admit" else -row["pods"] if action in ("gone", "finish") else 0
            if action == "requeue" and row["pod"] is None:
                more = -pods[job]
            pods[job] += more
            for place, amount in enumerate(self.asks[job]):
                held[self.holder[job]][place] += more * amount
            for queue in known if following > row["time"] else ():
                cohort = known[queue]["cohort"]
                kin = [each for each in known if known[each]["cohort"] == cohort] if cohort else [queue]
                for place, resource in enumerate(self.resources):
                    nominal = {
                        each: known[each]["nominal"][resource]
                        for each in kin
                        if resource in known[each]["nominal"]
                    }
                    if queue in nominal:
                        span = following - row["time"]
                        more = sum(max(0, held[each][place] - nominal[each]) for each in nominal)
                        spare = {each: max(0, nominal[each] - held[each][place]) for each in nominal}
                        borrowed[queue, place] += max(0, held[queue][place] - nominal[queue]) * span
                        if any(spare.values()):
                            lent[queue, place] += span * Fraction(more * spare[queue], sum(spare.values()))
                    own = [known[each]["nominal"].get(resource, 0) for each in kin]
                    beyond = sum(held[each][place] for each in kin) - sum(own)
                    mine = held[queue][place] - known[queue]["nominal"].get(resource, 0)
                    unbound[queue, place] += held[queue][place] * (following - row["time"])
                    over[queue, place] += max(0, min(beyond, mine)) * (following - row["time"])
        latency = self.info["policy"]["options"].get("evictionLatency") or 0
        for number, row in enumerate(self.decisions):
            later = [
                each["action"]
                for each in self.decisions[number + 1 :]
                if each["job"] == row["job"] and each["action"] in ("gone", "requeue", "finish", "admit")
            ]
            evicted = row["action"] in ("preempt", "evict") and row["pod"] is None
            if evicted and later[:1] == ["requeue"]:  # no pod of it was bound
                for place, amount in enumerate(self.asks[row["job"]]):
                    held_on = amount * row["pods"] * min(latency, self.end - row["time"])
                    unbound[self.holder[row["job"]], place] += held_on
        for place, resource in enumerate(self.resources):
            of_queues = {
                queue: over[queue, place] if admits and resource in known[queue]["nominal"] else None
                for queue in known
            }
            every = [value for value in of_queues.values() if value is not None]
            self.say("quota.over", self.hours(sum(every) if every else None, resource), resource=resource)
            for queue in {*self.holder, *known}:
                value = of_queues.get(queue)
                self.say("quota.over", self.hours(value, resource), self.of(queue), resource)
            for metric, sums in (("quota.borrowed", borrowed), ("quota.lent", lent)):
                each = {queue: sums[queue, place] for queue, over in of_queues.items() if over is not None}
                total = sum(each.values()) if each else None
                self.say(metric, self.hours(total, resource), resource=resource)
                for queue in {*self.holder, *known}:
                    self.say(metric, self.hours(each.get(queue), resource), self.of(queue), resource)
            there = {
                queue: unbound[queue, place]
                for queue in known
                if admits and self.info["cluster"]["nodes"] and resource in known[queue]["nominal"]
            }
            total = sum(there.values()) if there else None
            self.say("quota.held_unbound", self.hours(total, resource), resource=resource)
            for queue in {*self.holder, *known}:
                value = there.get(queue)
                self.say("quota.held_unbound", self.hours(value, resource), self.of(queue), resource)

    def fragmentation(self) -> None:
        """Node by node, after every instant: what is free where no waiting pod fits."""
        pools = self.info["cluster"]["allocatable"]
        usual = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
        size = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])}
        named = {row["node"] for row in self.decisions if row["node"] is not None}
        unnamed = sum(pool["count"] for pool in pools) - len({*size, *named})
        nodes = [*size, *sorted(named - size.keys()), *(("unnamed", number) for number in range(unnamed))]
        free = {node: [size.get(node, usual).get(each, 0) for each in self.resources] for node in nodes}
        where: dict[int, dict[str | None, str]] = defaultdict(dict)
        waiting: dict[int, int] = defaultdict(int)
        lost = [0] * len(self.resources)
        times = [row["time"] for row in self.decisions[1:]] + [self.end]
        for row, following in zip(self.decisions, times, strict=True):
            job, action = row["job"], row["action"]
            ask, pod = self.asks[job], row["pod"]
            if action in ("submit", "requeue"):
                waiting[job] += row["pods"]
            elif action in ("bind", "reject"):
                waiting[job] -= row["pods"]
            if action == "bind":
                where[job][pod] = row["node"]
            moved = {"bind": [pod], "gone": [pod], "finish": [pod] if pod else list(where[job])}
            for each in moved.get(action, []) if nodes else []:
                node = where[job][each] if action == "bind" else where[job].pop(each)
                sign = -1 if action == "bind" else 1
                free[node] = [have + sign * one for have, one in zip(free[node], ask, strict=True)]
            span = following - row["time"]
            needs = {tuple(self.asks[each]) for each, count in waiting.items() if count} if span else set()
            for node in nodes if needs else []:
                if not any(
                    all(one <= have for one, have in zip(need, free[node], strict=True)) for need in needs
                ):
                    lost = [one + span * have for one, have in zip(lost, free[node], strict=True)]
        for place, resource in enumerate(self.resources):
            whole = self.capacity.get(resource, 0) * (self.end - self.start)
            share = lost[place] / whole if nodes and whole else None
            self.say("fragmentation", share, resource=resource)

    def users(self) -> None:
        for place, resource in enumerate(self.resources):
            useful: dict[str, int] = defaultdict(int)
            needed: dict[str, int] = defaultdict(int)
            for job in self.jobs:
                user = job.row.get("user") or ""
                if user and job.counts and job.submit is not None:
                    needed[user] += job.pods * self.asks[job.number][place] * self.duration[job.number]
            for span in self.spans:
                job = self.jobs[span.job]
                if span.progress and not span.lost and job.finish is not None:
                    amount = span.pods * self.asks[span.job][place] * (span.end - span.start)
                    useful[job.row.get("user") or ""] += amount
            parts = [Fraction(useful[user], needed[user]) for user in needed if needed[user]]
            self.unequal("fairness.gini_users", "fairness.jain_users", parts, resource)

    def unequal(self, gini: str, jain: str, parts: Sequence[Fraction], resource: str) -> None:
        whole, count = sum(parts), len(parts)
        pairs = sum(abs(one - other) for one in parts for other in parts)
        self.say(gini, pairs / (2 * count * whole) if whole else None, resource=resource)
        square = sum(each * each for each in parts)
        self.say(jain, whole * whole / (count * square) if whole else None, resource=resource)

    def reclaim(self) -> None:
        """Row by row: whether a quota holds less than is its own and than it asks for."""
        known = self.info["cluster"]["queues"]
        held: dict[tuple[str, int], int] = defaultdict(int)
        asked: dict[tuple[str, int], int] = defaultdict(int)
        since: dict[str, int] = {}
        latencies: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        times = [row["time"] for row in self.decisions[1:]] + [None]
        for row, following in zip(self.decisions, times, strict=True):
            queue, action = self.holder[row["job"]], row["action"]
            if queue in known:
                gets = self.holds(row) - (action in ("gone", "finish"))
                asks = (action in ("submit", "requeue")) - (action in ("gone", "finish", "reject"))
                for place, amount in enumerate(self.asks[row["job"]]):
                    held[queue, place] += gets * row["pods"] * amount
                    asked[queue, place] += asks * row["pods"] * amount
                if self.is_owed(queue, held, asked):
                    since.setdefault(queue, row["time"])
            if following != row["time"]:  # what is so at the end of an instant counts
                for name in [each for each in since if not self.is_owed(each, held, asked)]:
                    latencies[name].append((row["time"] - since.pop(name), False))
        for name, begin in since.items():
            latencies[name].append((self.end - begin, True))
        for queue in {*self.holder, *known, ""}:
            own = {queue} if queue else {*self.holder}
            several = [each for name in sorted(own) for each in latencies[name]]
            scope = self.of(queue) if queue else "all"
            values = {number: each[0] for number, each in enumerate(several)}
            going = {number for number, each in enumerate(several) if each[1]}
            self.accrued("reclaim_latency", values, going, ("p50", "p95", "max"), scope, SECOND)
            if queue:
                length = self.end - self.start
                quota = queue in known and bool(known[queue]["nominal"])
                asks = any(known[each]["nominal"] for each in self.holder if each in known)
                share = sum(each[0] for each in several) / length if quota and asks and length else None
                self.say("reclaim.owed", share, scope)

    def is_owed(
        self, queue: str, held: Mapping[tuple[str, int], int], asked: Mapping[tuple[str, int], int]
    ) -> bool:
        """Whether a quota asks for more of its own than it holds."""
        nominal = self.info["cluster"]["queues"][queue]["nominal"]
        return any(
            min(nominal.get(each, 0), asked[queue, place]) > held[queue, place]
            for place, each in enumerate(self.resources)
        )

    def of(self, holder: str) -> str:
        """The scope of what is measured of a quota, or of a queue without one."""
        return f"quota={holder}" if holder in self.info["cluster"]["queues"] else f"queue={holder}"

    def counted(self, name: str, kind: str, values: Sequence[str | None]) -> None:
        for value in set(values) - ({None} if kind == "quota" else set()):
            self.say(f"disruption.{name}", values.count(value), f"{kind}={value}")

    def lost(self) -> None:
        taken: dict[tuple[int, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for row in self.decisions:
            if row["action"] == "preempt":
                time = self.jobs[row["job"]].lost[row["seq"]]
                taken[row["job"], row["time"]][self.queue[self.number[row["by"]]]] += time
        for place, resource in enumerate(self.resources):
            sums: dict[str, Fraction] = defaultdict(Fraction)
            total = 0
            for span in self.spans:
                if span.lost:
                    amount = span.pods * self.asks[span.job][place] * (span.end - span.start)
                    total += amount
                    sums[f"queue={self.queue[span.job]}"] += amount
                    if self.counts_against[span.job] is not None:
                        sums[f"quota={self.counts_against[span.job]}"] += amount
                    parts = taken.get((span.job, span.end), {})
                    for queue, time in parts.items():
                        if time:
                            sums[f"beneficiary={queue}"] += amount * Fraction(time, sum(parts.values()))
            self.say("disruption.lost", self.hours(total, resource), resource=resource)
            allocated = self.allocated[place]
            share = total / allocated if allocated else None
            self.say("disruption.lost_of_allocated", share, resource=resource)
            for scope, amount in sums.items():
                self.say("disruption.lost", self.hours(amount, resource), scope, resource)

    def restarts(self) -> None:
        waits: dict[int, int] = {}
        going, never = set(), 0
        for each in self.preemptions:
            job, back = self.jobs[each.job], each.time
            for row in self.decisions:
                same = (row["time"], row["job"], row["by"]) == (
                    each.time,
                    each.job,
                    self.jobs[each.by].row["job_id"],
                )
                if row["action"] != "preempt" or not same or row["pod"] is None:
                    continue
                name = re.sub(r"-r\d+$", "", row["pod"].removeprefix(row["job_id"]))
                again = re.search(r"-r(\d+)$", row["pod"])
                successor = 1 + (int(again[1]) if again else 0)
                at = [time for time, pod, number in job.binds if (pod, number) == (name, successor)]
                back = max(back, at[0]) if at else self.end + 1
            runs = [span.start for span in job.spans if span.progress and back <= span.start < self.end]
            if back <= self.end and job.finish is not None:
                runs.append(job.finish)
            if runs:
                waits[len(waits)] = min(runs) - each.time
                continue
            never += 1
            if job.reject is None:
                going.add(len(waits))
                waits[len(waits)] = self.end - each.time
        self.accrued("disruption.time_to_restart", waits, going, ("p50", "p95"), "all", SECOND)
        self.say("disruption.not_restarted", never)

    def loops(self) -> None:
        latest: dict[int, Preemption] = {}
        held = [0] * len(self.resources)
        victims, winners = [], []
        for each in self.preemptions:
            before = latest.get(each.job)
            latest[each.job] = each
            if before is None or self.holder[before.by] != self.holder[each.by]:
                continue
            sides = (self.jobs[each.job], self.jobs[before.by])
            spans = [span for side in sides for span in side.spans if span.progress]
            if any(span.start < each.time and span.end > before.time for span in spans):
                continue
            first = [
                next(
                    row["seq"]
                    for row in self.decisions
                    if row["action"] == "preempt"
                    and (row["time"], row["job"], self.number[row["by"]]) == tuple(one)
                )
                for one in (before, each)
            ]
            if not any(first[0] < seq < first[1] for seq in self.jobs[each.job].again):
                continue
            victims.append(each.job)
            winners.append(each.by)
            for span in self.jobs[each.job].spans:
                both = max(0, min(span.end, each.time) - max(span.start, before.time))
                for place, amount in enumerate(self.asks[each.job]):
                    held[place] += both * span.pods * amount
        self.say("disruption.ping_pong", len(victims))
        self.counted("ping_pong", "queue", [self.queue[job] for job in victims])
        self.counted("ping_pong", "quota", [self.counts_against[job] for job in victims])
        self.counted("ping_pong", "beneficiary", [self.queue[job] for job in winners])
        for place, resource in enumerate(self.resources):
            self.say("disruption.ping_pong_held", self.hours(held[place], resource), resource=resource)


def filled(
    parts: Mapping[str, Mapping[int, Fraction]], weight: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Weighted max-min fair shares: all rise until one has what it asks for or a resource is full."""
    share = {queue: Fraction(0) for queue in parts}
    used: dict[int, Fraction] = defaultdict(Fraction)
    top = {queue: max(each.values(), default=Fraction(0)) for queue, each in parts.items()}
    rising = [queue for queue in parts if top[queue] > 0 and weight[queue] > 0]
    while rising:
        speed = {
            place: sum(weight[queue] * parts[queue][place] / top[queue] for queue in rising)
            for place in parts[rising[0]]
        }
        step = min((min(top[queue], Fraction(1)) - share[queue]) / weight[queue] for queue in rising)
        step = min([step, *((1 - used[place]) / each for place, each in speed.items() if each)])
        for queue in rising:
            share[queue] += weight[queue] * step
        for place, each in speed.items():
            used[place] += each * step
        full = {place for place in speed if used[place] == 1}
        rising = [
            queue
            for queue in rising
            if share[queue] < min(top[queue], 1) and not any(parts[queue][place] for place in full)
        ]
    return share


def union(spans: Iterable[Span]) -> int:
    """How long at least one of them lasts."""
    total, until = 0, -(10**18)
    for span in sorted(spans, key=lambda each: each.start):
        total += max(0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total


def statistic(values: Sequence[float], shape: str) -> Any:
    """A mean, the largest, or a percentile, linear between order statistics."""
    if not values:
        return None
    if shape == "mean":
        return fsum(values) / len(values)
    if shape == "max":
        return values[-1]
    place = Fraction(int(shape[1:]), 100) * (len(values) - 1)
    low = values[floor(place)]
    return low + float(place - floor(place)) * (values[min(floor(place) + 1, len(values) - 1)] - low)


def agrees(run: harness.Run, trace: pl.DataFrame, alone: Mapping[str, harness.Run] | None = None) -> None:
    """Compares every value: integers to what rounding leaves, fractions and percentiles to 1e-9.

    A percentile lies between two order statistics: that it comes to an integer is no reason to be exact.
    """
    fast = {(row["metric"], row["scope"], row["resource"]): row["value"] for row in run.metrics.to_dicts()}
    slowly = Slow(run, trace)
    if alone is not None:
        slowly.sharing({quota: Slow(other, trace) for quota, other in alone.items()})
    slow = slowly.values
    assert fast.keys() == slow.keys()
    least = {
        (row["metric"], row["scope"], row["resource"]): row["at_least"] for row in run.metrics.to_dicts()
    }
    assert least == slowly.least
    for key, value in slow.items():
        between = re.search(r"\.p\d+$", key[0])
        if value is None or fast[key] is None or (value == int(value) and not between):
            assert fast[key] == (value if value is None else pytest.approx(value, rel=1e-12, abs=1e-12)), key
        else:
            assert fast[key] == pytest.approx(value, rel=1e-9), key
