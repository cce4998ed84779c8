"""Models flavors with a topology, their domains, and the free capacity of the domains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar, final

from harness.models.cluster import Cluster, ResourceFlavor, Topology
from harness.policy import PodSet
from harness_plugins.kueue.state.topology.tree import (
    DomainAssignment,
    NamedDomain,
    Room,
    TopologyAssignment,
    TopologyTree,
)

_T = TypeVar("_T")


@final
class TopologyFlavor:
    """A flavor whose nodes are grouped by a topology.

    Args:
        cluster: the nodes, and the pods on them that belong to no job. Pods that Kueue placed count as part
            of their Workload instead (`belongsToNonTASCache` in pkg/controller/tas).

    Attributes:
        free: the capacity of the leaves that Workloads can use in total.
        room: the part of `free` that is still unused.
    """

    def __init__(self, flavor: ResourceFlavor, topology: Topology, cluster: Cluster) -> None:
        self.name = flavor.name
        self.tree = TopologyTree(topology, flavor, (node for node in cluster.nodes.values() if node.ready))
        self.free = Room(self.tree.allocatable)
        for pod in cluster.pods:
            leaf = self.tree.leaf_of_node.get(pod.node)
            if leaf is not None and not (pod.ended or pod.topology):
                self.free.take(leaf, pod.spec.requests, 1)
        self.room = Room(self.free, lasts=True)


class Placed(NamedTuple):
    """The places of the pods of a pod set.

    Attributes:
        leaves: the leaves that exist.
        named: the names of all leaves in recorded order, if some of these leaves may not exist. None if all
            of them exist.
    """

    pod_set: PodSet
    flavor: TopologyFlavor
    leaves: TopologyAssignment
    named: tuple[NamedDomain, ...] | None = None

    @property
    def domains(self) -> tuple[NamedDomain, ...]:
        """The names of all leaves, including missing leaves, with their number of pods."""
        if self.named is not None:
            return self.named
        return tuple([NamedDomain(self.flavor.tree.name_of(leaf), pods) for leaf, pods in self.leaves])

    def on(self, node: str) -> int:
        """Returns the number of pods on a node, or 0 if the leaves of the topology are not nodes."""
        if not self.flavor.tree.by_host:
            return 0
        return sum(pods for values, pods in self.domains if values == (node,))

    def charge(self) -> None:
        """Subtracts the requests of the pods from the free capacity of their own flavor."""
        for leaf, pods in self.leaves:
            self.flavor.room.take(leaf, self.pod_set.requests, pods)

    def refund(self) -> None:
        """Reverts `charge`."""
        for leaf, pods in self.leaves:
            self.flavor.room.take(leaf, self.pod_set.requests, -pods)

    def fits(self) -> bool:
        """Returns True if the requests of the containers fit in each leaf.

        The number of pods is not checked. As in Kueue, pods without any request fit nowhere, although the
        search finds places for them (`TASFlavorSnapshot.Fits` with `Requests.CountIn`).
        """
        room, requests = self.flavor.room, self.pod_set.requests
        return bool(requests or not self.leaves) and all(
            resource in room and room[resource][leaf] >= amount * pods
            for leaf, pods in self.leaves
            for resource, amount in requests.items()
            if amount
        )


def without(gone: Iterable[Placed], ask: Callable[[], _T]) -> _T:
    """Calls `ask` as if these pods had released their places, and returns its result."""
    left = list(gone)
    for placed in left:
        placed.refund()
    answer = ask()
    for placed in left:
        placed.charge()
    return answer


def located(pod_set: PodSet, flavor: TopologyFlavor, domains: Iterable[NamedDomain]) -> Placed:
    """Returns the places of a pod set from the names of leaves. Missing leaves use no capacity."""
    named = tuple(domains)
    known = [(flavor.tree.leaf(values), pods) for values, pods in named]
    leaves = tuple([DomainAssignment(leaf, pods) for leaf, pods in known if leaf is not None])
    return Placed(pod_set, flavor, leaves, named)


@final
class TopologyFlavors:
    """All flavors with a topology, and the capacity that workloads use in them.

    Args:
        overlapping: whether all flavors whose finest level is the host name share the capacity of the nodes
            (the TASHandleOverlappingFlavors gate).

    Attributes:
        version: how often the free capacity of any flavor has changed. Changes that are only tried out do not
            count.
    """

    def __init__(self, cluster: Cluster, *, overlapping: bool) -> None:
        self.by_name: Mapping[str, TopologyFlavor] = {
            name: TopologyFlavor(flavor, cluster.topologies[flavor.topology], cluster)
            for name, flavor in cluster.flavors.items()
            if flavor.topology
        }
        self._overlapping = overlapping
        self.version = 0

    def now(self, placed: Iterable[Placed]) -> tuple[Placed, ...]:
        """Converts places from before a node change to the current topology trees. Pods keep their leaves."""
        return tuple(
            [
                each
                if (flavor := self.by_name[each.flavor.name]) is each.flavor
                else located(each.pod_set, flavor, each.domains)
                for each in placed
            ]
        )

    def hold(self, placed: Iterable[Placed]) -> None:
        """Subtracts the capacity that a workload's places use."""
        self._take(placed, 1)

    def drop(self, placed: Iterable[Placed]) -> None:
        """Releases the capacity that a workload's places use."""
        self._take(placed, -1)

    def _take(self, placed: Iterable[Placed], times: int) -> None:
        for each in placed:
            for flavor in (each.flavor, *self.beside(each.flavor)):
                self.take((each,), flavor, flavor.room, times)
        self.version += 1

    def beside(self, flavor: TopologyFlavor) -> Sequence[TopologyFlavor]:
        """Returns the other flavors that share nodes with a flavor.

        Workloads of the flavor also use the capacity of these other flavors.
        """
        if not (self._overlapping and flavor.tree.by_host):
            return ()
        return [each for each in self.by_name.values() if each is not flavor and each.tree.by_host]

    def take(self, placed: Iterable[Placed], flavor: TopologyFlavor, room: Room, times: int = 1) -> None:
        """Subtracts, from the capacity of a flavor's leaves, what the pods in these places use of it."""
        for each in placed:
            leaves: Iterable[tuple[int | None, int]] = each.leaves
            if each.flavor is not flavor:
                by_host = flavor in self.beside(each.flavor)
                leaves = [(flavor.tree.leaf(values[-1:]), pods) for values, pods in each.domains if by_host]
            for leaf, pods in leaves:
                if leaf is not None:
                    room.take(leaf, each.pod_set.requests, times * pods)
