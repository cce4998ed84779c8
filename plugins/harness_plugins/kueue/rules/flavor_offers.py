"""The flavors of a queue that a job could use.

Whether a flavor suits a pod set depends on taints, node selectors, required node affinity and topologies.
Quota and the free capacity of a topology are not considered here.

Upstream: `checkFlavorForPodSets` in pkg/scheduler/flavorassigner.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias, final

from harness.models.cluster import Cluster, ClusterQueue, ResourceFlavor, ResourceGroup, TopologyRequest
from harness.models.constraints import Constraints
from harness.models.quota import QuotaTree
from harness.policy import PodSet
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.state.asks import Asks
from harness_plugins.kueue.state.cluster_queue import ClusterQueueState

PODS: Final = "pods"


def cells_of_pods(tree: QuotaTree) -> set[int]:
    """Returns the flavor-resources that count pods. Kueue's searches for targets ignore them."""
    return {cell for cell, (_, resource) in enumerate(tree.flavor_resources) if resource == PODS}


@final
@dataclass(frozen=True, slots=True, eq=False)
class GroupOffer:
    """The flavors and quantities that one resource group of a queue offers to a pod set.

    Attributes:
        resources: the resources that the pod set takes from this group.
        amounts: how much of each resource one pod takes.
        flavors: the names of the group's flavors, in order.
        cells: for each flavor, its flavor-resource for each resource, or None if the flavor does not suit the
            pod set.
    """

    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    flavors: tuple[str, ...]
    cells: tuple[tuple[int, ...] | None, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PodSetOffer:
    """The flavors that a queue offers to a pod set, by resource group.

    Attributes:
        covered: False if the pod set needs a resource that no group has.
        placed: whether the pods are placed in the topology of a flavor.
        mates: the indices of the pod sets that get the same flavors, including this one, or () if this pod
            set gets its own flavors.
    """

    pod_set: PodSet
    covered: bool
    groups: tuple[GroupOffer, ...]
    placed: bool = False
    mates: tuple[int, ...] = ()


Offers: TypeAlias = Callable[[Asks, ClusterQueueState], tuple[PodSetOffer, ...]]
"""Returns what a queue offers to a job. See `FlavorOffers`."""


@final
class FlavorOffers:
    """Finds the flavors that queues can offer to jobs."""

    def __init__(self, cluster: Cluster, tree: QuotaTree, gates: Gates) -> None:
        self._tree = tree
        self._counted = counting_of(cluster, gates)
        self._suiting = Suiting(cluster, gates)
        self._zero_needs_no_quota = gates.rules.zero_needs_no_quota
        self._ignores_undeclared = ignores_undeclared(cluster, gates)

    def __call__(self, asks: Asks, queue: ClusterQueueState) -> tuple[PodSetOffer, ...]:
        """Returns what a queue offers to each pod set of a job."""
        requests = requests_of(asks, queue.spec, self._counted)
        return tuple(
            self._pod_set_offer(pod_set, wanted, [asks.pod_sets[each] for each in mates], mates, queue.spec)
            for pod_set, wanted, mates in zip(asks.pod_sets, requests, mates_of(asks.pod_sets), strict=True)
        )

    def _pod_set_offer(
        self,
        pod_set: PodSet,
        requests: Mapping[str, int],
        members: Sequence[PodSet],
        mates: tuple[int, ...],
        queue: ClusterQueue,
    ) -> PodSetOffer:
        if not requests:  # its mates determine its flavor
            requests = dict.fromkeys(self._suiting.of_topologies(queue), 0)
            requests = {each: 0 for member in members for each in member.requests if each in requests}
        groups = []
        left = dict(requests)
        for group in queue.resource_groups:
            resources = tuple([resource for resource in left if resource in group.covered_resources])
            if resources:
                flavors = tuple([quotas.flavor for quotas in group.flavors])
                cells = [
                    self._cells(name, resources)
                    if all(self._suiting.suits(each, name, group, queue) for each in members or (pod_set,))
                    else None
                    for name in flavors
                ]
                amounts = tuple(map(left.pop, resources))
                groups.append(GroupOffer(resources, amounts, flavors, tuple(cells)))
        # Before PR 8241, a request of 0 that no group covers made the pod set fail, too.
        uncovered = any(left.values()) if self._zero_needs_no_quota else bool(left)
        covered = self._ignores_undeclared or not uncovered
        return PodSetOffer(pod_set, covered, tuple(groups), self._suiting.places(pod_set, queue), mates)

    def _cells(self, flavor: str, resources: tuple[str, ...]) -> tuple[int, ...] | None:
        """Returns the flavor-resources of a flavor, or None if it lacks quota for one of the resources."""
        numbers = [self._tree.cell(flavor, resource) for resource in resources]
        present = tuple(number for number in numbers if number is not None)
        return present if len(present) == len(numbers) else None


Counted: TypeAlias = Callable[[Mapping[str, int]], Mapping[str, int]]
"""Converts the requests of a pod to the amounts that count against quota."""


def counting_of(cluster: Cluster, gates: Gates) -> Counted:
    """Returns a function that counts requested resources, by a release's rules and its Configuration."""
    rules = gates.rules
    return partial(
        cluster.counting.counted,
        exact=rules.exact_transformations,
        keeps_inputs=rules.keeps_transformed_inputs,
    )


def ignores_undeclared(cluster: Cluster, gates: Gates) -> bool:
    """Returns True if a resource that a queue does not cover needs no quota (IgnoreUndeclaredResources)."""
    return gates.quota_check_strategy and cluster.counting.ignores_undeclared


def requests_of(asks: Asks, queue: ClusterQueue, counted: Counted) -> list[Mapping[str, int]]:
    """Returns the quota that one pod of each pod set takes, including the resource `pods` and devices."""
    found = [counted(pod_set.requests) for pod_set in asks.pod_sets]
    if asks.claimed is not None:
        devices = asks.claimed.amounts
        for at, requests in enumerate(found):
            both = dict.fromkeys([*requests, *devices[at]])
            found[at] = {name: requests.get(name, 0) + devices[at].get(name, 0) for name in both}
    if any(PODS in group.covered_resources for group in queue.resource_groups):
        return [{**requests, PODS: 1} for requests in found]
    return found


@final
class Suiting:
    """Checks which flavors of queues suit pod sets."""

    def __init__(self, cluster: Cluster, gates: Gates) -> None:
        self._cluster = cluster
        self._places = gates.topology_aware_scheduling
        self._own_label_keys = gates.rules.own_label_keys
        flavors = cluster.flavors.items() if self._places else ()
        self._with_topology = frozenset([name for name, flavor in flavors if flavor.topology])

    def of_topologies(self, queue: ClusterQueue) -> Iterator[str]:
        """Yields the resources of the queue's resource groups that contain a flavor with a topology."""
        for group in queue.resource_groups:
            if any(quotas.flavor in self._with_topology for quotas in group.flavors):
                yield from group.covered_resources

    def places(self, pod_set: PodSet, queue: ClusterQueue) -> bool:
        """Returns True if the pods get places: the pod set requests this, or all flavors have a topology."""
        request = pod_set.topology
        return self._implied(queue) or (self._places and request is not None and request.explicit)

    def _implied(self, queue: ClusterQueue) -> bool:
        named = {quotas.flavor for group in queue.resource_groups for quotas in group.flavors}
        return bool(named) and named <= self._with_topology

    def suits(self, pod_set: PodSet, name: str, group: ResourceGroup, queue: ClusterQueue) -> bool:
        """Returns True if a flavor of a queue's resource group suits a pod set."""
        flavor = self._cluster.flavors.get(name)
        if flavor is None or self.misplaced(pod_set, flavor, group.covered_resources, queue):
            return False
        keys = None if self._own_label_keys else self._label_keys(group)
        return Constraints(pod_set).allow(flavor, keys)

    def misplaced(
        self, pod_set: PodSet, flavor: ResourceFlavor, resources: Iterable[str], queue: ClusterQueue
    ) -> str:
        """Returns why the topology of a flavor does not suit a pod set that needs resources, or ""."""
        topology = self._cluster.topologies.get(flavor.topology) if self._places else None
        request = pod_set.topology
        if request is None or not request.explicit or not self._places:
            fine = topology is None or self._implied(queue)
            return "" if fine else "has a topology, but the job requests none"
        if topology is None:
            # Resources that the pods themselves do not request can come from any flavor.
            any_flavor = pod_set.requests.keys().isdisjoint(resources)
            return "" if any_flavor else "has no topology, but the job requests one"
        missing = ", ".join(sorted(_levels(request).difference(topology.levels)))
        return f"has no topology level {missing}" if missing else ""

    def _label_keys(self, group: ResourceGroup) -> Container[str]:
        """Returns the label keys of all flavors in a resource group (before PR 12449)."""
        flavors = self._cluster.flavors
        named = [flavors[quotas.flavor] for quotas in group.flavors if quotas.flavor in flavors]
        return {key for flavor in named for key in flavor.node_labels}


def _levels(request: TopologyRequest) -> set[str]:
    return {request.required, request.preferred, *(layer.level for layer in request.slices)} - {""}


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


# --- pod sets that get the same flavors -------------------------------------------------------------------


class JointGroup(NamedTuple):
    """A resource group of a queue, and what several pod sets take from it.

    Attributes:
        offer: the flavors, and the amounts that all pods of these pod sets take in total.
        parts: each pod set, with the index of the resource group among the groups of the pod set.
        enters: whether the flavors that the first pod set has tried determine where a scan continues. If it
            does not take the resource that Kueue looks up, every scan starts with the first flavor.
    """

    offer: GroupOffer
    parts: list[tuple[int, int]]
    enters: bool


def joint_groups(
    offers: Sequence[PodSetOffer], mates: Sequence[int], counts: Sequence[int]
) -> Iterator[JointGroup]:
    """Yields the resource groups from which the pod sets of one group take resources."""
    by_flavors: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number in mates:
        for at, group in enumerate(offers[number].groups):
            by_flavors.setdefault(group.flavors, []).append((number, at))
    for flavors, parts in by_flavors.items():
        total: dict[str, int] = {}
        numbers: list[dict[str, int]] = [{} for _ in flavors]
        for number, at in parts:
            group = offers[number].groups[at]
            for resource, amount in zip(group.resources, group.amounts, strict=True):
                total[resource] = total.get(resource, 0) + amount * counts[number]
            for of_flavor, cells in zip(numbers, group.cells, strict=True):
                of_flavor.update(zip(group.resources, cells or (), strict=False))
        joint = tuple(
            tuple(map(each.__getitem__, total)) if len(each) == len(total) else None for each in numbers
        )
        first, at = parts[0]
        enters = first == mates[0] and min(total, key=_hash) in offers[first].groups[at].resources
        yield JointGroup(GroupOffer(tuple(total), tuple(total.values()), flavors, joint), parts, enters)


def _hash(resource: str) -> int:
    """Returns the 64-bit FNV-1a hash of a resource name, which Kueue uses to order requests."""
    value = 0xCBF29CE484222325
    for byte in resource.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
