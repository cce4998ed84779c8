"""What is held and asked for over time, piece by piece, so that memory does not follow the length of a run.

It is told apart by holders, see `harness.metrics.scopes`: the ClusterQueue or ElasticQuota that jobs count
against; the jobs of a queue that has none are a holder by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from harness.metrics.known import once
from harness.metrics.measurement import Window
from harness.metrics.scopes import QUEUE, QUOTA, Scope
from harness.runs.run import Run

USED = ("allocated", "demand")
"""What holders hold and ask for."""

_COLUMNS: Mapping[str, list[str]] = {
    "allocated": ["allocated"],
    "demand": ["allocated", "pending"],
    "held": ["held"],
}
"""The columns of the timeline that make up each kind of level."""


class Holder(NamedTuple):
    """What holds resources as one: a quota, or the jobs of a queue that has none.

    Attributes:
        name: the quota's, or the queue's as the timeline calls it.
        weight: its fair-sharing weight.
        nominal: resource -> the quota that is its own; None of a queue without one.
    """

    name: str
    weight: float = 1.0
    nominal: Mapping[str, int] | None = None

    @property
    def scope(self) -> str:
        """The scope of what is measured of it."""
        return Scope(QUEUE if self.nominal is None else QUOTA, self.name).text


class Piece(NamedTuple):
    """The levels of holders over some time.

    Attributes:
        times: instants, ascending; between two of them nothing changes.
        end: how long the levels at the last instant hold.
        rows: one row a level of a holder: `holder` (its number), `at` (the number of the instant at which it
            begins), `span` (how long it holds), and its levels, such as `allocated<n>` for the n-th resource;
            sorted by holder and instant. Every holder has a level at instant 0.
    """

    times: pl.Series
    end: int
    rows: pl.DataFrame


def holders(run: Run) -> list[Holder]:
    """Every holder that a run has jobs of, by name; its place is its number in `Piece.rows`."""
    return [_holder(run, name) for name in sorted(set(holder_behind(run).values()))]


def unused_quotas(run: Run) -> list[Holder]:
    """Every quota that no job counts against, by name."""
    used = set(holder_behind(run).values())
    return [_holder(run, name) for name in sorted(run.info["cluster"]["queues"]) if name not in used]


@once
def names_of_jobs(run: Run) -> pl.DataFrame:
    """For each job, in order of arrival, what it belongs to: enumerations, in the order of names.

    Columns: `queue`, which the job names; `quota`, which it counts against, or null; `holder`, that quota,
    else the queue.
    """
    quota_of, behind = run.info["cluster"]["quota_of"], holder_behind(run)
    names = pl.Enum(sorted(set(behind.values())))
    apart = pl.concat_str("namespace", "queue", separator="/")
    name = pl.when(pl.col("queue").is_in(list(behind))).then("queue").otherwise(apart)
    return pl.concat(
        batch.select(
            pl.col("queue").cast(queue_names(run)),
            quota=name.replace_strict(list(quota_of), list(quota_of.values()), return_dtype=names),
            holder=name.replace_strict(list(behind), list(behind.values()), return_dtype=names),
        )
        for batch in run.batches("jobs", ("namespace", "queue"))
    )


def holder_of_jobs(run: Run) -> pl.Series:
    """For each job, in order of arrival, the name of its holder: an enumeration, in the order of names."""
    return names_of_jobs(run)["holder"]


@once
def queue_names(run: Run) -> pl.Enum:
    """The queues that jobs name."""
    found = (batch["queue"].unique() for batch in run.batches("jobs", ("queue",)))
    return pl.Enum(pl.concat(found).unique().sort())


def pieces(run: Run, window: Window, *, changes: int, kinds: Sequence[str] = USED) -> Iterator[Piece]:
    """The levels of all holders from the beginning of a window to its end.

    Pieces depend on what is in the timeline, not on how the file is cut.

    Args:
        run: the run.
        window: what is measured; nothing happens before it.
        changes: how many a piece has, about.
        kinds: which levels, see `moves`.
    """
    state = pl.DataFrame({"holder": pl.int_range(len(holders(run)), dtype=pl.Int32, eager=True)})
    state = state.with_columns(pl.lit(0, pl.Int64).alias(name) for name in level_names(run, kinds))
    start = window.start
    waiting = pl.DataFrame(schema={"time": pl.Int64, **state.schema})
    for batch in moves(run, window, kinds):
        waiting = pl.concat([waiting, batch])
        while waiting.height > changes:
            # The instant of the last one may go on in what follows.
            last = waiting["time"][changes - 1]
            done = waiting.filter(pl.col("time") < last)
            if done.is_empty():
                changes *= 2
                continue
            waiting = waiting.slice(done.height)
            piece, state = _piece(state, done, start, last)
            yield piece
            start = last
    yield _piece(state, waiting, start, window.end)[0]


def _piece(state: pl.DataFrame, changes: pl.DataFrame, start: int, end: int) -> tuple[Piece, pl.DataFrame]:
    """A piece, and the levels at its end."""
    begin = state.select(pl.lit(start, pl.Int64).alias("time"), pl.all())
    rows = pl.concat([begin, changes]).with_columns(at=pl.col("time").rle_id())
    times = rows["time"].rle().struct.field("value")
    following = pl.col("holder").shift(-1) == pl.col("holder")
    rows = (
        rows.sort("holder", maintain_order=True)
        .with_columns(pl.col(state.columns[1:]).cum_sum().over("holder"))
        .filter((following & (pl.col("at").shift(-1) == pl.col("at"))).not_().fill_null(value=True))
        .with_columns(span=pl.when(following).then(pl.col("time").shift(-1)).otherwise(end) - pl.col("time"))
    )
    latest = rows.filter(following.not_().fill_null(value=True)).select(state.columns)
    return Piece(times, end, rows), latest


def moves(run: Run, window: Window, kinds: Sequence[str] = USED) -> Iterator[pl.DataFrame]:
    """How far holders' levels move, in order of time: `time, holder`, and `<kind><n>` for the n-th resource.

    One row a change of a queue of the trace; several of these may count against one quota. Kinds are
    `allocated`, `demand` (allocated and pending) and `held` (quota).
    """
    levels = level_names(run, kinds)
    read = ("time", "queue", *dict.fromkeys(column for kind in kinds for column in _COLUMNS[kind]))
    behind, width = holder_behind(run), len(run.resources)
    places = {holder.name: number for number, holder in enumerate(holders(run))}
    numbers = [places[name] for name in behind.values()]
    tenants, codes = list(behind), list(range(len(behind)))
    before = pl.DataFrame(schema={"tenant": pl.Int32, **dict.fromkeys(levels, pl.Int64)})
    left: pl.DataFrame | None = None
    for batch in run.batches("timeline", read):
        # Rows of one instant and tenant are together, one a resource.
        long = batch if left is None else pl.concat([left, batch])
        whole = long.height // width * width
        left, long = long.slice(whole), long.slice(0, whole)
        tenant = long["queue"].gather_every(width).replace_strict(tenants, codes, return_dtype=pl.Int32)
        now = {"tenant": tenant}
        for number in range(width):
            of_resource = long.gather_every(width, number)
            for kind in kinds:
                now[f"{kind}{number}"] = of_resource.select(pl.sum_horizontal(_COLUMNS[kind])).to_series()
        states = pl.concat([before, pl.DataFrame(now)])
        moved = states.with_columns(
            pl.col(name) - pl.col(name).shift(1, fill_value=0).over("tenant") for name in levels
        ).slice(before.height)
        before = states.group_by("tenant", maintain_order=True).last()
        holder = moved["tenant"].replace_strict(codes, numbers, return_dtype=pl.Int32)
        yield moved.select(long["time"].gather_every(width), holder.alias("holder"), *levels).filter(
            pl.col("time") < window.end
        )


def level_names(run: Run, kinds: Sequence[str] = USED) -> list[str]:
    """The columns that hold levels: of each resource, every kind."""
    return [f"{kind}{number}" for number in range(len(run.resources)) for kind in kinds]


def holder_behind(run: Run) -> Mapping[str, str]:
    """A queue of the timeline -> its holder: the quota that its jobs count against, else the queue itself."""
    quota_of: Mapping[str, str | None] = run.info["cluster"]["quota_of"]
    return {name: quota or name for name, quota in quota_of.items()}


def _holder(run: Run, name: str) -> Holder:
    quota = run.info["cluster"]["queues"].get(name)
    if quota is None:
        return Holder(name)
    return Holder(name, float(Fraction(quota["weight"])), quota["nominal"])
