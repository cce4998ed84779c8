"""Computes how much quota queues may use, including borrowed quota, for many times at once.

The arithmetic is Kueue's. The module `harness.models.quota` applies it to a single state that changes step by
step. In this module, a table contains one state per row, and quantities are sums over flavors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from harness.base.grouping import grouped
from harness.base.units import INT64_MAX

_ENDLESS = 1 << 100


class Node(NamedTuple):
    """A ClusterQueue or a cohort, for one resource.

    Attributes:
        queue: the name of the ClusterQueue, or None for a cohort.
        parent: the index of the parent cohort, or None at the top.
        kept: how much the node never lends of its own quota and of what its children lend; 0 at the top.
        bound: the node's own limit on usage; None if only the nodes above limit its usage.
    """

    queue: str | None
    parent: int | None
    nominal: int
    kept: int
    bound: int | None


class QuotaTree:
    """The quotas of one resource in one cohort tree, or of a ClusterQueue without a cohort.

    The nodes are identified by their index. The top comes first, and each node comes after its parent.

    Attributes:
        below: for each node, the indexes of the ClusterQueues below it, or its own index if it is a
            ClusterQueue.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.below: list[list[int]] = [[] for _ in nodes]
        self._children: list[list[int]] = [[] for _ in nodes]
        self._levels: list[list[int]] = []
        depth: list[int] = []
        for place, node in enumerate(self.nodes):
            if node.parent is None:
                depth.append(0)
            else:
                depth.append(depth[node.parent] + 1)
                self._children[node.parent].append(place)
            if depth[place] == len(self._levels):
                self._levels.append([])
            self._levels[depth[place]].append(place)
        for level in reversed(self._levels):
            for place in level:
                node = self.nodes[place]
                if node.queue is not None:
                    self.below[place].append(place)
                if node.parent is not None:
                    self.below[node.parent] += self.below[place]

    def over(self, held: pl.DataFrame) -> pl.DataFrame:
        """Returns how much queues hold beyond both their own quota and what they might borrow.

        `held` has one row for each time, and a column for each queue that holds anything. The name of a
        column is the index of the queue. The result has the same columns.
        """
        frame = held.cast(pl.Int128)
        for level in reversed(self._levels):
            rest = [place for place in level if str(place) not in held.columns]
            frame = frame.with_columns(self._passed_up(place).alias(str(place)) for place in rest)
        for level in self._levels:
            frame = frame.with_columns(self._left(place).alias(f"left {place}") for place in level)
        return frame.select(
            pl.min_horizontal(
                _above(pl.col(name), self.nodes[int(name)].nominal), _above(0, pl.col(f"left {name}"))
            ).alias(name)
            for name in held.columns
        )

    def _passed_up(self, place: int) -> pl.Expr:
        """Returns how much usage a cohort's children pass up, which is the usage beyond what they keep."""
        parts = [_above(pl.col(str(child)), self.nodes[child].kept) for child in self._children[place]]
        return pl.sum_horizontal([_amount(0), *parts])

    def _left(self, place: int) -> pl.Expr:
        """Returns how much a node can still use; negative if it or a node above exceeds its limit."""
        node, used = self.nodes[place], pl.col(str(place))
        limits = [_amount(_ENDLESS)]
        if node.parent is not None:
            limits.append(pl.col(f"left {node.parent}"))
        if node.bound is not None:
            limits.append(_amount(node.bound) - pl.max_horizontal(used, _amount(node.kept)))
        return pl.min_horizontal(limits) + _above(node.kept, used)


def quota_trees(cluster: Mapping[str, Any], resource: str) -> list[QuotaTree]:
    """Returns the quota trees of a resource."""
    specs: list[tuple[str | None, Mapping[str, Any]]] = []
    places: dict[str, int] = {}
    for name, cohort in _top_down(cluster["cohorts"]):
        places[name] = len(specs)
        specs.append((None, cohort))
    specs += [(name, queue) for name, queue in cluster["queues"].items() if "limits" in queue]
    parents = [places[spec["cohort"]] if spec["cohort"] else None for _, spec in specs]
    nominal = [spec["nominal"].get(resource, 0) for _, spec in specs]
    kept = [spec["limits"]["kept"].get(resource, 0) for _, spec in specs]
    whole = list(nominal)
    for place in range(len(specs) - 1, -1, -1):
        # If a quota is unlimited, and so is the part that is kept, the node lends nothing. Sums over flavors
        # cannot show this.
        lent = specs[place][1]["limits"].get("lent", {}).get(resource, whole[place] - kept[place])
        whole[place] = kept[place] + lent
        parent = parents[place]
        if parent is not None:
            whole[parent] += lent
    found: dict[int, list[Node]] = {}
    homes: list[tuple[int, int]] = []  # The position of the top node, and the position within its tree.
    for place, (queue, spec) in enumerate(specs):
        parent = parents[place]
        if parent is None:
            bound = whole[place] if whole[place] < INT64_MAX else None
            nodes = found[place] = [Node(queue, None, nominal[place], 0, bound)]
            homes.append((place, 0))
            continue
        top, above = homes[parent]
        limit = spec["limits"]["borrowing"].get(resource)
        bound = None if limit is None else whole[place] + limit
        nodes = found[top]
        homes.append((top, len(nodes)))
        nodes.append(Node(queue, above, nominal[place], kept[place], bound))
    return [QuotaTree(nodes) for nodes in found.values()]


def _top_down(cohorts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    below = grouped((cohort["cohort"], name) for name, cohort in cohorts.items())
    waiting = below.get("", [])
    for name in waiting:
        yield name, cohorts[name]
        waiting += below.get(name, [])


def _above(amount: pl.Expr | int, level: pl.Expr | int) -> pl.Expr:
    return pl.max_horizontal(_amount(amount) - _amount(level), _amount(0))


def _amount(value: pl.Expr | int) -> pl.Expr:
    return pl.lit(value, dtype=pl.Int128) if isinstance(value, int) else value
