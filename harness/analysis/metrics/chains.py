"""Finds related preemptions: cascades, quotas that preempt each other, and loops without progress.

The *holder* of a job is its quota, or its queue if it has no quota.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from harness.runs.run import Run


class HitsBack(NamedTuple):
    """The numbers of preemptions whose victim, or the victim's holder, had recently been a preemptor.

    A holder is a quota, or a queue without a quota.

    Attributes:
        thrash: the number of preemptions between two holders in which the victim's holder had recently
            preempted a job of the preemptor's holder.
        rework: the number of preemptions within one holder in which the victim itself had recently preempted
            a job of that holder.
    """

    thrash: int
    rework: int


class Cascades(NamedTuple):
    """The chains of preemptions. Each list has one value for each preemption, in order.

    Attributes:
        depth: 0 if the preemptor hadn't recently been preempted itself; otherwise 1 more than the depth of
            that earlier preemption.
        before: the index of the last preemption that hit the preemptor, or None if none was recent enough.
    """

    depth: list[int]
    before: list[int | None]


def cascades(preemptions: pl.DataFrame, within: int) -> Cascades:
    """Finds, for each preemption, the latest earlier preemption that hit the preemptor.

    Preemptions are in order, and `within` is the longest time between the two preemptions, in microseconds.
    """
    latest: dict[int, tuple[int, int]] = {}  # Maps each job to the time and number of its last preemption.
    depths: list[int] = []
    befores: list[int | None] = []
    columns = (preemptions[name].to_list() for name in ("time", "job", "by"))
    for number, (time, job, by) in enumerate(zip(*columns, strict=True)):
        last = latest.get(by)
        if last is not None and time - last[0] <= within:
            depths.append(depths[last[1]] + 1)
            befores.append(last[1])
        else:
            depths.append(0)
            befores.append(None)
        latest[job] = time, number
    return Cascades(depths, befores)


def hits_back(preemptions: pl.DataFrame, within: int) -> HitsBack:
    """Counts the preemptions whose victim, or the victim's holder, had recently been a preemptor.

    See `HitsBack` for the exact definitions. Preemptions are in order, and `within` is the longest time
    between the two preemptions, in microseconds.
    """
    # The key is the pair of victim and beneficiary or, if they are the same holder, the preempting job.
    latest: dict[tuple[str, str] | int, int] = {}
    thrash = rework = 0
    now, of_instant = -1, set[tuple[str, str] | int]()
    columns = (preemptions[name].to_list() for name in ("time", "job", "by", "victim", "beneficiary"))
    for time, job, by, victim, beneficiary in zip(*columns, strict=True):
        if time != now:
            latest.update(dict.fromkeys(of_instant, now))
            now, of_instant = time, set()
        if beneficiary is None:
            continue  # The beneficiary is unknown.
        alike = victim == beneficiary
        before = latest.get(job if alike else (beneficiary, victim))
        if before is not None and time - before <= within:
            thrash += not alike
            rework += alike
        of_instant.add(by if alike else (victim, beneficiary))
    return HitsBack(thrash, rework)


def loops(run: Run, preemptions: pl.DataFrame) -> pl.DataFrame:
    """Returns the preemptions that repeat an earlier preemption without any progress in between.

    In both preemptions, the victim lost its resources to a job of the same holder. In between, neither the
    victim nor the first preemptor progressed, but the victim was admitted again or one of its evicted pods
    was bound again. A gang whose pods are evicted one after another therefore does not count as a loop.

    The columns are those of `preemptions`, and `since`, which is the time of the earlier preemption.
    """
    if preemptions.is_empty():
        return preemptions.with_columns(since="time")
    pairs = (
        preemptions.with_columns(
            since=pl.col("time").shift().over("job"),
            for_whom=pl.col("by").shift().over("job"),
            for_holder=pl.col("beneficiary").shift().over("job"),
            seq_before=pl.col("seq").shift().over("job"),
        )
        .filter(pl.col("for_holder") == pl.col("beneficiary"))
        .pipe(_with_readmission, run)
        .drop("for_holder", "seq_before")
        .with_row_index("pair")
    )
    if pairs.is_empty():
        return pairs.drop("pair", "for_whom")
    sides = pl.concat([pairs["job"], pairs["for_whom"]]).unique()
    progress = (
        run.micros("stints")
        .filter((pl.col("state") == "progress") & pl.col("job").is_in(sides.implode()))
        .select("job", "start", "end")
        .collect()
        .sort("start")
        .with_columns(pl.col("end").cum_max().over("job"))
    )
    for side in ("job", "for_whom"):
        # For each pair, find the span that ended last among those that began before the second preemption.
        pairs = (
            pairs.sort("time")
            .join_asof(
                progress.rename({"job": side, "end": "progressed"}),
                left_on="time",
                right_on="start",
                by=side,
                allow_exact_matches=False,
                check_sortedness=False,
            )
            .filter((pl.col("progressed") <= pl.col("since")).fill_null(value=True))
            .drop("start", "progressed")
        )
    return pairs.sort("pair").drop("pair", "for_whom")


def _with_readmission(pairs: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Keeps the pairs whose victim was admitted or bound again between the two preemptions."""
    if pairs.is_empty():
        return pairs
    bound_again = (pl.col("action") == "bind") & (pl.col("successor") > 0)
    again = (
        run.micros("decisions")
        .filter((pl.col("action") == "admit") | bound_again)
        .filter(pl.col("job").is_in(pairs["job"].unique().implode()))
        .select("job", "seq", again="seq")
        .collect()
    )
    return (
        pairs.sort("seq")
        .join_asof(again, on="seq", by="job", check_sortedness=False)
        .filter(pl.col("again") > pl.col("seq_before"))
        .drop("again")
    )


def held_in_loops(run: Run, pairs: pl.DataFrame) -> list[int]:
    """Returns the resource-time that victims of `loops` held between the two preemptions, by resource."""
    amounts = [f"request.{resource}" for resource in run.resources]
    if pairs.is_empty():
        return [0] * len(amounts)
    stints = (
        run.micros("stints")
        .filter(pl.col("job").is_in(pairs["job"].unique().implode()))
        .select("job", "start", "end", pl.col(amounts).cast(pl.Int128))
        .collect()
    )
    begins = stints.select("job", pl.col("start").alias("at"), *amounts)
    ends = stints.select("job", pl.col("end").alias("at"), pl.col(amounts) * -1)
    levels = (
        pl.concat([begins, ends])
        .group_by("job", "at")
        .agg(pl.col(amounts).sum())
        .sort("job", "at")
        .with_columns(
            pl.col(amounts).cum_sum().over("job"), span=pl.col("at").shift(-1).over("job") - pl.col("at")
        )
    )
    until = {
        f"{amount} until": (pl.col(amount) * pl.col("span")).cum_sum().shift(fill_value=0).over("job")
        for amount in amounts
    }
    levels = levels.with_columns(**until).sort("at")
    times = pl.concat(
        [
            pairs.select("job", pl.col("since").alias("time"), sign=pl.lit(-1, pl.Int128)),
            pairs.select("job", "time", sign=pl.lit(1, pl.Int128)),
        ]
    ).sort("time")
    known = times.join_asof(levels, left_on="time", right_on="at", by="job", check_sortedness=False)
    rest = pl.col("time") - pl.col("at")
    held = known.select(
        (pl.col("sign") * (pl.col(f"{amount} until") + pl.col(amount) * rest)).sum().alias(amount)
        for amount in amounts
    )
    return [int(value) for value in held.row(0)]
