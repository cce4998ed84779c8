"""Creates random changes of nodes.

Nodes appear, disappear and return, and are cordoned, drained, disconnected, tainted, relabelled and resized.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.units import format_amount
from harness.cluster.changes.event_nodes import UNREACHABLE
from harness.cluster.kinds.core import DRAIN
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.clusters import GPU, SPOT, TAINT, Manifest, Units

_LATEST = 150
"""The latest start of a change, in seconds after the origin."""


def node_events(chance: Chance, nodes: Sequence[Manifest], units: Units) -> list[Manifest]:
    """Returns manifests that add, change or remove nodes for some time.

    They must come after the manifests of `nodes`. The first node always exists.
    """
    found = []
    for number in range(chance.between(1, 8)):
        node = nodes[chance.between(0, len(nodes) - 1)]
        begin = chance.between(0, _LATEST)
        until = begin + chance.choice((1, 5, 20, 60, 1000))
        patch = _patch(chance, node, units, may_go=node is not nodes[0])
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
            metadata["labels"] = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
        found.append({"apiVersion": "v1", "kind": "Node", **patch, "metadata": metadata})
    return found


def _patch(chance: Chance, node: Manifest, units: Units, *, may_go: bool) -> dict[str, Any]:
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
    return {
        "status": {"allocatable": {name: format_amount(name, amount) for name, amount in amounts.items()}}
    }
