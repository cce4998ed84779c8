"""Elastic quotas: a `min` that is guaranteed, a `max` that bounds, and the name of the quota above it.

What the semantics of these figures are is the business of the policies; the plugin of elastic quotas reads
their manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, final

from harness.base.values import Value, fixed
from harness.cluster.model import NEWER, UNLIMITED

if TYPE_CHECKING:
    from harness.cluster.model import Cluster

ACK, CAPACITY, KOORDINATORS = "ack", "capacity-scheduling", "koordinator"
"""Whose semantics quotas have: ACK's, scheduler-plugins' or Koordinator's."""

CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""Resources that a `max` bounds even where it does not name them, see `ElasticQuota.max_of`."""

KOORDINATOR = "quota.scheduling.koordinator.sh/"
"""What Koordinator's labels and annotations of quotas begin with."""

QUOTA_NAME_LABEL = f"{KOORDINATOR}name"
"""The label with which a pod names its quota."""


@fixed()
class ElasticQuota(Value):
    """A node of an ElasticQuotaTree, or an ElasticQuota; amounts are resource -> amount.

    Attributes:
        name: the node's name; a flat quota is called by its namespace, for there is one a namespace.
        min: what is guaranteed; None when it is not given.
        max: what is never exceeded; None when it is not given.
        parent: the quota above it, "" for none.
        namespaces: whose pods it counts.
        is_parent: whether quotas may be below it.
        lends: whether others may use what it leaves idle of its `min` (Koordinator).
        weight: its part in sharing what is left (Koordinator); None stands for `max`.
        tree: which of several trees it belongs to (Koordinator).
        semantics: what its manifest stands for: an ElasticQuotaTree for ACK's, an ElasticQuota for those of
            scheduler-plugins, or of Koordinator where it bears one of its labels.
        total: of the root of a tree, what its quotas share (Koordinator); None where it says nothing.
        apart: whether that is not taken off what the quotas of no tree share (Koordinator).
    """

    name: str
    min: Mapping[str, int] | None = None
    max: Mapping[str, int] | None = None
    parent: str = ""
    namespaces: tuple[str, ...] = ()
    is_parent: bool = False
    lends: bool = True
    weight: Mapping[str, int] | None = None
    tree: str = ""
    semantics: str = field(default=ACK, metadata=NEWER)
    total: Mapping[str, int] | None = field(default=None, metadata=NEWER)
    apart: bool = field(default=False, metadata=NEWER)

    def min_of(self, resource: str) -> int:
        """What is guaranteed of a resource; what is not named is 0."""
        return self.min.get(resource, 0) if self.min else 0

    @property
    def named(self) -> tuple[str, ...]:
        """The resources that it names."""
        return tuple(dict.fromkeys((*(self.min or ()), *(self.max or ()))))

    def max_of(self, resource: str) -> int:
        """The bound of a resource, `UNLIMITED` without one.

        Without `max` nothing is bounded. A `max` that does not name cpu, memory or ephemeral storage allows
        none of it, as in scheduler-plugins' capacity scheduling; other resources are then unbounded.
        """
        if self.max is None:
            return UNLIMITED
        return self.max.get(resource, 0 if resource in CORE_RESOURCES else UNLIMITED)


def leaves_of(quotas: Mapping[str, ElasticQuota]) -> dict[str, ElasticQuota]:
    """The quotas that pods count against: those that no other one is below, and that are no parents."""
    parents = {quota.parent for quota in quotas.values()}
    return {name: quota for name, quota in quotas.items() if name not in parents and not quota.is_parent}


@final
class QuotaLeaves:
    """Which elastic quota pods count against, whatever the semantics of the quotas are.

    It is the leaf that a pod's label names, else the one of its namespace. Else it is the one that is called
    like its job's queue, or like the ClusterQueue of that LocalQueue. With Koordinator's quotas a label that
    names none says that the pod belongs to none.

    Args:
        cluster: its elastic quotas and LocalQueues count.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._leaves = leaves_of(cluster.elastic_quotas)
        self._label_decides = semantics_of(cluster.elastic_quotas) == KOORDINATORS
        self._local_queues = cluster.local_queues
        self._by_namespace: dict[str, str] = {}
        for name, leaf in self._leaves.items():
            for namespace in leaf.namespaces:
                self._by_namespace.setdefault(namespace, name)

    def of(self, namespace: str, queue: str, named: str = "") -> str | None:
        """The name of a pod's quota; None where it belongs to none.

        Args:
            namespace: the pod's.
            queue: its job's.
            named: what its label says (`QUOTA_NAME_LABEL`); "" without one.
        """
        if named in self._leaves:
            return named
        if named and self._label_decides:
            return None
        if namespace in self._by_namespace:
            return self._by_namespace[namespace]
        local = self._local_queues.get((namespace, queue))
        called = (queue, local.cluster_queue if local is not None else "")
        return next((name for name in called if name in self._leaves), None)


def semantics_of(quotas: Mapping[str, ElasticQuota], asked: str | None = None) -> str:
    """Whose semantics quotas have: what is asked for, else what their manifests stand for.

    Where some bear Koordinator's labels, all are Koordinator's; without quotas it is ACK's.
    """
    there = {quota.semantics for quota in quotas.values()}
    return asked or next((each for each in (KOORDINATORS, CAPACITY) if each in there), ACK)


def is_koordinators(metadata: Any) -> bool:
    """Whether an ElasticQuota bears one of Koordinator's labels or annotations, so that its name counts."""
    given = (
        [metadata.get(part) for part in ("labels", "annotations")] if isinstance(metadata, Mapping) else []
    )
    return any(
        str(key).startswith(KOORDINATOR) for each in given if isinstance(each, Mapping) for key in each
    )
