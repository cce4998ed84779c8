"""Models elastic quotas, which have a guaranteed `min`, an upper bound `max`, and the name of a parent quota.

Policies define what these values mean. The plugin for elastic quotas reads the manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, final

from harness.base.json_text import mapping_of
from harness.base.values import Value, fixed
from harness.cluster.model import NEWER, UNLIMITED, Cluster, frozen

ACK, CAPACITY, KOORDINATORS = "ack", "capacity-scheduling", "koordinator"
"""The semantics that quotas can have: those of ACK, scheduler-plugins or Koordinator."""

USUAL_NAMES: Mapping[str, str] = frozen(
    {CAPACITY: "scheduler-plugins-scheduler", KOORDINATORS: "koord-scheduler"}
)
"""The `schedulerName` of pods where the scheduler was installed from its own Helm chart."""

CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""The resources that a `max` limits even if it doesn't name them. See `ElasticQuota.max_of`."""

KOORDINATOR = "quota.scheduling.koordinator.sh/"
"""The prefix of Koordinator's labels and annotations for quotas."""

QUOTA_NAME_LABEL = f"{KOORDINATOR}name"
"""The label in which a pod names its quota."""


@fixed()
class ElasticQuota(Value):
    """A node of an ElasticQuotaTree, or an ElasticQuota.

    Attributes:
        name: the name of the node. A quota outside a tree has the name of its namespace, because each
            namespace has one quota.
        min: the guaranteed quantities by resource, or None.
        max: the upper bounds by resource, or None.
        parent: the name of the parent quota, or "" if there is none.
        namespaces: the namespaces whose pods count against the quota.
        is_parent: whether the quota can have child quotas.
        lends: whether other quotas can use the idle part of its `min` (Koordinator).
        weight: the weight by which unreserved capacity is shared (Koordinator). If it is None, `max` is used.
        tree: the tree that the quota belongs to (Koordinator).
        semantics: the semantics of its manifest. An ElasticQuotaTree has ACK's semantics. An ElasticQuota has
            the semantics of scheduler-plugins, or Koordinator's if it has one of Koordinator's labels.
        total: for the root of a tree, the quantities that its quotas share (Koordinator). It is None for
            other quotas.
        apart: whether `total` is not deducted from the quantities that quotas outside trees share
            (Koordinator).
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
        """Returns the guaranteed quantity of a resource, or 0 if `min` does not name it."""
        return self.min.get(resource, 0) if self.min else 0

    @property
    def named(self) -> tuple[str, ...]:
        """The resources that `min` or `max` names."""
        return tuple(dict.fromkeys((*(self.min or ()), *(self.max or ()))))

    def max_of(self, resource: str) -> int:
        """Returns the upper bound of a resource, or `UNLIMITED` if the resource has none.

        Without a `max`, no resource has a bound. If a `max` doesn't name cpu, memory or ephemeral storage,
        the bound of that resource is 0, as in the capacity scheduling of scheduler-plugins. Other resources
        that `max` doesn't name have no bound.
        """
        if self.max is None:
            return UNLIMITED
        return self.max.get(resource, 0 if resource in CORE_RESOURCES else UNLIMITED)


def leaves_of(quotas: Mapping[str, ElasticQuota]) -> dict[str, ElasticQuota]:
    """Returns the leaves, which are the quotas that pods count against.

    A leaf isn't declared a parent (`is_parent`), and no other quota names it as its parent.
    """
    parents = {quota.parent for quota in quotas.values()}
    return {name: quota for name, quota in quotas.items() if name not in parents and not quota.is_parent}


@final
class QuotaLeaves:
    """Finds the elastic quota that a pod counts against, for all semantics.

    The search stops at the first match:

    1. the leaf that the pod's label names;
    2. the leaf for the namespace of the pod;
    3. the leaf with the name of the job's queue;
    4. the leaf with the name of the ClusterQueue, if the job's queue is a LocalQueue.

    With Koordinator's quotas, a pod whose label names an unknown quota belongs to no quota. If the queue is
    the pod's namespace, as for a Pod in manifests, the search then skips steps 3 and 4.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._leaves = leaves_of(cluster.elastic_quotas)
        self._koordinator = semantics_of(cluster.elastic_quotas) == KOORDINATORS
        self._local_queues = cluster.local_queues
        self._by_namespace: dict[str, str] = {}
        for name, leaf in self._leaves.items():
            for namespace in leaf.namespaces:
                self._by_namespace.setdefault(namespace, name)

    def of(self, namespace: str, queue: str, named: str = "") -> str | None:
        """Returns the name of the quota that a pod belongs to, or None if it belongs to no quota.

        `named` is the value of the pod's label `QUOTA_NAME_LABEL`, or "" if the pod has no such label.
        """
        if named in self._leaves:
            return named
        if named and self._koordinator:
            return None
        if namespace in self._by_namespace:
            return self._by_namespace[namespace]
        if queue == namespace and self._koordinator:
            return None
        local = self._local_queues.get((namespace, queue))
        called = (queue, local.cluster_queue if local is not None else "")
        return next((name for name in called if name in self._leaves), None)


def semantics_of(quotas: Mapping[str, ElasticQuota], asked: str | None = None) -> str:
    """Returns the requested semantics of quotas, or the semantics of the manifests if none are requested.

    If any quota has one of Koordinator's labels, all quotas have Koordinator's semantics. If there are no
    quotas, the semantics are ACK's.
    """
    there = {quota.semantics for quota in quotas.values()}
    return asked or next((each for each in (KOORDINATORS, CAPACITY) if each in there), ACK)


def has_free_min(metadata: Any) -> bool:
    """Returns True if Koordinator's webhook does not compare the `min` of a quota with those of other quotas.

    Upstream: `checkMinQuotaValidate` in pkg/webhook/elasticquota/quota_topology_check.go.
    """
    labels = mapping_of(metadata, "labels")
    return any(labels.get(f"{KOORDINATOR}{name}") == "true" for name in ("allow-force-update", "is-root"))


def is_koordinators(metadata: Any) -> bool:
    """Returns True if an ElasticQuota has a label or annotation of Koordinator.

    Koordinator identifies a quota by its own name, and not by its namespace.
    """
    given = (*mapping_of(metadata, "labels"), *mapping_of(metadata, "annotations"))
    return any(str(key).startswith(KOORDINATOR) for key in given)
