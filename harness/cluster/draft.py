"""Collects the objects, faults and warnings of a cluster while harness reads its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from harness.base.errors import Fault
from harness.base.options import nearest
from harness.base.text import first_of
from harness.base.values import Value, fixed
from harness.cluster.model import ClusterQueue, Cohort, LocalQueue, Node, PriorityClass, ResourceFlavor
from harness.cluster.yaml.fields import Fields

if TYPE_CHECKING:
    from harness.base.pod_set import PodSet
    from harness.cluster.coverage.verdicts import Finding
    from harness.cluster.kinds.device_claims import ClaimTemplate
    from harness.cluster.kinds.disruption import PodDisruptionBudget
    from harness.cluster.kinds.elastic import ElasticQuota
    from harness.cluster.kinds.kueue_configuration import KueueConfiguration
    from harness.cluster.kinds.pod_groups import PodGroup
    from harness.cluster.kinds.pods import Pod
    from harness.cluster.kinds.request_defaults import LimitRange, RuntimeClass
    from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
    from harness.cluster.kinds.scheduling_groups import GroupKey, SchedulingGroup
    from harness.cluster.kinds.topology import Topology
    from harness.cluster.kinds.workloads import Workload

K = TypeVar("K")
T = TypeVar("T")

NOT_MODELLED = "is not modelled"
NOT_READ = "not read"
"""Warnings use these words for fields and objects that a replay ignores."""

INDEX = re.compile(r"\[[0-9]+\]")
"""Matches a list index in the path of a field."""

_NAMED = 3


def unmodelled(found: Finding) -> str:
    """Returns a warning about a field that harness doesn't model.

    The warning states the assumption that harness makes. For an unknown field, it suggests a known name.
    """
    if found.row is not None:
        return f"{found.path} {NOT_MODELLED}: {found.row.why}"
    close = _meant(found.path.rpartition(".")[2], found.known)
    meant = f"; did you mean {close!r}?" if close is not None else ""
    return f"{found.path} {NOT_MODELLED}: no such field is known{meant}"


@lru_cache(maxsize=1000)  # thousands of objects can have the same path
def _meant(name: str, known: tuple[str, ...]) -> str | None:
    return nearest(name, known)


class Metadata(NamedTuple):
    """The parts of an object's metadata that matter to a replay."""

    name: str
    namespace: str
    labels: Mapping[str, str]


def read_metadata(fields: Fields) -> Metadata:
    """Read an object's metadata. A missing name is a fault, and the namespace defaults to `default`."""
    metadata = fields.child("metadata")
    return Metadata(
        metadata.string("name", required=True),
        metadata.string("namespace", "default") or "default",
        metadata.strings("labels"),
    )


class Objects(dict[K, T], Generic[K, T]):
    """The objects of one kind by key, in the order of the manifests.

    It also keeps the fields of each object.
    """

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[K, Fields] = {}

    def add(self, key: K, value: T, fields: Fields) -> None:
        """Add an object. If the key already exists, the object is dropped and a fault is added."""
        if key in self:
            fields.fault("", f"is given twice; the first is in {self._fields[key].where}")
        else:
            self[key] = value
            self._fields[key] = fields

    def fields(self, key: K) -> Fields:
        """Returns the fields that an object was read from, so that faults can name the object."""
        return self._fields[key]


class Warnings:
    """Collects warnings about objects, and merges equal warnings about several objects into one sentence."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, kind: str, name: str, what: str) -> None:
        """Add a warning.

        Two warnings count as equal if they differ only in the list indices within `what`.
        """
        names = self._names.setdefault((kind, INDEX.sub("[]", what)), [])
        if name not in names[-1:]:
            names.append(name)

    def sentences(self) -> tuple[str, ...]:
        """Returns all warnings, ordered by the first object of each warning."""
        return tuple(
            f"{kind} {first_of(names, _NAMED)}".rstrip() + f": {what}"
            for (kind, what), names in self._names.items()
        )


@fixed()
class Draft(Value):
    """The objects, faults and warnings found so far. The reader of each kind adds its objects here."""

    faults: list[Fault] = field(default_factory=list)
    warnings: Warnings = field(default_factory=Warnings)
    nodes: Objects[str, Node] = field(default_factory=Objects)
    namespaces: Objects[str, Mapping[str, str]] = field(default_factory=Objects)
    priority_classes: Objects[str, PriorityClass] = field(default_factory=Objects)
    workload_priority_classes: Objects[str, PriorityClass] = field(default_factory=Objects)
    topologies: Objects[str, Topology] = field(default_factory=Objects)
    flavors: Objects[str, ResourceFlavor] = field(default_factory=Objects)
    cluster_queues: Objects[str, ClusterQueue] = field(default_factory=Objects)
    cohorts: Objects[str, Cohort] = field(default_factory=Objects)
    local_queues: Objects[tuple[str, str], LocalQueue] = field(default_factory=Objects)
    pods: Objects[tuple[str, str], Pod] = field(default_factory=Objects)
    disruption_budgets: Objects[tuple[str, str], PodDisruptionBudget] = field(default_factory=Objects)
    pod_groups: Objects[tuple[str, str], PodGroup] = field(default_factory=Objects)
    scheduling_groups: Objects[GroupKey, SchedulingGroup] = field(default_factory=Objects)
    schedulers: Objects[str, SchedulerConfiguration] = field(default_factory=Objects)
    kueue_configurations: list[KueueConfiguration] = field(default_factory=list)
    quota_trees: Objects[str, str] = field(default_factory=Objects)
    quota_nodes: Objects[str, ElasticQuota] = field(default_factory=Objects)
    elastic_quotas: Objects[str, ElasticQuota] = field(default_factory=Objects)
    workloads: Objects[tuple[str, str], Workload] = field(default_factory=Objects)
    claim_templates: Objects[tuple[str, str], ClaimTemplate] = field(default_factory=Objects)
    runtime_classes: Objects[str, RuntimeClass] = field(default_factory=Objects)
    limit_ranges: Objects[tuple[str, str], LimitRange] = field(default_factory=Objects)
    succeeded: list[Pod] = field(default_factory=list)
    pod_sets: dict[str, tuple[PodSet, ...]] = field(default_factory=dict)
    brought: dict[str, Objects[str, Any]] = field(default_factory=dict)

    @property
    def quotas(self) -> Objects[str, ElasticQuota]:
        """The elastic quotas in effect, where parents come before their children.

        If there is a tree, these are the quotas of the tree.
        """
        return self.quota_nodes if self.quota_trees else self.elastic_quotas

    def custom_resources(self, kind: str) -> Objects[str, Any]:
        """Returns the objects of a kind that a plugin adds. The kind has the form `Kind.group`.

        The cluster will contain these objects. Each object is a frozen dataclass, and its key is its name or
        `namespace/name`. If the object has a method `scaled(scale)`, harness uses it to scale the object with
        the cluster. If it has a method `quota(cluster)`, the method returns a `Quota`. Metrics use this quota
        for the queue whose name is the object's key, unless a ClusterQueue or an elastic quota has that name.
        """
        return self.brought.setdefault(kind, Objects())
