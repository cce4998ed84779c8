"""Fragmentation: what is free on nodes that no waiting pod fits on, by resources alone, while any pod waits.

Whether a node is of use depends on the smallest waiting pods alone: those that ask for no less of everything
than another one are left out. Between two changes of these *needs*, what is of no use follows from what is
free on each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import le
from typing import Any, TypeAlias

import polars as pl

from harness.metrics.arrivals import request_columns
from harness.metrics.measurement import Measurement, Window
from harness.runs.run import Run

Shape: TypeAlias = tuple[int, ...]
"""What a pod asks for, or what is free on a node, of each resource."""

_KEY = ("job", "pod_number", "successor")
_READ = ("time", "action", "pods", "node", *_KEY)


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The part of each resource's capacity that was of no use; null where no nodes are known."""
    pools = run.info["cluster"].get("allocatable", [])
    span = window.end - window.start
    wasted = _wasted(run, window, pools) if pools and len(request_columns(run)) else None
    for place, resource in enumerate(run.resources):
        whole = run.capacity.get(resource, 0) * span
        share = wasted[place] / whole if wasted is not None and whole else None
        yield Measurement("fragmentation", share, "ratio", "lower", resource=resource)


def _wasted(run: Run, window: Window, pools: Sequence[Mapping[str, Any]]) -> list[int]:
    """For each resource the resource-time that was free and of no use."""
    columns = request_columns(run)
    jobs = run.columns("jobs", "pods", *columns)
    each = jobs.select(pl.col(columns) // pl.col("pods"))
    known = each.unique(maintain_order=True).with_row_index("shape")
    shapes = [tuple(row) for row in known.drop("shape").iter_rows()]
    shape_of = each.join(known, on=columns, how="left", maintain_order="left")["shape"]
    nodes, unused = _nodes(run, pools)
    waiting = _Waiting(shapes)
    free = _Free(nodes, each, len(columns))
    sums = [0] * len(columns)
    begin = window.start
    batches = (batch.filter(pl.col("time") <= window.end) for batch in run.batches("decisions", _READ))
    rows = next(batches)
    for following in batches:
        end = rows["time"].max() if len(rows) else begin
        assert isinstance(end, int)
        sums = free.add(rows, waiting.needs(rows, shape_of), begin, end, unused, sums)
        begin, rows = end, following
    return free.add(rows, waiting.needs(rows, shape_of), begin, window.end, unused, sums)


def _nodes(run: Run, pools: Sequence[Mapping[str, Any]]) -> tuple[pl.DataFrame, Counter[Shape]]:
    """The nodes that pods were bound to, with what is free at first; and how many others have what."""
    sizes = {name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])}
    rest: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
    bound = (batch["node"].drop_nulls().unique() for batch in run.batches("decisions", ("node",)))
    used = pl.concat(bound).unique().sort()
    free = [_shape(run, sizes.get(name, rest)) for name in used]
    unused = Counter({_shape(run, pool["amounts"]): 0 for pool in pools})
    for pool in pools:
        unused[_shape(run, pool["amounts"])] += pool["count"]
    unused.subtract(free)
    columns = {f"free{place}": [amounts[place] for amounts in free] for place in range(len(run.resources))}
    schema: dict[str, pl.DataType] = {"node": pl.Enum(used), **dict.fromkeys(columns, pl.Int64())}
    return pl.DataFrame({"node": used, **columns}, schema_overrides=schema), unused


def _shape(run: Run, amounts: Mapping[str, int]) -> Shape:
    return tuple(amounts.get(resource, 0) for resource in run.resources)


