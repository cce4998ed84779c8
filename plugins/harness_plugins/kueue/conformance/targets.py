"""Computes the results of `kueue/targets` cases, which cover only the choice of targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.models.cluster import Cluster
from harness.models.manifests import read_time
from harness.models.quota import FlavorResource
from harness_plugins.kueue.conformance.cases import Question, setting_of
from harness_plugins.kueue.manifests.imported import hold_quota, used_flavor_resources, workload_of
from harness_plugins.kueue.rules.classical import ClassicPreemption
from harness_plugins.kueue.rules.dominant_resource_share import weights_of
from harness_plugins.kueue.rules.fair_search import may_allow_any
from harness_plugins.kueue.rules.fair_sharing import FairSharing
from harness_plugins.kueue.rules.feature_gates import Gates
from harness_plugins.kueue.rules.preemption import Incoming
from harness_plugins.kueue.rules.preemption_oracle import TargetSearch
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts
from harness_plugins.kueue.state.cache import Cache

_MEASURED = ("kueueCpuMicros", "kueueMicros")  # the fields that contain the time that Kueue's code took


def answer(case: Mapping[str, Any], shortcuts: Shortcuts | None = None) -> Mapping[str, Any]:
    """Returns the workloads that Kueue preempts in a case of `kueue/targets`, with the reasons."""
    _, incoming, search = question(case, shortcuts)
    return {
        "targets": [
            {"workload": target.workload.name, "reason": target.reason}
            for target in search.find_targets(incoming)
        ]
    }


def explain(case: Mapping[str, Any]) -> str:
    """Describes a case of `kueue/targets`: the queues in the tree, and their candidates in search order."""
    cache, incoming, search = question(case)
    targets = {target.workload: target.reason for target in search.find_targets(incoming)}
    tree = cache.tree
    labels = [f"{flavor}/{resource}" for flavor, resource in tree.flavor_resources]
    lines = [
        f"{incoming.workload.name} of {incoming.queue.name} requests "
        + ", ".join(f"{amount} {labels[cell]}" for cell, amount in incoming.requests)
        + f"; it lacks {', '.join(labels[cell] for cell in incoming.need)}"
    ]
    queues = cache.members_below(incoming.queue.root)
    for queue in [each for each in queues if cache.holders[each.node].workloads]:
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
            for holder in cache.holders[queue.node].workloads
            if holder.uses & incoming.mask
        ]
    return "\n".join(lines)


def question(
    case: Mapping[str, Any], shortcuts: Shortcuts | None = None
) -> tuple[Cache, Incoming, TargetSearch]:
    """Returns the cache, the incoming workload and the target search of a case of `kueue/targets`."""
    given = case["given"]
    cluster, _, configuration, gates = setting_of(case)
    asked = Question(case)
    asked.fields.ignore("assignment", "clusterQueue", "requests", *_MEASURED)
    now = read_time(asked.fields, "now") or 0
    manifest = asked.workload(asked.fields)
    asked.finish()
    requests = {
        FlavorResource(flavor, resource): amount
        for flavor, resources in given["requests"].items()
        for resource, amount in resources.items()
    }
    cache = Cache(cluster, also=used_flavor_resources(cluster.workloads) | set(requests))
    hold_quota(cache, cluster.workloads, gates, now)
    amounts, _ = cache.amounts((flavor, resource, amount) for (flavor, resource), amount in requests.items())
    need = {
        cache.tree.cell(flavor["name"], resource)
        for pod_set in given["assignment"]["podSets"]
        for resource, flavor in (pod_set.get("flavors") or {}).items()
        if flavor["mode"] == "Preempt"
    }
    workload = workload_of(manifest, gates)
    workload.cluster_queue = cache.queues[given["clusterQueue"]]
    incoming = Incoming(workload, amounts, tuple(sorted(cell for cell in need if cell is not None)))
    return cache, incoming, _search(cache, cluster, configuration.strategies, gates, shortcuts or Shortcuts())


def _search(
    cache: Cache, cluster: Cluster, strategies: tuple[str, ...] | None, gates: Gates, shortcuts: Shortcuts
) -> TargetSearch:
    if strategies is None:
        return ClassicPreemption(cache)
    shares = shortcuts.shares(cache.tree, weights_of(cache.tree, cluster, {}))
    within_nominal = gates.fair_sharing_preempt_within_nominal
    refuses = shortcuts.refuses(cache, shares, may_allow_any)
    return FairSharing(cache, shares, strategies, within_nominal=within_nominal, refuses=refuses)
