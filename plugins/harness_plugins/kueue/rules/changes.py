"""Models the actions of Kueue's controllers when a ClusterQueue or a Cohort changes.

Upstream: `UpdateClusterQueue` and `AddOrUpdateCohort` in pkg/cache/scheduler/cache.go and
pkg/cache/queue/manager.go. The ClusterQueue and Cohort controllers call these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, final

from harness.models.cluster import Cluster, ClusterQueue
from harness.policy import Edit, Job
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.pending_queue import PendingQueue
from harness_plugins.kueue.state.workload import Workload

KINDS = ("ClusterQueue", "Cohort")
"""The kinds of objects whose changes affect the queues and quotas of a scheduler."""

_STOPPED = {"ClusterQueue": "ClusterQueueStopped", "LocalQueue": "LocalQueueStopped"}
_UNRESERVED = "Inadmissible"
"""The reason why a workload that waits for admission checks loses its quota when its queue is stopped."""


@final
class Removed:
    """Deleted ClusterQueues that still have workloads, with or without quota.

    While a workload holds quota in a queue, the finalizer `resource-in-use` delays the deletion. During that
    time, the queue admits no workloads but still lends its quota. When the last workload is gone, the queue
    loses its quota. Its pending workloads wait until a ClusterQueue with the same name is created.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ClusterQueue] = {}

    def __bool__(self) -> bool:
        return bool(self._specs)

    def edit(self, edit: Edit, cache: Cache) -> None:
        """Records that a ClusterQueue was deleted or created again. Call this before the cache changes."""
        if edit.kind != "ClusterQueue":
            return
        if edit.after is None:
            self._specs[edit.name] = replace(edit.before, stop_policy="Hold")
            self.gone(cache, cache.queues[edit.name])
        else:
            self._specs.pop(edit.name, None)

    def gone(self, cache: Cache, queue: ClusterQueueState) -> bool:
        """Removes a deleted ClusterQueue's quota unless a workload holds some. Returns True if it did so."""
        spec = self._specs.get(queue.name)
        if spec is None or not spec.resource_groups or any(cache.holders[queue.node].everybody):
            return False
        self._specs[queue.name] = replace(spec, cohort="", resource_groups=())
        return True

    def among(self, cluster: Cluster) -> Cluster:
        """Returns a copy of the cluster that includes the deleted ClusterQueues."""
        if not self._specs:
            return cluster
        return replace(cluster, cluster_queues={**cluster.cluster_queues, **self._specs})


def queues_ever(cluster: Cluster) -> Iterator[ClusterQueue]:
    """Yields the ClusterQueues of a cluster, and each of them as it is after a change."""
    yield from cluster.cluster_queues.values()
    for instant in cluster.changes:
        yield from (edit.after for edit in instant.edits if edit.kind == "ClusterQueue" and edit.after)


def outdates(edit: Edit, cache: Cache) -> bool:
    """Returns True if the workloads in the changed object's tree must try all flavors again.

    A scan position records the flavors that a workload has already tried. A change to a Cohort always
    invalidates all positions in its tree. A change to a ClusterQueue does so if its quotas, limits or cohort
    change, or if its cohort has a parent. In the latter case, the Cohort controller recomputes the whole
    tree. The deletion of a ClusterQueue has no effect until its quota is gone.
    """
    if edit.kind == "ClusterQueue" and edit.after is None:
        return not cache.queues[edit.name].spec.resource_groups
    if edit.kind != "ClusterQueue" or edit.before is None:
        return True
    moved = edit.before.cohort != edit.after.cohort
    if moved or edit.before.resource_groups != edit.after.resource_groups:
        return True
    return len(cache.queues[edit.name].path) > 1


def alike(edit: Edit) -> bool:
    """Returns True if a ClusterQueue keeps its cohort, stop policy, usage order, flavors and resources."""
    if edit.before is None or edit.after is None:
        return False
    before, after = (
        (spec.cohort, spec.stop_policy, spec.by_usage, [
            (group.covered_resources, [(each.flavor, list(each.resources)) for each in group.flavors])
            for group in spec.resource_groups
        ])
        for spec in (edit.before, edit.after)
    )  # fmt: skip
    return bool(before == after)


def tree_of(edit: Edit, cache: Cache) -> dict[str, ClusterQueueState]:
    """Returns the ClusterQueues in an object's tree, by name, or {} if the object is in no tree."""
    nodes = cache.tree.queues if edit.kind == "ClusterQueue" else cache.tree.cohorts
    node = nodes.get(edit.name)
    if node is None:
        return {}
    root = cache.tree.root[node]
    return {name: queue for name, queue in cache.queues.items() if queue.root == root}


