"""Koordinator's over-use revoke: what a quota uses beyond its runtime for too long is taken back from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.pod import PodInfo
from harness_plugins.elastic_quota.koordinator import RuntimeTree, is_preemptible
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Quota

OVERUSED = "QuotaOveruse"
"""The reason of an eviction because its quota used more than its runtime for too long."""


@final
class Revocation:
    """Watches quotas that use more than their runtime.

    Args:
        usage: who charges what.
        tree: the quotas.
        after: how long a quota may do so, microseconds.
        cache: the pods on nodes.
    """

    def __init__(self, usage: QuotaUsage, tree: RuntimeTree, after: int, cache: Cache) -> None:
        self._usage = usage
        self._tree = tree
        self._cache = cache
        self._after = after
        self._since: dict[Quota, int] = {}

    def watch(self, now: int) -> int | None:
        """See who uses too much as things stand; answers when that will have been so for too long."""
        over = [leaf for leaf in self._tree.leaves.values() if self._excess(leaf)]
        self._since = {leaf: self._since.get(leaf, now) for leaf in over}
        due = [since + self._after for since in self._since.values()]
        return min((each for each in due if each > now), default=None)

    def due(self, now: int) -> list[Quota]:
        """The quotas that have used too much for too long, and still do; their time begins anew."""
        late = [leaf for leaf, since in self._since.items() if since + self._after <= now]
        for leaf in late:
            del self._since[leaf]
        return [leaf for leaf in late if self._excess(leaf)]

    def victims(self, leaf: Quota) -> list[PodInfo]:
        """Whom to evict, least important first.

        Pods are taken from the least important one up until usage is within the runtime. If it never is, all
        of them go; else those that fit after all are given back, the most important ones first.
        """
        positions = sorted(self._usage.nodes_of(leaf))
        on_nodes = [pod for position in positions for pod in self._cache.nodes[position].pods]
        mine = [pod for pod in on_nodes if self._usage.quota_of(pod) is leaf]
        free = [pod for pod in mine if not pod.terminating and is_preemptible(pod)]
        free.sort(key=lambda pod: (pod.priority, -pod.start))
        excess, taken = self._excess(leaf), list[PodInfo]()
        for pod in free:
            if not excess:
                break
            taken.append(pod)
            excess = self._excess(leaf, taken)
        if excess:
            return taken
        for pod in reversed(tuple(taken)):
            others = [other for other in taken if other is not pod]
            if not self._excess(leaf, others):
                taken = others
        return taken

    def _excess(self, leaf: Quota, without: Sequence[PodInfo] = ()) -> dict[str, int]:
        """Resource -> how much more than its runtime a quota uses, without what is leaving and these pods."""
        found = {}
        for resource, bound in self._tree.runtime(leaf).items():
            kept = leaf.used.get(resource, 0) - leaf.leaving.get(resource, 0)
            kept -= sum(self._usage.amounts(pod).get(resource, 0) for pod in without)
            if kept > bound:
                found[resource] = kept - bound
        return found

    def detail(self, leaf: Quota) -> dict[str, object]:
        """What a quota uses and may use, before anybody is evicted."""
        used = {resource: amount for resource, amount in leaf.used.items() if amount}
        return {"queue": leaf.name, "usage": {leaf.name: used}, "runtime": dict(self._tree.runtime(leaf))}
