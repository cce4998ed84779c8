"""Records what jobs held over time in one replay, to compare a simulation with a record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from harness.base.collector import seldom_collected
from harness.base.grouping import summed
from harness.cluster.changes.edits import Instant
from harness.engine.events import BIND, EVICT, FINISH, GONE, PROGRESS, RESTORING, Fact, NullRecorder
from harness.runs.engines import as_heard, engine_of, made
from harness.runs.plan import Plan
from harness.runs.replaying import jobs_of

Span: TypeAlias = tuple[int, int]
"""A start and an end, in microseconds since the origin."""


class History(NamedTuple):
    """The spans in which jobs ran, and the nodes of their pods.

    Attributes:
        spans: for each job, the spans in which it ran, in order. A span begins with the first progress, and
            ends when the job holds nothing.
        evicted: for each time, the jobs that were evicted without a preemption.
        pods: the time, job, pod and node of each binding. The node is None if the pod left. Pod -1 means all
            pods.
    """

    spans: Mapping[str, Sequence[Span]]
    evicted: Mapping[int, frozenset[str]]
    pods: Sequence[tuple[int, str, int, str | None]]

    def first(self, job: str, never: int) -> int:
        """Returns the time at which a job first runs, or the value of `never` if it never runs."""
        return self.spans[job][0][0] if self.spans.get(job) else never

    def nodes_at(self, time: int) -> dict[str, set[str]]:
        """Maps each job to the nodes of its pods just before a given time."""
        found: dict[str, dict[int, str]] = {}
        for at, job, pod, node in self.pods:
            if at > time or (at == time and node is not None):
                continue
            if node is not None:
                found.setdefault(job, {})[pod] = node
            elif pod < 0:
                found.pop(job, None)
            else:
                found.get(job, {}).pop(pod, None)
        return {job: set(nodes.values()) for job, nodes in found.items()}

    def scores(self, jobs: Collection[str], time: int) -> dict[str, int]:
        """Scores each node: the number of its jobs that are in `jobs`, minus the number of its other jobs.

        Jobs are counted just before `time`.
        """
        held = self.nodes_at(time).items()
        return summed((node, 1 if job in jobs else -1) for job, nodes in held for node in nodes)


def history_of(plan: Plan) -> History:
    """Replays a plan without storing anything, and returns what its jobs held."""
    return Played(plan).end()


class Played:
    """A replay that is not stored, and can continue.

    It begins immediately.
    """

    def __init__(self, plan: Plan) -> None:
        plan = as_heard(plan)
        self._recorder = _Recorder()
        self._engine = engine_of(plan, list(jobs_of(plan).chunks()), self._recorder)
        self._engine.begin(made(plan, self._engine.view), name=plan.label)
        with seldom_collected:
            self._engine.play()

    def go_on(self, changes: Sequence[Instant], until: int) -> None:
        """Continues until a later time, with other changes of the cluster."""
        with seldom_collected:
            self._engine.go_on(changes, until)

    def end(self) -> History:
        """Ends the replay, and returns what its jobs held."""
        return self._recorder.history(self._engine.finish().end)


class _Recorder(NullRecorder):
    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._held: dict[str, list[Span]] = {}
        self._progress: dict[str, list[int]] = {}
        self._evicted: dict[int, set[str]] = {}
        self._pods: list[tuple[int, str, int, str | None]] = []

    def record(self, fact: Fact) -> None:
        action, job = fact.action, fact.job.id
        if fact.holding > 0:
            self._since[job] = fact.time
        elif fact.holding < 0:
            self._held.setdefault(job, []).append((self._since.pop(job), fact.time))
        if action == BIND:
            self._pods.append((fact.time, job, fact.pod, fact.node))
        elif action in (GONE, FINISH):
            self._pods.append((fact.time, job, fact.pod, None))
        elif action == EVICT:
            self._evicted.setdefault(fact.time, set()).add(job)

    def stint(self, *about: Any) -> None:
        job, _, _, start, end, state, *_ = about
        if state in (PROGRESS, RESTORING) and end > start:
            self._progress.setdefault(job.id, []).append(start)

    def history(self, end: int) -> History:
        for job, since in self._since.items():
            self._held.setdefault(job, []).append((since, end))
        spans = {job: list(self._runs(job, held)) for job, held in self._held.items()}
        return History(spans, {time: frozenset(jobs) for time, jobs in self._evicted.items()}, self._pods)

    def _runs(self, job: str, held: Sequence[Span]) -> Iterator[Span]:
        starts = sorted(self._progress.get(job, ()))
        for begin, end in held:
            start = next((each for each in starts if begin <= each < end), None)
            if start is not None:
                yield start, end