def changed(
    edit: Edit, cache: Cache, pending: Mapping[str, PendingQueue], concerned: dict[str, ClusterQueueState]
) -> None:
    """Invalidates scan positions, and requeues inadmissible workloads, when an object changes.

    As in Kueue, a deletion requeues no workload. If an object moves to another tree, the inadmissible
    workloads of the new tree are requeued, but not those of the old tree. `concerned` has the queues of the
    object's old tree.
    """
    joined = tree_of(edit, cache)
    if outdates(edit, cache):
        for queue in (concerned | joined).values():
            queue.generation += 1
    if edit.after is not None:
        for name in joined:
            pending[name].requeue_inadmissible()


def leaving(
    edit: Edit, workloads: Iterable[Workload], admitted: Callable[[Workload], bool]
) -> list[tuple[Workload, str]]:
    """Returns the workloads to evict because a queue was stopped, sorted by name, with the reason for each.

    Upstream: `reconcileOnClusterQueueActiveState` and `reconcileOnLocalQueueActiveState` in
    pkg/controller/core/workload_controller.go.
    """
    if edit.kind not in _STOPPED:
        return []
    stops = _stop_policy(edit.after)
    if stops in ("None", _stop_policy(edit.before)):
        return []
    found = []
    for workload in workloads:
        if workload.evicted or not workload.has_quota or not _is_of(workload, edit):
            continue
        if not admitted(workload):
            found.append((workload, _UNRESERVED))
        elif stops == "HoldAndDrain":
            found.append((workload, _STOPPED[edit.kind]))
    return sorted(found, key=lambda each: each[0].name)


def closing(edit: Edit, pending: Mapping[str, PendingQueue]) -> list[Workload]:
    """Returns the pending workloads of a ClusterQueue that a change stops or deletes, sorted by name."""
    if edit.kind != "ClusterQueue" or edit.before is None or edit.before.stop_policy != "None":
        return []
    if _stop_policy(edit.after) == "None":
        return []
    queue = pending[edit.name]
    return sorted([*queue.active(), *queue.inadmissible()], key=attrgetter("name"))


def _stop_policy(spec: Any) -> str:
    """Returns the stop policy of a queue. A deleted queue counts as stopped with `Hold`."""
    policy: str = "Hold" if spec is None else spec.stop_policy
    return policy


def _is_of(workload: Workload, edit: Edit) -> bool:
    if edit.kind == "ClusterQueue":
        return workload.cluster_queue.name == edit.name
    return f"{workload.job.namespace}/{workload.job.queue}" == edit.name


@final
class ClosedQueues:
    """The stopped LocalQueues, the workloads that wait until they restart, and the jobs without a queue.

    Attributes:
        homeless: the jobs whose queue does not exist yet.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.homeless: list[Job] = []
        self._outside: dict[Workload, None] = {}
        self._drained: dict[Workload, None] = {}
        self._stopped = {
            key: local.stop_policy
            for key, local in cluster.local_queues.items()
            if local.stop_policy != "None"
        }

    def stop_policy(self, job: Job) -> str:
        """Returns the stop policy of a job's LocalQueue, or "" if the LocalQueue is not stopped."""
        return self._stopped.get((job.namespace, job.queue), "")

    def wakes(self, job: Job) -> bool:
        """Returns True if Kueue requeues inadmissible workloads when the job's workload releases its quota.

        Kueue does not requeue them if the job's LocalQueue is stopped or deleted. Upstream:
        `QueueAssociatedInadmissibleWorkloadsAfter`, which finds no queue in this case.
        """
        return not self.stop_policy(job)

    def keep_out(self, workload: Workload) -> None:
        """Keeps a workload out of its queue until its LocalQueue is restarted."""
        self._outside[workload] = None

    def evicts(self, workload: Workload, reason: str) -> None:
        """Records an eviction. Workloads of a stopped LocalQueue are on hold until it restarts."""
        if reason == _STOPPED["LocalQueue"]:
            self._drained[workload] = None

    def follow(self, edit: Edit) -> list[tuple[Workload, bool]]:
        """Applies a change to a LocalQueue.

        Returns the workloads that can be queued again, each with True if it was on hold. Workloads that were
        on hold are queued like new workloads. The other workloads are tried even if equivalent workloads are
        inadmissible.
        """
        namespace, name = edit.name.split("/", 1)
        if _stop_policy(edit.after) != "None":
            self._stopped[namespace, name] = _stop_policy(edit.after)
            return []
        self._stopped.pop((namespace, name), None)
        drained = {each for each in self._drained if _is_of(each, edit)}
        self._drained = {each: None for each in self._drained if each not in drained}
        free = [each for each in self._outside if _is_of(each, edit)]
        for workload in free:
            del self._outside[workload]
        free.sort(key=lambda each: (each not in drained, each.name))
        return [(each, each in drained) for each in free]

    def shut_out(self, edit: Edit, workloads: Iterable[Workload]) -> list[Workload]:
        """Returns the pending workloads that leave their ClusterQueue because a LocalQueue was stopped."""
        if edit.kind != "LocalQueue" or _stop_policy(edit.after) == "None":
            return []
        found = [each for each in workloads if not each.has_quota and _is_of(each, edit)]
        return [each for each in found if each not in self._outside]
