"""The timeline of a replay: what each queue holds and waits for, after every instant at which that changed.

It is derived from the decisions, a chunk at a time: each decision moves amounts between waiting and
allocated, the moves of one instant are added up, and running totals are carried from chunk to chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from harness.engine.events import ACTIONS, BIND, FINISH, GONE, REJECT, REQUEUE, SUBMIT
from harness.recording import schemas
from harness.recording.parquet import TableWriter

_LEVELS = ("allocated", "pending", "held")
_SHARES = {name: schemas.TIMELINE[name] for name in ("dominant_share", "weighted_share")}


class Change(NamedTuple):
    """What changes with each row, each of it -1, 0 or 1.

    Attributes:
        quota: 1 where the row's pods hold quota from now on, -1 where they give it back.
        alive: 1 where the job arrives, -1 where it is over.
        holding: 1 where the job begins to hold resources, -1 where it stops.
    """

    quota: pl.Series
    alive: pl.Series
    holding: pl.Series


class Timeline:
    """Turns decisions into change points.

    Args:
        writer: gets the rows.
        queues: the queues by code, sorted by name.
        resources: what jobs ask for, sorted by name.
        capacity: resource -> amount of the whole cluster.
        on_nodes: whether pods hold resources when they are bound (else when their job starts).
    """

    def __init__(
        self,
        writer: TableWriter,
        queues: pl.Series,
        resources: Sequence[str],
        capacity: Mapping[str, int],
        *,
        on_nodes: bool,
    ) -> None:
        self._writer = writer
        self._queues = queues
        self._resources = tuple(resources)
        self._capacity = capacity
        # How far a row's amounts move what is allocated, and what is waited for. Without nodes a job holds
        # resources as a whole, so that whether it begins or stops to do so says it.
        self._on_nodes = on_nodes
        self._allocated = _by_action({BIND: 1, GONE: -1, FINISH: -1})
        self._asked = _by_action({SUBMIT: 1, REQUEUE: 1, REJECT: -1})
        self._columns = ["alive", "holding"]
        self._columns += [f"{kind}{at}" for at in range(len(self._resources)) for kind in _LEVELS]
        schema: dict[str, pl.DataType] = {"time": pl.Int64(), "queue": pl.Int32()}
        schema |= {**dict.fromkeys(self._columns, pl.Int64()), **_SHARES}
        self._totals = pl.DataFrame(schema=schema)
        self._held_back: pl.DataFrame | None = None

    def feed(
        self,
        time: pl.Series,
        action: pl.Series,
        queue: pl.Series,
        change: Change,
        amounts: Mapping[str, pl.Series],
        dropped: Mapping[str, pl.Series],
        unused: Mapping[str, pl.Series],
        shares: Sequence[tuple[int, int, float, int]] = (),
    ) -> None:
        """Take a chunk of decisions, in order.

        Args:
            time: microseconds since the origin.
            action: code of the action.
            queue: code of the job's queue.
            change: what changes with each row for its job and its pods.
            amounts: resource -> what the row's pods hold.
            dropped: resource -> what a partial admission no longer asks for; empty when there was none.
            unused: resource -> quota given back that was never used; empty when there was none.
            shares: time, code of the queue, dominant and weighted share from then on, in order.
        """
        grows = self._allocated.gather(action) if self._on_nodes else change.holding
        waits = self._asked.gather(action) - grows.clip(0)
        columns = {"time": time, "queue": queue}
        columns |= {"alive": change.alive.cast(pl.Int64), "holding": change.holding.cast(pl.Int64)}
        for at, resource in enumerate(self._resources):
            columns[f"allocated{at}"] = amounts[resource] * grows
            pending = amounts[resource] * waits
            columns[f"pending{at}"] = pending - dropped[resource] if dropped else pending
            held = amounts[resource] * change.quota
            columns[f"held{at}"] = held - unused[resource] if unused else held
        moves = pl.DataFrame(columns).group_by("time", "queue").agg(pl.col(self._columns).sum())
        told = pl.DataFrame(shares, schema={"time": pl.Int64, "queue": pl.Int32, **_SHARES}, orient="row")
        parts = [moves, told] if self._held_back is None else [self._held_back, moves, told]
        moves = pl.concat(parts, how="diagonal")
        if len(parts) > 2 or shares:
            moves = moves.group_by("time", "queue").agg(
                pl.col(self._columns).sum(), pl.col(list(_SHARES)).drop_nulls().last()
            )
        # The next chunk may go on at the last instant of this one.
        last = moves["time"].max()
        self._held_back = moves.filter(pl.col("time") == last)
        self._write(moves.filter(pl.col("time") != last))

    def close(self) -> None:
        """Write what was held back and finish the file."""
        if self._held_back is not None:
            self._write(self._held_back)
        self.abandon()

    def abandon(self) -> None:
        """Finish the file as it is."""
        self._writer.close()

    def _write(self, moves: pl.DataFrame) -> None:
        if moves.is_empty():
            return
        changed = pl.any_horizontal(pl.col(self._columns) != 0, pl.col(list(_SHARES)).is_not_null())
        moves = moves.filter(changed).sort("queue", "time").select(self._totals.columns)
        states = pl.concat([self._totals, moves]).with_columns(
            pl.col(self._columns).cum_sum().over("queue"), pl.col(list(_SHARES)).forward_fill().over("queue")
        )
        self._totals = states.group_by("queue", maintain_order=True).last().select(self._totals.columns)
        states = states.slice(states.height - moves.height).sort("time", "queue")
        rows = states.height
        shares = [
            pl.col(f"allocated{at}") / self._capacity[resource]
            for at, resource in enumerate(self._resources)
            if self._capacity.get(resource)
        ]
        share = states.select(pl.max_horizontal(shares) if shares else pl.lit(None, pl.Float64)).to_series()
        if len(share) != rows:
            share = share.new_from_index(0, rows)
        # Rows of one instant and queue stay together: interleave the resources.
        long = pl.concat(
            [
                pl.DataFrame(
                    {
                        "at": pl.int_range(at, rows * len(self._resources), len(self._resources), eager=True),
                        "time": states["time"],
                        "queue": self._queues.gather(states["queue"]),
                        "resource": pl.Series([resource]).new_from_index(0, rows),
                        "allocated": states[f"allocated{at}"],
                        "pending": states[f"pending{at}"],
                        "held": states[f"held{at}"],
                        "running_jobs": states["holding"],
                        "pending_jobs": states["alive"] - states["holding"],
                        "share": share,
                        **{name: states[name] for name in _SHARES},
                    }
                )
                for at, resource in enumerate(self._resources)
            ]
        )
        if len(self._resources) > 1:
            long = long.sort("at")
        self._writer.write({name: long[name] for name in long.columns if name != "at"})


def _by_action(moves: Mapping[int, int]) -> pl.Series:
    """For each action, by its code, how far it moves a level."""
    return pl.Series([moves.get(action, 0) for action in range(len(ACTIONS))], dtype=pl.Int8)
