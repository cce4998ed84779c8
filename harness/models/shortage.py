"""Computes what a queue lacks for a request. The decisions of all policies have the same fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness.models.quota import UNLIMITED, QuotaTree

_MOST = 3  # the maximum number of queues to list


def shortage(
    tree: QuotaTree, node: int, request: Iterable[tuple[int, int]], *, borrow: bool = True
) -> dict[str, Any]:
    """Returns the numbers of a request that does not fit.

    The result has these fields. It omits unlimited quotas.

    - `request` has the requested quantities, and `short` has the missing part of each quantity.
    - `usage` and `quota` are the usage and the quota of the queue.
    - `pool` is the root cohort with the usage of its queues.
    - `kept` has the quantities that lending limits keep in the queues. They are not part of the pool.
    - `holders` has the queues that use most of a flavor that is short, if its resource has several flavors.

    Args:
        tree: the quota tree.
        node: the node of the queue.
        request: the requested quantity of each flavor-resource.
        borrow: whether the queue can use unused quota of its cohort.
    """
    labels, asked = tree.labels, _summed(request)
    missing = lacking(tree, node, asked.items(), borrow=borrow)
    detail: dict[str, Any] = {
        "queue": tree.names[node],
        "request": {labels[cell]: amount for cell, amount in asked.items()},
        "short": missing,
        "usage": {tree.names[node]: _amounts(tree, tree.usage, node, asked)},
        "quota": {tree.names[node]: _amounts(tree, tree.nominal, node, asked)},
    }
    top = tree.root[node]
    if top != node:
        detail["pool"] = {
            "name": tree.names[top],
            "usage": _amounts(tree, tree.usage, top, asked),
            "quota": _amounts(tree, tree.subtree, top, asked),
        }
        kept = _amounts(tree, tree.kept, top, (cell for cell in asked if tree.kept[top * tree.width + cell]))
        if kept:
            detail["pool"]["kept"] = kept
    if len(tree.flavor_resources) > 1:
        holders = _holders(tree, top, [cell for cell in asked if labels[cell] in missing])
        if holders:
            detail["holders"] = holders
    return detail


def lacking(
    tree: QuotaTree, node: int, request: Iterable[tuple[int, int]], *, borrow: bool = True
) -> dict[str, int]:
    """Returns the missing part of a request. The arguments are the same as those of `shortage`."""
    missing: dict[str, int] = {}
    for cell, amount in _summed(request).items():
        free = tree.available(node, cell)
        if not borrow:
            at = node * tree.width + cell
            free = min(free, tree.nominal[at] - tree.usage[at])
        if amount > max(0, free):
            missing[tree.labels[cell]] = amount - max(0, free)
    return missing


def _summed(request: Iterable[tuple[int, int]]) -> dict[int, int]:
    asked: dict[int, int] = {}
    for cell, amount in request:
        asked[cell] = asked.get(cell, 0) + amount
    return asked


def _holders(tree: QuotaTree, top: int, cells: Iterable[int]) -> dict[str, dict[str, int]]:
    """Returns the queues below a root that use the most of a short resource with several flavors.

    If a resource has only one flavor, the timeline already contains the usage of the queues.
    """
    found: dict[str, dict[str, int]] = {}
    flavors = Counter(each.resource for each in tree.flavor_resources)
    for cell in cells:
        if flavors[tree.flavor_resources[cell].resource] < 2:
            continue
        used = [
            (-tree.usage[node * tree.width + cell], name)
            for name, node in tree.queues.items()
            if tree.root[node] == top and tree.usage[node * tree.width + cell] > 0
        ]
        for amount, name in sorted(used)[:_MOST]:
            found.setdefault(name, {})[tree.labels[cell]] = -amount
    return found


def _amounts(tree: QuotaTree, values: list[int], node: int, cells: Iterable[int]) -> dict[str, int]:
    first, labels = node * tree.width, tree.labels
    return {labels[cell]: values[first + cell] for cell in cells if values[first + cell] < UNLIMITED}
