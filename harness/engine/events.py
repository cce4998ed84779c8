"""The reports that the engine sends to the recorder while it runs."""

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
"""Stands for the time of something that never happened."""

Amounts = Mapping[str, int]


class Fact(NamedTuple):
    """One decision that took effect, or one event without a decision.

    The fields that every fact has come first. Callers pass them by position, which takes half the time of
    keywords. A fact is about `pods` pods of its job. Usually their number determines their total request. If
    it does not (some pods of a job with several pod sets), `amounts` gives the total.

    Attributes:
        time: microseconds since the origin.
        cycle: how many cycles of the policy had begun.
        action: one of `ACTIONS`.
        job: the job.
        pods: how many of its pods.
        alive: +1 if the job arrives, -1 if the job is over, else 0.
        holding: +1 if the job begins to hold resources, -1 if it stops, else 0.
        quota: +1 if these pods hold quota from now on, -1 if they give it back, else 0.
        amounts: what the pods hold, if their number does not determine it.
        pod: the pod's number in its job; NEVER for the whole job.
        successor: how often this pod had been recreated after an eviction.
        node: the node.
        detail: the figures behind the decision.
        by: the preemptor.
        reason: the policy's word for the rule.
        flavors: pod set -> resource -> flavor.
        dropped: the amounts that a partial admission no longer requests.
        unused: the quota of pods that were admitted, never held resources, and give the quota back.
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
        """The current name of the pod; None if the fact is about the whole job."""
        return None if self.pod == NEVER else self.job.pod_name(self.pod, self.successor)


new_fact = tuple.__new__
"""`new_fact(Fact, (time, ...))` makes a fact from all its values, in a third of the time of a call."""


class UnwritableError(Exception):
    """A text or figure that a policy gave with a decision cannot be stored.

    Attributes:
        job: the job of the decision.
        rule: what is wrong, in words.
    """

    def __init__(self, job: Job, rule: str) -> None:
        super().__init__(rule)
        self.job = job
        self.rule = rule


class Recorder(Protocol):
    """Stores the engine's reports. Times are microseconds since the origin."""

    def record(self, fact: Fact) -> None:
        """Record one decision, or one event without a decision.

        Raises:
            UnwritableError: flavors or a detail cannot be stored.
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
        """Record that pods held their resources from `start` to `end` in one state of `STINTS`.

        `lost` is how much of this stint's progress an eviction lost, microseconds for each pod. `lost_before`
        is the lost part of the progress before the job's arrival; the stint may then have no length. `pod`
        is the number of a pod that progresses independently of the other pods of its job.
        """

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """Record the new share of a queue, see `harness.policy.QueueShare`."""

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
    """Stores nothing; recorders of only some reports inherit from it. See `Recorder`."""

    def record(self, fact: Fact) -> None:
        """Does nothing."""

    def stint(self, *about: object) -> None:
        """Does nothing."""

    def share(self, *about: object) -> None:
        """Does nothing."""

    def job(self, *about: object) -> None:
        """Does nothing."""
