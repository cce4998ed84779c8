"""The timeline of a replay, which shows what each queue holds and what is pending after every change.

The timeline is derived from the decisions, one chunk at a time. Each decision moves quantities between
pending and allocated. All moves at the same time are added up, and running totals are carried over from chunk
to chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from harness.base.arrays import Bools, Floats, Groups, Ints, as_series, firsts
from harness.base.tables.parquet import ShortTable, TableWriter
from harness.runs.recording.actions import ASKED, BOUND

_LEVELS = ("allocated", "pending", "held")


class Change(NamedTuple):
    """How the decision in each row changes three quantities of the timeline.

    Attributes:
        quota: 1 if the pods of the row get quota, -1 if they release it, otherwise 0.
        alive: 1 if the job arrives, -1 if it ends, otherwise 0.
        holding: 1 if the job begins to hold resources, -1 if it stops holding them, otherwise 0.
    """

    quota: Ints
    alive: Ints
    holding: Ints


class _Moves(NamedTuple):
    """Changes of levels, and the shares that policies report.

    `levels` maps the name of a level to its changes. `told` says which rows report a share. In other rows,
    the dominant and weighted shares have no meaning.
    """

    time: Ints
    queue: Ints
    levels: Mapping[str, Ints]
    told: Bools
    dominant: Floats
    weighted: Ints

    def some(self, rows: Ints | Bools | slice) -> _Moves:
        levels = {name: level[rows] for name, level in self.levels.items()}
        times, queues, told = self.time[rows], self.queue[rows], self.told[rows]
        return _Moves(times, queues, levels, told, self.dominant[rows], self.weighted[rows])

    def then(self, later: _Moves) -> _Moves:
        levels = {name: np.concatenate((level, later.levels[name])) for name, level in self.levels.items()}
        return _Moves(
            np.concatenate((self.time, later.time)),
            np.concatenate((self.queue, later.queue)),
            levels,
            np.concatenate((self.told, later.told)),
            np.concatenate((self.dominant, later.dominant)),
            np.concatenate((self.weighted, later.weighted)),
        )

    def added_up(self) -> _Moves:
        """Returns one row for each time and queue, in order, with the last share that was reported for it."""
        order = np.lexsort((self.queue, self.time))
        rows = self.some(order)
        begins = np.flatnonzero(firsts(rows.time) | firsts(rows.queue))
        if not len(begins):
            return rows
        levels = {name: np.add.reduceat(level, begins) for name, level in rows.levels.items()}
        last = np.maximum.reduceat(np.where(rows.told, np.arange(len(order)), -1), begins)
        shares = rows.told[last], rows.dominant[last], rows.weighted[last]
        told, dominant, weighted = (np.where(last >= 0, each, 0) for each in shares)
        return _Moves(
            rows.time[begins], rows.queue[begins], levels, told.astype(np.bool_), dominant, weighted
        )


class Timeline:
    """Converts decisions to the points at which the timeline changes.

    Queues and resources are sorted by name. `capacity` is the capacity of the whole cluster. With `on_nodes`,
    pods hold resources from the time when they are bound, rather than from the start of their job.
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
        self._on_nodes = on_nodes
        columns = ["alive", "holding"]
        columns += [f"{kind}{at}" for at in range(len(self._resources)) for kind in _LEVELS]
        # The levels of each queue after all moves so far.
        self._levels = {name: np.zeros(len(queues), np.int64) for name in columns}
        self._told = np.zeros(len(queues), np.bool_)
        self._dominant, self._weighted = np.zeros(len(queues)), np.zeros(len(queues), np.int64)
        self._held_back: _Moves | None = None

    def feed(
        self,
        time: Ints,
        action: Ints,
        queue: Ints,
        change: Change,
        amounts: Mapping[str, Ints],
        dropped: Mapping[str, Ints],
        unused: Mapping[str, Ints],
        shares: Sequence[tuple[int, int, float, int]] = (),
    ) -> None:
        """Process a chunk of decisions in order.

        Times are in microseconds since the origin. `action` and `queue` have codes. `amounts` has the
        quantities that the pods of each row hold. `dropped` has the quantities that a partial admission no
        longer requests, and `unused` has the quota that was released unused; both may be empty. `shares` has
        the new shares of queues in chronological order, each with its time, the code of the queue, the
        dominant resource share and the weighted share.
        """
        # Without nodes, a job holds all of its resources or none, so its begin and end determine the
        # quantities.
        grows = BOUND[action] if self._on_nodes else change.holding
        waits = ASKED[action] - grows.clip(0)
        levels = {"alive": change.alive, "holding": change.holding}
        for at, resource in enumerate(self._resources):
            amount = amounts[resource]
            levels[f"allocated{at}"] = amount * grows
            pending, held = amount * waits, amount * change.quota
            levels[f"pending{at}"] = pending - dropped[resource] if dropped else pending
            levels[f"held{at}"] = held - unused[resource] if unused else held
        nothing = np.zeros(len(time), np.int64)
        moves = _Moves(time, queue, levels, nothing.astype(np.bool_), nothing.astype(np.float64), nothing)
        if shares:
            moves = moves.then(self._only_told(shares))
        if self._held_back is not None:
            moves = self._held_back.then(moves)
        moves = moves.added_up()
        # The next chunk may contain further decisions at the last time of this chunk.
        last = int(moves.time.searchsorted(moves.time[-1]))
        self._held_back = moves.some(slice(last, None))
        if last:
            self._write(moves.some(slice(last)))

    def close(self) -> ShortTable | None:
        """Writes the remaining rows, finishes the table, and returns the whole table if it is short."""
        if self._held_back is not None:
            self._write(self._held_back)
        return self._writer.close()

    def abandon(self) -> None:
        """Stop writing and leave the table incomplete."""
        self._writer.abandon()

    def _only_told(self, shares: Sequence[tuple[int, int, float, int]]) -> _Moves:
        times, queues, dominant, weighted = zip(*shares, strict=True)
        whole = [np.array(each, np.int64) for each in (times, queues, weighted)]
        nothing = dict.fromkeys(self._levels, np.zeros(len(shares), np.int64))
        told = np.ones(len(shares), np.bool_)
        return _Moves(whole[0], whole[1], nothing, told, np.array(dominant, np.float64), whole[2])

    def _write(self, moves: _Moves) -> None:
        changed = moves.told.copy()
        for level in moves.levels.values():
            changed |= level != 0
        moves = moves.some(changed)
        rows, width = len(moves.time), len(self._resources)
        groups = Groups(moves.queue)
        last = groups.last
        held = groups.keys[last]
        states = {}
        for name, level in moves.levels.items():
            total = self._levels[name]
            now = groups.running(level[groups.order]) + total[groups.keys]
            states[name] = groups.back(now)
            total[held] = now[last]
        told = self._shares(moves, groups)
        of_capacity = [
            states[f"allocated{at}"] / self._capacity[resource]
            for at, resource in enumerate(self._resources)
            if self._capacity.get(resource)
        ]
        # Rows with the same time and queue are adjacent, so the resources are interleaved.
        each = np.repeat(np.arange(rows), width)
        share = as_series(np.maximum.reduce(of_capacity)[each]) if of_capacity else _nulls(rows * width)
        texts = pl.select(
            queue=pl.lit(self._queues).gather(as_series(moves.queue[each])),
            resource=pl.lit(pl.Series(self._resources)).gather(as_series(np.tile(np.arange(width), rows))),
        )
        levels = {
            kind: np.stack([states[f"{kind}{at}"] for at in range(width)], axis=1).ravel() for kind in _LEVELS
        }
        self._writer.write(
            {
                "time": as_series(moves.time[each]),
                **texts.to_dict(),
                **{kind: as_series(level) for kind, level in levels.items()},
                "running_jobs": as_series(states["holding"][each]),
                "pending_jobs": as_series((states["alive"] - states["holding"])[each]),
                "share": share,
                **{name: _known(values[each], told[0][each]) for name, values in told[1].items()},
            }
        )

    def _shares(self, moves: _Moves, groups: Groups) -> tuple[Bools, Mapping[str, Floats | Ints]]:
        number = np.where(moves.told[groups.order], np.arange(len(moves.time)), -1)
        latest = np.maximum.accumulate(number)
        # A share that was reported for another queue does not apply to this queue.
        new = latest >= groups.begins[groups.first.cumsum() - 1]
        last = groups.last
        held = groups.keys[last]
        known = new | self._told[groups.keys]
        found: dict[str, Floats | Ints] = {}
        for name, said, before in (
            ("dominant_share", moves.dominant, self._dominant),
            ("weighted_share", moves.weighted, self._weighted),
        ):
            now = np.where(new, said[groups.order][latest], before[groups.keys])
            before[held] = now[last]
            found[name] = groups.back(now)
        self._told[held] = known[last]
        return groups.back(known), found


def _nulls(rows: int) -> pl.Series:
    return pl.Series([None], dtype=pl.Float64).new_from_index(0, rows)


def _known(values: Floats | Ints, known: Bools) -> pl.Series:
    if not known.any():
        return _nulls(len(values))
    column = as_series(values)
    return column if known.all() else column.set(as_series(known.view(np.int8)) == 0, None)
