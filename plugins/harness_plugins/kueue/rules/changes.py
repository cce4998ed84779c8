"""The effects of Kueue's controllers when a ClusterQueue or a Cohort changes.

Upstream: `UpdateClusterQueue` and `AddOrUpdateCohort` in pkg/cache/scheduler/cache.go and
pkg/cache/queue/manager.go, called by the controllers of ClusterQueues and Cohorts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, final

from harness.models.cluster import Cluster, ClusterQueue
from harness.policy import Edit, Job
from harness_plugins.kueue.machinery import Machinery
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState
from harness_plugins.kueue.state.workload import Workload

KINDS = ("ClusterQueue", "Cohort")
"""The kinds of objects whose changes affect a scheduler's queues and quotas."""

_STOPPED = {"ClusterQueue": "ClusterQueueStopped", "LocalQueue": "LocalQueueStopped"}
_UNRESERVED = "Inadmissible"
"""The reason why a workload that waits for admission checks loses its quota: its queue was stopped."""


@final
class Removed:
    """Deleted ClusterQueues whose quota is still held.

    While a workload holds a queue's quota, the deletion is only pending (finalizer `resource-in-use`). Until
    the last holder is gone, the queue admits no workload but lends its quota. After that it has no quota, and
    its waiting workloads wait until a ClusterQueue of that name exists again.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ClusterQueue] = {}

    def __bool__(self) -> bool:
        return bool(self._specs)

    def edit(self, edit: Edit, cache: Cache) -> None:
        """Notes that a ClusterQueue was deleted or exists again; the cache is from before the change."""
        if edit.kind != "ClusterQueue":
            return
        if edit.after is None:
            self._specs[edit.name] = replace(edit.before, stop_policy="Hold")
            self.gone(cache, cache.queues[edit.name])
        else:
            self._specs.pop(edit.name, None)

    def gone(self, cache: Cache, queue: ClusterQueueState) -> bool:
        """Returns True and forgets a deleted ClusterQueue if no workload holds its quota any more."""
        spec = self._specs.get(queue.name)
        if spec is None or not spec.resource_groups or any(cache.holders[queue.node].everybody):
            return False
        self._specs[queue.name] = replace(spec, cohort="", resource_groups=())
        return True

    def among(self, cluster: Cluster) -> Cluster:
        """Returns a cluster to which the deleted ClusterQueues are added."""
        if not self._specs:
            return cluster
        return replace(cluster, cluster_queues={**cluster.cluster_queues, **self._specs})


def outdates(edit: Edit, cache: Cache) -> bool:
    """Returns True if a change raises the generations in its tree, which invalidates older scan positions.

    A change of a Cohort raises them. A change of a ClusterQueue raises them if its quotas or limits change,
    or if its cohort has a parent: then the controller of Cohorts recomputes the whole tree.
    """
    if edit.kind != "ClusterQueue" or edit.before is None or edit.after is None:
        return True
    moved = edit.before.cohort != edit.after.cohort
    if moved or edit.before.resource_groups != edit.after.resource_groups:
        return True
    return len(cache.queues[edit.name].path) > 1


def tree_of(edit: Edit, cache: Cache) -> dict[str, ClusterQueueState]:
    """Returns the ClusterQueues of an object's tree, by name; empty if the object is in no tree."""
    nodes = cache.tree.queues if edit.kind == "ClusterQueue" else cache.tree.cohorts
    node = nodes.get(edit.name)
    if node is None:
        return {}
    root = cache.tree.root[node]
    return {name: queue for name, queue in cache.queues.items() if queue.root == root}


def changed(edit: Edit, after: Machinery, concerned: dict[str, ClusterQueueState]) -> None:
    """Raises generations, and requeues the inadmissible workloads of the affected trees.

    Args:
        edit: the change.
        after: the scheduler's new machinery.
        concerned: the queues of the object's former tree.
    """
    concerned = concerned | tree_of(edit, after.cache)
    raised = outdates(edit, after.cache)
    for name, queue in concerned.items():
        if raised:
            queue.generation += 1
        after.pending[name].requeue_inadmissible()


def leaving(
    edit: Edit, workloads: Iterable[Workload], admitted: Callable[[Workload], bool]
) -> list[tuple[Workload, str]]:
    """Returns the workloads that must leave because a queue is stopped, by name, with the reason.

    Upstream: `reconcileOnClusterQueueActiveState` and `reconcileOnLocalQueueActiveState` in
    pkg/controller/core/workload_controller.go.

    Args:
        edit: the change.
        workloads: all present workloads.
        admitted: returns whether all admission checks of a holder of quota are ready.
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


def _stop_policy(spec: Any) -> str:
    """Returns the stop policy of a queue; a missing queue admits no job, but keeps admitted ones."""
    policy: str = "Hold" if spec is None else spec.stop_policy
    return policy


def _is_of(workload: Workload, edit: Edit) -> bool:
    if edit.kind == "ClusterQueue":
        return workload.cluster_queue.name == edit.name
    return f"{workload.job.namespace}/{workload.job.queue}" == edit.name


@final
class ClosedQueues:
    """Stopped LocalQueues with the workloads that wait for their restart, and jobs whose queue is missing.

    Args:
        cluster: the LocalQueues.

    Attributes:
        homeless: jobs whose queue does not exist yet.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.homeless: list[Job] = []
        self._outside: dict[Workload, None] = {}
        self._stopped = {
            key: local.stop_policy
            for key, local in cluster.local_queues.items()
            if local.stop_policy != "None"
        }

    def stop_policy(self, job: Job) -> str:
        """Returns the stop policy of a job's LocalQueue if it is stopped, else ""."""
        return self._stopped.get((job.namespace, job.queue), "")

    def keep_out(self, workload: Workload) -> None:
        """Lets a workload wait outside its queue until its LocalQueue is restarted."""
        self._outside[workload] = None

    def follow(self, edit: Edit) -> list[Workload]:
        """Applies a change of a LocalQueue; returns the workloads that may queue again, by name."""
        namespace, name = edit.name.split("/", 1)
        if _stop_policy(edit.after) != "None":
            self._stopped[namespace, name] = _stop_policy(edit.after)
            return []
        self._stopped.pop((namespace, name), None)
        free = sorted((each for each in self._outside if _is_of(each, edit)), key=lambda each: each.name)
        for workload in free:
            del self._outside[workload]
        return free

    def shut_out(self, edit: Edit, workloads: Iterable[Workload]) -> list[Workload]:
        """Returns the workloads that must leave their ClusterQueue because their LocalQueue was stopped."""
        if edit.kind != "LocalQueue" or _stop_policy(edit.after) == "None":
            return []
        found = [each for each in workloads if not each.has_quota and _is_of(each, edit)]
        return [each for each in found if each not in self._outside]
