"""Statistics of times of which some have not ended: Kaplan and Meier's estimate (JASA 53, 1958).

A time that has not ended is *censored*: it will be longer than it is so far. It counts among those that are
as long, and what becomes of it later is taken to be what becomes of the others that are longer.

Equal values end before they are censored. A quantile is the least value at which the part that is longer is
no more than the rest; it is null where so many never ended. The largest value is the quantile of all. The
mean is restricted: what is longer than the longest, ended or not, counts as that long.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from harness.metrics.exact import exact_sum

_SAME = 1 + 1e-12
"""How far apart parts may be that are the same but for rounding."""


def survival(times: pl.DataFrame, statistics: Sequence[str]) -> pl.DataFrame:
    """Statistics of times, for each value of a key.

    Args:
        times: a row a time, with the columns `key`; `known`, null where it has not ended; and `least`, what
            it comes to so far.
        statistics: `mean`, `max` or percentiles such as `p95`.

    Returns:
        `key` and a column for each of these, sorted by key.
    """
    value = pl.col("value")
    wanted = []
    for name in statistics:
        if name == "mean":
            mass = value * pl.col("weight") * pl.when(pl.col("left") == 0).then("both").otherwise("ended")
            wanted.append(mass.alias(name))
            continue
        percent = 100 if name == "max" else int(name[1:])
        reached = pl.col("longer") * 100 <= (100 - percent) * _SAME
        wanted.append(value.filter(reached).min().cast(pl.Float64).alias(name))
    found = _curve(times).group_by("key", maintain_order=True).agg(wanted)
    if "mean" in statistics:
        means = [exact_sum(parts) for parts in found["mean"]]
        found = found.with_columns(mean=pl.Series(means, dtype=pl.Float64))
    return found


def _curve(times: pl.DataFrame) -> pl.DataFrame:
    """The estimate for each key and value, ascending.

    Columns: `ended`, how many end there, of `both`, which are that long; `left`, how many are longer;
    `weight`, what each that is as long stands for, as a part of all; `longer`, the part that is longer.
    """
    known = pl.col("known")
    levels = (
        times.group_by("key", value=pl.coalesce("known", "least"))
        .agg(ended=known.count().cast(pl.Int64), both=pl.len().cast(pl.Int64))
        .sort("key", "value")
        .with_columns(whole=pl.col("both").sum().over("key"))
        .with_columns(left=pl.col("whole") - pl.col("both").cum_sum().over("key"))
        .with_columns(stay=pl.col("left") + pl.col("both") - pl.col("ended"))
    )
    # Those that are longer stand for those that are censored here, too.
    passed_on = pl.when((pl.col("stay") > pl.col("left")) & (pl.col("left") > 0))
    levels = levels.with_columns(
        more=passed_on.then(pl.col("stay") / pl.col("left")).otherwise(1.0).cum_prod().over("key")
    ).with_columns(weight=pl.col("more").shift(1).over("key").fill_null(1.0) / pl.col("whole"))
    return levels.with_columns(longer=pl.col("stay") * pl.col("weight"))
