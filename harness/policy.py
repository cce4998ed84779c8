"""What a scheduling policy is: the calls it receives, the decisions it yields, the state it may look at.

A policy is a plain Python object. The engine tells it what became waiting (`submit`) and what became free
(`release`), then asks for decisions (`cycle`). It applies each decision before it resumes the generator,
so the state that a policy sees is always current, and a wrong decision fails at its own `yield`.

Decisions are compared by identity and never changed after they were made. Nothing enforces that: a replay
makes hundreds of thousands, and freezing would triple what each costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, final

from harness.cluster.model import Cluster
from harness.job import Arrival, Job

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Why(Enum):
    """Why pods gave back what they held."""

    ENDED = "ended"
    EVICTED = "evicted"


@final
@dataclass(slots=True, eq=False)
class Admit:
    """Reserve quota for a waiting job; without nodes in the cluster it also starts, as a whole.

    It starts when what it asks for is free: at once, or where jobs that were evicted still hold it, when they
    are gone. Jobs that wait so start in the order of their admission.

    Attributes:
        job: the job, waiting as a whole.
        flavors: pod set -> resource -> flavor; leave empty where there are no flavors. Equal choices should
            be one and the same object: it is turned into text once.
        counts: pod set -> pods, for pod sets that get fewer pods than asked for (partial admission).
        detail: the figures behind the decision, kept for the record.
        delay: how long it may not start yet although it holds quota, microseconds; without nodes it starts
            that much later at the earliest, with nodes none of its pods may be bound before.
    """

    job: Job
    flavors: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: _NOTHING)
    counts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
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
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@final
@dataclass(slots=True, eq=False)
class Preempt:
    """Take the resources away from running pods; after their grace period they are gone and wait again.

    Attributes:
        job: the victim.
        by: the preemptor; None when no job takes its place (a drained queue): recorded as an eviction.
        reason: the component's own word for the rule, such as `InCohortReclamation`.
        pods: which of its pods; None means all that hold resources and are not terminating yet.
        detail: the figures that justify it.
    """

    job: Job
    by: Job | None
    reason: str
    pods: range | None = None
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@final
@dataclass(slots=True, eq=False)
class Nominate:
    """Record that a waiting pod is expected on a node, which it does not hold yet."""

    job: Job
    pod: int
    node: str
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@final
@dataclass(slots=True, eq=False)
class Unnominate:
    """Withdraw a pod's nomination."""

    job: Job
    pod: int


@final
@dataclass(slots=True, eq=False)
class Reject:
    """Give up a waiting job for good: it can never run here."""

    job: Job
    reason: str
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@final
@dataclass(slots=True, eq=False)
class Refuse:
    """Record why a waiting job is not helped now; it goes on waiting, and nothing changes.

    Attributes:
        job: the job, of which some pods wait.
        reason: the rule, in the component's words.
        detail: which pod, which nodes, which figures.
    """

    job: Job
    reason: str
    detail: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@final
@dataclass(slots=True, eq=False)
class Wake:
    """Make an instant happen at a later time.

    Attributes:
        at: microseconds since the origin, after now.
        idle: an idle wake does not keep a replay alive (a periodic flush); one that can start work does.
    """

    at: int
    idle: bool = False


@final
@dataclass(slots=True, eq=False)
class QueueShare:
    """Record what share a queue has from now on, as the policy computes it; nothing changes by it.

    Attributes:
        queue: a ClusterQueue.
        share: its dominant resource share.
        weighted: its weighted share as the component publishes it.
    """

    queue: str
    share: float
    weighted: int


Decision: TypeAlias = Admit | Bind | Preempt | Nominate | Unnominate | Reject | Refuse | Wake | QueueShare


class Policy(Protocol):
    """The calls that the engine makes. `pods` are numbers of pods within the job.

    A policy with a further method `ready(job, pods, now)` is told, too, when pods are ready: they hold what
    they asked for and have started up, so that they can make progress. It hears of pods that need no time for
    that at the instant at which they start, after its cycle, which is then followed by another one.
    """

    def submit(self, job: Job, pods: range, now: int) -> None:
        """These pods are waiting: the job arrived, or what was preempted is back in its queue."""

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """What these pods held is free: they ended, or they were evicted and are gone."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """All of `now` has been delivered: yield decisions; each is applied before the next is asked for."""


class View(Protocol):
    """The engine's truth, read-only, for policies that do not keep books of their own."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Resource -> amount of the whole cluster; a resource that is not limited is absent."""

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resource -> amount that pods hold now, terminating ones included; not yet what is promised."""

    def free_on(self, node: str) -> Mapping[str, int]:
        """Resource -> amount that is free on a node now."""

    def fits(self, job: Job) -> bool:
        """Whether the job's whole request is free in the cluster now (summed over nodes).

        What admitted jobs are to get that have not started counts as taken: what fits starts at once.
        """


PolicyFactory: TypeAlias = Callable[[Cluster, View, Mapping[str, Any]], Policy]
"""Makes a policy for one replay from the cluster, the engine's view and the policy's options (all of them,
with defaults filled in). A class with `__init__(self, cluster, view, options)` is one."""

RunningJobs: TypeAlias = Callable[[Cluster, int], Sequence[Arrival]]
"""The jobs that run already according to the manifests, numbered from 0 and arriving at the given time. The
policy hears of them as of any other job, and starts them where they are in its first cycle."""


class Never(NamedTuple):
    """Why a job can never start, whatever else runs.

    Attributes:
        where: what keeps it out, such as `ClusterQueue a` or `nodes`; jobs are counted by it.
        why: the rule that it breaks, with its figures.
    """

    where: str
    why: str


Possible: TypeAlias = Callable[[Job], Never | None]
"""Answers why a job can never start; None for one that may."""

Foresight: TypeAlias = Callable[[Cluster, Mapping[str, Any]], Possible]
"""How a policy with these options would judge, before a replay, which jobs can never start on a cluster. It
answers as the policy does, which rejects those jobs when they are submitted, and raises `InputError` where
the policy cannot be made."""

Unheeded: TypeAlias = Callable[[Cluster, Mapping[str, Any]], Iterable[str]]
"""What a cluster's manifests ask for that a policy with these options does not heed: sentences with kind,
name and field."""
