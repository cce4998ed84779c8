"""Reads Kubernetes' own kinds, and `NodePool`, a kind of harness that describes many equal nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from harness.base.errors import InputError
from harness.base.units import INT64_MAX, parse_duration
from harness.cluster.devices import GPU, GPU_COUNT, of_all_devices, shared_amounts
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.kinds.selectors import read_taints
from harness.cluster.mig import partition_of
from harness.cluster.model import (
    MOST_NODES,
    NAMESPACE_NAME,
    SYSTEM_PRIORITY_CLASSES,
    Node,
    PriorityClass,
    frozen,
)
from harness.cluster.yaml.fields import Fields

HOSTNAME = "kubernetes.io/hostname"

DRAIN = "harness/drain"
"""The annotation of a node that is being drained.

Its value is the duration that `kubectl drain --timeout` got, or 0 if there is no timeout.
"""

_HIGHEST_USER_PRIORITY = 1_000_000_000


def read_node(fields: Fields, draft: Draft) -> None:
    """Read a Node with its labels, its taints, its allocatable quantities and its state."""
    metadata = read_metadata(fields)
    spec = fields.child("spec")
    status = fields.child("status")
    ready = _is_ready(status.raw("conditions"))
    node = Node(
        metadata.name,
        _allocatable(status),
        metadata.labels,
        read_taints(spec, "taints"),
        spec.boolean("unschedulable"),
        ready,
        _drain(fields.child("metadata")),
    )
    _check_slices(node, fields)
    draft.nodes.add(node.name, node, fields)


def _check_slices(node: Node, fields: Fields) -> None:
    partition = partition_of(node)
    if partition is not None and partition.fault:
        fields.fault("", partition.fault)


def _drain(metadata: Fields) -> int | None:
    """Returns the timeout of a running drain in microseconds, or None if the node isn't being drained."""
    annotations = metadata.raw("annotations")
    text = annotations.get(DRAIN) if isinstance(annotations, Mapping) else None
    if text is None:
        return None
    try:
        return max(0, parse_duration(str(text)))
    except InputError as error:
        metadata.fault(f"annotations.{DRAIN}", str(error.message))
        return None


def _is_ready(conditions: Any) -> bool:
    """Returns False if a condition says that a node is not ready.

    Handwritten manifests have no conditions, so their nodes are ready.
    """
    found = conditions if isinstance(conditions, list) else ()
    return all(
        each.get("status") == "True"
        for each in found
        if isinstance(each, Mapping) and each.get("type") == "Ready"
    )


def read_node_pool(fields: Fields, draft: Draft) -> None:
    """Read a NodePool of `spec.count` copies of `spec.template`, named `<pool>-<n>` with n from 0.

    The numbers are padded with zeros so that the names sort in numeric order. `devices` are GPUs that pods
    can share.
    """
    pool = read_metadata(fields).name
    spec = fields.child("spec")
    count = spec.integer("count", 1, required=True, least=1, most=MOST_NODES)
    template = spec.child("template")
    metadata = template.child("metadata")
    labels = metadata.strings("labels")
    if HOSTNAME in labels:
        metadata.fault(f"labels.{HOSTNAME}", "is set for each node of the pool; leave it out")
    node_spec = template.child("spec")
    taints = read_taints(node_spec, "taints")
    unschedulable = node_spec.boolean("unschedulable")
    if "allocatable" in template:
        allocatable = of_all_devices(template.amounts("allocatable"))
    else:
        allocatable = _allocatable(template.child("status"))
    if "devices" in template:
        devices = template.amounts("devices")
        for other in devices.keys() - {GPU}:
            template.fault(f"devices.{other}", f"cannot be shared; pods can share only {GPU}")
        allocatable = frozen({**allocatable, **shared_amounts(devices.get(GPU, 0))})
        labels = frozen({**labels, GPU_COUNT: str(devices.get(GPU, 0))})
    if len(draft.nodes) + count > MOST_NODES:
        spec.fault("count", f"{count:,} more nodes would exceed the limit of {MOST_NODES:,} nodes")
        return
    _check_slices(Node(pool, allocatable, labels), fields)
    for name in pool_names(pool, count):
        node = Node(name, allocatable, frozen({**labels, HOSTNAME: name}), taints, unschedulable)
        draft.nodes.add(name, node, fields)


def pool_names(pool: str, count: int, size: int | None = None) -> list[str]:
    """Returns the names of a pool's nodes in order, with as many digits as a pool of `size` nodes needs."""
    digits = len(str((size or count) - 1))
    return [f"{pool}-{number:0{digits}}" for number in range(count)]


