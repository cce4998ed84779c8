"""Random manifests of nodes with taints and GPUs, of queues and cohorts of Kueue, and of elastic quotas.

Numbers are drawn in small units, which `Units` converts to quantities. Therefore, a world can have a few
cores, or so much memory that it barely fits a 64-bit integer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.base.units import INT64_MAX, format_amount, format_amounts
from harness.cluster.manifests import (
    KUEUE,
    elastic_quota_tree_manifest,
    manifest_of,
    node_manifest,
    quota_node,
)
from harness.testing.worlds.chance import Chance

Manifest = dict[str, Any]
Units = Mapping[str, int]
"""Maps each resource that jobs request to the size of one unit."""

GPU = "nvidia.com/gpu"
LARGEST: Units = {"cpu": 8, "memory": 8, GPU: 4}
"""The largest number of units that a job requests. Every cluster has at least this many units, and so
do its quotas in total.
"""

MOST_NODES = 5
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SPOT = {"key": "spot", "effect": "NoSchedule"}
_OF_GPUS = "-gpu"  # a flavor must not be in two groups of one queue
_WITHIN = ("Never", "LowerPriority", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority")
_RECLAIM = ("Never", "LowerPriority", "Any", "Any", "Any")


def nodes(chance: Chance, units: Units, flavors: Sequence[str]) -> list[Manifest]:
    """Returns two to five nodes, each with one flavor. Some nodes are tainted, small or cordoned."""
    count = chance.between(2, MOST_NODES)
    amounts = [{resource: _on_node(chance, resource) for resource in units} for _ in range(count)]
    for resource in units:
        amounts[0][resource] += max(0, LARGEST[resource] - sum(each[resource] for each in amounts))
    found = []
    for number, each in enumerate(amounts):
        pods = chance.choice((110, 110, 110, 4))
        allocatable = {name: amount * units[name] for name, amount in each.items()} | {"pods": pods}
        node = node_manifest(f"n{number}", allocatable)
        node["metadata"]["labels"] |= {"kind": flavors[number % len(flavors)], "zone": chance.choice("ab")}
        taints = [TAINT] if each.get(GPU) and chance.percent(30) else []
        taints += [SPOT] if number and chance.percent(10) else []
        node["spec"] = {"taints": taints} if taints else {}
        if number > 1 and chance.percent(10):
            node["spec"]["unschedulable"] = True
        found.append(node)
    return found


def _on_node(chance: Chance, resource: str) -> int:
    return chance.choice((0, 0, 2, 4)) if resource == GPU else chance.between(1, 8)


def kueue(chance: Chance, units: Units, flavors: Sequence[str], queues: Sequence[str]) -> list[Manifest]:
    """Returns ResourceFlavors and ClusterQueues in cohorts with up to three levels."""
    names = _cohorts(chance)
    apart = GPU in units and len(units) > 1 and chance.percent(30)
    groups = [[name for name in units if name != GPU], [GPU]] if apart else [list(units)]
    owners = [*queues, *(name for name in names if chance.percent(40))]
    quotas = {
        name: [[_quota(chance, name, group, units, names) for _ in flavors] for group in groups]
        for name in owners
    }
    for group, of_first in zip(groups, quotas[queues[0]], strict=True):
        for resource in group:
            place = groups.index(group)
            total = sum(each[resource]["nominal"] for of in quotas.values() for each in of[place])
            of_first[0][resource]["nominal"] += max(0, LARGEST[resource] * units[resource] - total)
    labelled, spot = chance.percent(60), chance.percent(20)
    found = [
        _flavor(f"{name}{suffix}", name if labelled else "", spot=spot and name != flavors[0])
        for suffix in ("", _OF_GPUS)[: len(groups)]
        for name in flavors
    ]
    for name, parent in names.items():
        spec: dict[str, Any] = {"parentName": parent} if parent else {}
        if name in quotas:
            spec["resourceGroups"] = _groups(quotas[name], flavors, limited=bool(parent))
        found.append(manifest_of(KUEUE, "Cohort", name, {"fairSharing": _weight(chance), **spec}))
    for name in queues:
        cohort = chance.choice(list(names)) if names and chance.percent(95) else ""
        found.append(_queue(chance, name, cohort, _groups(quotas[name], flavors, limited=bool(cohort))))
    return found


def _cohorts(chance: Chance) -> dict[str, str]:
    shapes: tuple[dict[str, str], ...] = (
        {},
        {"all": ""},
        {"all": ""},
        {"all": "", "other": ""},
        {"top": "", "left": "top", "right": "top"},
        {"top": "", "left": "top", "inner": "left"},
    )
    return dict(chance.choice(shapes))


def _quota(
    chance: Chance, owner: str, group: Sequence[str], units: Units, cohorts: Mapping[str, str]
) -> dict[str, dict[str, int]]:
    found = {}
    for resource in group:
        most = LARGEST[resource] * 3 // 4
        nominal = chance.choice((0, chance.between(1, most), chance.between(1, most), most))
        quota = {"nominal": nominal}
        if chance.percent(10):
            quota["borrowingLimit"] = chance.between(0, most)
        if chance.percent(15):
            quota["lendingLimit"] = chance.between(0, nominal)
        found[resource] = {name: amount * units[resource] for name, amount in quota.items()}
        if owner in cohorts and chance.percent(5):
            found[resource]["nominal"] = INT64_MAX
    return found


def _groups(
    quotas: list[list[dict[str, dict[str, int]]]], flavors: Sequence[str], *, limited: bool
) -> list[Manifest]:
    """Returns the resource groups of an owner, which have limits only if the owner is in a cohort."""
    found = []
    for suffix, of_flavors in zip(("", _OF_GPUS), quotas, strict=False):
        entries = []
        for flavor, of_resources in zip(flavors, of_flavors, strict=True):
            resources = []
            for resource, quota in of_resources.items():
                entry = {"name": resource, "nominalQuota": format_amount(resource, quota["nominal"])}
                for limit in ("borrowingLimit", "lendingLimit") if limited else ():
                    if limit in quota:
                        entry[limit] = format_amount(resource, quota[limit])
                resources.append(entry)
            entries.append({"name": f"{flavor}{suffix}", "resources": resources})
        found.append({"coveredResources": list(of_flavors[0]), "flavors": entries})
    return found


def _flavor(name: str, kind: str, *, spot: bool) -> Manifest:
    spec: dict[str, Any] = {"nodeLabels": {"kind": kind}} if kind else {}
    return manifest_of(KUEUE, "ResourceFlavor", name, {**spec, **({"nodeTaints": [SPOT]} if spot else {})})


def _queue(chance: Chance, name: str, cohort: str, groups: list[Manifest]) -> Manifest:
    preemption: dict[str, Any] = {
        "withinClusterQueue": chance.choice(_WITHIN),
        "reclaimWithinCohort": chance.choice(_RECLAIM),
    }
    if preemption["reclaimWithinCohort"] != "Never" and chance.percent(30):
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if chance.percent(50):
            preemption["borrowWithinCohort"]["maxPriorityThreshold"] = chance.between(0, 2)
    spec: dict[str, Any] = {"cohortName": cohort} if cohort else {}
    spec |= {
        "namespaceSelector": {},
        "queueingStrategy": chance.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
        "flavorFungibility": {
            "whenCanBorrow": chance.choice(("MayStopSearch", "TryNextFlavor")),
            "whenCanPreempt": chance.choice(("MayStopSearch", "TryNextFlavor")),
        },
        "fairSharing": _weight(chance),
        "preemption": preemption,
        "resourceGroups": groups,
        **({"stopPolicy": "Hold"} if chance.percent(3) else {}),
    }
    return manifest_of(KUEUE, "ClusterQueue", name, spec)


def _weight(chance: Chance) -> dict[str, str]:
    return {"weight": chance.choice(("1", "1", "1", "0", "2", "500m", "3"))}


def elastic(
    chance: Chance, units: Units, total: Units, queues: Sequence[str], *, flat: bool
) -> list[Manifest]:
    """Returns elastic quotas with the names of the queues, as a tree or as flat quotas.

    If `flat` is true, the result has ElasticQuotas instead of an ElasticQuotaTree. `total` is the total
    capacity of all nodes.
    """
    left = dict(total)
    leaves: list[tuple[str, dict[str, int], dict[str, int]]] = []
    for name in queues[: len(queues) - chance.percent(40)] or queues:  # one queue may have no quota
        least = {}
        for resource, unit in units.items():
            least[resource] = min(left[resource] // unit, chance.choice((0, 1, 2, 3, 4))) * unit
            left[resource] -= least[resource]
        most = {
            resource: min(total[resource], amount + chance.choice((1, 3, 99, 99)) * units[resource])
            for resource, amount in least.items()
        }
        leaves.append((name, least, most))
    if flat:
        return [_elastic_quota(*leaf) for leaf in leaves]
    children = [quota_node(*leaf) for leaf in leaves]
    cut = chance.between(1, len(leaves)) if chance.percent(40) else 0
    if cut:
        below = leaves[:cut]
        least = {name: sum(leaf[1][name] for leaf in below) for name in units}
        most = {name: max(least[name], *(leaf[2][name] for leaf in below)) for name in units}
        children = [quota_node("group", least, most, children[:cut]), *children[cut:]]
    whole = {resource: total[resource] for resource in units}
    return [elastic_quota_tree_manifest(quota_node("root", whole, whole, children))]


def pod_group(name: str, least: int) -> Manifest:
    """Returns a PodGroup with this minimum number of pods."""
    return manifest_of("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, {"minMember": least}, "default")


def _elastic_quota(name: str, least: Mapping[str, int], most: Mapping[str, int]) -> Manifest:
    spec = {"min": format_amounts(least), "max": format_amounts(most)}
    return manifest_of("scheduling.sigs.k8s.io/v1alpha1", "ElasticQuota", name, spec, name)
