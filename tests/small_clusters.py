"""Clusters for tests, as manifests, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


def queues(
    nominal: Mapping[str, Mapping[str, str]],
    *,
    weights: Mapping[str, str] | None = None,
    limits: Mapping[str, tuple[str | None, str | None]] | None = None,
    nodes: int = 0,
) -> str:
    """A ClusterQueue for each name, all in one cohort that reclaims; with `nodes`, so many of 4 cores.

    Args:
        nominal: queue -> resource -> its nominal quota.
        weights: queue -> its weight, where it has one.
        limits: queue -> how much cpu it may borrow and lend, where that is limited.
        nodes: how many there are.
    """
    documents = [_kueue("ResourceFlavor", "f")]
    for name, quotas in nominal.items():
        resources = [{"name": each, "nominalQuota": quota} for each, quota in quotas.items()]
        borrowing, lending = (limits or {}).get(name, (None, None))
        for each in resources:
            if each["name"] == "cpu" and borrowing is not None:
                each["borrowingLimit"] = borrowing
            if each["name"] == "cpu" and lending is not None:
                each["lendingLimit"] = lending
        group = {"coveredResources": list(quotas), "flavors": [{"name": "f", "resources": resources}]}
        spec: dict[str, Any] = {"cohortName": "all", "namespaceSelector": {}, "resourceGroups": [group]}
        spec["preemption"] = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        if weights and name in weights:
            spec["fairSharing"] = {"weight": weights[name]}
        documents.append({**_kueue("ClusterQueue", name), "spec": spec})
    for number in range(nodes):
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}}
        documents.append({**node, "status": {"allocatable": allocatable}})
    return str(yaml.safe_dump_all(documents))


def cohort(name: str, parent: str, nominal: Mapping[str, str]) -> str:
    """A Cohort with a quota of its own, under another one; to be added to manifests."""
    resources = [{"name": each, "nominalQuota": quota} for each, quota in nominal.items()]
    group = {"coveredResources": list(nominal), "flavors": [{"name": "f", "resources": resources}]}
    spec = {"parentName": parent, "resourceGroups": [group]}
    return f"---\n{yaml.safe_dump({**_kueue('Cohort', name), 'spec': spec})}"


def local_queue(namespace: str, name: str, cluster_queue: str) -> str:
    """A namespace's door to a ClusterQueue, to be added to manifests."""
    queue = _kueue("LocalQueue", name)
    queue["metadata"]["namespace"] = namespace
    return f"---\n{yaml.safe_dump({**queue, 'spec': {'clusterQueue': cluster_queue}})}"


def quota_tree(least: Mapping[str, Mapping[str, str]], most: Mapping[str, str]) -> str:
    """An ElasticQuotaTree with a leaf for each name: its `min`, and the `max` of all; to be added, too."""
    leaves = [{"name": name, "min": dict(amounts), "max": dict(most)} for name, amounts in least.items()]
    tree = {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": dict(most), "max": dict(most), "children": leaves}},
    }
    return f"---\n{yaml.safe_dump(tree)}"


def _kueue(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
