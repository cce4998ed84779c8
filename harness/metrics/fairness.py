"""Fairness over queues: how far shares are from ideal, what queues were owed, how unequally they waited.

A queue's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

import polars as pl

from harness.metrics.ideal import Grid, Wants, ideal_shares
from harness.metrics.levels import Piece, Queue, pieces, queue_of_jobs, queues, unused_queues
from harness.metrics.measurement import Measurement, Window, resource_hours
from harness.metrics.waiting import job_times
from harness.run import Run
from harness.units import INT64_MAX

_CELLS = 1 << 20  # queues times instants that are looked at together
_LEAST = 1 << 9
_MOST = 1 << 17

_DEFICIT = "fairness.guarantee_deficit"
_ZERO = pl.Series([0.0])


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The fairness metrics over all queues, and what each queue was owed."""
    users = queues(run)
    shares, owed = _Shares(run, users), _Owed(run, users)
    changes = min(_MOST, max(_LEAST, _CELLS // max(1, len(users))))
    for piece in pieces(run, window, changes=changes):
        shares.add(piece)
        owed.add(piece)
    yield from shares.measurements()
    yield from owed.measurements(unused_queues(run))
    yield from _slowdown(run, window)


class _Shares:
    """Adds up how far shares are from ideal."""

    def __init__(self, run: Run, users: Sequence[Queue]) -> None:
        self._capacity = [
            (number, run.capacity[resource])
            for number, resource in enumerate(run.resources)
            if run.capacity.get(resource)
        ]
        self._weight = pl.Series([queue.weight for queue in users], dtype=pl.Float64)
        self._off: list[float] = []
        self._ideal: list[float] = []
        self._jain: list[float] = []
        self._compared = 0

    def add(self, piece: Piece) -> None:
        """Take a piece into account."""
        if not self._capacity:
            return
        rows = self._of_queues(piece.rows)
        if rows.is_empty():
            return
        grid = Grid(rows["queue"].n_unique(), len(piece.times))
        place = rows["queue"].rle_id().cast(pl.Int64) * grid.instants + rows["at"]
        first = pl.Series([0], dtype=pl.UInt32).new_from_index(0, grid.queues * grid.instants)
        cells = first.scatter(place, 1).cum_sum() - 1
        share, weight, demand, limit = (
            rows[name].gather(cells) for name in ("share", "weight", "demand", "limit")
        )
        rates = [rows[f"rate{number}"].gather(cells) for number, _ in self._capacity]
        ideal = ideal_shares(grid, Wants(weight, demand, limit, rates))
        compared = ideal > 0
        ratio = (share / ideal).zip_with(compared, _ZERO)
        sums = pl.DataFrame(
            {
                "span": piece.times.shift(-1, fill_value=piece.end) - piece.times,
                "off": grid.total((share - ideal).abs()),
                "ideal": grid.total(ideal),
                "queues": grid.total(compared.cast(pl.Float64)),
                "ratio": grid.total(ratio),
                "square": grid.total(ratio * ratio),
            }
        )
        self._off.append(fsum((sums["off"] / 2 * sums["span"]).to_list()))
        self._ideal.append(fsum((sums["ideal"] * sums["span"]).to_list()))
        several = sums.filter((pl.col("queues") >= 2) & (pl.col("square") > 0))
        jain = several["ratio"] * several["ratio"] / (several["queues"] * several["square"])
        self._jain.append(fsum((jain * several["span"]).to_list()))
        self._compared += int(several["span"].sum())

    def measurements(self) -> Iterator[Measurement]:
        """What has been added up."""
        ideal = fsum(self._ideal)
        deviation = fsum(self._off) / ideal if ideal else None
        yield Measurement("fairness.share_deviation", deviation, "ratio", "lower")
        jain = fsum(self._jain) / self._compared if self._compared else None
        yield Measurement("fairness.jain_share", jain, "ratio", "higher")

    def _of_queues(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What each level means as shares, without the queues that ask for nothing in this piece."""
        parts = [pl.col(f"demand{number}") / capacity for number, capacity in self._capacity]
        held = [pl.col(f"allocated{number}") / capacity for number, capacity in self._capacity]
        rows = rows.with_columns(
            top=pl.max_horizontal(parts),
            share=pl.max_horizontal(held),
            weight=self._weight.gather(rows["queue"]),
        )
        top, weight = pl.col("top"), pl.col("weight")
        asking = rows.filter(top > 0)["queue"].unique()
        rises = (top > 0) & (weight > 0)
        demand = pl.min_horizontal(top, pl.lit(1.0))
        wants = {"demand": demand, "limit": demand / weight}
        wants |= {
            f"rate{number}": weight * part / top
            for part, (number, _) in zip(parts, self._capacity, strict=True)
        }
        return rows.filter(pl.col("queue").is_in(asking.implode())).with_columns(
            pl.when(rises).then(want).otherwise(0.0).alias(name) for name, want in wants.items()
        )


class _Owed:
    """Adds up the resource-time that queues did not get although they asked and it was theirs."""

    def __init__(self, run: Run, users: Sequence[Queue]) -> None:
        self._resources = run.resources
        self._users = users
        self._nominal = [
            pl.Series([min(queue.nominal.get(each, 0), INT64_MAX) if queue.nominal else 0 for queue in users])
            for each in run.resources
        ]
        self._sums = [[0] * len(users) for _ in run.resources]

    def add(self, piece: Piece) -> None:
        """Take a piece into account."""
        for number, (nominal, sums) in enumerate(zip(self._nominal, self._sums, strict=True)):
            due = pl.min_horizontal(nominal.gather(piece.rows["queue"]), pl.col(f"demand{number}"))
            short = (due - pl.col(f"allocated{number}")).cast(pl.Int128)
            owed = (
                piece.rows.select("queue", owed=short * pl.col("span"))
                .filter(pl.col("owed") > 0)
                .group_by("queue")
                .agg(pl.col("owed").sum())
            )
            for queue, amount in owed.iter_rows():
                sums[queue] += amount

    def measurements(self, unused: Sequence[Queue]) -> Iterator[Measurement]:
        """What has been added up: for all queues together, then for each; `unused` are owed nothing."""
        none = [0] * len(unused)
        for resource, sums in zip(self._resources, self._sums, strict=True):
            owed: dict[str, int | None] = {
                queue.name: amount if queue.nominal and resource in queue.nominal else None
                for queue, amount in zip([*self._users, *unused], [*sums, *none], strict=True)
            }
            known = [amount for amount in owed.values() if amount is not None]
            yield resource_hours(_DEFICIT, sum(known) if known else None, resource)
            for name, amount in sorted(owed.items()):
                yield resource_hours(_DEFICIT, amount, resource, f"queue={name}")


def _slowdown(run: Run, window: Window) -> Iterator[Measurement]:
    """How unequally queues are slowed down: over their means of the bounded slowdown."""
    times = job_times(run, window).select("job", "slowdown").drop_nulls()
    of_queues = times.group_by(queue_of_jobs(run).gather(times["job"]).alias("queue")).agg("slowdown")
    means = sorted(fsum(values) / len(values) for values in of_queues["slowdown"].to_list())
    jain = fsum(means) ** 2 / (len(means) * fsum(mean * mean for mean in means)) if means else None
    yield Measurement("fairness.jain_slowdown", jain, "ratio", "higher")
    ratio = means[-1] / means[0] if means else None
    yield Measurement("fairness.max_min_slowdown", ratio, "factor", "lower")
