"""Explains why a ClusterQueue can never admit a job. The messages are the same for all policies.

Even if nothing else runs, a flavor provides at most the queue's nominal quota plus the quota that the queue's
cohorts lend. It provides nothing to pods that don't tolerate its taints, or that select labels that the
flavor doesn't have.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, final

from harness.base.units import format_amount
from harness.cluster.model import Cluster
from harness.models.cluster import ClusterQueue
from harness.models.constraints import Constraints
from harness.models.quota import UNLIMITED
from harness.policy import Job, Never

Most = Callable[[str, str], int]
"""A function that returns the largest quantity of a resource in a flavor that a queue could use."""

_V = TypeVar("_V")

_SHOWN = 4


class Part(NamedTuple):
    """The part of a pod's request that belongs to one resource group of a queue.

    Attributes:
        asked: the requested quantity of each resource.
        misfits: maps each flavor of the group, in order, to the reason why it cannot be used, or to "" if it
            may be usable.
    """

    asked: Mapping[str, int]
    misfits: Mapping[str, str]

    def never(self, queue: str) -> str:
        """Returns the reasons why no flavor can be used, or "" if some flavor may be usable."""
        if not all(self.misfits.values()):
            return ""
        amounts = ", ".join(f"{format_amount(name, amount)} of {name}" for name, amount in self.asked.items())
        shown = [f"{name} {why}" for name, why in list(self.misfits.items())[:_SHOWN]]
        more = len(self.misfits) - len(shown)
        shown += [f"and {more} more"] if more else []
        return f"no flavor of ClusterQueue {queue} can ever give it {amounts}: {'; '.join(shown)}"


def no_queue(cluster: Cluster, namespace: str, queue: str) -> Never:
    """Returns the reason why jobs in a queue without a ClusterQueue can never start.

    Args:
        cluster: the cluster with the queues.
        namespace: the namespace of the jobs.
        queue: the name of the queue that the jobs refer to.
    """
    local = cluster.local_queues.get((namespace, queue))
    if local is not None:
        name = f"LocalQueue {namespace}/{queue}"
        return Never(name, f"{name} leads to ClusterQueue {local.cluster_queue}, which does not exist")
    neither = f"there is neither a LocalQueue {queue} in namespace {namespace} nor a ClusterQueue {queue}"
    return Never(f"queue {queue}", neither)


def by_quota(queue: str, why: str) -> Never:
    """Returns the `Never` for a request that a ClusterQueue can never admit."""
    return Never(f"ClusterQueue {queue}", why)


def uncovered(queue: ClusterQueue, wanted: Mapping[str, int]) -> str:
    """Returns a message if the queue has no quota for some resource, or "" if it has quota for all."""
    covered = {resource for group in queue.resource_groups for resource in group.covered_resources}
    left = sorted(resource for resource, amount in wanted.items() if amount and resource not in covered)
    return f"ClusterQueue {queue.name} has no quota for {', '.join(left)}" if left else ""


def parts_of(
    queue: ClusterQueue,
    cluster: Cluster,
    most: Most,
    constraints: Sequence[Constraints],
    wanted: Mapping[str, int],
) -> Iterator[Part]:
    """Divides a request among the resource groups of a queue, and checks the flavors of each group.

    Args:
        queue: the queue of the pods.
        cluster: the cluster with the flavors.
        most: a function that returns the largest quantity of a flavor and a resource that the queue could
            use.
        constraints: the constraints of the pods. A flavor must meet all of them.
        wanted: the total request of the pods for each resource.
    """
    for group in queue.resource_groups:
        asked = {name: wanted[name] for name in group.covered_resources if wanted.get(name)}
        if asked:
            names = [quotas.flavor for quotas in group.flavors]
            yield Part(asked, {name: _misfit(name, cluster, most, constraints, asked) for name in names})


def _misfit(
    name: str, cluster: Cluster, most: Most, constraints: Sequence[Constraints], asked: Mapping[str, int]
) -> str:
    """Returns why a flavor cannot be used for a request, or "" if it may be usable."""
    flavor = cluster.flavors.get(name)
    if flavor is not None:
        for each in constraints:
            if why := each.misfit(flavor):
                return why
    for resource, amount in asked.items():
        there = most(name, resource)
        if there < amount and there < UNLIMITED:
            return short(resource, there)
    return ""


def short(resource: str, there: int) -> str:
    """Returns a message about the largest quantity that a flavor can provide."""
    return f"gives at most {format_amount(resource, there)} of {resource}"


@final
class OverTime(Generic[_V]):
    """Determines whether jobs can ever start on a cluster that changes.

    A job never starts if it cannot start in any state of the cluster after its arrival.

    Args:
        cluster: the cluster with its changes.
        judge: a function that receives a state of the cluster, and returns another function. That function
            returns the reason why a given job can never start in this state, or None if it may start. It must
            also consider nodes that are added later.
    """

    def __init__(self, cluster: Cluster, judge: Callable[[Cluster], Callable[[Job], _V | None]]) -> None:
        self._judge = judge
        edits = [
            (instant.at, [edit for edit in instant.edits if edit.kind != "Node"])
            for instant in cluster.changes
        ]
        self._edits = [each for _, each in edits if each]
        self._times = [at for at, each in edits if each]
        self._last = cluster
        self._judges = [judge(cluster)]

    def __call__(self, job: Job) -> Sequence[_V]:
        """Returns why a job can never start, for each state after its arrival, or () if it may start."""
        first = bisect_right(self._times, job.submit) if self._times else 0
        found = []
        for state in range(first, len(self._times) + 1):
            verdict = self._of(state)(job)
            if verdict is None:
                return ()
            found.append(verdict)
        return found

    def first(self, job: Job) -> _V | None:
        """Returns the reason in the first state after the job's arrival, or None if it may start."""
        return next(iter(self(job)), None)

    def _of(self, state: int) -> Callable[[Job], _V | None]:
        while len(self._judges) <= state:
            for edit in self._edits[len(self._judges) - 1]:
                self._last = edit.on(self._last)
            self._judges.append(self._judge(self._last))
        return self._judges[state]
