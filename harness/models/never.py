"""Reasons why a ClusterQueue can never give a job what it asks for, in the same words for every policy.

Whatever else runs, and whatever is preempted, a flavor gives at most the queue's own amount plus all that its
cohorts lend. It gives nothing to pods that do not tolerate its taints, or that select other labels than its
own.
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
"""Returns the most of a resource in a flavor that a queue could use."""

_V = TypeVar("_V")

_SHOWN = 4


class Part(NamedTuple):
    """The request of pods to one resource group of a queue.

    Attributes:
        asked: resource -> amount.
        misfits: each flavor of the group, in order -> why it cannot serve; "" if it may.
    """

    asked: Mapping[str, int]
    misfits: Mapping[str, str]

    def never(self, queue: str) -> str:
        """Why no flavor can serve; "" if one may."""
        if not all(self.misfits.values()):
            return ""
        amounts = ", ".join(f"{format_amount(name, amount)} of {name}" for name, amount in self.asked.items())
        shown = [f"{name} {why}" for name, why in list(self.misfits.items())[:_SHOWN]]
        more = len(self.misfits) - len(shown)
        shown += [f"and {more} more"] if more else []
        return f"no flavor of ClusterQueue {queue} can ever give it {amounts}: {'; '.join(shown)}"


def no_queue(cluster: Cluster, namespace: str, queue: str) -> Never:
    """The verdict on a queue of jobs that leads to no ClusterQueue.

    Args:
        cluster: its queues.
        namespace: the namespace of the jobs.
        queue: the queue that the jobs name.
    """
    local = cluster.local_queues.get((namespace, queue))
    if local is not None:
        name = f"LocalQueue {namespace}/{queue}"
        return Never(name, f"{name} leads to ClusterQueue {local.cluster_queue}, which does not exist")
    neither = f"there is neither a LocalQueue {queue} in namespace {namespace} nor a ClusterQueue {queue}"
    return Never(f"queue {queue}", neither)


def by_quota(queue: str, why: str) -> Never:
    """The verdict on a request that a ClusterQueue can never meet."""
    return Never(f"ClusterQueue {queue}", why)


def uncovered(queue: ClusterQueue, wanted: Mapping[str, int]) -> str:
    """A sentence if the queue has no quota at all for some resource, else ""."""
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
    """The request of pods to each resource group, and the flavors that could give it to all of them.

    Args:
        queue: their queue.
        cluster: has the flavors.
        most: the most that the queue could use.
        constraints: of the pods; all of them must be met.
        wanted: resource -> their total request.
    """
    for group in queue.resource_groups:
        asked = {name: wanted[name] for name in group.covered_resources if wanted.get(name)}
        if asked:
            names = [quotas.flavor for quotas in group.flavors]
            yield Part(asked, {name: _misfit(name, cluster, most, constraints, asked) for name in names})


def _misfit(
    name: str, cluster: Cluster, most: Most, constraints: Sequence[Constraints], asked: Mapping[str, int]
) -> str:
    """Why a flavor cannot serve; "" if it may."""
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
    """A sentence that a flavor never has more than this."""
    return f"gives at most {format_amount(resource, there)} of {resource}"


@final
class OverTime(Generic[_V]):
    """Judges whether jobs can ever start on a cluster that changes.

    A job never starts if it could start in none of the cluster's states from its arrival on.

    Args:
        cluster: the cluster, and its changes.
        judge: makes a judge for a state. The judge returns why a job can never start while that state lasts,
            or None if it may. It knows by itself of nodes that are to come.
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
        """Why a job can never start, for each state from its arrival on; empty if it may start in one."""
        first = bisect_right(self._times, job.submit) if self._times else 0
        found = []
        for state in range(first, len(self._times) + 1):
            verdict = self._of(state)(job)
            if verdict is None:
                return ()
            found.append(verdict)
        return found

    def _of(self, state: int) -> Callable[[Job], _V | None]:
        """The judge of the state after this many instants."""
        while len(self._judges) <= state:
            for edit in self._edits[len(self._judges) - 1]:
                self._last = edit.on(self._last)
            self._judges.append(self._judge(self._last))
        return self._judges[state]
