"""Defines the reports that the engine sends to the recorder during a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from harness.policy import Job

ACTIONS = (
    "submit", "admit", "start", "bind", "nominate", "unnominate", "preempt", "evict", "gone", "finish",
    "reject", "requeue", "refuse", "mark", "unmark", "replace",
)  # fmt: skip
(
    SUBMIT, ADMIT, START, BIND, NOMINATE, UNNOMINATE, PREEMPT, EVICT, GONE, FINISH, REJECT, REQUEUE, REFUSE,
    MARK, UNMARK, REPLACE,
) = range(len(ACTIONS))  # fmt: skip

STINTS = ("progress", "waiting", "restoring", "terminating", "starting")
PROGRESS, WAITING, RESTORING, TERMINATING, STARTING = range(len(STINTS))

STATES = ("pending", "running", "finished", "rejected")
PENDING, RUNNING, FINISHED, REJECTED = range(len(STATES))

NEVER: Final = -1
"""Represents the time of something that never happened."""

Amounts = Mapping[str, int]


class Fact(NamedTuple):
    """A decision that took effect, or an event that did not result from a decision.

    The first fields are required, because callers pass them by position. This takes half as long as passing
    them by keyword. A fact affects `pods` pods of its job. If these pods have equal requests, their number
    determines their total request. Otherwise, `amounts` contains the total request, for example if the fact
    affects some pods of a job with several pod sets.

    Attributes:
        time: the time, in microseconds since the origin.
        cycle: how many cycles of the policy had begun.
        action: one of `ACTIONS`.
        pods: the number of the job's pods that the fact affects.
        alive: +1 if the job arrives, -1 if the job is over, and 0 otherwise.
        holding: +1 if the job begins to hold resources, -1 if it stops holding them, and 0 otherwise.
        quota: +1 if these pods hold quota from now on, -1 if they release it, otherwise 0.
        amounts: what the pods hold, if the number of pods does not determine this.
        pod: the number of the pod within its job, or NEVER for the whole job.
        successor: how often this pod had been recreated after an eviction.
        detail: numbers that explain the decision.
        by: the job for which this job was preempted.
        reason: the policy's term for the rule.
        flavors: maps each pod set to its flavors by resource.
        dropped: the quantities that a partial admission no longer requests.
        unused: the quota that is released now because the admitted pods never held resources.
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
        """The current name of the pod, or None if the fact is about the whole job."""
        return None if self.pod == NEVER else self.job.pod_name(self.pod, self.successor)


new_fact = tuple.__new__
"""Creates a fact from all of its values, as in `new_fact(Fact, (time, ...))`. This takes a third of the time
of calling the class.
"""


class UnwritableError(Exception):
    """A text or number that a policy passed with a decision can't be stored."""

    def __init__(self, job: Job, rule: str) -> None:
        super().__init__(rule)
        self.job = job
        self.rule = rule


class Recorder(Protocol):
    """Stores the engine's reports. All times are in microseconds since the origin."""

    def record(self, fact: Fact) -> None:
        """Record a decision, or an event that did not result from a decision.

        Raises:
            UnwritableError: flavors or a detail can't be stored.
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
        """Record a stint: pods held their resources from `start` to `end` in one state of `STINTS`.

        If an eviction ended the stint, `lost` is the progress of this stint that was lost, in microseconds
        per pod. `lost_before` is the lost progress from the time before the job arrived. If `lost_before` is
        above 0, the stint can have length zero. `pod` is set if a pod makes progress independently of the
        other pods of its job, and is then the number of this pod.
        """

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """Record the new share of a queue; see `harness.policy.QueueShare`."""

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
        """Record how a job ended, or its state at the end of the replay.

        `lost` and `idle` are pod-microseconds.
        """


class NullRecorder:
    """A recorder that stores nothing. Recorders that store only some reports inherit from it."""

    def record(self, fact: Fact) -> None:
        """Does nothing."""

    def stint(self, *about: object) -> None:
        """Does nothing."""

    def share(self, *about: object) -> None:
        """Does nothing."""

    def job(self, *about: object) -> None:
        """Does nothing."""
