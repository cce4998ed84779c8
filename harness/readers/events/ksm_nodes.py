"""Reads the allocatable quantities, cordons, taints and readiness of nodes from kube-state-metrics.

The names and labels are documented in docs/metrics/cluster/node-metrics.md of
kubernetes/kube-state-metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.cluster.changes.event_nodes import CORDONED
from harness.readers.events.samples import Samples, number
from harness.readers.events.watched import Field, Object, Watched
from harness.readers.exported_resources import resource_of

THERE = "kube_node_status_allocatable"
"""The metric whose samples show that a node exists at a scrape."""

_CORDON = "kube_node_spec_unschedulable"
_TAINT = "kube_node_spec_taint"
_CONDITION = "kube_node_status_condition"
METRICS = (THERE, _CORDON, _TAINT, _CONDITION)

_NOT_READY = {"false": "node.kubernetes.io/not-ready", "unknown": "node.kubernetes.io/unreachable"}
"""Maps the status of the condition Ready to the taint that Kubernetes' node controller sets for it."""


class Key(NamedTuple):
    """Identifies a series by its metric, its node, and its resource, taint or readiness status."""

    metric: str
    owner: str
    what: str


def samples() -> Samples[Key]:
    """Returns an empty collection for samples of nodes."""
    return Samples(_key_of, THERE)


def _key_of(labels: Mapping[str, str]) -> Key | None:
    metric, node = labels.get("__name__", ""), labels.get("node", "")
    if metric == THERE:
        return Key(metric, node, resource_of(labels.get("resource", "")))
    if metric == _CORDON:
        return Key(metric, node, "")
    if metric == _CONDITION and labels.get("condition") == "Ready" and labels.get("status") in _NOT_READY:
        return Key(metric, node, labels["status"])
    if metric == _TAINT and labels.get("key") != CORDONED:
        value = f"={labels['value']}" if labels.get("value") else ""
        return Key(metric, node, f"{labels.get('key')}{value}:{labels.get('effect')}")
    return None


def changes(nodes: Samples[Key]) -> Iterator[tuple[int, str, str]]:
    """Yields one tuple for each change of a node: the time, the kind `Node`, and the name of the node."""
    for node, keys in nodes.of.items() if THERE in nodes.times else ():
        yield from ((at, "Node", node) for at in nodes.changes(keys, THERE))


def take(watched: Watched, nodes: Samples[Key], node: str, at: int) -> None:
    """Record the state of a node at the time of a change."""
    now = {key: value for key in nodes.of[node] if (value := nodes.value(key, at)) is not None}
    amounts = {
        Field("resize", f"{key.what}=", "0"): number(value)
        for key, value in now.items()
        if key.metric == THERE
    }
    each = Object("Node", node)
    if not amounts:
        watched.gone(each, at)
        return
    states = [(Field("cordon"), "") for key, value in now.items() if key.metric == _CORDON and value]
    states += [(Field("taint"), key.what) for key, value in now.items() if key.metric == _TAINT and value]
    if not any(key.metric == _TAINT for key in nodes.runs):
        states += [
            (Field("taint"), f"{_NOT_READY[key.what]}:{effect}")
            for key, value in now.items()
            if key.metric == _CONDITION and value
            for effect in ("NoExecute", "NoSchedule")
        ]
    watched.seen(each, at, amounts, states, new=at > nodes.times[THERE][0])
