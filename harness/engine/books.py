"""The engine's truth about capacity: what the cluster has, and what pods hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness.cluster.model import Cluster
from harness.job import Job
from harness.units import format_amount


class Books:
    """Capacity and allocation, for the cluster and for each node; policies see it as their `View`.

    Charging answers None, or in words what there is too little of.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.capacity: Mapping[str, int] = cluster.capacity
        self._allocated: dict[str, int] = dict.fromkeys(cluster.capacity, 0)
        self.allocated: Mapping[str, int] = MappingProxyType(self._allocated)
        self._free: dict[str, dict[str, int]] = {
            name: dict(node.allocatable) for name, node in cluster.nodes.items()
        }

    def free_on(self, node: str) -> Mapping[str, int]:
        """Resource -> amount that is free on a node now."""
        return MappingProxyType(self._free[node])

    def fits(self, job: Job) -> bool:
        """Whether the job's whole request is free in the cluster now (summed over nodes)."""
        capacity, allocated = self.capacity, self._allocated
        return all(
            allocated.get(resource, 0) + amount <= capacity[resource]
            for resource, amount in job.requests_of(range(job.pods)).items()
            if resource in capacity
        )

    def has_node(self, node: str) -> bool:
        """Whether there is such a node."""
        return node in self._free

    def charge(self, job: Job, counts: Mapping[str, int] | None) -> str | None:
        """Allocate a whole job without naming a node; a resource that nothing limits is only counted."""
        allocated, capacity = self._allocated, self.capacity
        for pod_set in job.pod_sets:
            count = pod_set.count if counts is None else counts.get(pod_set.name, pod_set.count)
            for resource, amount in pod_set.requests.items():
                held = allocated.get(resource, 0) + amount * count
                if held > capacity.get(resource, held):
                    wanted = amount * count
                    return _short(resource, "the cluster", wanted, capacity[resource] - held + wanted)
                allocated[resource] = held
        return None

    def refund(self, job: Job, counts: Mapping[str, int] | None) -> None:
        """Undo `charge`."""
        allocated = self._allocated
        for pod_set in job.pod_sets:
            count = pod_set.count if counts is None else counts.get(pod_set.name, pod_set.count)
            for resource, amount in pod_set.requests.items():
                allocated[resource] -= amount * count

    def bind(self, job: Job, pod: int, node: str) -> str | None:
        """Allocate one pod on a node; a pod takes one of the node's `pods` where the node limits them."""
        free, allocated = self._free[node], self._allocated
        for resource, amount in job.pod_set_of(pod).requests.items():
            left = free.get(resource, 0) - amount
            if left < 0:
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
        for resource, amount in job.pod_set_of(pod).requests.items():
            free[resource] += amount
            allocated[resource] -= amount
        if "pods" in free:
            free["pods"] += 1
            allocated["pods"] -= 1


def _short(resource: str, place: str, wanted: int, free: int) -> str:
    has, asked = format_amount(resource, free), format_amount(resource, wanted)
    return f"{place} has {has} of {resource} free, not {asked}"
