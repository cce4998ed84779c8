"""Which quota each pod counts against, and what it takes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from harness import Cluster
from harness.cluster.elastic import QUOTA_NAME_LABEL
from harness_plugins.elastic_quota.tree import Amounts, Quota, QuotaTree
from harness_plugins.kube.pod import PodInfo, Template


@final
class Accounts:
    """The quota tree of a cluster, charged by pods.

    A pod belongs to the leaf that its label names, else to the one of its namespace, else to the one that is
    called like its job's queue, or like the ClusterQueue of that LocalQueue.

    Args:
        cluster: its elastic quotas and LocalQueues count.
        hierarchical: see `QuotaTree`.
    """

    def __init__(self, cluster: Cluster, *, hierarchical: bool) -> None:
        self.tree = QuotaTree(cluster.elastic_quotas, hierarchical=hierarchical)
        self._local_queues = cluster.local_queues
        self._by_namespace: dict[str, Quota] = {}
        for name, leaf in self.tree.leaves.items():
            for namespace in cluster.elastic_quotas[name].namespaces:
                self._by_namespace.setdefault(namespace, leaf)
        self._quotas: dict[tuple[Template, str], Quota | None] = {}
        self._amounts: dict[Template, Amounts] = {}
        self._bound: dict[Quota | None, dict[int, int]] = {}  # how many pods of each priority

    def quota_of(self, pod: PodInfo) -> Quota | None:
        """The leaf that a pod belongs to; None when it belongs to none."""
        key = (pod.template, pod.job.queue if pod.job is not None else "")
        try:
            return self._quotas[key]
        except KeyError:
            found = self._quotas[key] = self.leaf_of(pod.template.namespace, pod.template.labels, key[1])
            return found

    def leaf_of(self, namespace: str, labels: Mapping[str, str], queue: str) -> Quota | None:
        """The same for any pod of a namespace, with labels, of a queue."""
        leaves = self.tree.leaves
        local = self._local_queues.get((namespace, queue))
        return (
            leaves.get(labels.get(QUOTA_NAME_LABEL, ""))
            or self._by_namespace.get(namespace)
            or leaves.get(queue)
            or (leaves.get(local.cluster_queue) if local is not None else None)
        )

    def amounts(self, pod: PodInfo) -> Amounts:
        """What a pod takes of its quota."""
        found = self._amounts.get(pod.template)
        if found is None:
            asked = pod.template.spec.requests
            found = {resource: amount for resource, amount in asked.items() if resource != "pods"}
            self._amounts[pod.template] = found
        return found

    def charge(self, pod: PodInfo) -> None:
        """A pod takes of its quota."""
        quota = self.quota_of(pod)
        if quota is not None:
            self.tree.charge(quota, self.amounts(pod))
            if pod.terminating:
                self.tree.leave(quota, self.amounts(pod))

    def refund(self, pod: PodInfo) -> None:
        """A pod gives back what it took."""
        quota = self.quota_of(pod)
        if quota is not None:
            self.tree.refund(quota, self.amounts(pod))
            if pod.terminating:
                self.tree.leave(quota, self.amounts(pod), -1)

    def bind(self, pod: PodInfo) -> None:
        """A pod is bound, for good and not as a trial."""
        self.charge(pod)
        bound = self._bound.setdefault(self.quota_of(pod), {})
        bound[pod.priority] = bound.get(pod.priority, 0) + 1

    def unbind(self, pod: PodInfo) -> None:
        """A pod that was bound is gone."""
        self.refund(pod)
        bound = self._bound[self.quota_of(pod)]
        bound[pod.priority] -= 1
        if not bound[pod.priority]:
            del bound[pod.priority]

    def has_lower(self, quota: Quota | None, priority: int) -> bool:
        """Whether a pod of a quota, or of none, and of lower priority is bound."""
        return any(each < priority for each in self._bound.get(quota, ()))

    def terminate(self, pod: PodInfo) -> None:
        """A bound pod, not terminating so far, is about to be."""
        quota = self.quota_of(pod)
        if quota is not None:
            self.tree.leave(quota, self.amounts(pod))
