"""What Kueue's controllers do when a ClusterQueue or a Cohort changes.

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
"""The kinds of objects whose changes a scheduler's queues and quotas follow."""

_STOPPED = {"ClusterQueue": "ClusterQueueStopped", "LocalQueue": "LocalQueueStopped"}
_UNRESERVED = "Inadmissible"
"""Why one that waits for admission checks loses its reservation when its queue is stopped."""


@final
class Removed:
    """ClusterQueues that were deleted: what is left of them.

    One whose quota somebody holds is only about to be deleted (its finalizer is `resource-in-use`): it takes
    nobody, and lends its quota until the last one is gone. Then it has no quota any more, and whoever waits
    in it waits until there is a ClusterQueue of that name again.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ClusterQueue] = {}

    def __bool__(self) -> bool:
        return bool(self._specs)

    def edit(self, edit: Edit, cache: Cache) -> None:
        """A ClusterQueue was deleted, or is there again; the cache is that of before."""
        if edit.kind != "ClusterQueue":
            return
        if edit.after is None:
            self._specs[edit.name] = replace(edit.before, stop_policy="Hold")
            self.gone(cache, cache.queues[edit.name])
        else:
            self._specs.pop(edit.name, None)

    def gone(self, cache: Cache, queue: ClusterQueueState) -> bool:
        """Whether nobody holds quota of a deleted ClusterQueue any more, which ends it."""
        spec = self._specs.get(queue.name)
        if spec is None or not spec.resource_groups or any(cache.holders[queue.node].everybody):
            return False
        self._specs[queue.name] = replace(spec, cohort="", resource_groups=())
        return True

    def among(self, cluster: Cluster) -> Cluster:
        """The cluster with what is left of them."""
        if not self._specs:
            return cluster
        return replace(cluster, cluster_queues={**cluster.cluster_queues, **self._specs})


def outdates(edit: Edit, cache: Cache) -> bool:
    """Whether a change raises the generations in its tree, so that older scan memories are outdated.

    A Cohort's does. That of a ClusterQueue does where quotas or limits change, or where it hangs below a
    cohort that has a parent. The controller of Cohorts then computes the whole tree anew.
    """
    if edit.kind != "ClusterQueue" or edit.before is None or edit.after is None:
        return True
    moved = edit.before.cohort != edit.after.cohort
    if moved or edit.before.resource_groups != edit.after.resource_groups:
        return True
    return len(cache.queues[edit.name].path) > 1


def tree_of(edit: Edit, cache: Cache) -> dict[str, ClusterQueueState]:
    """The ClusterQueues of the tree in which an object is, by name; none where it is in none."""
    nodes = cache.tree.queues if edit.kind == "ClusterQueue" else cache.tree.cohorts
    node = nodes.get(edit.name)
    if node is None:
        return {}
    root = cache.tree.root[node]
    return {name: queue for name, queue in cache.queues.items() if queue.root == root}


def changed(edit: Edit, after: Machinery, concerned: dict[str, ClusterQueueState]) -> None:
    """Raise generations, and let everything inadmissible in the trees concerned try again.

    Args:
        edit: what changes.
        after: what the scheduler works with from now on.
        concerned: the queues of the tree in which the object was before.
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
    """Who has to go because a queue is stopped, by name, with the reason.

    Upstream: `reconcileOnClusterQueueActiveState` and `reconcileOnLocalQueueActiveState` in
    pkg/controller/core/workload_controller.go.

    Args:
        edit: what changes.
        workloads: all that there are.
        admitted: whether one that holds quota waits for no admission check any more.
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
    """The stop policy of a queue; a queue that does not exist admits no job, and keeps those admitted."""
    policy: str = "Hold" if spec is None else spec.stop_policy
    return policy


def _is_of(workload: Workload, edit: Edit) -> bool:
    if edit.kind == "ClusterQueue":
        return workload.cluster_queue.name == edit.name
    return f"{workload.job.namespace}/{workload.job.queue}" == edit.name


@final
class ClosedQueues:
    """LocalQueues that are stopped, who waits for their restart, and whose queue does not exist yet.

    Args:
        cluster: the LocalQueues.

    Attributes:
        homeless: jobs whose queue is to come.
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
        """The stop policy of a job's LocalQueue, if it is stopped; else ""."""
        return self._stopped.get((job.namespace, job.queue), "")

    def keep_out(self, workload: Workload) -> None:
        """A workload waits until its LocalQueue is restarted."""
        self._outside[workload] = None

    def follow(self, edit: Edit) -> list[Workload]:
        """A LocalQueue changes; answers those who may queue again, by name."""
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
        """Those who wait in their ClusterQueue, and may not because their LocalQueue is stopped."""
        if edit.kind != "LocalQueue" or _stop_policy(edit.after) == "None":
            return []
        found = [each for each in workloads if not each.has_quota and _is_of(each, edit)]
        return [each for each in found if each not in self._outside]
