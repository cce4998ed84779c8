"""Converts the output of `scontrol show nodes` to Nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, Fault
from harness.cluster.draft import Warnings
from harness.cluster.manifests import node_manifest
from harness.cluster.slurm.tables import Row, gpus_of, read_blocks

NODES = "scontrol show nodes"
GPU = "nvidia.com/gpu"
MODEL = "nvidia.com/gpu.product"
"""The label with the type of a node's GPUs, as set by NVIDIA's feature discovery."""

_PODS = 110
_MIB = 2**20
_GRES = re.compile(r"gpu(?::([^:(,]+))?:([0-9]{1,9})")
_UNUSABLE = (
    "DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "INVAL", "MAINT", "NOT_RESPONDING", "REBOOT", "UNKNOWN",
)  # fmt: skip
_POWERED_DOWN = re.compile(r"POWER(ED|ING)?_DOWN|\bPOWER\b|~")
"""States of power saving. Slurm starts jobs on such a node by powering it up."""


def read_nodes(path: Path, notes: Warnings) -> list[tuple[dict[str, Any], dict[str, int]]]:
    """Returns the nodes of a cluster as manifests, each with the quantities that jobs can use.

    Raises:
        ClusterError: the file can't be read, or nodes are malformed. The error lists all malformed nodes.
    """
    faults: list[Fault] = []
    found = [_node(row, faults, notes) for row in read_blocks(path, NODES)]
    names = Counter(manifest["metadata"]["name"] for manifest, _ in found)
    faults += [Fault("", f"node {name} is given twice") for name, count in names.items() if count > 1]
    if faults:
        raise ClusterError(str(path), faults, hint=f"give a file with the output of {NODES}, not slurm.conf")
    return found


def _node(row: Row, faults: list[Fault], notes: Warnings) -> tuple[dict[str, Any], dict[str, int]]:
    name = row.text("NodeName")
    configured = row.tres("CfgTRES", faults)
    cpus = row.count("CPUEfctv", faults) or configured.get("cpu", 0) or row.count("CPUTot", faults)
    memory = (row.count("RealMemory", faults) - row.count("MemSpecLimit", faults)) * _MIB
    memory = memory if memory > 0 else configured.get("mem", 0)
    gpus, models = gpus_of(configured)
    if not gpus:
        gpus, models = _gres(row.text("Gres"))
    if not cpus:
        faults.append(Fault(row.place, f"node {name}: does not state its CPUs (CPUEfctv, CPUTot or CfgTRES)"))
    amounts = {"cpu": cpus * 1000, "memory": memory, GPU: gpus}
    manifest = node_manifest(name, {**{key: size for key, size in amounts.items() if size}, "pods": _PODS})
    if len(models) == 1:
        manifest["metadata"]["labels"][MODEL] = models[0]
    elif models:
        notes.add(
            "Node",
            name,
            f"several types of GPUs ({', '.join(models)}), but no label says which type a pod gets",
        )
    _say(row, name, notes)
    if _unusable(row.text("State")):
        manifest["spec"] = {"unschedulable": True}
        notes.add("Node", name, "is down or drained now, and unschedulable for the whole replay")
        return manifest, {}
    if _POWERED_DOWN.search(row.text("State")):
        notes.add(
            "Node", name, "is powered down now: Slurm needs time to power it up, and the replay needs none"
        )
    return manifest, amounts


def _gres(text: str) -> tuple[int, tuple[str, ...]]:
    """Returns the number and the types of GPUs in a text such as `gpu:a100:4(S:0-1),gpu:v100:2`."""
    found = _GRES.findall(text)
    return sum(int(count) for _, count in found), tuple(sorted({model for model, _ in found if model}))


def _unusable(state: str) -> bool:
    """Returns True if Slurm starts no jobs in this state. A star means that the node does not respond."""
    words = re.split(r"[^A-Z_]+", state)
    return state.endswith("*") or any(word.startswith(_UNUSABLE) for word in words)


def _say(row: Row, name: str, notes: Warnings) -> None:
    said: Mapping[str, str] = {
        "features, which jobs can request": row.text("AvailableFeatures"),
        "Weight, by which Slurm prefers nodes": "" if row.text("Weight") == "1" else row.text("Weight"),
        "Owner or MCS_label, which reserve the node": "".join(
            text for text in (row.text("Owner"), row.text("MCS_label")) if text != "N/A"
        ),
    }
    for what, text in said.items():
        if text not in ("", "(null)", "N/A"):
            notes.add("Node", name, what)
    threads = row.text("ThreadsPerCore")
    if threads not in ("", "1"):
        notes.add(
            "Node",
            name,
            f"{threads} threads per core: Slurm allocates whole cores, whereas Kubernetes allocates threads",
        )
    other = [part for part in row.text("Gres").split(",") if part and not part.startswith(("gpu", "(null)"))]
    if other:
        notes.add("Node", name, "devices other than GPUs")
