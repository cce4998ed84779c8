"""Creates random timed patches for the queues, cohorts, elastic quotas and nodes of a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from harness.base.units import INT64_MAX, format_amount, format_amounts, parse_quantity, round_up
from harness.cluster.changes.event_nodes import UNREACHABLE
from harness.cluster.changes.timed import FROM, UNTIL
from harness.cluster.kinds.core import DRAIN, HOSTNAME
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.clusters import GPU, SPOT, TAINT, Manifest, Units

_LATEST = 90
"""The latest start of a change, in seconds after the origin."""

_OF_QUEUES = ("quotas", "quotas", "quotas", "stop", "stop", "weight", "preemption")
_RECLAIM = ("Never", "LowerPriority", "Any")
_FACTORS = (Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(2))

_LATEST_OF_NODES = 150
"""The latest start of a change of a node, in seconds after the origin."""


def events(chance: Chance, manifests: Sequence[Manifest]) -> list[Manifest]:
    """Returns one to five timed patches, where most patches end during the replay."""
    kinds = (*["ClusterQueue"] * 3, "Cohort", "ElasticQuota", "ElasticQuotaTree", "ElasticQuotaTree")
    there = {kind: [each for each in manifests if each["kind"] == kind] for kind in kinds}
    found = []
    for _ in range(chance.between(1, 5)):
        several = there[chance.choice([kind for kind in kinds if there[kind]])]
        changed = chance.choice(several)
        begin = chance.between(1, _LATEST)
        times = {FROM: f"{begin}s"}
        if chance.percent(70):
            times[UNTIL] = f"{begin + chance.between(1, 60)}s"
        metadata = {**changed["metadata"], "annotations": times}
        found.append({**changed, "metadata": metadata} | _patch(chance, changed))
    return found


def _patch(chance: Chance, changed: Manifest) -> Manifest:
    match changed["kind"]:
        case "ClusterQueue":
            return {"spec": _of_queue(chance, changed["spec"])}
        case "Cohort":
            return {"spec": {"fairSharing": {"weight": chance.choice(("0", "1", "2"))}}}
        case "ElasticQuota":
            return {"$patch": "delete"} if chance.percent(15) else {"spec": _less(chance, changed["spec"])}
    return {"spec": {"root": _of_tree(chance, changed["spec"]["root"])}}


def _of_queue(chance: Chance, spec: Mapping[str, Any]) -> Manifest:
    match chance.choice(_OF_QUEUES):
        case "quotas":
            return {"resourceGroups": [_group(chance, each) for each in spec["resourceGroups"]]}
        case "stop":
            return {"stopPolicy": chance.choice(("Hold", "HoldAndDrain", "HoldAndDrain"))}
        case "weight":
            return {"fairSharing": {"weight": chance.choice(("0", "1", "3"))}}
    reclaim = ("LowerPriority", "Any") if "borrowWithinCohort" in spec["preemption"] else _RECLAIM
    return {
        "preemption": {
            "withinClusterQueue": chance.choice(("Never", "LowerPriority")),
            "reclaimWithinCohort": chance.choice(reclaim),
        }
    }


def _group(chance: Chance, group: Mapping[str, Any]) -> Manifest:
    """Returns the quotas of a resource group, each multiplied and with an adjusted lending limit."""
    flavors = []
    for flavor in group["flavors"]:
        resources = []
        for each in flavor["resources"]:
            factor, name = chance.choice(_FACTORS), each["name"]
            quota = {"name": name, "nominalQuota": _times(name, each["nominalQuota"], factor)}
            if "lendingLimit" in each:
                quota["lendingLimit"] = _times(name, each["lendingLimit"], min(factor, Fraction(1)))
            resources.append(quota)
        flavors.append({"name": flavor["name"], "resources": resources})
    return {"flavors": flavors}


def _less(chance: Chance, bounds: Mapping[str, Any]) -> Manifest:
    least, most = dict(bounds["min"]), dict(bounds["max"])
    for name in least:
        if chance.percent(60):
            least[name] = _times(name, least[name], chance.choice((Fraction(0), Fraction(1, 2))))
        if chance.percent(60):
            bound = _times(name, most[name], Fraction(1, 2))
            most[name] = max(bound, least[name], key=parse_quantity)
    return {"min": least, "max": most}


def _of_tree(chance: Chance, node: Mapping[str, Any]) -> Manifest:
    """Returns a patch that shrinks a leaf of a tree, or deletes it if it has siblings."""
    children = node.get("children", ())
    if not children:
        return {"name": node["name"], **_less(chance, node)}
    child = chance.choice(children)
    if len(children) > 1 and not child.get("children") and chance.percent(15):
        return {"name": node["name"], "children": [{"name": child["name"], "$patch": "delete"}]}
    return {"name": node["name"], "children": [_of_tree(chance, child)]}


def _times(resource: str, quantity: str | int, factor: Fraction) -> str:
    amount = round_up(resource, parse_quantity(quantity))
    return format_amount(resource, min(INT64_MAX, int(amount * factor)))


def node_events(chance: Chance, nodes: Sequence[Manifest], units: Units) -> list[Manifest]:
    """Returns manifests that add, change or remove nodes for some time.

    Nodes appear, disappear and return, and are cordoned, drained, disconnected, tainted, relabelled and
    resized. The manifests must come after those of `nodes`. The first node always exists.
    """
    found = []
    for number in range(chance.between(1, 8)):
        node = nodes[chance.between(0, len(nodes) - 1)]
        begin = chance.between(0, _LATEST_OF_NODES)
        until = begin + chance.choice((1, 5, 20, 60, 1000))
        patch = _node_patch(chance, node, units, may_go=node is not nodes[0])
        name = node["metadata"]["name"]
        if chance.percent(10):
            name = f"new{number}"
            patch = {key: node[key] for key in ("spec", "status") if key in node}
        annotations = {
            "harness/from": f"{begin}s",
            "harness/until": f"{until}s",
            **patch.pop("annotations", {}),
        }
        metadata = {"name": name, "annotations": annotations, **patch.pop("metadata", {})}
        if name not in (each["metadata"]["name"] for each in nodes):
            metadata["labels"] = {**node["metadata"]["labels"], HOSTNAME: name}
        found.append({"apiVersion": "v1", "kind": "Node", **patch, "metadata": metadata})
    return found


def _node_patch(chance: Chance, node: Manifest, units: Units, *, may_go: bool) -> dict[str, Any]:
    match chance.choice(
        (
            *("go",) * 3 * may_go,
            *("taint", "no-execute", "no-execute", "cordon", "drain", "cut off", "resize", "label"),
        )
    ):
        case "go":
            return {"$patch": "delete"}
        case "taint":
            return {"spec": {"taints": [chance.choice((TAINT, SPOT))]}}
        case "no-execute":
            key = chance.choice(("broken", "node.kubernetes.io/not-ready"))
            return {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}}
        case "cordon":
            return {"spec": {"unschedulable": True}}
        case "drain":
            timeout = chance.choice(("0s", "3s", "30s"))
            return {"annotations": {DRAIN: timeout}, "spec": {"unschedulable": True}}
        case "cut off":
            taint = {"key": UNREACHABLE, "effect": chance.choice(("NoSchedule", "NoExecute"))}
            return {"spec": {"taints": [taint]}}
        case "label":
            return {"metadata": {"labels": {"zone": chance.choice("abc")}}}
    amounts = {name: chance.between(0, 4 if name == GPU else 9) * unit for name, unit in units.items()}
    return {"status": {"allocatable": format_amounts(amounts)}}
