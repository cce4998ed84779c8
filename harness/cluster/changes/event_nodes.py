"""Interprets the rows of an event table that concern nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from harness.base.errors import Fault, InputError
from harness.base.options import did_you_mean
from harness.base.units import SECOND, parse_duration, parse_quantity
from harness.cluster.changes.event_table import Row
from harness.cluster.changes.knobs import like
from harness.cluster.kinds.core import DRAIN, node_names, unpooled
from harness.cluster.kinds.selectors import EFFECTS, LabelSelector, Requirement
from harness.cluster.yaml.fields import shown

ACTIONS = ("remove", "cordon", "drain", "partition", "taint", "resize")
"""The actions that a row can apply to a node."""

CORDONED = "node.kubernetes.io/unschedulable"
"""The taint of a cordoned node.

Kubernetes' node controller sets and removes this taint after `spec.unschedulable` changes
(`doNoScheduleTaintingPass` in pkg/controller/nodelifecycle).
"""

CONTROLLER = 1 * SECOND
"""How long the controller takes to add its taint after a cordon, and to remove the taint after an uncordon.
"""

UNREACHABLE = "node.kubernetes.io/unreachable"
"""The taint that the node controller adds to a node that has stopped responding."""

GRACE = 50 * SECOND
"""How long a node can fail to respond before it counts as unreachable.

