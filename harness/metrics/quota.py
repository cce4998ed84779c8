"""Quota: what ClusterQueues held beyond what was theirs or to be borrowed, and what they held for no pod.

Jobs that are leaving still hold quota, and so do admitted jobs that have not started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from harness.metrics.known import once
from harness.metrics.levels import Holder, Piece, holders, moves, pieces, unused_quotas
from harness.metrics.measurement import Measurement, Window, resource_hours
from harness.metrics.quota_tree import QuotaTree, quota_trees
from harness.runs.run import Run

_OVER, _UNBOUND = "quota.over", "quota.held_unbound"
_CHANGES = 1 << 16  # changes of level that are looked at together
_CELLS = 1 << 20  # instants times queues that are looked at together


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """What was held beyond what might be used; null where no quota is known, or nothing was admitted."""
    users = holders(run)
    every = sorted([*users, *unused_quotas(run)])
    names = [user.name for user in users]
    sums = [_Over(run, names, resource) for resource in run.resources] if _admits(run) else []
    if any(of_resource.trees for of_resource in sums):
        for piece in pieces(run, window, changes=_CHANGES, kinds=("held",)):
            for of_resource in sums:
                of_resource.add(piece)
    over = {of_resource.resource: of_resource.sums for of_resource in sums}
    for resource in run.resources:
        known = over.get(resource, {})
        yield resource_hours(_OVER, sum(known.values()) if known else None, resource)
        for each in every:
            yield resource_hours(_OVER, known.get(each.name), resource, each.scope)
    yield from _held_unbound(run, window, every)


def _held_unbound(run: Run, window: Window, every: Sequence[Holder]) -> Iterator[Measurement]:
    """Quota that was held by pods without a node; null without nodes, or where nothing was admitted."""
    known = run.info["cluster"]["nodes"] and _admits(run)
    sums = _quota_without_pods(run, window) if known else {}
    for resource in run.resources:
        of_quotas = {
            each.name: sums.get((each.name, resource), 0)
            for each in every
            if known and each.nominal is not None and resource in each.nominal
        }
        total = sum(of_quotas.values()) if of_quotas else None
        yield resource_hours(_UNBOUND, total, resource)
        for each in every:
            yield resource_hours(_UNBOUND, of_quotas.get(each.name), resource, each.scope)


def _quota_without_pods(run: Run, window: Window) -> dict[tuple[str, str], int]:
    """For each holder and resource the quota held less what bound pods ask for, as resource-time."""
    # A level that moves by an amount has it from then on until the end.
    left = pl.lit(window.end) - pl.col("time")
    amounts = [
        ((pl.col(f"held{number}") - pl.col(f"allocated{number}")).cast(pl.Int128) * left)
        .sum()
        .alias(resource)
        for number, resource in enumerate(run.resources)
    ]
    names = [user.name for user in holders(run)]
    sums: dict[tuple[str, str], int] = {}
    for batch in moves(run, window, ("held", "allocated")):
        for row in batch.group_by("holder").agg(amounts).iter_rows(named=True):
            name = names[row["holder"]]
            for resource in run.resources:
                sums[name, resource] = sums.get((name, resource), 0) + row[resource]
    return sums


@once
def _admits(run: Run) -> bool:
    """Whether any job was admitted, and the run says which quotas there are."""
    if "cohorts" not in run.info["cluster"]:
        return False
    batches = run.batches("jobs", ("admitted_time",))
    return any(batch["admitted_time"].null_count() < batch.height for batch in batches)


class _Over:
    """Adds up what ClusterQueues hold of one resource beyond what they may use.

    Args:
        run: the run.
        users: the holders that jobs use; a place among them is the holder's number in a piece.
        resource: the resource.

    Attributes:
        resource: the same.
        trees: the quotas of which jobs use some.
        sums: ClusterQueue with a quota for the resource, or that is over for lack of one -> resource-time.
    """

    def __init__(self, run: Run, users: Sequence[str], resource: str) -> None:
        quotas = run.info["cluster"]["queues"]
        self.resource = resource
        self.sums = {
            name: 0 for name, quota in quotas.items() if "limits" in quota and resource in quota["nominal"]
        }
        self._held = f"held{run.resources.index(resource)}"
        self._numbers = {name: number for number, name in enumerate(users)}
        trees = quota_trees(run.info["cluster"], resource)
        self.trees = [tree for tree in trees if any(node.queue in self._numbers for node in tree.nodes)]

    def add(self, piece: Piece) -> None:
        """Take a piece into account."""
        parts = piece.rows.select("holder", "at", self._held).partition_by("holder", as_dict=True)
        levels = {holder: rows for (holder,), rows in parts.items()}
        for tree in self.trees:
            used = {
                place: levels[self._numbers[node.queue]]
                for place, node in enumerate(tree.nodes)
                if node.queue in self._numbers
            }
            instants = self._suspicious(tree, used, len(piece.times))
            step = max(1, _CELLS // len(tree.nodes))
            for start in range(0, len(instants), step):
                self._add(piece, tree, used, instants.slice(start, step))

    def _suspicious(self, tree: QuotaTree, used: dict[int, pl.DataFrame], instants: int) -> pl.Series:
        """The instants at which some node may use more than it may: as a rule there are none."""
        found = pl.DataFrame(schema={"at": pl.UInt32, "until": pl.UInt32})
        for place, node in enumerate(tree.nodes):
            if node.bound is None:
                continue
            # What queues keep from a cohort does not count for it; what cohorts between them keep does not
            # either, but without it no instant is missed.
            levels = [
                used[queue].select("at", level=(pl.col(self._held) - kept).clip(0))
                for queue in tree.below[place]
                if queue in used
                for kept in (0 if queue == place else tree.nodes[queue].kept,)
            ]
            most: list[Any] = [each["level"].max() for each in levels]
            if sum(most) <= node.bound:
                continue
            total = _total(levels).with_columns(until=pl.col("at").shift(-1, fill_value=instants))
            found.extend(total.filter(pl.col("level") > node.bound).select(found.columns).cast(found.schema))
        return found.select(pl.int_ranges("at", "until").explode()).to_series().unique().sort()

    def _add(self, piece: Piece, tree: QuotaTree, used: dict[int, pl.DataFrame], instants: pl.Series) -> None:
        """Add up what is over at some instants."""
        held = pl.DataFrame(
            {
                str(place): rows[self._held].gather(rows["at"].search_sorted(instants, side="right") - 1)
                for place, rows in used.items()
            }
        )
        span = piece.times.shift(-1, fill_value=piece.end) - piece.times
        over = tree.over(held).select(pl.all() * span.gather(instants)).sum()
        for place, amount in zip(over.columns, over.row(0), strict=True):
            name = tree.nodes[int(place)].queue
            assert name is not None
            if amount:  # what is held without a quota is over one of 0
                self.sums[name] = self.sums.get(name, 0) + amount


def _total(levels: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """What levels come to together: `at` and `level`."""
    moved = pl.col("level") - pl.col("level").shift(1, fill_value=0)
    moves = pl.concat([each.select("at", moved) for each in levels])
    return moves.group_by("at").agg(pl.col("level").sum()).sort("at").with_columns(pl.col("level").cum_sum())
