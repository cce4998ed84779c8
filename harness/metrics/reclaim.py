"""Reclaim latency: how long quotas wait for what is theirs, from when they ask for it until they have it.

An interval begins with the arrival or decision after which a quota asks for more than it holds, and holds
less than is its own, of any resource; it ends with the one after which that is so of none. What happens at
one instant counts in its order, so that what is served at once is an interval, too: most are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from harness.metrics.arrivals import request_columns
from harness.metrics.levels import Holder, holder_of_jobs, holders, unused_quotas
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import ALL
from harness.metrics.survival import survival
from harness.runs.run import Run
from harness.units import INT64_MAX, SECOND

_PERCENTS = (50, 95)
_ALL = -2
"""What stands for all holders where each has a number."""
_NOTHING_GIVEN_UP = pl.DataFrame(schema={"seq": pl.Int64, "less": pl.Int64})
_PODS_MOVE = {"submit": 1, "requeue": 1, "gone": -1, "finish": -1, "reject": -1}
"""How actions move the number of pods that a job has."""

_NONE = pl.DataFrame(schema={"holder": pl.Int32, "known": pl.Int64, "least": pl.Int64})


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The latencies of all quotas together and of each; null where nobody asked for anything of a quota."""
    users = holders(run)
    known = bool(request_columns(run)) and any(user.nominal for user in users)
    found = _intervals(run, window, users) if known else _NONE
    every = sorted([*users, *unused_quotas(run)])
    numbers = [users.index(each) if each in users else -1 for each in every]
    for scope, figures in zip(
        [ALL, *(each.scope for each in every)], _latencies(found, numbers), strict=True
    ):
        for percent, value in zip(_PERCENTS, figures, strict=True):
            seconds = None if value is None else value / SECOND
            yield Measurement(f"reclaim_latency.p{percent}", seconds, "s", "lower", scope)


def _latencies(intervals: pl.DataFrame, users: Sequence[int]) -> Iterator[Sequence[float | None]]:
    """Percentiles of all intervals, then of those of each of some holders, linear where all have ended."""
    waiting = intervals.filter(pl.col("known").is_null())["holder"].unique()
    if len(waiting):
        some = intervals.filter(pl.col("holder").is_in(waiting.implode()))
        keyed = pl.concat([intervals.with_columns(holder=pl.lit(_ALL, pl.Int32)), some])
        found = survival(keyed.rename({"holder": "key"}), [f"p{each}" for each in _PERCENTS])
        known = {key: figures for key, *figures in found.iter_rows()}
    else:
        known = {_ALL: _percentiles(intervals["known"])}
    ended = intervals.filter(~pl.col("holder").is_in(waiting.implode())).select("holder", "known")
    for (number,), rows in ended.partition_by("holder", as_dict=True).items():
        known[number] = _percentiles(rows["known"])
    nothing = [None for _ in _PERCENTS]
    for number in (_ALL, *users):
        yield known.get(number, nothing)


def _percentiles(values: pl.Series) -> list[float | None]:
    return [values.quantile(each / 100, interpolation="linear") for each in _PERCENTS]


def _intervals(run: Run, window: Window, users: Sequence[Holder]) -> pl.DataFrame:
    """One row an interval: `holder`, its number; `known`, how long it was; `least`, so far if it goes on."""
    turns = pl.concat(_turns(run, window, users))
    return (
        turns.with_columns(end=pl.col("time").shift(-1).over("holder"))
        .filter("owed")
        .select(
            "holder",
            known=pl.col("end") - pl.col("time"),
            least=pl.lit(window.end, pl.Int64) - pl.col("time"),
        )
    )


def _turns(run: Run, window: Window, users: Sequence[Holder]) -> Iterator[pl.DataFrame]:
    """When holders begin or cease to be `owed` anything: `holder, time, owed`, in order, piece by piece."""
    places = range(len(run.resources))
    nominal = [
        pl.Series([min((user.nominal or {}).get(each, 0), INT64_MAX) for user in users])
        for each in run.resources
    ]
    levels = [f"{kind}{place}" for place in places for kind in ("held", "asked")]
    state = pl.DataFrame({"holder": pl.int_range(len(users), dtype=pl.Int32, eager=True)})
    state = state.with_columns(pl.lit(0, pl.Int64).alias(name) for name in ("time", *levels))
    for moves in _moves(run, window, users):
        rows = pl.concat([state, moves.select(state.columns)]).with_columns(
            pl.col(levels).cum_sum().over("holder")
        )
        owed = [
            pl.min_horizontal(pl.lit(own.gather(rows["holder"])), f"asked{place}") > pl.col(f"held{place}")
            for place, own in zip(places, nominal, strict=True)
        ]
        turns = rows.select("holder", "time", owed=pl.any_horizontal(owed))
        turned = pl.col("owed") != pl.col("owed").shift(1).over("holder")
        yield turns.filter(turned.fill_null(value=False))
        state = rows.group_by("holder", maintain_order=True).last().select(state.columns)


