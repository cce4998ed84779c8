"""What happened to each job, followed decision by decision: what it held, and which progress it kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oracle.pods import Amounts, Part, admitted, place_of, total

NEVER = 2**62


class Span(NamedTuple):
    """Pods of a job that hold so much; `lost` is when an eviction threw this progress away, else NEVER.

    `why` is the cause of that eviction.
    """

    job: int
    held: Amounts
    start: int
    end: int
    progress: bool
    lost: int = NEVER
    why: str = ""


def cause(row: Mapping[str, Any]) -> str:
    """What a decision to evict comes of."""
    if row["action"] == "preempt":
        return "preemption"
    unanswered = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    match row["reason"]:
        case "DeletionByPodGC" | "NodeFail":
            return "failure"
        case "DeletionByTaintManager":
            return "failure" if any(taint in row["detail"] for taint in unanswered) else "drain"
        case "ClusterQueueStopped" | "LocalQueueStopped":
            return "quota-stop"
        case "PodsReadyTimeout" | "DeactivatedDueToRequeuingLimitExceeded":
            return "time-out"
        case "DeactivatedDueToMaximumExecutionTimeExceeded":
            return "time-out"
    return "other"


class LostBefore(NamedTuple):
    """Progress from before the replay that an eviction threw away."""

    job: int
    held: Amounts
    time: int
    length: int


class Took(NamedTuple):
    """How long pods had held what they have, added up; and that times what they have, of each resource."""

    time: int
    amounts: Sequence[int]


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
    started: bool = False  # whether they have started up

    def progress(self, now: int) -> int:
        """All of the progress of which nothing has been thrown away."""
        return self.kept + self.done + (0 if self.began is None else max(0, now - self.since))


@dataclass(eq=False)
class Job:
    """One job; times are microseconds since the trace's origin."""

    number: int
    row: Mapping[str, Any]
    parts: Sequence[Part]
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
    took: dict[int, Took] = field(default_factory=dict)  # decision to preempt -> what these had held
    ended: int = 0

    def __post_init__(self) -> None:
        self.pods: int = self.row["pods"]
        self.counts = [part.pods for part in self.parts]  # that are to run
        self.over = [0 for _ in self.parts]  # that have ended
        self.duration: int = self.row["duration"]

    def unit(self, pod: int | None) -> Unit:
        """The unit of a pod."""
        return self.units.setdefault(None if self.together else pod, Unit(done=self.row["done"]))

    @property
    def wanted(self) -> int:
        """How many pods it is to have."""
        return sum(self.counts)

    def size(self, pod: int | None) -> int:
        return self.wanted if pod is None else 1

    def asks(self, *pods: int | None) -> Amounts:
        """What pods ask for together; None stands for all of the job."""
        whole = [0] * len(self.parts)
        for pod in pods:
            if pod is None:
                whole = list(self.counts)
            else:
                whole[place_of(self.parts, pod)] += 1
        return total(self.parts, whole)

    def kept(self, now: int) -> int:
        """Progress of which nothing has been thrown away: of pods on their own that of the least advanced.

        Pods that the last admission left out are not waited for.
        """
        if self.together:
            return self.unit(None).progress(now)
        ranked = sorted((self.unit(pod).progress(now) for pod in range(self.pods)), reverse=True)
        return ranked[self.wanted - 1]

    def turn(self, row: Mapping[str, Any], holds: bool) -> None:
        """One decision about it."""
        time, action, pod = row["time"], row["action"], row["pod_number"]
        if action == "submit":
            self.submit = time
        elif action == "reject":
            self.reject = time
        elif action == "requeue" and pod is None:
            self.counts = [part.pods for part in self.parts]
        if action == "admit":
            self.again.append(row["seq"])
            left = [part.pods - over for part, over in zip(self.parts, self.over, strict=True)]
            more = admitted(self.parts, left, row)
            self.counts = [over + each for over, each in zip(self.over, more, strict=True)]
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
            since = {each: time - max(self.begun[each], least) for each in taken}
            self.took[row["seq"]] = Took(
                sum(self.size(each) * length for each, length in since.items()),
                [
                    sum(ask * length for ask, length in zip(column, since.values(), strict=True))
                    for column in zip(*map(self.asks, since), strict=True)
                ]
                or [0] * len(self.parts[0].asks),
            )
            hit = [None] if self.together else taken or range(self.pods)
            for each in hit:
                self.stop(each, time, evicted=cause(row))
            for each in taken:
                self.hold(each, time)
                self.bound.pop(each)
                self.ending[each] = time
        elif action == "gone":
            for each in list(self.ending) if pod is None else [pod]:
                self.span(self.ending.pop(each), time, self.asks(each), progress=False)
        elif action == "finish":
            for each in list(self.bound) if pod is None else [pod]:
                self.stop(each, time)
                if not self.together:
                    self.unit(each).kept = self.duration
                if each is not None:
                    self.over[place_of(self.parts, each)] += 1
                self.ended += self.size(each)
                self.bound.pop(each)
            if self.ended >= self.wanted:
                self.finish = time

    def begin(self, unit: Unit, now: int) -> None:
        """All of its pods have their resources."""
        unit.began = now
        done = min(unit.done, self.duration)
        startup = 0 if unit.done else self.row["startup"][unit.started]  # what ran before the replay is ready
        unit.started = unit.started or not unit.done
        unit.since = now - done + startup + (self.losses.restore if unit.kept else 0)
        unit.done = 0

    def stop(self, pod: int | None, now: int, *, evicted: str = "") -> None:
        """A pod's unit progresses no longer; what an eviction throws away is the end of its progress."""
        unit = self.unit(pod)
        pods = [each for each in self.bound if self.unit(each) is unit]
        held = self.asks(*pods)
        if unit.began is None:
            if evicted and unit.done:
                unit.kept = self.losses.kept(unit.done, self.row["interval"])
                held = self.asks(None if self.together else pod)
                self.lose_before(held, now, unit.done - unit.kept)
                unit.done = 0
            return
        began, since, unit.began = unit.began, unit.since, None
        if since > began:
            self.span(began, min(since, now), held, progress=False)
        first = max(since, began)
        if now >= since:
            progress = unit.kept + now - since
            kept = self.losses.kept(progress, self.row["interval"]) if evicted else progress
            lost = min(progress - kept, now - first)
            self.lose_before(held, now, progress - kept - lost)
            self.span(first, now - lost, held, progress=True)
            if lost:
                self.span(now - lost, now, held, progress=True, lost=now, why=evicted)
            unit.kept = kept
        for each in pods:
            self.bound[each] = now

    def hold(self, pod: int | None, now: int) -> None:
        """It has held its resources without progress until now."""
        self.span(self.bound[pod], now, self.asks(pod), progress=False)
        self.bound[pod] = now

    def lose_before(self, held: Amounts, time: int, length: int) -> None:
        if length:
            self.before.append(LostBefore(self.number, held, time, length))

    def span(
        self, start: int, end: int, held: Amounts, progress: bool, lost: int = NEVER, why: str = ""
    ) -> None:
        self.spans.append(Span(self.number, held, start, end, progress, lost, why))

    def close(self, end: int) -> None:
        """The window ends; what is under way goes on, but is measured so far."""
        self.progress = self.kept(end)
        for key in list(self.units):
            self.stop(key, end)
        for pod in list(self.bound):
            self.hold(pod, end)
        for pod, since in self.ending.items():
            self.span(since, end, self.asks(pod), progress=False)
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
        Job(number, row, row["parts"], losses, not nodes or row["gang"] or row["pods"] == 1)
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
