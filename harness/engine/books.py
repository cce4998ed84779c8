"""The engine's record of the capacity of the cluster and of the resources that pods hold."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from types import MappingProxyType
from typing import Any

from harness.base.units import format_amount
from harness.cluster.changes.edits import Change, Edit
from harness.cluster.model import Cluster, ClusterQueue, Node
from harness.cluster.overfull import overfull
from harness.policy import Job


class Books:
    """The capacity and allocation of the cluster and of each node, which policies see as their `View`.

    In a cluster without nodes, a job can be admitted while evicted jobs still hold the resources that it
    needs. The books then promise these resources to the job, and the job starts when they are free.
    If a resource is insufficient, `admit` and `bind` return a text that names it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.capacity: Mapping[str, int] = cluster.capacity
        self._allocated: dict[str, int] = dict.fromkeys(cluster.capacity, 0)
        self.allocated: Mapping[str, int] = MappingProxyType(self._allocated)
        self._leaving: dict[str, int] = {}  # the part of the allocation that is still held by evicted jobs
        self._promised: dict[str, int] = {}  # the requests of admitted jobs that have not started yet
        self._overfull = {} if cluster.nodes else overfull(cluster)
        self._beyond = {**self._overfull}  # the excess over the capacity that is allowed since quotas fell
        self._free: dict[str, dict[str, int]] = {
            name: dict(node.allocatable) for name, node in cluster.nodes.items()
        }
        self._allocatable = {name: node.allocatable for name, node in cluster.nodes.items()}
        self.nodes: KeysView[str] = self._free.keys()

    def free_on(self, node: str) -> Mapping[str, int]:
        """Returns the free quantity of each resource on a node."""
        return MappingProxyType(self._free[node])

    def fits(self, job: Job) -> bool:
        """Returns True if the whole cluster has enough free resources for the job's request.

        Resources that are promised to other jobs are not free. The distribution over nodes doesn't matter.
        """
        promised, allocated = self._promised, self._allocated
        return all(
            allocated.get(resource, 0) + promised.get(resource, 0) + amount <= self.capacity[resource]
            for resource, amount in asked_by(job, None).items()
            if resource in self.capacity
        )

    def admit(self, asked: Mapping[str, int], *, at_once: bool) -> bool | str:
        """Allocate or promise the whole request of a job.

        The request is allocated if it is free and the job can start now (`at_once`). Otherwise, it is
        promised, which is also possible for resources that evicted jobs still hold. For resources without a
        capacity, the books count the usage without limiting it.

        Returns:
            True if the request was allocated, and False if it was promised. If neither is possible, the
            result is a text about the insufficient resource.
        """
        allocated, leaving, promised, capacity = self._allocated, self._leaving, self._promised, self.capacity
        for resource, amount in asked.items():
            limit = capacity.get(resource)
            if limit is None:
                continue
            free = limit - allocated.get(resource, 0)
            if amount > free and (leaving.get(resource) or not self._may_exceed(resource, amount - free)):
                at_once = False
            free += leaving.get(resource, 0) - promised.get(resource, 0)
            if amount > free and not self._may_exceed(resource, amount - free):
                return _short(resource, "the cluster", amount, free + self._beyond.get(resource, 0))
        amounts = allocated if at_once else promised
        for resource, amount in asked.items():
            amounts[resource] = amounts.get(resource, 0) + amount
        return at_once

    def start(self, asked: Mapping[str, int]) -> bool:
        """Allocates a job's promised request if all of it is free, and returns True if it was free.

        Promises to other jobs are ignored, because those jobs were admitted later.
        """
        allocated, promised, capacity = self._allocated, self._promised, self.capacity
        for resource, amount in asked.items():
            held = allocated.get(resource, 0) + amount
            excess = held - capacity.get(resource, held)
            if excess > 0 and (self._leaving.get(resource) or not self._may_exceed(resource, excess)):
                return False
        for resource, amount in asked.items():
            promised[resource] -= amount
            allocated[resource] = allocated.get(resource, 0) + amount
        return True

    def withdraw(self, asked: Mapping[str, int]) -> None:
        """Withdraw the promise to a job that is evicted before it starts.

        A job whose pods have all ended never starts, so nothing was promised to it.
        """
        for resource, amount in asked.items():
            if amount:
                self._promised[resource] -= amount
        if self._beyond:
            self._settle()

    def terminate(self, asked: Mapping[str, int]) -> None:
        """Record that a started job is evicted. The job holds its resources until it is gone."""
        for resource, amount in asked.items():
            self._leaving[resource] = self._leaving.get(resource, 0) + amount

    def release(self, asked: Mapping[str, int], *, evicted: bool) -> None:
        """Free the resources of a started job that has ended, or that was evicted and is now gone."""
        allocated = self._allocated
        for resource, amount in asked.items():
            allocated[resource] -= amount
        if evicted:
            leaving = self._leaving
            for resource, amount in asked.items():
                leaving[resource] -= amount
        if self._beyond:
            self._settle()

    def change(self, change: Change) -> None:
        """Apply a change of the cluster. Jobs keep the resources that they hold.

        In a cluster without nodes, the capacity is the sum of quotas. After a change, jobs can hold more than
        the capacity in two ways. First, a quota is reduced below the usage of its jobs, while other queues
        still use all of their quotas. The books allow an excess as large as the sum of all reductions since
        all resources were last free. Second, a queue or cohort leaves its cohort, and keeps resources that it
        borrowed there, although the cohort can use the same quantities again. The books don't record which
        queue has borrowed. Therefore, they assume that all held resources could be borrowed.
        """
        self.capacity = change.cluster.capacity
        for resource in self.capacity:
            self._allocated.setdefault(resource, 0)
        if not self._free:
            beyond = [_lowered(change.edit)]
            if _leaves(change.edit):
                beyond += [self._allocated, self._promised]
            for amounts in beyond:
                for resource, amount in amounts.items():
                    self._beyond[resource] = self._beyond.get(resource, 0) + amount
            self._settle()

    def put_node(self, node: Node, pods: int) -> None:
        """Add a node, or change its capacity, which can be less than what its pods hold."""
        had, free = self._allocatable.get(node.name, {}), self._free.get(node.name, {})
        now = {
            name: node.allocatable.get(name, 0) - (had.get(name, 0) - free.get(name, 0))
            for name in (*free, *node.allocatable)
        }
        limited = "pods" in node.allocatable
        if limited:
            now["pods"] = node.allocatable["pods"] - pods
        if limited != ("pods" in free):
            self._allocated["pods"] = self._allocated.get("pods", 0) + (pods if limited else -pods)
            if not limited:
                del now["pods"]
        self._allocatable[node.name] = node.allocatable
        self._free[node.name] = now

    def drop_node(self, name: str) -> None:
        """Remove a node that no longer has any pods."""
        del self._free[name]
        del self._allocatable[name]

    def _may_exceed(self, resource: str, excess: int) -> bool:
        return excess <= self._beyond.get(resource, 0)

    def _settle(self) -> None:
        """Reset the excess over the capacity to that of the beginning when all resources are free again.

        Until then, a deleted queue may have lent its entire quota for any resource.
        """
        if not (any(self._allocated.values()) or any(self._promised.values())):
            self._beyond = {**self._overfull}

    def bind(self, job: Job, pod: int, node: str) -> str | None:
        """Allocate one pod on a node. The pod also uses one of the node's `pods` if the node limits them."""
        free, allocated = self._free[node], self._allocated
        pod_sets = job.pod_sets
        pod_set = pod_sets[0] if len(pod_sets) == 1 else job.pod_set_of(pod)
        for resource, amount in pod_set.requests.items():
            left = free.get(resource, 0) - amount
            if left < 0 and amount:  # pods can ignore an overcommitted resource that they don't request
                return _short(resource, f"node {node}", amount, left + amount)
            free[resource] = left
            allocated[resource] = allocated.get(resource, 0) + amount
        if "pods" in free:
            if free["pods"] < 1:
                return _short("pods", f"node {node}", 1, free["pods"])
            free["pods"] -= 1
            allocated["pods"] += 1
        return None

    def unbind(self, job: Job, pod: int, node: str) -> None:
        """Free the resources that a pod holds on a node."""
        free, allocated = self._free[node], self._allocated
        pod_sets = job.pod_sets
        pod_set = pod_sets[0] if len(pod_sets) == 1 else job.pod_set_of(pod)
        for resource, amount in pod_set.requests.items():
            free[resource] += amount
            allocated[resource] -= amount
        if "pods" in free:
            free["pods"] += 1
            allocated["pods"] -= 1


