"""Lists the nodes in each domain of a cluster's topologies."""

from __future__ import annotations

from typing import Any

from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.model import Cluster


def domains(cluster: Cluster) -> list[dict[str, Any]]:
    """Returns the domains above the host level and their nodes, for each topology that a flavor uses.

    Returns:
        A dictionary for each topology. It contains the `name` of the topology, its `levels` from the coarsest
        to the finest without the host name, and its `domains`. A domain has the `values` of the levels and
        the names of its `nodes`.
    """
    found = []
    for name in sorted({flavor.topology for flavor in cluster.flavors.values() if flavor.topology}):
        levels = [level for level in cluster.topologies[name].levels if level != HOSTNAME]
        nodes: dict[tuple[str, ...], list[str]] = {}
        for node in cluster.nodes.values():
            if all(level in node.labels for level in levels):
                nodes.setdefault(tuple(node.labels[level] for level in levels), []).append(node.name)
        if levels and nodes:
            each = [{"values": list(values), "nodes": sorted(own)} for values, own in sorted(nodes.items())]
            found.append({"name": name, "levels": levels, "domains": each})
    return found
