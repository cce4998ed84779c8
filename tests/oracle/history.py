"""What happened to each job, followed decision by decision: what it held, and which progress it kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER = 2**62


class Span(NamedTuple):
    """Pods of a job that hold resources; `lost` is when an eviction threw this progress away, else NEVER."""

    job: int
    pods: int
    start: int
    end: int
    progress: bool
    lost: int = NEVER


class LostBefore(NamedTuple):
    """Progress from before the replay that an eviction threw away."""

    job: int
    pods: int
    time: int
    length: int


@dataclass(eq=False)
class Losses:
    """The loss model: how much progress an eviction leaves to a job, and what it takes to restore it."""

    mode: str
    interval: int
    restore: int

    def kept(self, progress: int, own: int | None) -> int:
        interval = self.interval if own is None else own
        if own is None and self.mode == "restart":
            return 0
        if (own is None and self.mode == "resume") or not interval:
            return progress
        return progress - progress % interval


@dataclass(eq=False)
class Unit:
    """Pods that progress together: a gang, a job that starts as a whole, or one pod on its own."""

    kept: int = 0  # progress that evictions have left
    done: int = 0  # progress from before the replay, until the first stint
    began: int | None = None  # since when all of its pods hold something
    since: int = 0  # since when they progress, earlier by what they had done before the replay

    def progress(self, now: int) -> int:
        """All of the progress of which nothing has been thrown away."""
        return self.kept + self.done + (0 if self.began is None else max(0, now - self.since))


@dataclass(eq=False)
class Job:
    """One job; times are microseconds since the trace's origin."""

    number: int
    row: Mapping[str, Any]
    losses: Losses
    together: bool
    submit: int | None = None
    finish: int | None = None
    reject: int | None = None
    first: int | None = None
    admitted: int | None = None
    bound: dict[int | None, int] = field(default_factory=dict)  # pod -> since when in its present state
    begun: dict[int | None, int] = field(default_factory=dict)  # pod -> when it last got its resources
    complete: int = 0  # when a gang was last complete
    ending: dict[int | None, int] = field(default_factory=dict)
    units: dict[int | None, Unit] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    before: list[LostBefore] = field(default_factory=list)
    binds: list[tuple[int, int | None, int]] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # the decisions that gave it something again
    held: dict[int, int] = field(default_factory=dict)  # decision to preempt -> the pods that held something
    took: dict[int, int] = field(default_factory=dict)  # decision to preempt -> resource-time of these pods
    ended: int = 0

    def __post_init__(self) -> None:
        self.pods: int = self.row["pods"]
        self.wanted = self.pods
        self.duration: int = self.row["duration"]

    def unit(self, pod: int | None) -> Unit:
        """The unit of a pod."""
        return self.units.setdefault(None if self.together else pod, Unit(done=self.row["done"]))

    def size(self, pod: int | None) -> int:
        return self.wanted if pod is None else 1

    def kept(self, now: int) -> int:
        """Progress of which nothing has been thrown away: of pods on their own that of the least advanced."""
        if self.together:
            return self.unit(None).progress(now)
        return min(self.unit(pod).progress(now) for pod in range(self.pods))

    def turn(self, row: Mapping[str, Any], holds: bool) -> None:
        """One decision about it."""
        time, action, pod = row["time"], row["action"], row["pod_number"]
        if action == "submit":
            self.submit = time
        elif action == "reject":
            self.reject = time
        elif action == "requeue" and pod is None:
            self.wanted = self.pods
        if action == "admit":
            self.again.append(row["seq"])
            self.wanted = row["pods"]
            self.admitted = time if self.admitted is None else self.admitted
        if holds:
            if pod is not None:
                self.binds.append((time, pod, row["successor"]))
                self.again += [row["seq"]] if row["successor"] else []
            self.bound[pod] = self.begun[pod] = time
            if not self.together:
                self.begin(self.unit(pod), time)
            elif sum(map(self.size, self.bound)) == self.wanted - self.ended:
                for each in self.bound:
                    self.hold(each, time)
                self.begin(self.unit(None), time)
                self.complete = time
        elif action in ("preempt", "evict"):
            taken = list(self.bound) if pod is None else [pod]
            self.held[row["seq"]] = sum(map(self.size, taken))
            least = self.complete if self.together else 0
            self.took[row["seq"]] = sum(
                self.size(each) * (time - max(self.begun[each], least)) for each in taken
            )
            hit = [None] if self.together else taken or range(self.pods)
            for each in hit:
                self.stop(self.unit(each), time, evicted=True)
            for each in taken:
                self.hold(each, time)
                self.bound.pop(each)
                self.ending[each] = time
        elif action == "gone":
            for each in list(self.ending) if pod is None else [pod]:
                self.span(self.ending.pop(each), time, self.size(each), progress=False)
        elif action == "finish":
            for each in list(self.bound) if pod is None else [pod]:
                self.stop(self.unit(each), time)
                if not self.together:
                    self.unit(each).kept = self.duration
                self.ended += self.size(each)
                self.bound.pop(each)
            if self.ended >= self.wanted:
                self.finish = time

    def begin(self, unit: Unit, now: int) -> None:
        """All of its pods have their resources."""
        unit.began = now
        done = min(unit.done, self.duration)
        unit.since = now - done if done else now + (self.losses.restore if unit.kept else 0)
        unit.done = 0

    def stop(self, unit: Unit, now: int, *, evicted: bool = False) -> None:
        """It progresses no longer; what an eviction throws away is the end of its progress."""
        pods = [pod for pod in self.bound if self.unit(pod) is unit]
        count = sum(map(self.size, pods))
        if unit.began is None:
            if evicted and unit.done:
                unit.kept = self.losses.kept(unit.done, self.row["interval"])
                count = self.wanted if self.together else 1
                self.lose_before(count, now, unit.done - unit.kept)
                unit.done = 0
            return
        began, since, unit.began = unit.began, unit.since, None
        if since > began:
            self.span(began, min(since, now), count, progress=False)
        first = max(since, began)
        if now >= since:
            progress = unit.kept + now - since
            kept = self.losses.kept(progress, self.row["interval"]) if evicted else progress
            lost = min(progress - kept, now - first)
            self.lose_before(count, now, progress - kept - lost)
            self.span(first, now - lost, count, progress=True)
            if lost:
                self.span(now - lost, now, count, progress=True, lost=now)
            unit.kept = kept
        for pod in pods:
            self.bound[pod] = now

    def hold(self, pod: int | None, now: int) -> None:
        """It has held its resources without progress until now."""
        self.span(self.bound[pod], now, self.size(pod), progress=False)
        self.bound[pod] = now

    def lose_before(self, pods: int, time: int, length: int) -> None:
        if length:
            self.before.append(LostBefore(self.number, pods, time, length))

    def span(self, start: int, end: int, pods: int, progress: bool, lost: int = NEVER) -> None:
        self.spans.append(Span(self.number, pods, start, end, progress, lost))

    def close(self, end: int) -> None:
        """The window ends; what is under way goes on, but is measured so far."""
        self.progress = self.kept(end)
        for unit in list(self.units.values()):
            self.stop(unit, end)
        for pod in list(self.bound):
            self.hold(pod, end)
        for pod, since in self.ending.items():
            self.span(since, end, self.size(pod), progress=False)
        self.first = min((span.start for span in self.spans if span.progress), default=self.finish)
        self.spans = [span for span in self.spans if span.end > span.start]


def histories(
    rows: Iterable[Mapping[str, Any]],
    decisions: Iterable[Mapping[str, Any]],
    losses: Losses,
    nodes: bool,
    holds: Callable[[Mapping[str, Any]], bool],
    end: int,
) -> list[Job]:
    """What has happened to all jobs by `end`; those that have not arrived by then have no `submit`."""
    jobs = [
        Job(number, row, losses, not nodes or row["gang"] or row["pods"] == 1)
        for number, row in enumerate(rows)
    ]
    for row in decisions:
        if row["time"] <= end:
            jobs[row["job"]].turn(row, holds(row))
    for job in jobs:
        job.close(end)
    return jobs


def union(spans: Iterable[Span]) -> int:
    """How long at least one of them lasts."""
    total, until = 0, -NEVER
    for span in sorted(spans, key=lambda each: each.start):
        total += max(0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total
