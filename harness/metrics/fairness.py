"""Fairness over holders: how far shares are from ideal, what quotas were owed, how unequally jobs waited.

A holder's share is its dominant share: the largest part of any resource's capacity that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum

import polars as pl

from harness.metrics.daily import Daily
from harness.metrics.exact import exact_sum
from harness.metrics.inequality import jain
from harness.metrics.levels import Holder, Piece, holder_of_jobs, holders, pieces, unused_quotas
from harness.metrics.measurement import Measurement, Window, resource_hours
from harness.metrics.shares import Sharing, changes_at_once
from harness.metrics.waiting import job_times
from harness.runs.run import Run
from harness.units import INT64_MAX

_DEFICIT = "fairness.guarantee_deficit"
_ZERO = pl.Series([0.0])


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The fairness metrics over all holders, and what each of them was owed."""
    users = holders(run)
    shares, owed = _Shares(run, users, window), _Owed(run, users)
    for piece in pieces(run, window, changes=changes_at_once(users)):
        shares.add(piece)
        owed.add(piece)
    yield from shares.measurements()
    yield from owed.measurements(unused_quotas(run))
    yield from _slowdown(run, window)


class _Shares:
    """Adds up how far shares are from ideal."""

    def __init__(self, run: Run, users: Sequence[Holder], window: Window) -> None:
        self._daily = Daily(window)
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
        self._daily.add(found, piece)
        grid, share, ideal = found.grid, found.share, found.ideal
        compared = ideal > 0
        ratio = (share / ideal).zip_with(compared, _ZERO)
        sums = pl.DataFrame(
            {
                "span": piece.times.shift(-1, fill_value=piece.end) - piece.times,
                "off": grid.total((share - ideal).abs()),
                "ideal": grid.total(ideal),
                "holders": grid.total(compared.cast(pl.Float64)),
                "ratio": grid.total(ratio),
                "square": grid.total(ratio * ratio),
            }
        )
        self._off.append(fsum((sums["off"] / 2 * sums["span"]).to_list()))
        self._ideal.append(fsum((sums["ideal"] * sums["span"]).to_list()))
        several = sums.filter((pl.col("holders") >= 2) & (pl.col("square") > 0))
        index = several["ratio"] * several["ratio"] / (several["holders"] * several["square"])
        self._jain.append(fsum((index * several["span"]).to_list()))
        self._compared += int(several["span"].sum())

    def measurements(self) -> Iterator[Measurement]:
        """What has been added up."""
        ideal = fsum(self._ideal)
        deviation = fsum(self._off) / ideal if ideal else None
        yield Measurement("fairness.share_deviation", deviation, "ratio", "lower")
        index = fsum(self._jain) / self._compared if self._compared else None
        yield Measurement("fairness.jain_share", index, "ratio", "higher")
        yield from self._daily.measurements()


class _Owed:
    """Adds up the resource-time that quotas did not get although jobs asked for it and it was theirs."""

    def __init__(self, run: Run, users: Sequence[Holder]) -> None:
        self._resources = run.resources
        self._users = users
        self._nominal = [
            pl.Series([min(user.nominal.get(each, 0), INT64_MAX) if user.nominal else 0 for user in users])
            for each in run.resources
        ]
        self._sums = [[0] * len(users) for _ in run.resources]

    def add(self, piece: Piece) -> None:
        """Take a piece into account."""
        for number, (nominal, sums) in enumerate(zip(self._nominal, self._sums, strict=True)):
            due = pl.min_horizontal(nominal.gather(piece.rows["holder"]), pl.col(f"demand{number}"))
            short = (due - pl.col(f"allocated{number}")).cast(pl.Int128)
            owed = (
                piece.rows.select("holder", owed=short * pl.col("span"))
                .filter(pl.col("owed") > 0)
                .group_by("holder")
                .agg(pl.col("owed").sum())
            )
            for holder, amount in owed.iter_rows():
                sums[holder] += amount

    def measurements(self, unused: Sequence[Holder]) -> Iterator[Measurement]:
        """What has been added up: for all together, then for each holder; `unused` are owed nothing."""
        every = sorted([*self._users, *unused])
        for resource, sums in zip(self._resources, self._sums, strict=True):
            owed = {user.name: amount for user, amount in zip(self._users, sums, strict=True)}
            of_each = [
                owed.get(each.name, 0) if each.nominal and resource in each.nominal else None
                for each in every
            ]
            known = [amount for amount in of_each if amount is not None]
            yield resource_hours(_DEFICIT, sum(known) if known else None, resource)
            for each, amount in zip(every, of_each, strict=True):
                yield resource_hours(_DEFICIT, amount, resource, each.scope)


def _slowdown(run: Run, window: Window) -> Iterator[Measurement]:
    """How unequally jobs of holders are slowed down: over the holders' means of the bounded slowdown."""
    times = job_times(run, window, "job", "slowdown").drop_nulls()
    of_holders = times.group_by(holder_of_jobs(run).gather(times["job"]).alias("holder")).agg("slowdown")
    means = sorted(exact_sum(values) / len(values) for values in of_holders["slowdown"])
    yield Measurement("fairness.jain_slowdown", jain(means), "ratio", "higher")
    ratio = means[-1] / means[0] if means else None
    yield Measurement("fairness.max_min_slowdown", ratio, "factor", "lower")
