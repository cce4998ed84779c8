"""What the engine reports while it runs, to whoever keeps the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from harness.policy import Job

ACTIONS = (
    "submit",
    "admit",
    "start",
    "bind",
    "nominate",
    "unnominate",
    "preempt",
    "evict",
    "gone",
    "finish",
    "reject",
    "requeue",
    "refuse",
    "mark",
    "unmark",
    "replace",
)
(
    SUBMIT, ADMIT, START, BIND, NOMINATE, UNNOMINATE, PREEMPT, EVICT, GONE, FINISH, REJECT, REQUEUE, REFUSE,
    MARK, UNMARK, REPLACE,
) = range(len(ACTIONS))  # fmt: skip

STINTS = ("progress", "waiting", "restoring", "terminating", "starting")
PROGRESS, WAITING, RESTORING, TERMINATING, STARTING = range(len(STINTS))

STATES = ("pending", "running", "finished", "rejected")
PENDING, RUNNING, FINISHED, REJECTED = range(len(STATES))

NEVER = -1
"""Stands for a time at which nothing happened."""

Amounts = Mapping[str, int]


class Fact(NamedTuple):
    """One decision that took effect, or one thing that happened by itself.

    What every job has comes first and is given by place, which takes half the time of names.

    A fact is about `pods` pods of its job. As a rule what they ask for follows from their number; where it
    does not (some pods of a job with several pod sets), `amounts` says what they hold together.

    Attributes:
        time: when, microseconds since the origin.
        cycle: how many cycles of the policy had begun.
        action: one of `ACTIONS`.
        job: the job it is about.
        pods: how many of its pods.
        alive: +1 when the job arrives with it, -1 when the job is over.
        holding: +1 when the job begins to hold resources with it, -1 when it stops.
        quota: +1 when these pods hold quota from now on, -1 when they give it back.
        amounts: what they hold, if that does not follow from their number.
        pod: the pod's number in its job; NEVER when the whole job is meant.
        successor: how often that pod had been recreated after an eviction.
        node: where.
        detail: the figures behind it.
        by: the preemptor.
        reason: the policy's word for the rule.
        flavors: pod set -> resource -> flavor.
        dropped: what a partial admission no longer asks for.
        unused: quota that is given back by pods which were admitted and never held resources.
    """

    time: int
    cycle: int
    action: int
    job: Job
    pods: int
    alive: int = 0
    holding: int = 0
    quota: int = 0
    amounts: Amounts | None = None
    pod: int = NEVER
    successor: int = 0
    node: str | None = None
    detail: Mapping[str, Any] | None = None
    by: Job | None = None
    reason: str | None = None
    flavors: Mapping[str, Mapping[str, str]] | None = None
    dropped: Amounts | None = None
    unused: Amounts | None = None

    @property
    def pod_name(self) -> str | None:
        """The name that the pod has now; None when the whole job is meant."""
        return None if self.pod == NEVER else self.job.pod_name(self.pod, self.successor)


new_fact = tuple.__new__
"""`new_fact(Fact, (time, ...))` makes a fact of all its values, in a third of the time that a call takes."""


class UnwritableError(Exception):
    """What a policy said with a decision cannot be kept.

    Attributes:
        job: what the decision is about.
        rule: what is wrong with it, in words.
    """

    def __init__(self, job: Job, rule: str) -> None:
        super().__init__(rule)
        self.job = job
        self.rule = rule


class Recorder(Protocol):
    """Keeps what the engine reports. Times are microseconds since the origin."""

    def record(self, fact: Fact) -> None:
        """One decision, or one thing that happened by itself.

        Raises:
            UnwritableError: flavors or a detail cannot be kept.
        """

    def stint(
        self,
        job: Job,
        pods: int,
        amounts: Amounts | None,
        start: int,
        end: int,
        state: int,
        lost: int,
        lost_before: int = 0,
        pod: int = NEVER,
    ) -> None:
        """Pods held their resources from `start` to `end` in one state of `STINTS`.

        `lost` is how much of this stint's progress an eviction threw away, microseconds for each pod.
        `lost_before` is how much of what was done before the job arrived; then a stint may have no length.
        `pod` is the number of a pod that progresses on its own, beside others of its job.
        """

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """A queue has another share from now on, see `harness.policy.QueueShare`."""

    def job(
        self,
        job: Job,
        state: int,
        admitted: int,
        start: int,
        finish: int,
        preemptions: int,
        lost: int,
        idle: int,
    ) -> None:
        """How a job ended, or stood when the replay did; `lost` and `idle` are pod-microseconds."""


class NullRecorder:
    """Keeps nothing; who wants only some of what the engine reports inherits the rest. See `Recorder`."""

    def record(self, fact: Fact) -> None:
        """Not kept."""

    def stint(self, *about: object) -> None:
        """Not kept."""

    def share(self, *about: object) -> None:
        """Not kept."""

    def job(self, *about: object) -> None:
        """Not kept."""
