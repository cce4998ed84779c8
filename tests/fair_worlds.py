"""Small cohorts for tests of fair sharing: queues, who holds their quota, and whom a newcomer preempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.base.units import SECOND
from harness.cluster.kinds.preemption_strategies import DEFAULT_STRATEGIES
from harness.cluster.load import cluster_from
from harness_plugins.kueue.rules.dominant_resource_share import Share, weights_of
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.preemption import Incoming
from harness_plugins.kueue.shortcuts.kept_shares import KeptShares
from harness_plugins.kueue.shortcuts.no_targets import FairReasons
from harness_plugins.kueue.shortcuts.refused_sides import RefusedSides
from harness_plugins.kueue.state.amounts import Amounts
from harness_plugins.kueue.state.cache import Cache
from harness_plugins.kueue.state.workload import Workload

Manifest = dict[str, Any]


def queue(name: str, cpu: int = 0, cohort: str = "all", *, weight: str = "1", **more: int) -> Manifest:
    """A ClusterQueue of flavor `f` that reclaims from all others; `more` are quotas of further resources."""
    spec: Manifest = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": _quotas({"cpu": cpu, **more}),
        "fairSharing": {"weight": weight},
    }
    return _manifest("ClusterQueue", name, spec)


def cohort(name: str, parent: str = "", cpu: int = 0, *, weight: str = "1") -> Manifest:
    """A Cohort with a quota of its own."""
    spec: Manifest = {"parentName": parent} if parent else {}
    return _manifest(
        "Cohort", name, {**spec, "resourceGroups": _quotas({"cpu": cpu}), "fairSharing": {"weight": weight}}
    )


class Cohorts:
    """A tree of cohorts whose quotas are held; amounts in cores (or plain numbers).

    Args:
        manifests: its queues and cohorts.
        strategies: fair sharing's preemption strategies.
        within_nominal: the gate FairSharingPreemptWithinNominal.
    """

    def __init__(
        self,
        *manifests: Manifest,
        strategies: Sequence[str] = DEFAULT_STRATEGIES,
        within_nominal: bool = True,
    ) -> None:
        cluster = cluster_from([_manifest("ResourceFlavor", "f", {}), *manifests], "test")
        self.cache = Cache(cluster)
        tree = self.cache.tree
        self.shares = KeptShares(tree, weights_of(tree, cluster, {}))
        self.sides = RefusedSides(self.cache, self.shares)
        self.search = FairSharing(
            self.cache,
            self.shares,
            tuple(strategies),
            within_nominal=within_nominal,
            refuses=self.sides.refuses,
        )
        self.reasons = FairReasons(self.cache, self.shares, self.search)
        self._clock = 0

    def hold(self, queue: str, *names: str, cpu: int = 1, priority: int = 0, **more: int) -> Cohorts:
        """Each name takes so much of a queue's quota; who comes later reserved it later."""
        usage = self._amounts({"cpu": cpu, **more})
        for name in names:
            self._clock += SECOND
            workload = Workload(name, name, priority, self._clock)
            uses = sum(1 << cell for cell, _ in usage)
            self.cache.hold(workload, self.cache.queues[queue], usage, uses, self._clock)
        return self

    def victims(self, queue: str, *, cpu: int, priority: int = 0) -> list[tuple[str, str]]:
        """Whom a newcomer of a queue preempts, by name, with the reasons."""
        before = list(self.cache.tree.usage)
        targets = self.search.find_targets(self.incoming(queue, cpu=cpu, priority=priority))
        assert self.cache.tree.usage == before
        return sorted((target.workload.name, target.reason) for target in targets)

    def incoming(self, queue: str, *, cpu: int, priority: int = 0, **more: int) -> Incoming:
        """A newcomer of a queue, who needs all that it asks for."""
        requests = self._amounts({"cpu": cpu, **more})
        newcomer = Workload("new", "new", priority, self._clock + SECOND)
        need = tuple(cell for cell, _ in requests)
        newcomer.cluster_queue = self.cache.queues[queue]
        return Incoming(newcomer, requests, need)

    def holders(self, queue: str) -> list[Workload]:
        """Who holds quota of a queue, in the order of candidates."""
        return self.cache.holders[self.cache.queues[queue].node].workloads

    def share(self, name: str) -> Share:
        """The share of a queue, else of a cohort."""
        tree = self.cache.tree
        return self.shares.of(tree.queues[name] if name in tree.queues else tree.cohorts[name])[1]

    def _amounts(self, amounts: Mapping[str, int]) -> Amounts:
        scaled = [("f", name, amount * 1000 if name == "cpu" else amount) for name, amount in amounts.items()]
        return self.cache.amounts([each for each in scaled if each[2]])[0]


def _quotas(nominal: Mapping[str, int]) -> list[Manifest]:
    resources = [{"name": name, "nominalQuota": str(quota)} for name, quota in nominal.items()]
    return [{"coveredResources": list(nominal), "flavors": [{"name": "f", "resources": resources}]}]


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