def asked_by(job: Job, counts: Mapping[str, int] | None) -> Mapping[str, int]:
    """Returns the request of a whole job by resource, for the pods that partial admission granted."""
    if job.pods == 1 and len(job.pod_sets) == 1:
        return job.pod_sets[0].requests
    total: dict[str, int] = {}
    for pod_set in job.pod_sets:
        count = pod_set.count if counts is None else counts.get(pod_set.name, pod_set.count)
        for resource, amount in pod_set.requests.items():
            total[resource] = total.get(resource, 0) + amount * count
    return total


def _lowered(edit: Edit) -> dict[str, int]:
    """Returns by how much the quota of each resource or its lendable part fell, whichever fell more."""
    if edit.kind not in ("ClusterQueue", "Cohort") or edit.before is None:
        return {}
    before, after = _quotas(edit.before), _quotas(edit.after)
    total: dict[str, int] = {}
    for (flavor, resource), (nominal, lent) in before.items():
        has, lends = after.get((flavor, resource), (0, 0))
        total[resource] = total.get(resource, 0) + max(0, nominal - has, lent - lends)
    return {resource: amount for resource, amount in total.items() if amount}


def _leaves(edit: Edit) -> bool:
    if edit.kind not in ("ClusterQueue", "Cohort") or edit.before is None:
        return False
    return edit.after is None or _above(edit.before) != _above(edit.after)


def _above(spec: Any) -> str:
    above: str = spec.cohort if isinstance(spec, ClusterQueue) else spec.parent
    return above


def _quotas(spec: Any) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns the nominal quota and its lendable part by flavor and resource."""
    found = {}
    for group in () if spec is None else spec.resource_groups:
        for quotas in group.flavors:
            for resource, quota in quotas.resources.items():
                limit = quota.lending_limit
                lent = quota.nominal if limit is None else min(limit, quota.nominal)
                found[quotas.flavor, resource] = quota.nominal, lent
    return found


def _short(resource: str, place: str, wanted: int, free: int) -> str:
    has, asked = format_amount(resource, free), format_amount(resource, wanted)
    return f"{place} has {has} {resource} free, but the decision needs {asked}"
