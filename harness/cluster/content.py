"""Represents the modelled part of a cluster as small JSON values.

Runs store these values, and commands compare them.

The content lists objects by kind and name. For each object, it contains the fields that differ from their
defaults, under the names that manifests use. Equal nodes are listed once, with a count. Pods, workloads, and
objects beyond the first thousand of a kind are only counted and hashed, so the size is bounded for any
cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from fractions import Fraction
from typing import Any

from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.kinds.device_claims import ClaimTemplate
from harness.cluster.kinds.disruption import PodDisruptionBudget, Share
from harness.cluster.kinds.elastic import ElasticQuota
from harness.cluster.kinds.kueue_configuration import KueueConfiguration
from harness.cluster.kinds.kueue_controller import KueueController
from harness.cluster.kinds.pod_groups import PodGroup
from harness.cluster.kinds.request_defaults import LimitRange, RuntimeClass
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.kinds.scheduling_groups import SchedulingGroup
from harness.cluster.kinds.selectors import LabelSelector, Requirement, Taint
from harness.cluster.kinds.topology import Topology
from harness.cluster.model import (
    NAMESPACE_NAME,
    AdmissionCheck,
    Cluster,
    ClusterQueue,
    Cohort,
    LocalQueue,
    PriorityClass,
    ResourceFlavor,
    ResourceGroup,
)
from harness.cluster.node_kinds import amount_text, canonical, digest, node_kinds, taint_text

MOST_OBJECTS = 1000
"""The maximum number of objects that are listed per kind. Further objects are counted and hashed."""

QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
"""The fields that exist for each resource of a flavor, with keys such as `nominalQuota FLAVOR/RESOURCE`."""

FLAVORS = "flavors"
"""The field with the order of the flavors. A queue with one flavor doesn't have the field, because its quotas
name the flavor.
"""

NOTHING = "none"
"""The value that represents an absent field without a default."""

_KINDS: Mapping[str, type] = {
    "ClusterQueue": ClusterQueue, "Cohort": Cohort, "ElasticQuota": ElasticQuota, "LocalQueue": LocalQueue,
    "ResourceFlavor": ResourceFlavor, "Topology": Topology, "PriorityClass": PriorityClass,
    "WorkloadPriorityClass": PriorityClass, "PodDisruptionBudget": PodDisruptionBudget, "PodGroup": PodGroup,
    "pod group of kube-scheduler": SchedulingGroup, "ResourceClaimTemplate": ClaimTemplate,
    "RuntimeClass": RuntimeClass, "LimitRange": LimitRange,
    "KubeSchedulerConfiguration": SchedulerConfiguration, "Configuration of Kueue": KueueConfiguration,
    "controller of Kueue": KueueController,
}  # fmt: skip
"""The kinds whose objects are listed one by one, in the order of the output. Namespaces are listed
separately.
"""

_LONGEST = 200  # characters; a longer field is stored as a prefix and a hash
_WORDS = {
    "apart": "ignore-default-tree",
    "by_usage": "admissionScope usage",
    "checks": "admissionChecks",
    "is_parent": "parent of others",
    "lends": "allow-lent-resource",
    "strategies": "fairSharing.preemptionStrategies",
    "topology": "topologyName",
    "total": "total-resource",
}
"""Maps fields of the model to their names in manifests. Fields that aren't listed have the same name in camel
case.
"""

_AMOUNTS = ("allocatable", "default", "default_request", "max", "min", "overhead", "total", "weight")
"""The fields that map resources to quantities."""

Objects = dict[str, dict[str, str]]
"""Maps the name of each object of one kind to its fields, and each field to its value."""


def content(cluster: Cluster) -> dict[str, Any]:
    """Returns the part of a cluster that harness models.

    Returns:
        A dictionary with these keys. `nodes` and `labels` have the form that `node_kinds` returns. `objects`
        maps each kind to its objects by name, and each name to the object's fields. `counted` maps each kind
        that is only counted to its `count` and `sha256`.
    """
    objects, counted = _bounded(_objects(cluster))
    for name, several in (("pods", cluster.pods), ("workloads", cluster.workloads)):
        if several:
            counted[name] = _summary(several)
    return {**node_kinds(list(cluster.nodes.values())), "objects": objects, "counted": counted}


def allocatable(cluster: Cluster, resources: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the allocatable quantities of the given resources for each group of equal nodes.

    Each group has a `count` and `amounts`. All groups except the largest also list the names of their
    `nodes`, so a reader knows the quantities of every node.
    """
    kinds: dict[tuple[int, ...], list[str]] = {}
    for name, node in cluster.nodes.items():
        kinds.setdefault(tuple(node.allocatable.get(each, 0) for each in resources), []).append(name)
    found: list[dict[str, Any]] = []
    for amounts, names in sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0])):
        has = dict(zip(resources, amounts, strict=True))
        found.append({"count": len(names), "amounts": has, **({"nodes": sorted(names)} if found else {})})
    return found


def default_of(kind: str, field: str) -> str:
    """Returns the default value of a field. The content omits fields that have this value."""
    value: Any = _KINDS.get(kind)
    *parts, last = field.split(".")
    for part in (*parts, last):
        known = {_word(item.name): item for item in fields(value)} if value is not None else {}
        if part not in known:
            return NOTHING
        value = _default(known[part])
    return NOTHING if value == "" or (is_dataclass(value) and not _is_text(value)) else _text(value)


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


