"""Tries placements and evictions in the cache and the quotas, and then reverts them.

kube-scheduler's filters depend on the whole cluster (spread, affinity, nominations). Placements of several
pods are therefore tried in the cache itself. `undo` restores the cache, quotas and budgets, including the
order of the pods on their nodes.
"""

from __future__ import annotations

from typing import final

from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness_plugins.elastic_quota.quota_usage import QuotaUsage


@final
class TentativePlacement:
    """Trial placements and evictions, which `undo` reverts.

    Args:
        budgets: the PodDisruptionBudgets. Evictions use up their disruptions.

    Attributes:
        placed: the node of each pod, in the order in which the pods were placed.
    """

    def __init__(self, cache: Cache, usage: QuotaUsage, budgets: Budgets) -> None:
        self.placed: dict[PodInfo, NodeInfo] = {}
        self._cache = cache
        self._usage = usage
        self._budgets = budgets
        self._evicted: list[tuple[PodInfo, NodeInfo, tuple[int, ...]]] = []
        self._nominations: list[tuple[PodInfo, str]] = []
        self._pods: dict[NodeInfo, list[PodInfo]] = {}
        self._nominated: dict[NodeInfo, list[PodInfo]] = {}
        self._expecting = list(cache.expecting)

    def place(self, pod: PodInfo, node: NodeInfo) -> None:
        """Binds a pending pod to a node, and removes its nomination."""
        self._remember(node)
        expected = self._cache.by_name.get(pod.nominated)
        if expected is not None:
            self._nominated.setdefault(expected, list(expected.nominated))
        if pod.nominated:
            self._nominations.append((pod, pod.nominated))
            self._cache.nominate(pod, "")
        self._cache.add_pod(pod, node)
        self._usage.charge(pod)
        self.placed[pod] = node

    def evict(self, victim: PodInfo) -> None:
        """Removes a bound pod."""
        node = self._cache.nodes[victim.node]
        self._remember(node)
        self._usage.charge(victim, -1)
        self._evicted.append((victim, node, victim.devices))
        self._cache.remove_pod(victim)
        self._disrupt(victim, -1)

    def undo(self) -> None:
        """Restores the state before the trial."""
        cache, usage = self._cache, self._usage
        for pod in self.placed:
            usage.charge(pod, -1)
            cache.remove_pod(pod)
        for victim, node, devices in self._evicted:
            victim.devices = devices
            cache.add_pod(victim, node)
            usage.charge(victim)
            self._disrupt(victim, 1)
        for pod, name in self._nominations:
            cache.nominate(pod, name)
        for node, pods in self._pods.items():
            node.pods = dict.fromkeys(pods)
            cache.touch(node)
        for node, nominated in self._nominated.items():
            node.nominated[:] = nominated
            cache.touch(node)
        if self._nominations:
            cache.expecting.clear()
            cache.expecting.update(dict.fromkeys(self._expecting))

    def _remember(self, node: NodeInfo) -> None:
        self._pods.setdefault(node, list(node.pods))

    def _disrupt(self, victim: PodInfo, change: int) -> None:
        if not victim.terminating:
            for number in self._budgets.charged(victim):
                self._budgets.allowed[number] += change
                self._budgets.version += 1
