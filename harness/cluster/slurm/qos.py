"""Converts the output of `sacctmgr -P show qos` to PriorityClasses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.base.errors import ClusterError, Fault
from harness.base.names import kubernetes_name
from harness.cluster.draft import Warnings
from harness.cluster.slurm.tables import read_table

QOS = "sacctmgr -P show qos"
_HIGHEST = 1_000_000_000  # the highest value of a PriorityClass that is not reserved for the system

_MODELLED = ("Name", "Priority", "Preempt", "PreemptMode", "Description", "ID")
_NOTHING = ("", "00:00:00", "1.000000", "0")


class Qos(NamedTuple):
    """A QOS.

    Attributes:
        priority: the priority. A larger number is more important.
        preempts: the names of the QOS whose jobs can be preempted by jobs of this QOS.
        mode: what happens to its jobs when they are preempted. `cluster` means the mode of the cluster.
        limits: the limits and factors that are set, as a mapping from names to values (text).
    """

    name: str
    priority: int
    preempts: tuple[str, ...]
    mode: str
    limits: Mapping[str, str]


def read_qos(path: Path) -> list[Qos]:
    """Returns the QOS of a cluster.

    Raises:
        ClusterError: the file contains no such table, or rows are malformed. The error lists all malformed
            rows.
    """
    faults: list[Fault] = []
    found = [
        Qos(
            row.text("Name"),
            row.count("Priority", faults),
            tuple(name.strip() for name in row.text("Preempt").split(",") if name.strip()),
            row.text("PreemptMode") or "cluster",
            {
                name: text.strip()
                for name, text in row.cells.items()
                if name not in _MODELLED and text.strip() not in _NOTHING
            },
        )
        for row in read_table(path, ("Name", "Priority"), QOS)
    ]
    names = Counter(qos.name for qos in found)
    faults += [Fault("", f"QOS {name!r} is given twice") for name, count in names.items() if count > 1]
    faults += [Fault("", "a QOS has no name") for name in names if not name]
    if faults:
        raise ClusterError(str(path), faults)
    return found


def priority_classes(listed: Sequence[Qos], notes: Warnings) -> list[dict[str, Any]]:
    """Returns one PriorityClass for each QOS. The class has the same name as the QOS.

    If a QOS can't preempt another QOS, its class has the preemption policy `Never`.
    """
    classes = {}
    for qos in listed:
        name = kubernetes_name(qos.name)
        if name in classes:
            notes.add(
                "QOS", qos.name, f"has the same name {name} in Kubernetes as another QOS, so it gets no class"
            )
            continue
        if qos.priority > _HIGHEST:
            notes.add("QOS", qos.name, f"priority is above {_HIGHEST:,}, so it is reduced to this value")
        classes[name] = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": min(qos.priority, _HIGHEST),
            "preemptionPolicy": "PreemptLowerPriority" if qos.preempts else "Never",
        }
        _say(qos, listed, notes)
    return list(classes.values())


def _say(qos: Qos, listed: Sequence[Qos], notes: Warnings) -> None:
    lower = {other.name for other in listed if other.priority < qos.priority}
    if qos.preempts:
        more = sorted(lower - set(qos.preempts))
        less = sorted(set(qos.preempts) - lower)
        if more:
            notes.add(
                "QOS",
                qos.name,
                f"also preempts {', '.join(more)} in Kubernetes, because its priority is higher",
            )
        if less:
            notes.add(
                "QOS",
                qos.name,
                f"cannot preempt {', '.join(less)} in Kubernetes, because their priority is not lower",
            )
    if qos.mode not in ("cluster", "requeue"):
        notes.add(
            "QOS", qos.name, f"PreemptMode {qos.mode}: in Kubernetes, a preempted job returns to its queue"
        )
    for name, text in qos.limits.items():
        notes.add("QOS", qos.name, f"{name} {text}")