def _objects(cluster: Cluster) -> dict[str, Objects]:
    local = {"/".join(key): each for key, each in cluster.local_queues.items()}
    budgets = {f"{each.namespace}/{each.name}": each for each in cluster.disruption_budgets}
    several: tuple[Mapping[str, Any], ...] = (
        cluster.cluster_queues,
        cluster.cohorts,
        cluster.elastic_quotas,
        local,
        cluster.flavors,
        cluster.topologies,
        cluster.priority_classes,
        cluster.workload_priority_classes,
        budgets,
        {"/".join(key): each for key, each in cluster.pod_groups.items()},
        {"/".join(filter(None, key)): each for key, each in cluster.scheduling_groups.items()},
        {"/".join(key): each for key, each in cluster.claim_templates.items()},
        cluster.runtime_classes,
        {"/".join(key): each for key, each in cluster.limit_ranges.items()},
        {} if cluster.scheduler is None else {"": cluster.scheduler},
        {} if cluster.kueue is None else {"": cluster.kueue},
        {} if cluster.kueue_controller is None else {"": cluster.kueue_controller},
    )
    found = {
        kind: {name: told(named[name]) for name in sorted(named)}
        for kind, named in zip(_KINDS, several, strict=True)
        if named
    }
    for kind, resources in cluster.custom_resources.items():
        found[kind] = {name: told(resources[name]) for name in sorted(resources)}
    namespaces = {name: _labels(labels) for name, labels in sorted(cluster.namespaces.items())}
    labelled = {name: labels for name, labels in namespaces.items() if labels}
    return {**found, **({"Namespace": labelled} if labelled else {})}


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {f"label {key}": value for key, value in sorted(labels.items()) if key != NAMESPACE_NAME}


def _bounded(objects: Mapping[str, Objects]) -> tuple[dict[str, Objects], dict[str, dict[str, Any]]]:
    """Returns the first objects of each kind by name, and counts the other objects."""
    kept, counted = {}, {}
    for kind, named in objects.items():
        items = list(named.items())
        kept[kind] = dict(items[:MOST_OBJECTS])
        if items[MOST_OBJECTS:]:
            counted[f"{kind} beyond the first {MOST_OBJECTS:,} by name"] = _summary(items[MOST_OBJECTS:])
    return kept, counted


# --- fields of objects ------------------------------------------------------------------------------------


def told(value: Any) -> dict[str, str]:
    """Returns the fields of an object that differ from their defaults, except for its name and namespace."""
    found = {}
    for name, text in _fields(value):
        kept = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… (sha256 {digest(text)})"
        found[name] = kept
    return found


def _fields(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for item in fields(value):
        if (not prefix and item.name in ("name", "namespace")) or not item.compare:
            continue
        own = getattr(value, item.name)
        usual = _default(item)
        if own == usual:
            continue
        name = prefix + _word(item.name)
        if item.name == "resource_groups":
            yield from _quotas(own)
        elif isinstance(own, Mapping):
            yield from _table(name, own, amounts=item.name in _AMOUNTS)
        elif is_dataclass(own) and not _is_text(own):
            if usual is None:
                yield name, "given"
            yield from _fields(own, f"{name}.")
        else:
            yield name, _text(own)


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _table(name: str, table: Mapping[str, Any], *, amounts: bool) -> Iterator[tuple[str, str]]:
    if not table:
        yield name, "empty"
    for key, value in sorted(table.items()):
        yield f"{name} {key}", amount_text(key, value) if amounts else _text(value)


def _quotas(groups: Sequence[ResourceGroup]) -> Iterator[tuple[str, str]]:
    """Yields the quotas and limits, and also the order of the flavors if there are several."""
    if sum(len(group.flavors) for group in groups) > 1:
        yield FLAVORS, "; ".join(", ".join(each.flavor for each in group.flavors) for group in groups)
    for group in groups:
        for quotas in group.flavors:
            for resource, quota in quotas.resources.items():
                amounts = (quota.nominal, quota.borrowing_limit, quota.lending_limit)
                for word, amount in zip(QUOTAS, amounts, strict=True):
                    if amount is not None:
                        yield f"{word} {quotas.flavor}/{resource}", amount_text(resource, amount)


def _text(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float, Fraction)):
        return str(value)
    if isinstance(value, Taint):
        return taint_text(value)
    if isinstance(value, Share):
        return f"{value.value}{'%' if value.percent else ''}"
    if isinstance(value, AdmissionCheck):
        return f"{value.name} on {' or '.join(value.on_flavors)}" if value.on_flavors else value.name
    if isinstance(value, Requirement):
        return f"{value.key} {value.operator} {', '.join(value.values)}".rstrip()
    if isinstance(value, LabelSelector):
        labels = [f"{key}={text}" for key, text in sorted(value.match_labels.items())]
        return "; ".join([*labels, *map(_text, value.match_expressions)]) or "everything"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_text, value)) or NOTHING
    return canonical(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, (LabelSelector, Share))


def _word(name: str) -> str:
    return _WORDS.get(name) or re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _summary(several: Sequence[Any]) -> dict[str, Any]:
    return {"count": len(several), "sha256": digest(several)}
