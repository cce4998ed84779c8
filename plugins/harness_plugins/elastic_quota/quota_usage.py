"""Tracks the quota of each pod, and the quantities that the pod takes from this quota."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, final

from harness import Cluster
from harness.models.cluster import QUOTA_NAME_LABEL, QuotaLeaves
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import QuotaTree
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo, Template


class PodQuota(NamedTuple):
    """The leaf quota of a pod, or None, and the pod's requests.

    `firm` is True if the quota tree supports pods that must not be preempted, and this is such a pod. See
    `QuotaTree.is_firm`.
    """

    quota: Quota | None
    amounts: Amounts
    firm: bool = False


@final
class QuotaUsage:
    """The quota tree of a cluster, with the pods that are charged to it."""

    def __init__(self, cluster: Cluster, tree: QuotaTree) -> None:
        self.tree = tree
        self._leaves = QuotaLeaves(cluster)
        self._pod_quotas: dict[tuple[Template, str], PodQuota] = {}
        self._bound: dict[Quota | None, dict[int, int]] = {}  # the number of pods of each priority
        self._nodes: dict[Quota | None, dict[int, int]] = {}  # the number of pods on each node

    def become(self, cluster: Cluster, pods: Iterable[PodInfo]) -> None:
        """Counts all pods again, after a change of quotas or of queues that belong to quotas.

        In scheduler-plugins, quotas have neither hierarchy nor runtimes. Their usage grows only when a pod is
        bound. They therefore count only pods that were bound after the quota was created.
        """
        tree = self.tree
        later = not tree.hierarchical and tree.runtimes is None
        self._leaves = QuotaLeaves(cluster)
        self._pod_quotas.clear()
        self._bound.clear()
        self._nodes.clear()
        with tree.becoming(cluster.elastic_quotas):
            for pod in pods:
                before: PodQuota | None = pod.quota
                pod.quota = None
                if pod.node >= 0 and later and before is not None:
                    quota = self.quota_of(pod)
                    pod.quota = before if quota is before.quota else PodQuota(quota, {})
                self.ask(pod)
                if pod.node >= 0:
                    self.bind(pod, pod.node)

    def quota_of(self, pod: PodInfo) -> Quota | None:
        """Returns the leaf quota of a pod, or None if it has none."""
        return self.of(pod).quota

    def of(self, pod: PodInfo) -> PodQuota:
        """Returns a pod's quota and requests, and stores them in the pod because they are used often."""
        known: PodQuota | None = pod.quota
        if known is not None:
            return known
        template = pod.template
        key = (template, pod.job.queue if pod.job is not None else "")
        found = self._pod_quotas.get(key)
        if found is None:
            quota = self.leaf_of(template.namespace, template.labels, key[1])
            amounts = self.tree.counted(quota, template.spec.requests)
            found = PodQuota(quota, amounts, self.tree.is_firm(template.labels))
            self._pod_quotas[key] = found
        pod.quota = found
        return found

    def leaf_of(self, namespace: str, labels: Mapping[str, str], queue: str) -> Quota | None:
        """Returns the leaf quota of pods with this namespace, labels and queue, or None if they have none."""
        name = self._leaves.of(namespace, queue, labels.get(QUOTA_NAME_LABEL, ""))
        return None if name is None else self.tree.leaves[name]

    def charge(self, pod: PodInfo, sign: int = 1) -> None:
        """Charges the requests of a pod to its quota (1), or refunds them (-1)."""
        quota, amounts, firm = self.of(pod)
        if quota is not None:
            self.tree.charge(quota, amounts, sign)
            if firm:
                self.tree.hold(quota, amounts, sign)
            if pod.terminating:
                self.tree.leave(quota, amounts, sign)

    def ask(self, pod: PodInfo, sign: int = 1) -> None:
        """Adds the request of a pending or running pod (1), or removes the request of a deleted pod (-1)."""
        quota, amounts, _ = self.of(pod)
        if quota is not None:
            self.tree.ask(quota, amounts, sign)

    def bind(self, pod: PodInfo, position: int, sign: int = 1) -> None:
        """Binds a pod to the node at a position, permanently and not only as a trial.

        If `sign` is -1, removes a pod that is gone from this node.
        """
        self.charge(pod, sign)
        quota, amounts, _ = self.of(pod)
        if quota is None:
            self.tree.take_outside(amounts, sign)
        _count(self._bound, quota, pod.priority, sign)
        _count(self._nodes, quota, position, sign)

    def find_on(self, nodes: Sequence[NodeInfo]) -> None:
        """Looks up the nodes of all pods again, after the positions of nodes have changed."""
        self._nodes.clear()
        for node in nodes:
            for pod in node.pods:
                _count(self._nodes, self.quota_of(pod), node.position)

    def reprioritize(self, pod: PodInfo, priority: int) -> None:
        """Prepares for a new priority of a bound pod. Call this while the pod still has its old priority."""
        quota = self.quota_of(pod)
        _count(self._bound, quota, priority)
        _count(self._bound, quota, pod.priority, -1)

    def nodes_of(self, quota: Quota | None) -> Collection[int]:
        """Returns the positions of the nodes on which pods of a quota, or pods without one, are bound."""
        return self._nodes.get(quota, {}).keys()

    def has_lower(self, quota: Quota | None, priority: int) -> bool:
        """Returns True if a less important pod of a quota, or a less important pod without one, is bound."""
        return min(self._bound.get(quota, ()), default=priority) < priority

    def terminate(self, pod: PodInfo) -> None:
        """Records that a bound pod is about to terminate."""
        quota, amounts, _ = self.of(pod)
        if quota is not None:
            self.tree.leave(quota, amounts)


def _count(counts: dict[Quota | None, dict[int, int]], quota: Quota | None, key: int, sign: int = 1) -> None:
    of_quota = counts.setdefault(quota, {})
    of_quota[key] = of_quota.get(key, 0) + sign
    if not of_quota[key]:
        del of_quota[key]
