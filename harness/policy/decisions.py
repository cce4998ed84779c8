"""The decisions that a policy can yield.

Decisions are compared by identity, and must not be changed. Nothing enforces this rule, because a replay
makes hundreds of thousands of decisions, and frozen objects would triple their cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from harness.base.frozen import Frozen
from harness.policy.job import Job

CONTROLLER_CRASH = "ControllerCrash"
"""The reason of a `Refuse` where the real component would have crashed. harness reports the crash after the
replay.
"""

_NOTHING: Mapping[str, Any] = Frozen({})


LOST_WITH_NODE = "DeletionByPodGC"
"""The reason for evicting a pod whose node is gone. Kubernetes writes the same reason into the pod's
condition.
"""


@final
@dataclass(slots=True, eq=False)
class Admit:
    """Reserve quota for a waiting job. In a cluster without nodes, the whole job also starts.

    The job starts as soon as its resources are free. Until then, evicted jobs may still hold them. Admitted
    jobs that wait for free resources start in the order of their admission.

    Attributes:
        job: the job. All of its pods must wait.
        flavors: maps each pod set to a mapping from resources to flavors. It is empty if there are no
            flavors. Equal choices should be the same object, because harness converts each object to text
            only once.
        counts: maps a pod set to its number of pods, for pod sets that get fewer pods than requested (partial
            admission).
        detail: numbers that explain the decision. harness stores them with the run.
        delay: the minimum time from admission to start in microseconds, during which the job already holds
            quota. With nodes, none of its pods can be bound earlier.
    """

    job: Job
    flavors: Mapping[str, Mapping[str, str]] = _NOTHING
    counts: Mapping[str, int] = _NOTHING
    detail: Mapping[str, Any] = _NOTHING
    delay: int = 0


@final
@dataclass(slots=True, eq=False)
class Bind:
    """Bind waiting pods of a job to a node, so that the pods hold resources of the node from now on.

    Attributes:
        job: the job.
        pods: the numbers of the pods within the job. All of these pods must wait.
        node: the node's name.
        detail: numbers that explain the decision.
    """

    job: Job
    pods: range
    node: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Preempt:
    """Evict running pods, which release their resources after their grace period and then wait again.

    If an eviction began before the replay, the policy repeats this eviction with the remaining grace period.

    Attributes:
        job: the victim.
        by: the preemptor. None means that no job takes the victim's place, for example in a drained queue.
            harness then records an eviction instead of a preemption.
        reason: the rule, in the words of the real component, such as `InCohortReclamation`.
        pods: the numbers of the evicted pods. None means all pods that hold resources and are not terminating
            yet. On nodes, an eviction without a preemptor can name only some of the pods of a job that was
            admitted as a whole. The job then keeps its quota, and these pods wait to be bound again.
        detail: numbers that explain the decision.
        unnamed: whether an unknown job takes the victim's place. harness then records a preemption.
        grace: how long the victim keeps its resources, in microseconds. harness records this time as
            `grace_us` in `detail`. None means the job's own grace period.
    """

    job: Job
    by: Job | None
    reason: str
    pods: range | None = None
    detail: Mapping[str, Any] = _NOTHING
    unnamed: bool = False
    grace: int | None = None


MARK, UNMARK, REPLACE = "mark", "unmark", "replace"
"""The kinds of a `Note`: a node of a job failed, the failure was revoked, or pods of the job moved."""


@final
@dataclass(slots=True, eq=False)
class Note:
    """Record a change of the nodes of an admitted job, without any other effect.

    Attributes:
        job: the job.
        what: `MARK`, `UNMARK` or `REPLACE`.
        node: the node, which can be gone already.
        detail: numbers that explain the change.
    """

    job: Job
    what: str
    node: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Nominate:
    """Record that a waiting pod is nominated for a node, where the pod holds no resources yet."""

    job: Job
    pod: int
    node: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Unnominate:
    """Withdraw a pod's nomination."""

    job: Job
    pod: int


@final
@dataclass(slots=True, eq=False)
class Reject:
    """Reject a waiting job permanently, because it can never run on this cluster."""

    job: Job
    reason: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Refuse:
    """Record why a waiting job gets no resources now. The job keeps waiting, and nothing else changes.

    Attributes:
        job: the job. At least one of its pods must wait.
        reason: the rule, in the words of the real component.
        detail: the pod, the nodes and the numbers that explain the refusal.
    """

    job: Job
    reason: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Wake:
    """Request a cycle at a later time.

    Attributes:
        at: the time of the cycle in microseconds since the origin, which must be later than now.
        idle: True for a wake that doesn't keep the replay alive, such as a periodic flush. A wake that can
            start work must keep the replay alive. If no job waits or runs, and no job will arrive, all wakes
            count as idle.
    """

    at: int
    idle: bool = False


@final
@dataclass(slots=True, eq=False)
class QueueShare:
    """Record the new share of a queue that the policy has computed, without any other effect.

    Attributes:
        queue: a ClusterQueue.
        share: its dominant resource share.
        weighted: its weighted share in the form in which the real component publishes it.
    """

    queue: str
    share: float
    weighted: int


Decision: TypeAlias = (
    Admit | Bind | Preempt | Note | Nominate | Unnominate | Reject | Refuse | Wake | QueueShare
)
