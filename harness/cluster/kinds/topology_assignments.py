"""Reads a `topologyAssignment`, which lists the domains that contain the pods of an admitted Workload.

v1beta1 lists domains, and v1beta2 lists slices of domains. If all domains of a slice have the same value or
number of pods, the slice contains that value or number only once. The values of a slice can share a prefix
and a suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.cluster.yaml.fields import Fields

_MOST_DOMAINS = 100_000


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