class _Waiting:
    """Follows which pods wait.

    Args:
        shapes: what pods ask for.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._shapes = shapes
        self._counts = pl.DataFrame(schema={"shape": pl.UInt32, "pods": pl.Int64})
        self._present: set[Shape] = set()
        self._least: tuple[Shape, ...] = ()

    def needs(self, rows: pl.DataFrame, shape_of: pl.Series) -> list[tuple[int, tuple[Shape, ...]]]:
        """From when on which smallest pods wait; the first at the beginning, whatever its time says."""
        action = pl.col("action")
        more = action.is_in(["submit", "requeue"]).cast(pl.Int64) - action.is_in(["bind", "reject"]).cast(
            pl.Int64
        )
        moves = (
            rows.select("time", shape=shape_of.gather(rows["job"]), pods=pl.col("pods") * more)
            .filter(pl.col("pods") != 0)
            .group_by("time", "shape")
            .agg(pl.col("pods").sum())
        )
        before = self._counts.select(pl.lit(-1, pl.Int64).alias("time"), "shape", "pods")
        levels = (
            pl.concat([before, moves])
            .sort("shape", "time")
            .with_columns(pl.col("pods").cum_sum().over("shape"))
            .with_columns(waits=pl.col("pods") > 0)
        )
        self._counts = levels.group_by("shape", maintain_order=True).agg(pl.col("pods").last())
        turned = pl.col("waits") != pl.col("waits").shift(1, fill_value=False).over("shape")
        turns = levels.filter(turned & (pl.col("time") >= 0)).sort("time", "shape")
        found = [(-1, self._least)]
        for time, shape, waits in turns.select("time", "shape", "waits").iter_rows():
            self._turn(self._shapes[shape], waits=waits)
            if found[-1][0] == time:
                found.pop()
            found.append((time, self._least))
        return found

    def _turn(self, shape: Shape, *, waits: bool) -> None:
        """A pod of this shape begins to wait, or the last one ceases to."""
        if waits:
            self._present.add(shape)
            if not any(_fits(least, shape) for least in self._least):
                rest = (least for least in self._least if not _fits(shape, least))
                self._least = tuple(sorted((*rest, shape)))
            return
        self._present.discard(shape)
        if shape in self._least:
            least: list[Shape] = []
            for each in sorted(self._present):
                if not any(_fits(smaller, each) for smaller in least):
                    least.append(each)
            self._least = tuple(least)


def _fits(small: Shape, large: Shape) -> bool:
    return all(map(le, small, large))


class _Free:
    """Follows what is free on nodes.

    Args:
        nodes: their names, and what is free on each.
        each: for each job what a pod of it asks for.
        resources: how many there are.
    """

    def __init__(self, nodes: pl.DataFrame, each: pl.DataFrame, resources: int) -> None:
        self._places = range(resources)
        self._levels = [f"free{place}" for place in self._places]
        self._state, self._each = nodes, each
        self._bound: pl.DataFrame | None = None

    def add(
        self,
        rows: pl.DataFrame,
        needs: Sequence[tuple[int, tuple[Shape, ...]]],
        begin: int,
        end: int,
        unused: Mapping[Shape, int],
        sums: Sequence[int],
    ) -> list[int]:
        """Add what was of no use from `begin` to `end` to some sums, and go on to the end."""
        state = self._state.select(pl.lit(begin, pl.Int64).alias("time"), "node", *self._levels)
        moves = pl.concat([state, self._moves(rows).select(state.columns)]).sort("node", "time")
        levels = moves.with_columns(pl.col(self._levels).cum_sum().over("node"))
        self._state = levels.group_by("node", maintain_order=True).agg(pl.col(self._levels).last())
        ends = pl.col("time").shift(-1).over("node").fill_null(end)
        levels = levels.with_columns(end=ends).filter(pl.col("end") > pl.col("time"))
        spans: dict[tuple[Shape, ...], list[tuple[int, int]]] = {}
        times = [max(time, begin) for time, _ in needs[1:]]
        for (_, least), since, until in zip(needs, [begin, *times], [*times, end], strict=True):
            if least and until > since:
                spans.setdefault(least, []).append((since, until))
        found = list(sums)
        for least, of_least in spans.items():
            for place, amount in enumerate(self._useless(levels, least, of_least)):
                found[place] += amount
            whole = sum(until - since for since, until in of_least)
            for free, count in unused.items():
                if not any(_fits(pod, free) for pod in least):
                    for place in self._places:
                        found[place] += free[place] * count * whole
        return found

    def _useless(
        self, levels: pl.DataFrame, least: Sequence[Shape], spans: Sequence[tuple[int, int]]
    ) -> list[int]:
        """What is free on nodes where none of the smallest pods fits, during some spans of time."""
        too_small = pl.all_horizontal(
            pl.any_horizontal(pl.col(self._levels[place]) < pod[place] for place in self._places)
            for pod in least
        )
        some = levels.filter(too_small & pl.any_horizontal(pl.col(self._levels) > 0))
        starts = pl.Series([since for since, _ in spans], dtype=pl.Int64)
        lengths = pl.Series([until - since for since, until in spans], dtype=pl.Int64)
        before = lengths.cum_sum() - lengths

        def passed(times: pl.Series) -> pl.Series:
            """How much of the spans has passed."""
            place = starts.search_sorted(times, side="right").cast(pl.Int64) - 1
            inside = place.clip(0)
            within = pl.select(
                pl.min_horizontal(times - starts.gather(inside), lengths.gather(inside))
            ).to_series()
            return (before.gather(inside) + within).zip_with(
                place >= 0, pl.zeros(len(times), pl.Int64, eager=True)
            )

        span = passed(some["end"]) - passed(some["time"])
        row = some.select((pl.col(name).cast(pl.Int128) * span).sum() for name in self._levels).row(0)
        return [int(amount) for amount in row]

    def _moves(self, rows: pl.DataFrame) -> pl.DataFrame:
        """How far decisions move what is free on nodes."""
        node = pl.col("node").cast(self._state.schema["node"])
        binds = rows.filter(action="bind").select("time", node, *_KEY)
        bound = binds if self._bound is None else pl.concat([self._bound, binds])
        over = rows.filter(pl.col("action").is_in(["gone", "finish"])).select(*_KEY, end="time")
        bound = bound.join(over.drop_nulls(), on=_KEY, how="left", maintain_order="left")
        of_jobs = over.filter(pl.col("pod_number").is_null()).select("job", whole="end")
        if len(of_jobs):
            bound = bound.join(of_jobs, on="job", how="left", maintain_order="left")
            bound = bound.with_columns(end=pl.coalesce("end", "whole")).drop("whole")
        self._bound = bound.filter(pl.col("end").is_null()).drop("end")
        ends = bound.filter(pl.col("end").is_not_null()).select(pl.col("end").alias("time"), "node", *_KEY)
        moves = pl.concat([binds.with_columns(sign=-1), ends.with_columns(sign=1)])
        amounts = [
            (self._each.to_series(place).gather(moves["job"]) * moves["sign"]).alias(self._levels[place])
            for place in self._places
        ]
        return moves.select("time", "node").with_columns(amounts)
