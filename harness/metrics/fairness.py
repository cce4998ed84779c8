"""Fairness over queues: how far shares are from ideal, what queues were owed, how unequally they waited.

A queue's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

import polars as pl

from harness.metrics.exact import exact_sum
from harness.metrics.levels import Piece, Queue, pieces, queue_of_jobs, queues, unused_queues
from harness.metrics.measurement import Measurement, Window, resource_hours
from harness.metrics.shares import Sharing, changes_at_once
from harness.metrics.waiting import job_times
from harness.runs.run import Run
from harness.units import INT64_MAX

_DEFICIT = "fairness.guarantee_deficit"
_ZERO = pl.Series([0.0])


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The fairness metrics over all queues, and what each queue was owed."""
    users = queues(run)
    shares, owed = _Shares(run, users), _Owed(run, users)
    for piece in pieces(run, window, changes=changes_at_once(users)):
        shares.add(piece)
        owed.add(piece)
    yield from shares.measurements()
    yield from owed.measurements(unused_queues(run))
    yield from _slowdown(run, window)


class _Shares:
    """Adds up how far shares are from ideal."""

    def __init__(self, run: Run, users: Sequence[Queue]) -> None:
        self._sharing = Sharing(run, users)
        self._off: list[float] = []
        self._ideal: list[float] = []
        self._jain: list[float] = []
        self._compared = 0

    def add(self, piece: Piece) -> None:
        """Take a piece into account."""
        found = self._sharing.of(piece)
        if found is None:
            return
        grid, share, ideal = found.grid, found.share, found.ideal
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
    times = job_times(run, window, "job", "slowdown").drop_nulls()
    of_queues = times.group_by(queue_of_jobs(run).gather(times["job"]).alias("queue")).agg("slowdown")
    means = sorted(exact_sum(values) / len(values) for values in of_queues["slowdown"])
    jain = fsum(means) ** 2 / (len(means) * fsum(mean * mean for mean in means)) if means else None
    yield Measurement("fairness.jain_slowdown", jain, "ratio", "higher")
    ratio = means[-1] / means[0] if means else None
    yield Measurement("fairness.max_min_slowdown", ratio, "factor", "lower")
