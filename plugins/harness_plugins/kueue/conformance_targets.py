"""Answers recorded cases of Kueue's scheduler with the same code that replays use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cluster.fields import Fields
from harness.cluster.load import cluster_from
from harness.cluster.workloads import read_time, workload_from
from harness.errors import ClusterError, Fault
from harness.quota import FlavorResource
from harness_plugins.kueue.cache import Cache
from harness_plugins.kueue.classical import ClassicPreemption
from harness_plugins.kueue.configuration import Gates, gates_from
from harness_plugins.kueue.fair_sharing import FairSharing
from harness_plugins.kueue.imported import hold_quota, used_flavor_resources, workload_of
from harness_plugins.kueue.search import Incoming, Search
from harness_plugins.kueue.shares import Shares, weights_of


def answer(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer a case of `kueue/targets`: whom does Kueue preempt, and why."""
    _, incoming, search = question(case)
    return {
        "targets": [
            {"workload": target.workload.name, "reason": target.reason}
            for target in search.find_targets(incoming)
        ]
    }


def explain(case: Mapping[str, Any]) -> str:
    """The figures behind an answer: every queue of the tree, and the candidates in their order."""
    cache, incoming, search = question(case)
    targets = {target.workload: target.reason for target in search.find_targets(incoming)}
    tree = cache.tree
    labels = [f"{flavor}/{resource}" for flavor, resource in tree.flavor_resources]
    lines = [
        f"{incoming.workload.name} of {incoming.queue.name} asks for "
        + ", ".join(f"{amount} {labels[cell]}" for cell, amount in incoming.requests)
        + f"; it lacks {', '.join(labels[cell] for cell in incoming.need)}"
    ]
    for queue in cache.members[incoming.queue.root]:
        first = queue.node * tree.width
        figures = ", ".join(
            f"{labels[cell]} {tree.usage[first + cell]} of {tree.nominal[first + cell]}"
            f" (available {tree.available(queue.node, cell)})"
            for cell in incoming.need
        )
        lines.append(f"{queue.name}: {figures}")
        lines += [
            f"  {holder.name}: priority {holder.priority}{', evicted' if holder.evicted else ''}"
            f"{f' -> {targets[holder]}' if holder in targets else ''}"
            for holder in queue.holders
            if holder.uses & incoming.mask
        ]
    return "\n".join(lines)


def question(case: Mapping[str, Any]) -> tuple[Cache, Incoming, Search]:
    """What a case of `kueue/targets` asks: the state, the incoming workload, and the way to search."""
    given, config = case["given"], case.get("config") or {}
    gates = gates_from(config.get("featureGates") or {})
    cluster = cluster_from(case["objects"], case["id"], webhooks=False)
    requests = {
        FlavorResource(flavor, resource): amount
        for flavor, resources in given["requests"].items()
        for resource, amount in resources.items()
    }
    cache = Cache(cluster, also=used_flavor_resources(cluster.workloads) | set(requests))
    faults: list[Fault] = []
    now = read_time(Fields(given, case["id"], faults, "given"), "now") or 0
    hold_quota(cache, cluster.workloads, gates, now)
    manifest = workload_from(Fields(given["workload"], case["id"], faults, "given.workload"), {})
    if faults:
        raise ClusterError(case["id"], faults)
    amounts, _ = cache.amounts((flavor, resource, amount) for (flavor, resource), amount in requests.items())
    need = {
        cache.tree.cell(flavor["name"], resource)
        for pod_set in given["assignment"]["podSets"]
        for resource, flavor in (pod_set.get("flavors") or {}).items()
        if flavor["mode"] == "Preempt"
    }
    incoming = Incoming(
        workload_of(manifest, gates),
        cache.queues[given["clusterQueue"]],
        amounts,
        tuple(sorted(cell for cell in need if cell is not None)),
    )
    return cache, incoming, _search(cache, cluster, config, gates)


def _search(cache: Cache, cluster: Any, config: Mapping[str, Any], gates: Gates) -> Search:
    sharing = config.get("fairSharing")
    if sharing is None:
        return ClassicPreemption(cache)
    shares = Shares(cache.tree, weights_of(cache.tree, cluster, {}))
    strategies = tuple(sharing["preemptionStrategies"])
    within_nominal = gates.fair_sharing_preempt_within_nominal
    return FairSharing(cache, shares, strategies, within_nominal=within_nominal)