This is `--node-monitor-grace-period` of kube-controller-manager. It is 40 seconds up to Kubernetes 1.31, and
50 seconds since 1.32.
"""

_PART = re.compile(r"\s*(?P<key>[^=!,\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^=!,\s]*)\s*")
_TAINT = re.compile(r"(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?:(?P<effect>\w+)")
_NODE: Mapping[str, Any] = {"kind": "Node"}


class Part(NamedTuple):
    """The change that a row of an event table makes to one object.

    Attributes:
        target: the fields that identify the object: its `kind`, and its `apiVersion` and `metadata` if they
            are needed.
        fields: the changed fields of the object, with their new values, as in a patch.
        delay: how long after the row's `time` the change starts, in microseconds.
        until_delay: how long after the row's `until` the change ends, in microseconds.
        annotations: further annotations for the document of the patch.
        said: the keys of the changed fields. Rows with a common key must not overlap.
    """

    target: Mapping[str, Any]
    fields: Mapping[str, Any]
    said: tuple[tuple[str, ...], ...]
    delay: int = 0
    until_delay: int = 0
    annotations: Mapping[str, str] = {}


@final
class Nodes:
    """Converts rows about nodes to changes of these nodes.

    It finds each node in the manifests, by its name, its labels or its pool.
    """

    def __init__(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        self._pools = node_names(manifests)
        of_pools = {name for names in self._pools.values() for name in names}
        self._nodes: dict[str, Mapping[str, Any]] = {}
        for content in unpooled(manifests, of_pools):
            if content.get("kind") == "Node" and content.get("apiVersion") == "v1":
                self._nodes.setdefault(str((content.get("metadata") or {}).get("name")), content)

    def parts(self, row: Row, faults: list[Fault]) -> Iterator[Part]:
        """Yields one change for each node that a row names."""
        names = self._named(row, faults)
        action, value = row.cells["field"], row.cells["value"]
        if action not in ACTIONS:
            what = f"{shown(action)} is not an action on nodes; {did_you_mean(action, ACTIONS)}"
            faults.append(Fault(row.where("field"), what))
        elif action in ("remove", "cordon"):
            if value:
                faults.append(Fault(row.where("value"), f"must be empty, because {action} takes no value"))
            for name in names:
                yield from _removed(name) if action == "remove" else _cordoned(name)
        elif action in ("drain", "partition"):
            span = self._span(row, *(("timeout", 0) if action == "drain" else ("grace", GRACE)), faults)
            for name in names:
                yield from _drained(name, span) if action == "drain" else _partitioned(name, span)
        elif action == "taint":
            taint = self._taint(row, faults)
            for name in names if taint else ():
                yield _part(name, {"spec": {"taints": [taint]}}, ("taint", taint["key"], taint["effect"]))
        else:
            amounts = self._amounts(row, faults)
            for name in names if amounts else ():
                status = self._nodes[name].get("status") or {}
                field = "allocatable" if "allocatable" in status else "capacity"
                said = [("resize", resource) for resource in amounts]
                yield _part(name, {"status": {field: amounts}}, *said)

    def _named(self, row: Row, faults: list[Fault]) -> Sequence[str]:
        """Returns the nodes that a row names.

        It has a name (where `*` matches any text), a label selector, or `pool:count` for the end of a pool.
        """
        text = row.cells["name"]
        if ":" in text:
            return self._of_pool(row, faults)
        if "=" in text:
            selector = _selector(row, faults)
            found = [
                name
                for name, content in self._nodes.items()
                if selector and selector.matches((content.get("metadata") or {}).get("labels") or {})
            ]
            if selector and not found:
                faults.append(Fault(row.where("name"), f"no node has labels that match {shown(text)}"))
            return found
        if text in self._nodes:  # most rows name a single node
            return (text,)
        found = [name for name in self._nodes if like(text, name)]
        if text and not found:
            what = f"there is no Node {shown(text)}; {did_you_mean(text, self._nodes)}"
            faults.append(Fault(row.where("name"), what))
        return found

    def _of_pool(self, row: Row, faults: list[Fault]) -> Sequence[str]:
        """Returns the last nodes of a pool, where `pool:count` specifies their number.

        A smaller pool would not have these nodes.
        """
        pool, _, number = row.cells["name"].partition(":")
        names = self._pools.get(pool)
        if names is None:
            what = f"there is no NodePool {shown(pool)}; {did_you_mean(pool, self._pools)}"
            faults.append(Fault(row.where("name"), what))
        elif not re.fullmatch(r"[1-9][0-9]{0,5}", number) or int(number) > len(names):
            what = f"{shown(number)} is not a valid number of nodes: {pool} has {len(names):,}"
            faults.append(Fault(row.where("name"), what))
        else:
            return names[-int(number) :]
        return ()

    def _taint(self, row: Row, faults: list[Fault]) -> dict[str, str]:
        """Returns the taint that a row specifies in the syntax of `kubectl taint`."""
        match = _TAINT.fullmatch(row.cells["value"])
        if match is None:
            what = f"{shown(row.cells['value'])} is not a taint; write key=value:Effect or key:Effect"
            faults.append(Fault(row.where("value"), what))
            return {}
        if match["effect"] not in EFFECTS:
            what = f"{match['effect']} is not the effect of a taint; {did_you_mean(match['effect'], EFFECTS)}"
            faults.append(Fault(row.where("value"), what))
            return {}
        value = {"value": match["value"]} if match["value"] else {}
        return {"key": match["key"], **value, "effect": match["effect"]}

    def _span(self, row: Row, name: str, usual: int, faults: list[Fault]) -> int:
        """Returns the microseconds of `name=SPAN` in a row, or `usual` if the row has none."""
        text = row.cells["value"]
        if not text:
            return usual
        said, equals, span = (part.strip() for part in text.partition("="))
        try:
            found = parse_duration(span) if said == name and equals else -1
        except InputError:
            found = -1
        if found < 0:
            faults.append(
                Fault(row.where("value"), f"{shown(text)} must be empty, or have the form {name}=10m")
            )
        return max(0, found)

    def _amounts(self, row: Row, faults: list[Fault]) -> dict[str, str]:
        """Returns the new allocatable quantities that a row specifies, such as `cpu=30;nvidia.com/gpu=7`."""
        found = {}
        where = row.where("value")
        for text in re.split("[;,]", row.cells["value"]):
            resource, equals, amount = (part.strip() for part in text.partition("="))
            if not equals or not resource:
                what = f"{shown(text)} is not a resource with its quantity; write nvidia.com/gpu=7"
                faults.append(Fault(where, what))
                continue
            if resource not in self._resources:
                what = f"no node has {shown(resource)}; {did_you_mean(resource, self._resources)}"
                faults.append(Fault(where, what))
            try:
                if parse_quantity(amount) < 0:
                    faults.append(Fault(where, f"{shown(amount)} is below 0"))
            except InputError as error:
                faults.append(Fault(where, str(error.message)))
            found[resource] = amount
        return found

    @property
    def _resources(self) -> dict[str, None]:
        return {
            str(resource): None
            for content in self._nodes.values()
            for field in ("allocatable", "capacity")
            for resource in (content.get("status") or {}).get(field) or ()
        }


def _removed(name: str) -> Iterator[Part]:
    yield _part(name, {"$patch": "delete"}, ("remove",))


def _cordoned(name: str) -> Iterator[Part]:
    yield _part(name, {"spec": {"unschedulable": True}}, ("cordon",))
    taint = {"key": CORDONED, "effect": "NoSchedule"}
    part = _part(name, {"spec": {"taints": [taint]}}, ("taint", CORDONED, "NoSchedule"))
    yield part._replace(delay=CONTROLLER, until_delay=CONTROLLER)


def _drained(name: str, timeout: int) -> Iterator[Part]:
    first, *others = _cordoned(name)
    yield first._replace(annotations={DRAIN: f"{timeout}us"})
    yield from others


def _partitioned(name: str, grace: int) -> Iterator[Part]:
    """Yields the parts of a partition. Nothing changes until the grace period has passed."""
    yield _part(name, {}, ("partition",))
    effects = ("NoSchedule", "NoExecute")
    taints = [{"key": UNREACHABLE, "effect": effect} for effect in effects]
    ready = {"type": "Ready", "status": "Unknown"}
    said = [("taint", UNREACHABLE, effect) for effect in effects]
    part = _part(name, {"spec": {"taints": taints}, "status": {"conditions": [ready]}}, *said)
    yield part._replace(delay=grace, until_delay=CONTROLLER)


def _part(name: str, fields: Mapping[str, Any], *said: tuple[str, ...]) -> Part:
    target = {**_NODE, "metadata": {"name": name}}
    return Part(target, fields, tuple(("Node", name, *each) for each in said))


def _selector(row: Row, faults: list[Fault]) -> LabelSelector | None:
    """Returns the label selector that a row specifies in the syntax of `kubectl get -l`.

    Sets are not supported.
    """
    found = []
    for text in row.cells["name"].split(","):
        match = _PART.fullmatch(text)
        if match is None:
            what = f"{shown(text)} is not valid in a selector; write key=value or key!=value, with commas"
            faults.append(Fault(row.where("name"), what))
            return None
        operator = "NotIn" if match["operator"] == "!=" else "In"
        found.append(Requirement(match["key"], operator, (match["value"],)))
    return LabelSelector(match_expressions=tuple(found))
