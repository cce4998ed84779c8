"""Models Kueue's topologies, which group nodes at several levels, and the topology requests of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from harness.base.errors import Fault
from harness.base.json_text import parse_json
from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.model import NO_TOPOLOGY, ResourceFlavor
from harness.cluster.yaml.fields import Fields

PODSET = "kueue.x-k8s.io/podset-"
"""The prefix of the annotations with which the pods of a pod set request a topology."""

LAYERS = f"{PODSET}slice-required-topology-constraints"
"""The annotation with several layers of slices, as the JSON text of a list."""

TOPOLOGY_ANNOTATIONS = (
    *(f"{PODSET}{name}-topology" for name in ("required", "preferred", "unconstrained", "slice-required")),
    LAYERS,
)
"""The annotations that identify pods that Kueue has placed in a topology."""

_FIELDS: Mapping[str, str] = {
    f"{PODSET}required-topology": "required",
    f"{PODSET}preferred-topology": "preferred",
    f"{PODSET}unconstrained-topology": "unconstrained",
    f"{PODSET}slice-required-topology": "podSetSliceRequiredTopology",
    f"{PODSET}slice-size": "podSetSliceSize",
    f"{PODSET}group-name": "podSetGroupName",
    LAYERS: "podsetSliceRequiredTopologyConstraints",
}
"""Maps annotations of pod templates to the fields of `topologyRequest` that Kueue derives from them."""

_MOST_DOMAINS = 100_000


@fixed()
class Topology(Value):
    """A Topology.

    Attributes:
        levels: node labels, from the coarsest to the finest level. The value of a label is the node's domain
            at that level.
    """

    name: str
    levels: tuple[str, ...]


def read_topology(fields: Fields, draft: Draft) -> None:
    """Read a Topology and its levels."""
    name = read_metadata(fields).name
    levels: list[str] = []
    for item in fields.child("spec").items("levels"):
        label = item.string("nodeLabel", required=True)
        if label in levels:
            item.fault("nodeLabel", f"{label} is already a level")
        levels.append(label)
    if not levels:
        fields.child("spec").fault("levels", "must name at least one level")
    draft.topologies.add(name, Topology(name, tuple(levels)), fields)


def check_topologies(draft: Draft) -> None:
    """Warn about flavors whose topology does not exist, or can't group some nodes.

    Kueue keeps ClusterQueues with a flavor without its Topology inactive (upstream's isTASViolated), unless
    its gate TopologyAwareScheduling is off.
    """
    for flavor in list(draft.flavors.values()):
        topology = draft.topologies.get(flavor.topology)
        if topology is not None:
            _check_nodes(draft, flavor, topology)
        elif flavor.topology:
            what = f"{NO_TOPOLOGY}{flavor.topology}"
            then = "so Kueue keeps queues with this flavor inactive; add its manifest, or omit topologyName"
            draft.warnings.add("ResourceFlavor", flavor.name, f"{what}, {then}")
            draft.flavors[flavor.name] = replace(flavor, topology="")
            _keep_inactive(draft, flavor.name, f"{what}, which ResourceFlavor {flavor.name} names")


def _keep_inactive(draft: Draft, flavor: str, reason: str) -> None:
    for queue in list(draft.cluster_queues.values()):
        named = {quotas.flavor for group in queue.resource_groups for quotas in group.flavors}
        if flavor in named and not queue.inactive:
            draft.cluster_queues[queue.name] = replace(queue, inactive=reason)


def _check_nodes(draft: Draft, flavor: ResourceFlavor, topology: Topology) -> None:
    """Warn about nodes without a label of a level, flavors without nodes, and values in several domains."""
    wanted = flavor.node_labels.items()
    own = [node for node in draft.nodes.values() if wanted <= node.labels.items()]
    for node in own:
        missing = [level for level in topology.levels if level not in node.labels]
        if missing:
            what = f"lacks the label {missing[0]} of a level of Topology {topology.name}, so it gets no jobs"
            draft.warnings.add("Node", node.name, what)
    grouped = [node.labels for node in own if node.labels.keys() >= set(topology.levels)]
    if not grouped:
        what = f"no node has all labels of the flavor and of Topology {topology.name}, so it gets no jobs"
        draft.warnings.add("ResourceFlavor", flavor.name, what)
    for outer, inner in pairwise(topology.levels):
        above: dict[str, set[str]] = {}
        for labels in grouped:
            above.setdefault(labels[inner], set()).add(labels[outer])
        for value, parents in above.items():
            if len(parents) > 1:
                what = (
                    f"{inner} {value} is in {outer} {' and '.join(sorted(parents)[:2])}: "
                    f"levels do not nest, so {value} counts as a separate domain in each {outer}"
                )
                draft.warnings.add("Topology", topology.name, what)
                break


def annotated_topology(metadata: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Returns the `topologyRequest` that Kueue derives from the annotations of a pod template.

    `metadata` belongs to the template.
    """
    annotations = Fields(metadata, "", faults).child("annotations")
    request: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        if name in annotations:
            told = str(annotations.raw(name))
            if field == "unconstrained":
                request[field] = told == "true"
            elif field == "podSetSliceSize":
                request[field] = int(told) if told.isdecimal() else told
            elif name == LAYERS:
                try:
                    request[field] = parse_json(told)
                except ValueError:
                    annotations.fault(name, "must be the JSON text of a list")
            else:
                request[field] = told
    return request


def read_topology_request(fields: Fields) -> TopologyRequest:
    """Read a `topologyRequest` of a pod set.

    The layers of slices come from the list `podsetSliceRequiredTopologyConstraints`. If the list is absent,
    the fields `podSetSliceRequiredTopology` and `podSetSliceSize` specify a single layer.
    """
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


class DomainPods(NamedTuple):
    """The number of pods in a domain. The domain has a value for each level of the assignment."""

    values: tuple[str, ...]
    pods: int


class TopologyAssignment(NamedTuple):
    """The domains that contain the pods of a pod set, and the topology levels that identify a domain."""

    levels: tuple[str, ...]
    domains: tuple[DomainPods, ...]


def read_topology_assignment(fields: Fields) -> TopologyAssignment | None:
    """Returns a `topologyAssignment`, or None if it is absent."""
    levels = fields.texts("levels")
    found = [
        DomainPods(item.texts("values"), item.integer("count", least=0)) for item in fields.items("domains")
    ]
    for item in fields.items("slices"):
        found += _slice(item)
    if any(len(each.values) != len(levels) for each in found):
        fields.fault("levels", "must have one entry for each value of a domain")
    return TopologyAssignment(levels, tuple(found)) if levels else None


def _slice(fields: Fields) -> list[DomainPods]:
    domains = fields.integer("domainCount", required=True, least=1, most=_MOST_DOMAINS)
    values = [_values(level, domains) for level in fields.items("valuesPerLevel")]
    counts = fields.child("podCounts")
    pods = _each(counts, "individual", domains, int)
    if pods is None:
        pods = [counts.integer("universal", required=True, least=0)] * domains
    return [DomainPods(tuple(each), count) for *each, count in zip(*values, pods, strict=False)]


def _values(fields: Fields, domains: int) -> Sequence[str]:
    individual = fields.child("individual")
    roots = _each(individual, "roots", domains, str)
    if roots is None:
        return [fields.string("universal", required=True)] * domains
    prefix, suffix = individual.string("prefix"), individual.string("suffix")
    return [f"{prefix}{root}{suffix}" for root in roots]


def _each(fields: Fields, name: str, domains: int, kind: type) -> list[Any] | None:
    """Returns a list with one entry for each domain, or None if the list is absent."""
    value = fields.raw(name)
    if value is None:
        return None
    if isinstance(value, list) and len(value) == domains and all(type(each) is kind for each in value):
        return value
    fields.fault(name, f"must have one entry for each of the {domains:,} domains")
    return [kind()] * domains
