"""Describes nodes in a run as a limited number of groups of equal nodes, with counts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from harness.base.units import format_amount
from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.kinds.selectors import Taint
from harness.cluster.model import UNLIMITED, Node

MOST_KINDS = 64
"""The maximum number of kinds. If there are more, labels with many values are dropped first, and then small
kinds are merged.
"""


def node_kinds(nodes: Sequence[Node]) -> dict[str, Any]:
    """Returns the kinds of nodes. Nodes of a kind differ only in their names.

    Returns:
        A dictionary with two keys. `nodes` lists the kinds in order of first appearance. Each kind has a
        `count`, the `first` and `last` name, a hash of all `names`, and `allocatable`. If present, it also
        has `labels`, `taints`, `unschedulable` and `ready`. If there are too many kinds, the last entry
        merges the smallest ones. Its `kinds` is their number, and its allocatable quantities are their sum.
        `labels` describes the labels that were dropped because they have too many values. It maps each label
        to the `count` of its values and their `sha256`.
    """
    values: dict[str, dict[str, str]] = {}
    for node in nodes:
        for key, value in node.labels.items():
            if not _is_own(node, key):
                values.setdefault(key, {})[node.name] = value
    kept = sorted(values, key=lambda key: (-len(set(values[key].values())), key))
    left_out = []
    shapes = _shapes(nodes, kept)
    while len(shapes) > MOST_KINDS and kept:
        left_out.append(kept.pop(0))
        shapes = _shapes(nodes, kept)
    told = sorted(shapes, key=len, reverse=True)
    joined = [node for shape in told[MOST_KINDS - 1 :] for node in shape] if len(told) > MOST_KINDS else []
    alone = {shape[0].name for shape in told[: MOST_KINDS - 1]} if joined else None
    found = [_kind(shape, kept) for shape in shapes if alone is None or shape[0].name in alone]
    if joined:
        kinds = len(told) - len(found)
        found.append({"kinds": kinds, **_named(joined), "allocatable": _total(joined)})
    labels = {
        key: {"count": len(set(values[key].values())), "sha256": digest(values[key])}
        for key in sorted(left_out)
    }
    return {"nodes": found, "labels": labels}


def _shapes(nodes: Iterable[Node], labels: Sequence[str]) -> list[list[Node]]:
    """Returns groups of nodes that differ only in their names and in labels that are not compared."""
    alike: dict[Any, list[Node]] = {}
    for node in nodes:
        own = tuple(None if _is_own(node, key) else node.labels.get(key) for key in labels)
        key = (tuple(sorted(node.allocatable.items())), node.taints, node.unschedulable, node.ready, own)
        alike.setdefault(key, []).append(node)
    return list(alike.values())


def _is_own(node: Node, key: str) -> bool:
    return key == HOSTNAME and node.labels.get(key) == node.name


def _kind(nodes: Sequence[Node], labels: Iterable[str]) -> dict[str, Any]:
    first = nodes[0]
    amounts = {each: amount_text(each, amount) for each, amount in sorted(first.allocatable.items())}
    found: dict[str, Any] = {**_named(nodes), "allocatable": amounts}
    own = {
        key: first.labels[key] for key in sorted(labels) if key in first.labels and not _is_own(first, key)
    }
    if own:
        found["labels"] = own
    if first.taints:
        found["taints"] = [taint_text(taint) for taint in first.taints]
    if first.unschedulable:
        found["unschedulable"] = True
    if not first.ready:
        found["ready"] = False
    return found


def _named(nodes: Sequence[Node]) -> dict[str, Any]:
    names = sorted(node.name for node in nodes)
    return {"count": len(names), "first": names[0], "last": names[-1], "names": digest(names)}


def _total(nodes: Iterable[Node]) -> dict[str, str]:
    total: Counter[str] = Counter()
    for node in nodes:
        total.update(node.allocatable)
    return {resource: amount_text(resource, amount) for resource, amount in sorted(total.items())}


def taint_text(taint: Taint) -> str:
    """Returns a taint in the format of kubectl."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def amount_text(resource: str, amount: int) -> str:
    """Returns a quantity in the format of manifests."""
    return "unlimited" if amount >= UNLIMITED else format_amount(resource, amount)


def digest(value: Any) -> str:
    """Returns a short hash of a value of the model."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """Returns a value of the model as JSON, with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return str(value)
