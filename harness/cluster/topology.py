"""Kueue's topologies: the levels that nodes are grouped by, and what a pod set asks of them."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cluster.draft import read_metadata
from harness.cluster.fields import Fields


@dataclass(frozen=True, slots=True)
class Topology:
    """A Topology.

    Attributes:
        levels: the node labels that name a node's domains, from the coarsest to the finest.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SliceLayer:
    """Pods in groups of `size`, each of which has to be in one domain of `level`."""

    level: str
    size: int


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """A pod set's `topologyRequest`.

    Attributes:
        required: the level of which one domain has to take all pods; "" for none.
        preferred: the level of which one domain should take all pods; "" for none.
        unconstrained: any domains will do.
        slices: layers of groups, from the outermost to the innermost.
        group: pod sets of one group are placed together; "" for none.
    """

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    slices: tuple[SliceLayer, ...] = ()
    group: str = ""

    @property
    def explicit(self) -> bool:
        """Whether it asks for a placement; to be of a group does not."""
        return bool(self.required or self.preferred or self.unconstrained or self.slices)


def read_topology(fields: Fields) -> Topology:
    """A Topology from its manifest."""
    name = read_metadata(fields).name
    levels: list[str] = []
    for item in fields.child("spec").items("levels"):
        label = item.string("nodeLabel", required=True)
        if label in levels:
            item.fault("nodeLabel", f"{label} is a level already")
        levels.append(label)
    if not levels:
        fields.child("spec").fault("levels", "must name at least one level")
    return Topology(name, tuple(levels))


def read_topology_request(fields: Fields) -> TopologyRequest:
    """A `topologyRequest`; a single layer of slices may be written without a list."""
    fields.ignore("podIndexLabel", "subGroupIndexLabel", "subGroupCount")
    layers = tuple(
        SliceLayer(item.string("topology", required=True), item.integer("size", 1, required=True, least=1))
        for item in fields.items("podsetSliceRequiredTopologyConstraints")
    )
    level = fields.string("podSetSliceRequiredTopology")
    size = fields.integer("podSetSliceSize", 1, least=1)
    if not layers and level:
        layers = (SliceLayer(level, size),)
    return TopologyRequest(
        fields.string("required"),
        fields.string("preferred"),
        fields.boolean("unconstrained"),
        layers,
        fields.string("podSetGroupName"),
    )
