"""The engine's truth about capacity: what the cluster has, and what pods hold of it."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from types import MappingProxyType
from typing import Any

from harness.base.units import format_amount
from harness.cluster.changes.edits import Change, Edit
from harness.cluster.model import Cluster, ClusterQueue, Node
from harness.policy import Job


class Books:
    """Capacity and allocation, for the cluster and for each node; policies see it as their `View`.

    Without nodes a job is admitted first, which gives it a right to its resources, and started when those
    that are leaving have left them. To admit or to bind answers None, or says what there is too little of.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.capacity: Mapping[str, int] = cluster.capacity
        self._allocated: dict[str, int] = dict.fromkeys(cluster.capacity, 0)
        self.allocated: Mapping[str, int] = MappingProxyType(self._allocated)
        self._leaving: dict[str, int] = {}  # what evicted jobs still hold of what is allocated
        self._promised: dict[str, int] = {}  # what admitted jobs that have not started are to get
        self._beyond: dict[str, int] = {}  # what may be held beyond the capacity since quotas fell
        self._free: dict[str, dict[str, int]] = {
            name: dict(node.allocatable) for name, node in cluster.nodes.items()
        }
        self._allocatable = {name: node.allocatable for name, node in cluster.nodes.items()}
        self.nodes: KeysView[str] = self._free.keys()

    def free_on(self, node: str) -> Mapping[str, int]:
        """Resource -> amount that is free on a node now."""
        return MappingProxyType(self._free[node])

    def fits(self, job: Job) -> bool:
        """Whether the job's whole request is free now (summed over nodes), and promised to nobody."""
        promised, allocated = self._promised, self._allocated
        return all(
            allocated.get(resource, 0) + promised.get(resource, 0) + amount <= self.capacity[resource]
            for resource, amount in asked_by(job, None).items()
            if resource in self.capacity
        )

    def admit(self, asked: Mapping[str, int], *, at_once: bool) -> bool | str:
        """Promise a whole job what it asks for, or give it that where it may start and all of it is free.

        What evicted jobs still hold can be promised again. A resource that nothing limits is only counted.

        Returns:
            Whether it was given what it asks for; or what there is too little of, where not even a promise
            can be made.
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
        """Allocate what was promised to a job if all of it is free; answers whether it is.

        What is promised to others does not count: they were admitted later.
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
        """A job is evicted before it started: nothing is promised to it any more.

        One of whose pods none is left never starts, and nothing was promised to it.
        """
        for resource, amount in asked.items():
            if amount:
                self._promised[resource] -= amount
        if self._beyond:
            self._settle()

    def terminate(self, asked: Mapping[str, int]) -> None:
        """A started job is evicted; it holds its resources until it is gone."""
        for resource, amount in asked.items():
            self._leaving[resource] = self._leaving.get(resource, 0) + amount

    def release(self, asked: Mapping[str, int], *, evicted: bool) -> None:
        """A started job has ended, or it was evicted and is gone."""
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
        """The cluster changes; jobs keep what they hold.

        Without nodes the capacity is the sum of quotas. If a quota falls below what its jobs hold, other
        queues may still use their quotas in full. So jobs may hold more than the capacity, by as much as
        quotas fell since nothing was held. A queue or cohort that leaves its cohort takes along what it
        borrowed there, and others may take that anew. The books do not know who borrowed, so all that is
        held may be borrowed.
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
        """A node is there, or has other amounts; it may have less than its pods hold.

        Args:
            node: the node.
            pods: how many pods are on it.
        """
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
        """A node is gone, and nothing is on it any more."""
        del self._free[name]
        del self._allocatable[name]

    def _may_exceed(self, resource: str, excess: int) -> bool:
        """Whether so much may be held beyond the capacity."""
        return excess <= self._beyond.get(resource, 0)

    def _settle(self) -> None:
        """Where all was given back, no more than the capacity may be held again.

        Until then a queue that was deleted may lend all that it had, of whatever resource.
        """
        if not (any(self._allocated.values()) or any(self._promised.values())):
            self._beyond.clear()

    def bind(self, job: Job, pod: int, node: str) -> str | None:
        """Allocate one pod on a node; a pod takes one of the node's `pods` where the node limits them."""
        free, allocated = self._free[node], self._allocated
        pod_sets = job.pod_sets
        pod_set = pod_sets[0] if len(pod_sets) == 1 else job.pod_set_of(pod)
        for resource, amount in pod_set.requests.items():
            left = free.get(resource, 0) - amount
            if left < 0 and amount:  # a node may hold more than it has, which is no matter to others
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
        """Undo `bind`."""
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
    """Resource -> what a whole job asks for, with the pods that partial admission gave to it."""
    if job.pods == 1 and len(job.pod_sets) == 1:
        return job.pod_sets[0].requests
    total: dict[str, int] = {}
    for pod_set in job.pod_sets:
        count = pod_set.count if counts is None else counts.get(pod_set.name, pod_set.count)
        for resource, amount in pod_set.requests.items():
            total[resource] = total.get(resource, 0) + amount * count
    return total


def _lowered(edit: Edit) -> dict[str, int]:
    """Resource -> how much less a queue or cohort has, or lends, whichever is more."""
    if edit.kind not in ("ClusterQueue", "Cohort") or edit.before is None:
        return {}
    before, after = _quotas(edit.before), _quotas(edit.after)
    total: dict[str, int] = {}
    for (flavor, resource), (nominal, lent) in before.items():
        has, lends = after.get((flavor, resource), (0, 0))
        total[resource] = total.get(resource, 0) + max(0, nominal - has, lent - lends)
    return {resource: amount for resource, amount in total.items() if amount}


def _leaves(edit: Edit) -> bool:
    """Whether a queue or cohort is no longer where it was; one that is deleted may come back elsewhere."""
    if edit.kind not in ("ClusterQueue", "Cohort") or edit.before is None:
        return False
    return edit.after is None or _above(edit.before) != _above(edit.after)


def _above(spec: Any) -> str:
    """The cohort of a queue, or the parent of a cohort."""
    above: str = spec.cohort if isinstance(spec, ClusterQueue) else spec.parent
    return above


def _quotas(spec: Any) -> dict[tuple[str, str], tuple[int, int]]:
    """Flavor and resource -> the nominal quota, and what of it others may have."""
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
    return f"{place} has {has} of {resource} free, not {asked}"
