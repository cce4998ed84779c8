"""Defines the answer about a job, which says how the job starts now, or why the job waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.base.text import counted
from harness.base.units import SECOND
from harness.cluster.model import frozen

STARTS, WAITS, NEVER = "starts", "waits", "never"
"""The verdicts: the job starts now, does not start now, or can never start."""

EXIT_CODES: Mapping[str, int] = {STARTS: 0, WAITS: 3, NEVER: 4}

QUOTA, NODES, VICTIMS, CHECKS, TURN = "quota", "nodes", "victims", "checks", "turn"
"""What a job may wait for."""


_REACH: Mapping[str, str] = {
    "pods": "fewer pods, down to 1",
    "flavor": "the nodes of each other flavor of its queue",
    "quota": "more quota, up to the whole request and what exceeds the quotas",
    "policy": "other policies of its queue",
    "priority": "a higher priority, up to the highest known",
}
"""Describes, for each kind of change, how far harness goes when it tries such changes."""


class Victim(NamedTuple):
    """A job that is preempted.

    Attributes:
        reason: the scheduler's name for the rule behind the preemption.
        ran: how long the victim had made progress, in microseconds; None if it had not started.
        lost: how much of this progress is lost, summed over pods, in microseconds.
        text: a full sentence, in the words of `harness explain`.
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
        """Returns the victim as plain values, with times in seconds."""
        found = {**self._asdict(), "lost_seconds": self.lost / SECOND}
        found["ran_seconds"] = None if self.ran is None else self.ran / SECOND
        return {key: value for key, value in found.items() if key not in ("ran", "lost")}


class Move(NamedTuple):
    """An event in the simulated cycles that affects another job than the one in question.

    Attributes:
        what: `starts`, `preempts`, `preempted` or `evicted`.
        text: a full sentence, in the words of `harness explain`.
    """

    name: str
    queue: str
    what: str
    text: str


class Change(NamedTuple):
    """The smallest change of its kind that lets a job start.

    Attributes:
        kind: `pods`, `flavor`, `quota`, `policy` or `priority`.
        text: what to change.
        after: `now`, or `victims` if other jobs must be preempted first.
        victims: the names of the jobs that are preempted first.
        patch: the changes to the cluster, as documents for `--patch`; empty if only the job changes.
        job: the changes to the job, as fields of its Workload; empty if the cluster changes.
    """

    kind: str
    text: str
    after: str
    victims: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    job: Mapping[str, Any] = frozen()

    def to_json(self) -> dict[str, Any]:
        """Returns the change as plain values."""
        return {
            **self._asdict(),
            "victims": list(self.victims),
            "patch": [dict(each) for each in self.patch],
            "job": dict(self.job),
        }


@dataclass(frozen=True)
class Answer:
    """The answer about one job.

    Attributes:
        name: the namespace and name of the job.
        ids: the ids of the job in the scheduler. There are several if the job consists of several Pods.
        queue: the queue in which the job waits; "" if there is none.
        verdict: `starts`, `waits` or `never`.
        waits_for: `quota`, `nodes`, `victims`, `checks` or `turn`; "" if the job does not wait. `victims`:
            evicted jobs still hold their resources. `checks`: admission checks, a stopped queue, a gate or a
            backoff hold the job back. `turn`: the scheduler tries other jobs first.
        why: the reason for the decision, in the words of `harness explain`.
        flavors: for each pod set and resource, the flavor that the job has or gets.
        counts: the number of pods in each pod set, if the job gets fewer pods than it requests.
        nodes: the number of the job's pods on each node.
        topology: the domains that each pod set gets, in Kueue's format.
        moves: the events that affect other jobs in the same cycles.
        changes: the smallest change of each kind with which the job starts; None if there was no search.
        tried: how many changes of each kind were tried.
        untried_up_to: a priority up to which the scheduler would not try the job, whatever it requests,
            because other jobs are ahead; None if this is not known.
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
    tried: Mapping[str, int] = field(default_factory=frozen)
    untried_up_to: int | None = None

    @property
    def no_change(self) -> str:
        """A sentence that says that no tried change helps; "" if a change helps or no change was tried."""
        if self.changes is None or self.changes:
            return ""
        kinds = "; ".join(f"{_REACH[kind]} ({count:,})" for kind, count in self.tried.items())
        count = sum(self.tried.values())
        tried = f"{counted(count, 'change')}: {kinds}" if count else "none, as no change applies to this job"
        return f"no single change lets it start; harness tried {tried}"

    @property
    def exit_code(self) -> int:
        """The exit code: 0 if the job starts now, 3 if it does not, 4 if it can never start."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as plain values."""
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
            "noChange": self.no_change or None,
        }


@dataclass(frozen=True)
class Simulation:
    """The answers about several jobs.

    Attributes:
        now: the time of the question, as a date or in the form of the trace; None if it is unknown.
        on_preemption: the progress that preempted jobs lose.
        named: whether the question named jobs. If not, it was about all waiting jobs.
        submitted: whether the question was about submitted jobs. If not, it was about waiting jobs.
        answers: one answer per job, in the order of the questions.
        notes: sentences about assumptions and omissions.
    """

    now: str | None
    plugin: str
    options: Mapping[str, Any]
    on_preemption: str
    named: bool
    submitted: bool
    answers: Sequence[Answer]
    notes: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """The largest exit code of the jobs that the question names, or 0 if it names no jobs."""
        return max((each.exit_code for each in self.answers), default=0) if self.named else 0

    def to_json(self) -> dict[str, Any]:
        """Returns the simulation as plain values; `harness/studies/simulation/schema.json` describes them."""
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