def unpooled(manifests: Iterable[Mapping[str, Any]], names: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Yields the manifests, and replaces each NodePool that contains one of the named nodes by its Nodes.

    As a result, a change can refer to one node of a pool in the same way as to any other node.
    """
    for content in manifests:
        nodes = list(_nodes_of(content)) if names and content.get("kind") == "NodePool" else []
        if any(node["metadata"]["name"] in names for node in nodes):
            yield from nodes
        else:
            yield content


def node_names(manifests: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Returns the names of the nodes in each NodePool."""
    pools = [(each, list(_nodes_of(each))) for each in manifests if each.get("kind") == "NodePool"]
    return {
        pool["metadata"]["name"]: [node["metadata"]["name"] for node in nodes]
        for pool, nodes in pools
        if nodes
    }


def resized(content: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields a pool whose size changed, or its Nodes if the new size would rename them.

    Existing nodes therefore keep their names even if the new size has more digits.
    """
    size, old = _size(content), _size(before)
    same = size is None or old is None or pool_names("", 1, size) == pool_names("", 1, old)
    nodes: list[Mapping[str, Any]] = [] if same else list(_nodes_of(content, old))
    yield from nodes or [content]


def _size(content: Mapping[str, Any]) -> int | None:
    spec = content.get("spec") if content.get("kind") == "NodePool" else None
    count = spec.get("count") if isinstance(spec, Mapping) else None
    return count if type(count) is int and 0 < count <= MOST_NODES else None


def _nodes_of(content: Mapping[str, Any], size: int | None = None) -> Iterator[dict[str, Any]]:
    """Yields the Nodes of a NodePool, with the names that they have in a pool of `size` nodes.

    If the manifest is faulty or isn't a NodePool of harness, the function yields nothing.
    """
    spec, metadata = content.get("spec"), content.get("metadata")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if content.get("apiVersion") != "harness/v1" or not isinstance(template, Mapping):
        return
    assert isinstance(spec, Mapping)
    assert isinstance(metadata, Mapping)
    labels = _labels(template.get("metadata"))
    if labels is None:
        return
    status = {"allocatable": template["allocatable"]} if "allocatable" in template else template.get("status")
    devices = template.get("devices")
    if isinstance(devices, Mapping) and isinstance(status, Mapping) and type(devices.get(GPU)) is int:
        labels = {**labels, GPU_COUNT: str(devices[GPU])}
        which = "allocatable" if "allocatable" in status else "capacity"
        status = {**status, which: {**(status.get(which) or {}), **shared_amounts(devices[GPU])}}
    for name in pool_names(str(metadata.get("name")), spec.get("count", 1), size):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**labels, HOSTNAME: name}},
            "spec": template.get("spec") or {},
            "status": status or {},
        }


def _labels(metadata: Any) -> Mapping[str, Any] | None:
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else metadata
    return {} if labels is None else labels if isinstance(labels, Mapping) else None


def _allocatable(status: Fields) -> Mapping[str, int]:
    which = "allocatable" if "allocatable" in status else "capacity"
    if which not in status:
        status.fault("allocatable", "is missing, so nothing can run on this node")
    return of_all_devices(status.amounts(which))


def read_namespace(fields: Fields, draft: Draft) -> None:
    """Read the labels of a Namespace, and add the label with its name, as Kubernetes does."""
    metadata = read_metadata(fields)
    labels = frozen({**metadata.labels, NAMESPACE_NAME: metadata.name})
    draft.namespaces.add(metadata.name, labels, fields)


def read_priority_class(fields: Fields, draft: Draft) -> None:
    """Read a PriorityClass. Names that begin with `system-` are reserved for Kubernetes."""
    name = read_metadata(fields).name
    system = SYSTEM_PRIORITY_CLASSES.get(name)
    value = fields.integer("value", required=True, most=system.value if system else _HIGHEST_USER_PRIORITY)
    if name.startswith("system-") and (system is None or value != system.value):
        known = ", ".join(f"{known.name} ({known.value})" for known in SYSTEM_PRIORITY_CLASSES.values())
        fields.fault("metadata.name", f"names that begin with 'system-' are reserved for {known}")
    default = fields.boolean("globalDefault")
    preempts = fields.choice("preemptionPolicy", ("PreemptLowerPriority", "Never"), "PreemptLowerPriority")
    priority_class = PriorityClass(name, value, default, preempts == "PreemptLowerPriority")
    draft.priority_classes.add(name, priority_class, fields)


def check_core(draft: Draft) -> None:
    """Check rules that concern several objects of Kubernetes.

    At most one PriorityClass can be the global default. For each resource, the sum over all nodes must fit
    into 64 bits.
    """
    defaults = [item.name for item in draft.priority_classes.values() if item.global_default]
    for name in defaults[1:]:
        draft.priority_classes.fields(name).refuse("globalDefault", f"is already 'true' for {defaults[0]}")
    total: dict[str, int] = {}
    for name, node in draft.nodes.items():
        for resource, amount in node.allocatable.items():
            before = total.get(resource, 0)
            total[resource] = before + amount
            if before <= INT64_MAX < total[resource]:
                what = f"{resource} of this node and all nodes before it exceeds a 64-bit integer"
                draft.nodes.fields(name).fault("", what)
