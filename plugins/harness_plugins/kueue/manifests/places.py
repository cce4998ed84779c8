"""Reads the places of pods in topologies, for Workloads that hold quota when a replay starts."""

from __future__ import annotations

from collections.abc import Container

from harness.models.cluster import HOSTNAME, Cluster
from harness_plugins.kueue.manifests.beginning import Start
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavors, located
from harness_plugins.kueue.state.topology.tree import NamedDomain


def places_of(start: Start, topologies: TopologyFlavors, nodes: Container[str]) -> tuple[Placed, ...]:
    """Returns the domains that a Workload's admission assigns to its pods. Some nodes may be gone.

    Domains that exist but take no pods, such as cordoned nodes, are left out. `nodes` are those that exist.
    """
    admission = start.manifest.admission
    assert admission is not None, "a holder of quota has an admission"
    pod_sets = {pod_set.name: pod_set for pod_set in start.pod_sets}
    found = []
    for assignment in admission.assignments:
        flavors = [
            topologies.by_name[each] for each in assignment.flavors.values() if each in topologies.by_name
        ]
        topology = assignment.topology
        if topology is not None and flavors and assignment.name in pod_sets:
            tree = flavors[0].tree
            depth = 1 if tree.by_host else len(tree.levels)
            same = topology.levels[-depth:] == tree.levels[-depth:]
            domains = [NamedDomain(tuple(each.values[-depth:]), each.pods) for each in topology.domains]
            there = [
                each
                for each in (domains if same else ())
                if tree.leaf(each.values) is not None or (tree.by_host and each.values[-1] not in nodes)
            ]
            found.append(located(pod_sets[assignment.name], flavors[0], there))
    return tuple(found)


def on_missing_nodes(cluster: Cluster) -> bool:
    """Returns True if a Workload's admission assigns pods to a node that is not in the manifests."""
    return any(
        assignment.topology is not None
        and assignment.topology.levels[-1] == HOSTNAME
        and any(each.values[-1] not in cluster.nodes for each in assignment.topology.domains)
        for workload in cluster.workloads
        if workload.admission is not None
        for assignment in workload.admission.assignments
    )
