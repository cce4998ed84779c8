"""The calls that a policy receives, and what else it is registered with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from harness.policy.decisions import Decision
from harness.policy.job import Arrival, Job
from harness.policy.view import View

if TYPE_CHECKING:
    from harness.cluster.model import Cluster


class Why(Enum):
    """Why pods gave back what they held."""

    ENDED = "ended"
    EVICTED = "evicted"
    LOST = "lost"  # with their node, or alone of an admitted job, which keeps its quota; they are bound again


class Standing(NamedTuple):
    """Where a policy stands: what it does next while nothing happens follows from that alone.

    Attributes:
        state: all that its next cycles depend on, compared with `==`. Times are relative to now.
        counts: numbers that only grow, and on which nothing depends.
    """

    state: tuple[object, ...]
    counts: tuple[int, ...] = ()


class Policy(Protocol):
    """The calls that the engine makes. `pods` are numbers of pods within the job.

    A policy with a further method `ready(job, pods, now)` hears, too, when pods are ready: they hold what
    they asked for and have started up, so that they can make progress. It hears of pods that need no time for
    that at the instant at which they start, after its cycle, which is then followed by another one.

    A policy with a further method `doze(at, before)` plays idle wakes by itself while nothing else happens,
    which spares the engine what it does for an instant. It is asked when the only wake that is idle is due at
    `at`, and nothing else before `before`. It plays the cycles before that whose only result is another wake.
    It answers how many, and when it wants to be woken then. In these `cycle` would have decided the same; it
    gets every cycle that `doze` has not counted.

    A policy with two further methods `standing(now)` and `skip(span, counts)` lets the engine leap over idle
    wakes for hours and years. `standing` tells where the policy stands after its cycle at `now`, see
    `Standing`; None where it does not know. If it stands twice in the same way, and nothing happened in
    between but its idle wakes, it would stand so again and again. The engine counts these rounds, and tells
    `skip` how much later it is, in microseconds, and how much each of the counts has grown.

    A policy with a further method `changed(change, now)` hears of what changes of the cluster while it
    replays, one object after the other, before what arrives at that instant. It has what it has made of the
    cluster follow `change.cluster`. It may answer decisions, such as evictions from a queue that is drained:
    each is applied before the next is asked for, and all of them before the next change. A cluster that
    changes is only replayed with such a policy, or with `--ignore-events`.

    A policy with quotas may have a further method `within_quota(job, pods)`. It answers whether its quotas
    let these waiting pods of a job in now, all together and without preemption; it changes nothing. It is
    asked between instants, and only where `idle.quota` is measured (`--idle-causes`).
    """

    def submit(self, job: Job, pods: range, now: int) -> None:
        """These pods are waiting: the job arrived, or what was preempted is back in its queue."""

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """What these pods held is free: they ended, or they were evicted and are gone."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """All of `now` has been delivered: yield decisions; each is applied before the next is asked for."""


PolicyFactory: TypeAlias = Callable[["Cluster", View, Mapping[str, Any]], Policy]
"""Makes a policy for one replay from the cluster, the engine's view and the policy's options (all of them,
with defaults filled in). A class with `__init__(self, cluster, view, options)` is one."""

RunningJobs: TypeAlias = Callable[["Cluster", int], Sequence[Arrival]]
"""The jobs that run already according to the manifests, numbered from 0 and arriving at the given time. The
policy hears of them as of any other job, and starts them where they are in its first cycle. An arrival may
not say what its job has done. Then that is what it has run for by the manifests, if its id is the namespace
and name of a Workload or Pod."""


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

Foresight: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Possible]
"""How a policy with these options would judge, before a replay, which jobs can never start on a cluster. It
answers as the policy does, which rejects those jobs when they are submitted, and raises `InputError` where
the policy cannot be made."""

ByQueues: TypeAlias = Callable[["Cluster"], bool]
"""Whether a policy admits the jobs of a cluster by its ClusterQueues, so that the queue of every job must
lead to one of them."""

ByElasticQuotas: TypeAlias = Callable[["Cluster"], bool]
"""Whether a policy goes by the elastic quotas of a cluster, whatever ClusterQueues it has as well."""

IgnoredFields: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""Which fields of a cluster's manifests a policy with these options ignores: sentences with kind, name and
field."""

Assumptions: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""What a policy with these options takes to be so because a cluster's manifests do not say it: sentences."""