def _moves(run: Run, window: Window, users: Sequence[Holder]) -> Iterator[pl.DataFrame]:
    """How far each decision moves what its job's holder holds and asks for: `holder, time`, and levels."""
    columns = request_columns(run)
    jobs = run.columns("jobs", "pods", *columns)
    codes = pl.int_range(len(users), dtype=pl.Int32, eager=True)
    holder = holder_of_jobs(run).replace_strict([user.name for user in users], codes, return_dtype=pl.Int32)
    less = _NOTHING_GIVEN_UP
    action = pl.col("action")
    ends = action.is_in(["gone", "finish"]).cast(pl.Int64)
    grows = pl.col("holding").cast(pl.Int64)
    if run.info["cluster"]["nodes"]:
        grows = (action == "bind").cast(pl.Int64) - ends
    comes = action.is_in(["submit", "requeue"]).cast(pl.Int64) - (action == "reject").cast(pl.Int64)
    for batch in run.batches("decisions", ("seq", "time", "action", "job", "pods", "holding")):
        if less.is_empty() and _some_pods_are_given_up(batch, jobs["pods"]):
            less = _given_up(run, jobs["pods"])
        # What is held is asked for too: that moves where it comes, and where what was held goes.
        rows = batch.filter(pl.col("time") <= window.end).select(
            "seq", "time", "job", "pods", held=grows, asked=comes + grows.clip(upper_bound=0)
        )
        moves = (pl.col("held") != 0) | (pl.col("asked") != 0)
        if len(less):
            rows = rows.join(less, on="seq", how="left", maintain_order="left")
            moves = moves | pl.col("less").is_not_null()
        rows = rows.filter(moves)
        whole = jobs["pods"].gather(rows["job"])
        moved = {"holder": holder.gather(rows["job"]), "time": rows["time"]}
        for place, column in enumerate(columns):
            total = jobs[column].gather(rows["job"])
            # Divided first: a total fits 64 bits, its product with a number of pods may not.
            some = pl.when(rows["pods"] == whole).then(total).otherwise(total // whole * rows["pods"])
            amounts = rows.select(some.alias("amount")).to_series()
            moved[f"held{place}"] = amounts * rows["held"]
            moved[f"asked{place}"] = amounts * rows["asked"]
            if len(less):
                moved[f"asked{place}"] -= total // whole * rows["less"].fill_null(0)
        yield pl.DataFrame(moved)


def _some_pods_are_given_up(decisions: pl.DataFrame, pods: pl.Series) -> bool:
    """Whether a job is admitted with fewer pods than it has; some of these may have ended before, though."""
    admissions = decisions.filter(action="admit").select("job", "pods")
    return bool((admissions["pods"] < pods.gather(admissions["job"])).any())


def _given_up(run: Run, pods: pl.Series) -> pl.DataFrame:
    """What partial admissions no longer ask for: `seq` of the admission, and how many pods `less`."""
    decisions = run.scan("decisions")
    admissions = decisions.filter((pl.col("action") == "admit") & pl.col("pod_number").is_null())
    found = admissions.select("seq", "job", "pods").collect()
    short = found.filter(found["pods"] < pods.gather(found["job"]))["job"].unique()
    waiting: dict[int, int] = {}
    rows = []
    some = decisions.filter(pl.col("job").is_in(short.implode())).select("seq", "job", "action", "pods")
    for seq, job, action, count in some.collect().iter_rows():
        before = waiting.get(job, 0)
        if action == "admit" and count < before:
            rows.append((seq, before - count))
            waiting[job] = count
        elif action in _PODS_MOVE:
            waiting[job] = before + _PODS_MOVE[action] * count
    return pl.DataFrame(rows, schema=_NOTHING_GIVEN_UP.schema, orient="row")
