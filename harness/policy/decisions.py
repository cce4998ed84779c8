"""The decisions of a policy.

Decisions are compared by identity and must not be changed. Nothing enforces this, because a replay makes
hundreds of thousands of decisions, and freezing them would triple their cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from harness.base.frozen import Frozen
from harness.policy.job import Job

CONTROLLER_CRASH = "ControllerCrash"
"""The reason of a `Refuse` if the real component would have crashed; a replay reports it at the end."""

_NOTHING: Mapping[str, Any] = Frozen({})


LOST_WITH_NODE = "DeletionByPodGC"
"""The reason for the eviction of a pod whose node is gone; Kubernetes uses it in the pod's condition."""


@final
@dataclass(slots=True, eq=False)
class Admit:
    """Reserve quota for a waiting job; in a cluster without nodes the job also starts, as a whole.

    The job starts as soon as its resources are free; evicted jobs may still hold them until they are gone.
    Admitted jobs without free resources start in the order of their admission.

    Attributes:
        job: the job, waiting as a whole.
        flavors: pod set -> resource -> flavor; empty if there are no flavors. Equal choices should be the
            same object, because it is converted to text once.
        counts: pod set -> pods, for pod sets that get fewer pods than requested (partial admission).
        detail: the figures behind the decision, stored in the record.
        delay: the least time from admission to start, microseconds; the job holds quota meanwhile. With
            nodes, none of its pods may be bound earlier.
    """

    job: Job
    flavors: Mapping[str, Mapping[str, str]] = _NOTHING
    counts: Mapping[str, int] = _NOTHING
    detail: Mapping[str, Any] = _NOTHING
    delay: int = 0


@final
@dataclass(slots=True, eq=False)
class Bind:
    """Bind waiting pods of a job to a node; from now on they hold its resources.

    Attributes:
        job: the job.
        pods: numbers of pods within the job, all waiting.
        node: the node's name.
        detail: the figures behind the decision.
    """

    job: Job
    pods: range
    node: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Preempt:
    """Evict running pods; after their grace period they release their resources and wait again.

    If an eviction began before the replay, the replay repeats it with the remaining grace period.

    Attributes:
        job: the victim.
        by: the preemptor; None if no job takes the victim's place (a drained queue), recorded as an eviction.
        reason: the component's own word for the rule, such as `InCohortReclamation`.
        pods: which of its pods; None means all that hold resources and are not terminating yet. On nodes, an
            eviction without a preemptor may name only some pods of a job that was admitted as a whole. The
            job keeps its quota, and these pods wait to be bound again.
        detail: the figures that justify it.
        unnamed: whether an unknown job takes the victim's place, recorded as a preemption.
        grace: how long the victim keeps its resources, microseconds, recorded as `grace_us` of `detail`; None
            for the job's own grace period.
    """

    job: Job
    by: Job | None
    reason: str
    pods: range | None = None
    detail: Mapping[str, Any] = _NOTHING
    unnamed: bool = False
    grace: int | None = None


MARK, UNMARK, REPLACE = "mark", "unmark", "replace"
"""The kinds of a `Note`: a node of a job failed, this failure is revoked, or pods of the job moved."""


@final
@dataclass(slots=True, eq=False)
class Note:
    """Record a change of an admitted job's places; it has no other effect.

    Attributes:
        job: the job.
        what: `MARK`, `UNMARK` or `REPLACE`.
        node: the node, which may be gone.
        detail: the figures behind it.
    """

    job: Job
    what: str
    node: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Nominate:
    """Record that a waiting pod is expected on a node; it does not hold resources there yet."""

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
    """Give up a waiting job for good, because it can never run here."""

    job: Job
    reason: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Refuse:
    """Record why a waiting job does not get resources now; it keeps waiting, and nothing changes.

    Attributes:
        job: the job, with waiting pods.
        reason: the rule, in the component's words.
        detail: which pod, which nodes, which figures.
    """

    job: Job
    reason: str
    detail: Mapping[str, Any] = _NOTHING


@final
@dataclass(slots=True, eq=False)
class Wake:
    """Ask the engine for an instant, with a cycle, at a later time.

    Attributes:
        at: microseconds since the origin, after now.
        idle: True if the wake alone does not keep a replay alive, as for a periodic flush. A wake that can
            start work keeps it alive. If no job is alive or will arrive, all wakes count as idle.
    """

    at: int
    idle: bool = False


@final
@dataclass(slots=True, eq=False)
class QueueShare:
    """Record the new share of a queue, as the policy computes it; it has no other effect.

    Attributes:
        queue: a ClusterQueue.
        share: its dominant resource share.
        weighted: its weighted share as the component publishes it.
    """

    queue: str
    share: float
    weighted: int


Decision: TypeAlias = (
    Admit | Bind | Preempt | Note | Nominate | Unnominate | Reject | Refuse | Wake | QueueShare
)
