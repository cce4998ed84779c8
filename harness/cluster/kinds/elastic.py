"""Elastic quotas: a guaranteed `min`, an upper bound `max`, and the name of the parent quota.

Policies give these figures their semantics. The plugin of elastic quotas reads their manifests.
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
"""The semantics of quotas: ACK's, those of scheduler-plugins, or Koordinator's."""

CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""Resources that a `max` bounds even if it does not name them, see `ElasticQuota.max_of`."""

KOORDINATOR = "quota.scheduling.koordinator.sh/"
"""The prefix of Koordinator's labels and annotations of quotas."""

QUOTA_NAME_LABEL = f"{KOORDINATOR}name"
"""The label with which a pod names its quota."""


@fixed()
class ElasticQuota(Value):
    """A node of an ElasticQuotaTree, or an ElasticQuota; amounts are resource -> amount.

    Attributes:
        name: the node's name. A flat quota has the name of its namespace, because each namespace has one.
        min: the guaranteed amounts; None if not given.
        max: the upper bounds; None if not given.
        parent: the quota above it, "" for none.
        namespaces: the namespaces whose pods it counts.
        is_parent: whether quotas may be below it.
        lends: whether others may use the idle part of its `min` (Koordinator).
        weight: its weight in sharing what is left (Koordinator); None stands for `max`.
        tree: the tree that it belongs to (Koordinator).
        semantics: the semantics of its manifest. An ElasticQuotaTree has ACK's. An ElasticQuota has those of
            scheduler-plugins, or Koordinator's if it bears one of Koordinator's labels.
        total: for the root of a tree, the amounts that its quotas share (Koordinator); None if not given.
        apart: whether `total` is not deducted from what the quotas without a tree share (Koordinator).
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
        """Returns the guaranteed amount of a resource; 0 if it is not named."""
        return self.min.get(resource, 0) if self.min else 0

    @property
    def named(self) -> tuple[str, ...]:
        """The resources that the quota names."""
        return tuple(dict.fromkeys((*(self.min or ()), *(self.max or ()))))

    def max_of(self, resource: str) -> int:
        """Returns the upper bound of a resource, `UNLIMITED` without one.

        Without `max` nothing is bounded. A `max` that does not name cpu, memory or ephemeral storage allows
        none of it, as in scheduler-plugins' capacity scheduling. Other resources that it does not name are
        unbounded.
        """
        if self.max is None:
            return UNLIMITED
        return self.max.get(resource, 0 if resource in CORE_RESOURCES else UNLIMITED)


def leaves_of(quotas: Mapping[str, ElasticQuota]) -> dict[str, ElasticQuota]:
    """Returns the quotas that pods count against: those without a quota below them that are no parents."""
    parents = {quota.parent for quota in quotas.values()}
    return {name: quota for name, quota in quotas.items() if name not in parents and not quota.is_parent}


@final
class QuotaLeaves:
    """Finds the elastic quota that pods count against, whatever the semantics of the quotas.

    It is the leaf that a pod's label names, else the one of its namespace. Otherwise it is the leaf with the
    name of the job's queue, or of the ClusterQueue of that LocalQueue. With Koordinator's quotas, a label
    that names no quota means that the pod belongs to none.

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
        """Returns the name of a pod's quota; None if it belongs to none.

        Args:
            namespace: the pod's namespace.
            queue: the job's queue.
            named: the value of its label (`QUOTA_NAME_LABEL`); "" without one.
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
    """Returns the semantics of quotas: the requested ones, else those of their manifests.

    If some quotas bear Koordinator's labels, all have Koordinator's semantics. Without quotas, they are
    ACK's.
    """
    there = {quota.semantics for quota in quotas.values()}
    return asked or next((each for each in (KOORDINATORS, CAPACITY) if each in there), ACK)


def is_koordinators(metadata: Any) -> bool:
    """True if an ElasticQuota bears one of Koordinator's labels or annotations, so that its name counts."""
    given = (
        [metadata.get(part) for part in ("labels", "annotations")] if isinstance(metadata, Mapping) else []
    )
    return any(
        str(key).startswith(KOORDINATOR) for each in given if isinstance(each, Mapping) for key in each
    )
