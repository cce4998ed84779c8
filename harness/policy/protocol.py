"""The calls that a policy receives, and the other functions that it registers."""

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
    """The reason why pods released their resources."""

    ENDED = "ended"
    EVICTED = "evicted"
    LOST = "lost"  # with their node, or alone; their admitted job keeps its quota, and they are bound again


class Standing(NamedTuple):
    """The state of a policy; if nothing happens, it alone determines the policy's next actions.

    Attributes:
        state: everything that determines the next cycles, compared with `==`. Times are relative to now.
        counts: numbers that only grow and do not influence any decision.
    """

    state: tuple[object, ...]
    counts: tuple[int, ...] = ()


class Policy(Protocol):
    """The calls that the engine makes. `pods` are numbers of pods within the job.

    A policy may have a further method `ready(job, pods, now)`. The engine calls it when pods become ready:
    they hold their resources and have started up, so that they can make progress. For pods without a start-up
    time, the call comes at the instant of their start, after the policy's cycle. Another cycle then follows.

    A policy may have a further method `doze(at, before)`, which plays idle wakes by itself while nothing else
    happens. This saves the engine the work of an instant. The engine calls `doze` if the only idle wake is
    due at `at` and no other event before `before`. `doze` plays the cycles before `before` that result only
    in another wake. It returns their number, and when the policy wants to be woken next. `cycle` would have
    decided the same in these cycles. The engine calls `cycle` for every cycle that `doze` has not counted.

    A policy may have two further methods `standing(now)` and `skip(span, counts)`. They let the engine skip
    idle wakes for hours or years. `standing` returns the state of the policy after its cycle at `now` (see
    `Standing`), or None if the policy cannot give it. If the policy returns to an earlier state after idle
    wakes only, it would return to that state again and again. The engine counts these rounds. It then tells
    `skip` how much time has passed, in microseconds, and how much each of the counts has grown.

    A policy may have a further method `changed(change, now)`. The engine calls it for changes of the cluster,
    one object after the other, before the arrivals of that instant. The method updates everything derived
    from the cluster to `change.cluster`. It may return decisions, such as evictions from a drained queue.
    The engine applies each decision before it requests the next, and all of them before the next change.
    Replaying a cluster that changes requires such a policy or `--ignore-events`.

    A policy with quotas may have a further method `within_quota(job, pods)`. It returns whether its quotas
    would admit these waiting pods of a job now, all together and without preemption. It changes nothing. The
    engine calls it between instants, and only if `idle.quota` is measured (`--idle-causes`).
    """

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Notes that these pods wait: the job arrived, or its preempted pods returned to the queue."""

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Notes that the resources of these pods are free: they ended, or they were evicted and are gone."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """Yields decisions after all events of `now`; the engine applies each before it requests the next."""


PolicyFactory: TypeAlias = Callable[["Cluster", View, Mapping[str, Any]], Policy]
"""Makes a policy for one replay from the cluster, the engine's view and all of the policy's options, with
defaults filled in. A class with `__init__(self, cluster, view, options)` is a factory.
"""

RunningJobs: TypeAlias = Callable[["Cluster", int], Sequence[Arrival]]
"""Returns the jobs that already run according to the manifests, numbered from 0 and arriving at the given
time. The policy gets them like any other job, and starts them in place in its first cycle. An arrival may
omit the progress of its job. If the job's id is the namespace and name of a Workload or Pod, its progress is
then its run time so far according to the manifests.
"""


class Never(NamedTuple):
    """The reason why a job can never start, whatever else runs.

    Attributes:
        where: the object that rules the job out, such as `ClusterQueue a` or `nodes`; jobs are counted by it.
        why: the rule that the job breaks, with its figures.
    """

    where: str
    why: str


Possible: TypeAlias = Callable[[Job], Never | None]
"""Returns why a job can never start; None if the job may start."""

Foresight: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Possible]
"""Returns a function that finds, before a replay, the jobs that can never start on a cluster with these
options. It must agree with the policy, which rejects those jobs when they are submitted. It raises
`InputError` if the policy cannot be created.
"""

ByQueues: TypeAlias = Callable[["Cluster"], bool]
"""Returns True if a policy admits the jobs of a cluster through its ClusterQueues, so that the queue of every
job must lead to a ClusterQueue.
"""

ByElasticQuotas: TypeAlias = Callable[["Cluster"], bool]
"""Returns True if a policy uses the elastic quotas of a cluster, even if it also has ClusterQueues."""

IgnoredFields: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""Returns sentences with kind, name and field about the parts of a cluster's manifests that a policy with
these options ignores.
"""

Assumptions: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""Returns sentences about what a policy with these options assumes if a cluster's manifests do not say."""
