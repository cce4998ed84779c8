"""Finds the flavors that suit a pod set with its topology request, and the pod sets that share flavors."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import final

from harness.models.cluster import Cluster, ClusterQueue, ResourceGroup, TopologyRequest
from harness.models.constraints import Constraints
from harness.policy import PodSet
from harness_plugins.kueue.rules.feature_gates import Gates


@final
class Suiting:
    """Checks which flavors of a queue suit pod sets.

    Attributes:
        of_topologies: the resource groups that contain a flavor with a topology.
    """

    def __init__(self, queue: ClusterQueue, cluster: Cluster, gates: Gates) -> None:
        self._cluster = cluster
        self._places = gates.topology_aware_scheduling
        self._own_label_keys = gates.rules.own_label_keys
        flavors = cluster.flavors.items() if self._places else ()
        with_topology = {name for name, flavor in flavors if flavor.topology}
        named = [{quotas.flavor for quotas in group.flavors} for group in queue.resource_groups]
        self._implied = any(named) and set().union(*named) <= with_topology
        self.of_topologies = [
            group
            for group, names in zip(queue.resource_groups, named, strict=True)
            if not names.isdisjoint(with_topology)
        ]
        self._constraints: dict[PodSet, Constraints] = {}

    def places(self, pod_set: PodSet) -> bool:
        """Returns True if the pods get places: the pod set requests this, or all flavors have a topology."""
        request = pod_set.topology
        return self._implied or (self._places and request is not None and request.explicit)

    def suits(self, pod_set: PodSet, name: str, group: ResourceGroup) -> bool:
        """Returns True if a flavor of a resource group suits a pod set."""
        flavor = self._cluster.flavors.get(name)
        if flavor is None:
            return False
        topology = self._cluster.topologies.get(flavor.topology) if self._places else None
        request = pod_set.topology
        if request is not None and request.explicit and self._places:
            if topology is None:
                # Resources that the pods themselves do not request can come from any flavor.
                if not pod_set.requests.keys().isdisjoint(group.covered_resources):
                    return False
            elif not set(_levels(request)) <= set(topology.levels):
                return False
        elif topology is not None and not self._implied:
            return False
        constraints = self._constraints.get(pod_set)
        if constraints is None:
            constraints = self._constraints[pod_set] = Constraints(pod_set)
        return constraints.allow(flavor, None if self._own_label_keys else self._label_keys(group))

    def _label_keys(self, group: ResourceGroup) -> Container[str]:
        """Returns the label keys of all flavors in a resource group (before PR 12449)."""
        flavors = self._cluster.flavors
        named = [flavors[quotas.flavor] for quotas in group.flavors if quotas.flavor in flavors]
        return {key for flavor in named for key in flavor.node_labels}


def _levels(request: TopologyRequest) -> list[str]:
    named = [request.required, request.preferred, *(layer.level for layer in request.slices)]
    return [level for level in named if level]


def mates_of(pod_sets: Sequence[PodSet]) -> list[tuple[int, ...]]:
    """Returns the indices of the pod sets that share flavors with each pod set, or () if there are none."""
    by_group: dict[str, list[int]] = {}
    for number, pod_set in enumerate(pod_sets):
        if pod_set.topology is not None and pod_set.topology.group:
            by_group.setdefault(pod_set.topology.group, []).append(number)
    mates: list[tuple[int, ...]] = [()] * len(pod_sets)
    for members in by_group.values():
        if len(members) > 1:
            for number in members:
                mates[number] = tuple(members)
    return mates
