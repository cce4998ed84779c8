"""The methods that the engine calls on a policy, what a policy sees, and the functions that it registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from harness.cluster.model import Cluster
from harness.policy.decisions import Decision
from harness.policy.job import Arrival, Job


class View(Protocol):
    """A read-only view of the engine's state, for policies that don't keep their own records."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Maps each resource to its total capacity in the cluster; resources without a limit are absent."""

    @property
    def allocated(self) -> Mapping[str, int]:
        """Maps each resource to the quantity that pods hold now.

        Terminating pods are included, but promises to admitted jobs are not.
        """

    def free_on(self, node: str) -> Mapping[str, int]:
        """Returns the free capacity of a node for each resource."""

    def fits(self, job: Job) -> bool:
        """Returns True if the whole cluster now has enough free capacity for all pods of the job.

        Free capacity is summed over nodes. Resources that are promised to admitted jobs count as used, so a
        job that fits starts immediately.
        """


class Why(Enum):
    """The reason why pods released their resources."""

    ENDED = "ended"
    EVICTED = "evicted"
    LOST = "lost"  # with their node, or alone; their admitted job keeps its quota, and they are bound again


class Standing(NamedTuple):
    """The state of a policy, which alone determines what the policy does next if nothing else happens.

    Attributes:
        state: everything that influences the next cycles. The engine compares states with `==`, so times in a
            state are relative to now.
        counts: numbers that never decrease and don't influence any decision.
    """

    state: tuple[object, ...]
    counts: tuple[int, ...] = ()


class Policy(Protocol):
    """The methods that the engine calls. The argument `pods` contains numbers of pods within the job.

    A policy can also have a method `ready(job, pods, now)`. The engine calls this method when pods become
    ready, that is, when they hold their resources, have started up and can make progress. If pods have no
    start-up time, the engine calls the method at the time of their start, after the policy's cycle. Another
    cycle then follows.

    A policy can have the methods `standing(now)` and `skip(span, counts)`, which allow the engine to skip
    hours or years of idle wakes. `standing` returns the state of the policy after its cycle at `now` (see
    `Standing`), or None if the policy can't provide its state. If idle wakes alone lead the policy back to an
    earlier state, the policy would repeat this loop forever. The engine then skips the repetitions and calls
    `skip` with the time that has passed, in microseconds, and with the increase of each count.

    A policy can have a method `changed(change, now)`. When the cluster changes, the engine calls this method
    for each changed object, before it processes arrivals at the same time. The method updates everything that
    the policy has derived from the cluster, so that it matches `change.cluster`. It can return decisions,
    such as evictions from a drained queue. The engine applies each decision before it requests the next one,
    and all decisions before the next change. To replay a cluster that changes, a policy needs this method,
    unless you pass `--ignore-events`.

    A policy with quotas can have a method `within_quota(job, pods)`. The method returns whether the quotas
    would now admit all of these waiting pods together, without preemption. It must not change anything. The
    engine calls this method only to measure `idle.quota` (`--idle-causes`), after all events at a given time.

    A policy can have a method `untried_up_to(job)` for waiting jobs. The method returns a priority such that
    the policy would never have tried the job so far with this priority or a lower one. The reason is that
    older jobs would have been ahead of it all the time, whatever the job requests. The result is None if the
    policy does not know such a priority. `harness simulate` skips changes that leave the job untried.

    A policy can have a method `turns(names, jobs, changes, stays)`. The method predicts decisions of the next
    cycle, if the cluster changed first (`changes`) and all of `jobs` were then submitted. For each job id in
    `names`, the result contains whether the job is admitted, and the ids of the jobs that are preempted for
    it. The argument `stays` is a function. It returns True if a job holds its resources for some time after
    its preemption. The result of `turns` is None if it could depend on anything else that happens at this
    time. The method doesn't change the policy.
    """

    def submit(self, job: Job, pods: range, now: int) -> None:
        """Notes that these pods wait, because the job arrived or its preempted pods returned to the queue."""

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        """Notes that these pods hold nothing any more: they ended, were lost, or left after eviction."""

    def cycle(self, now: int) -> Iterator[Decision]:
        """Yields decisions after all events at `now`; the engine applies each before it requests the next."""


PolicyFactory: TypeAlias = Callable[["Cluster", View, Mapping[str, Any]], Policy]
"""A function that creates a policy for one replay. Its arguments are the cluster, the engine's view, and all
options of the policy including defaults. A class with `__init__(self, cluster, view, options)` is also a
factory.
"""

RunningJobs: TypeAlias = Callable[["Cluster", int], Sequence[Arrival]]
"""A function that returns the jobs that already run according to the manifests. The jobs are numbered from 0
and arrive at the given time. The engine submits these jobs to the policy like all other jobs, and the policy
starts them where they run in its first cycle. An arrival can omit the progress of its job. If the id of such
a job is the namespace and name of a Workload or Pod, its progress is its run time so far according to the
manifests.
"""


class Never(NamedTuple):
    """The reason why a job can never start, no matter what else runs.

    Attributes:
        where: the object that rules out the job, such as `ClusterQueue a` or `nodes`. Reports count jobs by
            this object.
        why: the rule that the job violates, with numbers.
    """

    where: str
    why: str


Possible: TypeAlias = Callable[[Job], Never | None]
"""A function that returns why a job can never start, or None if the job might start."""

Foresight: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Possible]
"""A function that returns a `Possible`, with which harness finds jobs that can never start before a replay
begins. The arguments are a cluster and options. The result must agree with the policy, which must reject the
same jobs when they are submitted. The function raises `InputError` if the policy can't be created.
"""

ByQueues: TypeAlias = Callable[["Cluster"], bool]
"""A function that returns whether a policy admits jobs through the ClusterQueues of a cluster. If so, the
queue of every job must lead to a ClusterQueue.
"""

ByElasticQuotas: TypeAlias = Callable[["Cluster"], bool]
"""A function that returns whether a policy uses the elastic quotas of a cluster that also has ClusterQueues.
"""

IgnoredFields: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""A function that returns sentences about the parts of a cluster's manifests that a policy with the given
options ignores. Each sentence contains the kind, the name and the field.
"""

Assumptions: TypeAlias = Callable[["Cluster", Mapping[str, Any]], Iterable[str]]
"""A function that returns sentences about what a policy with the given options assumes. Assumptions fill gaps
in the manifests of a cluster.
"""
