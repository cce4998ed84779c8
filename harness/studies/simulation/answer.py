"""What is answered of a job: whether it starts now, in what, whom it preempts, or what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.base.units import SECOND
from harness.cluster.model import frozen

STARTS, WAITS, NEVER = "starts", "waits", "never"
"""The verdicts: it starts now; it does not start now; it can never start."""

EXIT_CODES: Mapping[str, int] = {STARTS: 0, WAITS: 3, NEVER: 4}

QUOTA, NODES, VICTIMS, CHECKS, TURN = "quota", "nodes", "victims", "checks", "turn"
"""What a job waits for."""


class Victim(NamedTuple):
    """A job that is preempted.

    Attributes:
        name, queue, priority: which one.
        reason: the scheduler's word for the rule.
        pods: how many of its pods go.
        ran: how long it had made progress, microseconds; None where it had not begun.
        lost: how much of that is thrown away, summed over pods, microseconds.
        text: all that is known of it, as `harness explain` says it.
    """

    name: str
    queue: str
    priority: int
    reason: str
    pods: int
    ran: int | None
    lost: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """It as plain values, times in seconds."""
        found = {**self._asdict(), "lost_seconds": self.lost / SECOND}
        found["ran_seconds"] = None if self.ran is None else self.ran / SECOND
        return {key: value for key, value in found.items() if key not in ("ran", "lost")}


class Move(NamedTuple):
    """What happens to another job in the same cycles.

    Attributes:
        name, queue: which one.
        what: `starts`, `preempts`, `preempted` or `evicted`.
        text: all that is known of it, as `harness explain` says it.
    """

    name: str
    queue: str
    what: str
    text: str


class Change(NamedTuple):
    """The smallest change of its kind with which a job starts.

    Attributes:
        kind: `pods`, `flavor`, `quota`, `policy` or `priority`.
        text: what to change.
        after: `now`, or `victims` where others have to go first.
        victims: the names of these.
        patch: what changes of the cluster, as documents for `--patch`; empty where the job changes.
        job: what changes of the job, as fields of its Workload; empty where the cluster changes.
    """

    kind: str
    text: str
    after: str
    victims: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    job: Mapping[str, Any] = frozen()

    def to_json(self) -> dict[str, Any]:
        """It as plain values."""
        return {
            **self._asdict(),
            "victims": list(self.victims),
            "patch": [dict(each) for each in self.patch],
            "job": dict(self.job),
        }


@dataclass(frozen=True)
class Answer:
    """What is answered of one job.

    Attributes:
        name: its namespace and name.
        ids: of the scheduler's jobs that it is: several where it is several Pods.
        queue: where it waits, "" for none.
        priority: its priority.
        pods: how many it has.
        verdict: `starts`, `waits` or `never`.
        waits_for: `quota`, `nodes`, `victims`, `checks` or `turn`; "" where it does not wait.
        why: what decided, as `harness explain` says it.
        flavors: pod set -> resource -> flavor that it has, or gets.
        counts: pod set -> pods, where it gets fewer than all.
        nodes: node -> how many of its pods are there.
        topology: pod set -> the domains that it gets, as Kueue writes them.
        victims: who is preempted for it.
        moves: what happens to others in the same cycles.
        changes: the smallest changes that let it start, each of its kind; None where nobody looked.
    """

    name: str
    ids: tuple[str, ...]
    queue: str
    priority: int
    pods: int
    verdict: str
    waits_for: str
    why: str
    flavors: Mapping[str, Mapping[str, str]] = field(default_factory=frozen)
    counts: Mapping[str, int] = field(default_factory=frozen)
    nodes: Mapping[str, int] = field(default_factory=frozen)
    topology: Mapping[str, Any] = field(default_factory=frozen)
    victims: Sequence[Victim] = ()
    moves: Sequence[Move] = ()
    changes: Sequence[Change] | None = None

    @property
    def exit_code(self) -> int:
        """0 where it starts now, 3 where it does not, 4 where it can never start."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """It as plain values."""
        return {
            "name": self.name,
            "queue": self.queue,
            "priority": self.priority,
            "pods": self.pods,
            "verdict": self.verdict,
            "waitsFor": self.waits_for or None,
            "why": self.why,
            "flavors": {name: dict(chosen) for name, chosen in self.flavors.items()},
            "counts": dict(self.counts),
            "nodes": dict(self.nodes),
            "topology": dict(self.topology),
            "victims": [each.to_json() for each in self.victims],
            "moves": [each._asdict() for each in self.moves],
            "changes": None if self.changes is None else [each.to_json() for each in self.changes],
        }


@dataclass(frozen=True)
class Simulation:
    """What is answered of several jobs.

    Attributes:
        now: what time it is, as a date or as the trace counts; None where nobody knows.
        plugin: who schedules.
        options: its options, all of them.
        on_preemption: what preempted jobs lose.
        submitted: whether it was asked about jobs that are submitted, and not about those that wait.
        answers: of each job, in the order of the questions.
        notes: what was assumed or left out, in sentences.
    """

    now: str | None
    plugin: str
    options: Mapping[str, Any]
    on_preemption: str
    submitted: bool
    answers: Sequence[Answer]
    notes: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """The largest of the jobs that are submitted; 0 without one."""
        return max((each.exit_code for each in self.answers), default=0) if self.submitted else 0

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values; `harness/studies/simulation/schema.json` says what there is."""
        return {
            "schema": "1",
            "now": self.now,
            "plugin": self.plugin,
            "options": dict(self.options),
            "on_preemption": self.on_preemption,
            "exit_code": self.exit_code,
            "answers": [each.to_json() for each in self.answers],
            "notes": list(self.notes),
        }
