"""The state of a job according to its decisions.

The state determines which actions are possible next and when events are due. This module records every span
in which a pod holds resources, so that the checker can recompute the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from harness.base.json_text import parse_json
from harness.engine.losses import Losses
from harness.testing.checks.facts import Asked, Row

_POD = re.compile(r"(?:-(\d+))?(?:-r(\d+))?")

Span = tuple[int, int, str, int]
"""The beginning, the end, the state, and how much an eviction lost."""


class IllegalError(Exception):
    """A decision is impossible after earlier decisions. The message says why."""


@dataclass
class Hold:
    """A pod that holds resources.

    `since` is the beginning of its current state. If the pod is evicted, `due` is the time when it is gone.
    """

    node: str | None
    since: int
    due: int | None = None


@dataclass
class Unit:
    """Pods that make progress together.

    `due` is the time when their work is done, or None while the pods make no progress. The pods are ready at
    the time `ready`. Progress begins then or later.
    """

    pods: frozenset[int]
    kept: int = 0
    ready: int = 0
    since: int = 0
    due: int | None = None


@dataclass
class Life:
    """One job.

    Attributes:
        on_nodes: whether pods are bound to nodes.
        removed: the nodes that are removed at this time.
        early: the last time at which an evicted pod was gone before the end of its grace period, because its
            node was removed.
        state: `absent`, `alive`, `finished` or `rejected`.
        admitted: whether the job holds quota.
        in_line: whether the job is admitted and waits for its start, which only happens in a cluster without
            nodes.
        wanted: the pods that should run.
        back: when evicted pods must be back in the queue, or None.
        holds, ended: the pods that hold resources, and the ended pods.
    """

    asked: Asked
    losses: Losses
    on_nodes: bool
    removed: Collection[str] = ()
    early: int | None = None
    state: str = "absent"
    admitted: bool = False
    in_line: bool = False
    back: int | None = None
    gone: set[int] = field(default_factory=set)
    holds: dict[int, Hold] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    successors: Counter[int] = field(default_factory=Counter)
    units: dict[int | None, Unit] = field(default_factory=dict)
    spans: dict[Span, list[int]] = field(default_factory=dict)
    first_admitted: int | None = None
    started: int | None = None
    finished: int | None = None
    evictions: list[tuple[int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wanted: frozenset[int] = frozenset(range(self.asked.pods))

    # --- what it is now -----------------------------------------------------------------------------------

    @property
    def waiting(self) -> set[int]:
        """The pods that should run but hold no resources."""
        return (
            set(self.wanted - self.holds.keys() - self.ended - self.gone) if self.state == "alive" else set()
        )

    @property
    def quota(self) -> set[int]:
        """The pods for which the job holds quota."""
        return set(self.wanted - self.ended - self.gone) if self.admitted else set()

    @property
    def leaving(self) -> bool:
        """True if the whole job was evicted and has not returned to the queue yet."""
        return self.admitted and self.back is not None

    def name(self, pod: int) -> str:
        """Returns the current name of a pod."""
        name = self.asked.name if self.asked.pods == 1 else f"{self.asked.name}-{pod}"
        return f"{name}-r{self.successors[pod]}" if self.successors[pod] else name

    def pods_of(self, row: Row) -> frozenset[int]:
        """Returns the pod that a row names, or all pods that should run and have not ended."""
        if row["pod"] is None:
            return self.wanted - self.ended
        found = _POD.fullmatch(row["pod"].removeprefix(self.asked.name))
        pod = int(found[1] or 0) if found else -1
        require(pod in range(self.asked.pods), f"it has no pod {row['pod']}")
        require(row["pod"] == self.name(pod), f"its pod is now named {self.name(pod)}, not {row['pod']}")
        require(row["pods"] == 1, f"it names one pod, but its number of pods is {row['pods']}")
        return frozenset([pod])

    # --- decisions ----------------------------------------------------------------------------------------

    def take(self, row: Row, now: int, removed: Collection[str] = ()) -> frozenset[int]:
        """Applies a decision and returns its pods.

        `removed` has the nodes that are removed at this time.

        Raises:
            IllegalError: the decision is impossible.
        """
        action, self.removed = row["action"], removed
        require((self.state == "absent") == (action == "submit"), f"it is {self.state}")
        require(self.state in ("absent", "alive"), f"it is {self.state}")
        held = bool(self.holds)
        pods = self.pods_of(row) if action != "admit" else self._admitted(row)
        getattr(self, f"_{action}")(row, pods, now)
        change = bool(self.holds) - held
        require(row["holding"] == change, f"'holding' is {row['holding']}, but must be {change}")
        return pods

    def _submit(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(now == self.asked.submit, f"its arrival in the trace is at {self.asked.submit} microseconds")
        require(row["pods"] == self.asked.pods, f"it has {self.asked.pods} pods, not {row['pods']}")
        self.state = "alive"

    def _admitted(self, row: Row) -> frozenset[int]:
        """Returns the pods that can run after an admission, including ended pods.

        Partial admission leaves out the last pods of a pod set.
        """
        parts, counts = self.asked.parts, dict[str, int]()
        if len(parts) > 1 and row["pods"] + len(self.ended) < self.asked.pods:
            counts = parse_json(row["detail"] or "{}").get("counts", {})
        wanted = set(self.ended)
        for part in parts:
            left = [pod for pod in range(part.first, part.first + part.count) if pod not in self.ended]
            wanted.update(left[: row["pods"] if len(parts) == 1 else counts.get(part.name)])
            some = sum(part.first <= pod < part.first + part.count for pod in wanted)
            require(
                part.least <= some, f"it admits {some} pods of {part.name}, which needs at least {part.least}"
            )
        new = len(wanted - self.ended)
        require(row["pods"] == new, f"{row['pods']} pods are admitted, but {new} must run")
        return frozenset(wanted)

    def _admit(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(not self.admitted and not self.holds, "it is already admitted, or already holds resources")
        self.admitted, self.wanted = True, pods
        self.first_admitted = now if self.first_admitted is None else self.first_admitted
        if None in self.units:
            self.units[None].pods = pods
        if not self.on_nodes:
            self.in_line = True
            if row["holding"] == 1:
                self._start(row, pods, now)

    def _start(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(self.in_line and not self.leaving, "it is not admitted, or already runs")
        require(row["pods"] == len(pods), f"{len(pods)} pods are admitted, not {row['pods']}")
        self.in_line = False
        for pod in pods:
            self.holds[pod] = Hold(None, now)
        self._go(self._unit(None), now)

    def _bind(self, row: Row, pods: frozenset[int], now: int) -> None:
        (pod,) = pods
        require(self.on_nodes and row["node"] is not None, "there is no node")
        require(pod in self.waiting and not self.leaving, f"{row['pod']} is not waiting")
        self.holds[pod] = Hold(row["node"], now)
        unit = self._unit(pod)
        if all(each in self.holds and self.holds[each].due is None for each in unit.pods):
            self._go(unit, now)

    def _nominate(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(pods <= self.waiting, f"{row['pod']} is not waiting")

    _unnominate = _nominate

    def _mark(self, row: Row, pods: frozenset[int], now: int) -> None:
        some = f"{len(pods) if self.admitted else 0} of its pods are admitted, not {row['pods']}"
        require(self.admitted and row["pods"] == len(pods), some)

    _unmark = _replace = _mark

    def _refuse(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(bool(self.waiting) and (self.on_nodes or not self.admitted), "none of its pods is waiting")
        require(row["pods"] == len(self.waiting), f"{len(self.waiting)} pods wait, not {row['pods']}")

    def _reject(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(not self.holds and not self.admitted, "it is admitted or holds resources")
        self.state = "rejected"

    def _preempt(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(not self.leaving, "it is already evicted")
        whole = row["pod"] is None
        alone = row["action"] == "evict" and self.on_nodes and not whole
        require(
            self.admitted == whole or alone,
            "an admitted job must be evicted as a whole, and any other job pod by pod",
        )
        self.evictions.append((now, row["by"]))
        grace = parse_json(row["detail"] or "{}").get("grace_us", self.asked.grace)
        going = self.holds.keys() if whole else pods
        require(going <= self.holds.keys(), "it holds nothing")
        require(whole or all(self.holds[pod].due is None for pod in going), "it is already evicted")
        require(row["pods"] == len(pods), f"its number of pods is {len(pods)}, not {row['pods']}")
        for unit in list(self.units.values()):
            if unit.due is not None and (whole or pods & unit.pods):
                self._halt(unit, now, evicted=True)
        for pod in going:
            self._note(pod, now, "waiting" if self.holds[pod].due is None else "terminating")
            self.holds[pod].due = now + grace
        if whole:
            self.back = now + grace if self.holds else now

    _evict = _preempt

    def _gone(self, row: Row, pods: frozenset[int], now: int) -> None:
        require(not self.on_nodes or row["pod"] is not None, "it names no pod")
        for pod in pods:
            hold = self.holds.get(pod)
            due = None if hold is None else hold.due
            if any(each.due is not None and each.node in self.removed for each in self.holds.values()):
                self.early = now
            early = due is not None and self.early == now
            require(due == now or early, f"it must be gone at {due} microseconds, when its grace period ends")
            self._note(pod, now, "terminating")
            del self.holds[pod]
            self.gone.add(pod)
            if self.on_nodes:
                self.successors[pod] += 1
        if not self.leaving and self.on_nodes:
            self.back = now

    def _requeue(self, row: Row, pods: frozenset[int], now: int) -> None:
        returns = f"it must return to its queue at {self.back} microseconds"
        require(self.back == now or self.early == now, returns)
        if row["pod"] is None:
            require(not self.holds, "it still holds resources")
            back = len(self.gone) + self.asked.pods - len(self.wanted)
            require(row["pods"] == back, f"{back} pods return to the queue, not {row['pods']}")
            self.admitted = self.in_line = False
            self.gone.clear()
            self.wanted = frozenset(range(self.asked.pods))
        else:
            # The pod already has the name of its successor.
            require(pods <= self.gone, f"{row['pod']} is not gone")
            self.gone -= pods
        self.back = None

    def _finish(self, row: Row, pods: frozenset[int], now: int) -> None:
        unit = self._unit(min(pods) if row["pod"] is not None else None)
        idle = "is not due, because it does not run"
        due = idle if unit.due is None else f"is due at {unit.due} microseconds"
        require(unit.due == now, f"its end {due}")
        require(row["pods"] == len(unit.pods), f"{len(unit.pods)} pods end, not {row['pods']}")
        self._halt(unit, now, evicted=False)
        for pod in unit.pods:
            del self.holds[pod]
        self.ended |= unit.pods
        if self.wanted <= self.ended:
            self.state, self.finished = "finished", now

    # --- progress -----------------------------------------------------------------------------------------

    def _unit(self, pod: int | None) -> Unit:
        whole = not self.on_nodes or self.asked.gang
        key = None if whole else pod
        if key not in self.units:
            self.units[key] = Unit(self.wanted if key is None else frozenset([key]))
        return self.units[key]

    def _go(self, unit: Unit, now: int) -> None:
        for pod in unit.pods:
            self._note(pod, now, "waiting")
        unit.ready = now + self.asked.startup
        unit.since = unit.ready + self.losses.restore if unit.kept else unit.ready
        unit.due = unit.since + self.asked.duration - unit.kept

    def _halt(self, unit: Unit, now: int, *, evicted: bool) -> None:
        lost = 0
        progress = unit.kept + max(0, now - unit.since)
        if evicted and now > unit.since:
            kept = self._survives(progress)
            lost, unit.kept = progress - kept, kept
        if unit.since <= now:
            self.started = unit.since if self.started is None else min(self.started, unit.since)
        for pod in unit.pods:
            self._note(pod, min(unit.ready, now), "starting")
            self._note(pod, min(unit.since, now), "restoring")
            self._note(pod, now, "progress", lost)
        unit.due = None

    def _survives(self, progress: int) -> int:
        """Returns the progress that survives an eviction: whole intervals, everything or nothing."""
        interval = self.asked.interval
        if interval is None:
            if self.losses.mode == "restart":
                return 0
            interval = self.losses.interval if self.losses.mode == "checkpoint" else 1
        return progress - progress % interval

    def _note(self, pod: int, now: int, state: str, lost: int = 0) -> None:
        hold = self.holds[pod]
        if hold.since < now:
            self.spans.setdefault((hold.since, now, state, lost), []).append(pod)
            hold.since = now

    def close(self, end: int) -> str:
        """Records the spans that last until the end of the run.

        Returns:
            The state that the job should have in `jobs.parquet`.
        """
        if self.state == "alive":
            for unit in self.units.values():
                if unit.due is not None:
                    self._halt(unit, end, evicted=False)
            for pod, hold in self.holds.items():
                self._note(pod, end, "waiting" if hold.due is None else "terminating")
            return "running" if self.holds else "pending"
        return self.state

    def dues(self) -> Iterable[int]:
        """Yields the times at which something must happen to the job without a decision.

        Work is done, an evicted pod is gone, or evicted pods are back in the queue.
        """
        yield from (unit.due for unit in self.units.values() if unit.due is not None)
        yield from (hold.due for hold in self.holds.values() if hold.due is not None)
        if self.back is not None:
            yield self.back


def require(holds: bool, otherwise: str) -> None:
    """Raise an error if a condition is false."""
    if not holds:
        raise IllegalError(otherwise)
