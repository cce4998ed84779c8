"""Computes the quota that a queue lacks for a request. The decisions of all policies have the same fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.base.grouping import summed
from harness.models.quota import NO_PARENT, UNLIMITED, QuotaTree, plus

_MOST = 3  # the maximum number of queues to list


def shortage(
    tree: QuotaTree,
    node: int,
    request: Iterable[tuple[int, int]],
    *,
    borrow: bool = True,
    short: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Returns the quantities that explain why a request does not fit.

    The result has these fields. It omits unlimited quotas.

    - `request` has the requested quantities, and `short` has the missing part of each quantity.
    - `usage` and `quota` contain the usage and the quota of the queue.
    - `max` has an entry for each queue or cohort whose borrowing limit prevents the request. The entry is the
      largest usage that the limit allows. `usage` and `quota` also have an entry for such a cohort.
    - `pool` contains the usage and the quota of the root cohort. Within it, `kept` has the quantities that
      lending limits keep in the queues. They are not part of the pool.
    - If an insufficient resource has several flavors, `holders` has the queues that use most of it.

    Args:
        tree: the quota tree.
        node: the node of the queue.
        request: the requested quantity of each flavor-resource.
        borrow: whether the queue can use unused quota of its cohort.
        short: the missing part of each quantity. By default, it is computed from the current usage in `tree`.
    """
    labels, asked = tree.labels, summed(request)
    missing = lacking(tree, node, asked.items(), borrow=borrow) if short is None else short
    detail: dict[str, Any] = {
        "queue": tree.names[node],
        "request": {labels[cell]: amount for cell, amount in asked.items()},
        "short": missing,
        "usage": {tree.names[node]: _amounts(tree, tree.usage, node, asked)},
        "quota": {tree.names[node]: _amounts(tree, tree.nominal, node, asked)},
    }
    if borrow:
        for table, name, label, amount in _limits(tree, node, asked):
            detail.setdefault(table, {}).setdefault(name, {})[label] = amount
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
    cells = [cell for cell in asked if labels[cell] in missing]
    if _has_several_flavors(tree, cells):
        detail["holders"] = _holders(tree, top, cells)
    return detail


def lacking(
    tree: QuotaTree, node: int, request: Iterable[tuple[int, int]], *, borrow: bool = True
) -> dict[str, int]:
    """Returns the missing part of a request. The arguments are the same as those of `shortage`."""
    missing: dict[str, int] = {}
    for cell, amount in summed(request).items():
        free = tree.available(node, cell)
        if not borrow:
            at = node * tree.width + cell
            free = min(free, tree.nominal[at] - tree.usage[at])
        if amount > max(0, free):
            missing[tree.labels[cell]] = amount - max(0, free)
    return missing


def _limits(tree: QuotaTree, node: int, request: Mapping[int, int]) -> Iterator[tuple[str, str, str, int]]:
    """Yields the borrowing limits that prevent a request, as table, name, label and quantity."""
    for cell, amount in request.items():
        at = node
        while tree.parent[at] != NO_PARENT:
            here, limit = at * tree.width + cell, tree.borrowing_limit[at * tree.width + cell]
            used, quota = tree.usage[here], tree.subtree[here]
            if limit is not None and used + amount > plus(quota, limit):
                name, label = tree.names[at], tree.labels[cell]
                if at != node:
                    yield "usage", name, label, used
                    yield "quota", name, label, quota
                yield "max", name, label, plus(quota, limit)
            amount -= min(amount, tree.local_available(at, cell))
            at = tree.parent[at]


def _has_several_flavors(tree: QuotaTree, cells: Iterable[int]) -> bool:
    resources = [each.resource for each in tree.flavor_resources]
    return any(resources.count(resources[cell]) > 1 for cell in cells)


def _holders(tree: QuotaTree, top: int, cells: Iterable[int]) -> dict[str, dict[str, int]]:
    """Returns the queues below a root that use the most of the given flavor-resources.

    If no short resource has several flavors, the timeline already contains the usage of the queues.
    """
    found: dict[str, dict[str, int]] = {}
    for cell in cells:
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
