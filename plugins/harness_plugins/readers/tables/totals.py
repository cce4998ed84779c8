"""Divides amounts of whole jobs among pods: equal pods if possible, else several kinds with the exact sum."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from harness.readers.schema import REQUEST
from harness_plugins.readers.tables.mapping import TOTAL
from harness_plugins.readers.tables.values import ROW

_CORE = 1000
_FIRST = "main"
_BEGIN, _END, _NUMBER, _ALL = "\0begin", "\0end", "\0number", "\0all"


def with_pods(trace: pl.DataFrame, totals: Sequence[str]) -> pl.DataFrame:
    """Returns a trace in which `total.RESOURCE` has become `request.RESOURCE` of a pod.

    A total is spread as evenly as whole units allow (in cores, if the total is a number of whole cores). The
    first pods have one unit more. A job with different pods has a row for each kind. Its pods are a gang
    unless the trace says otherwise.

    Args:
        trace: one row for each job.
        totals: the columns that are totals; a missing amount counts as 0.
    """
    if not totals:
        return trace
    pods = pl.col("pods").fill_null(1).cast(pl.Int64) if "pods" in trace.columns else pl.lit(1, pl.Int64)
    trace = trace.with_columns(pods.alias(_ALL))
    more, base, unit = {}, {}, {}
    for name in totals:
        total = pl.col(name).fill_null(0)
        one = (
            pl.when(total % _CORE == 0).then(_CORE).otherwise(1)
            if name == f"{TOTAL}cpu"
            else pl.lit(1, pl.Int64)
        )
        unit[name] = one
        base[name] = total // (pl.col(_ALL) * one) * one
        more[name] = (total - base[name] * pl.col(_ALL)) // one
    edges = pl.concat_list(pl.lit(0, pl.Int64), pl.col(_ALL), *more.values()).list.unique().list.sort()
    trace = trace.with_columns(
        edges.alias(_BEGIN),
        *(base[name].alias(f"\0base {name}") for name in totals),
        *(more[name].alias(f"\0more {name}") for name in totals),
        *(unit[name].cast(pl.Int64).alias(f"\0unit {name}") for name in totals),
    )
    trace = trace.with_columns(
        pl.col(_BEGIN).list.slice(0, pl.col(_BEGIN).list.len() - 1),
        pl.col(_BEGIN).list.slice(1).alias(_END),
    )
    trace = trace.with_columns(pl.int_ranges(1, pl.col(_BEGIN).list.len() + 1).alias(_NUMBER))
    several = bool((trace[_BEGIN].list.len() > 1).any())
    trace = trace.explode(_BEGIN, _END, _NUMBER)
    columns = {
        f"{REQUEST}{name.removeprefix(TOTAL)}": pl.col(f"\0base {name}")
        + pl.when(pl.col(_BEGIN) < pl.col(f"\0more {name}")).then(pl.col(f"\0unit {name}")).otherwise(0)
        for name in totals
    }
    trace = trace.with_columns(**columns, pods=pl.col(_END) - pl.col(_BEGIN))
    if several:
        number = pl.col(_NUMBER).cast(pl.String)
        called = pl.when(pl.col(_NUMBER) == 1).then(pl.lit(_FIRST)).otherwise(pl.lit(f"{_FIRST}-") + number)
        trace = trace.with_columns(pod_set=called)
        if "gang" not in trace.columns:
            trace = trace.with_columns(gang=pl.col(_ALL) > 1)
    return trace.drop([each for each in trace.columns if each.startswith("\0") and each != ROW], *totals)
