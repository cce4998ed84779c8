"""Turns the records of a Standard Workload Format log into jobs, by stated conventions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from harness import Reading
from harness_plugins.readers.numbers import microseconds

_CANCELLED = 5
_PARTS = (2.0, 3.0, 4.0)
_KIB = 1024
_LONGEST_NUMBER = 11


def jobs_of(
    records: pl.DataFrame, header: Mapping[str, str], name: str, options: Mapping[str, Any]
) -> Reading:
    """The jobs of a log.

    Args:
        records: one row a record, the 18 columns by name, -1 for unknown.
        header: the log's header.
        name: the log's file name.
        options: see `harness_plugins.readers`.
    """
    read = records.height
    records = records.with_columns(_processors(options).alias("processors"))
    records, left_out = _leave_out(records, options)
    start = _leading_number(header.get("UnixStartTime", ""))
    times = _Times(start)
    known_request = pl.col("requested_time") > 0
    cut = known_request & (pl.col("requested_time") < pl.col("run"))
    run = pl.col("run").clip(lower_bound=0)
    run = pl.when(cut).then(pl.col("requested_time")).otherwise(run) if options["cut_at_request"] else run
    began = pl.when(pl.col("wait") >= 0).then(microseconds(pl.col("submit")) + microseconds(pl.col("wait")))
    ended = pl.when(pl.col("run") >= 0).then(began + microseconds(pl.col("run")))
    asks_memory = options["memory"] == "requested" and (records["requested_memory"] > 0).any()
    frame = records.select(
        _number("job").alias("job_id"),
        times.column(microseconds(pl.col("submit"))).alias("submit_time"),
        microseconds(run).cast(pl.Duration("us")).alias("duration"),
        _named(str(options["tenant"])).fill_null("default").alias("queue"),
        (pl.col("processors").cast(pl.Int64) * 1000).alias("request.cpu"),
        *([_memory().alias("request.memory")] if asks_memory else []),
        _named("user").alias("user"),
        times.column(began).alias("recorded_start"),
        times.column(ended).alias("recorded_end"),
        _named("group").alias("group"),
        pl.col("status").cast(pl.Int64),
        pl.when(known_request)
        .then(microseconds(pl.col("requested_time")))
        .cast(pl.Duration("us"))
        .alias("requested_time"),
        *([] if options["tenant"] == "queue" else [_named("queue").alias("swf_queue")]),
        _named("partition").alias("partition"),
    )
    empty = [column.name for column in frame if column.null_count() == frame.height]
    notes = _notes(records, options, start, int(records.select(cut.sum()).item()), asks_memory=asks_memory)
    return Reading(frame.drop(empty), read, left_out, notes, _metadata(header, name))


class _Times:
    """Times since the log's start as timestamps, or as durations if the log does not say when that was."""

    def __init__(self, start: int | None) -> None:
        self._start = start

    def column(self, since_start: pl.Expr) -> pl.Expr:
        if self._start is None:
            return since_start.cast(pl.Duration("us"))
        return (since_start + self._start * 1_000_000).cast(pl.Datetime("us", "UTC"))


def _processors(options: Mapping[str, Any]) -> pl.Expr:
    """Processors of a job; 0 where neither number is known."""
    wanted, other = "requested", "allocated"
    if options["processors"] == "allocated":
        wanted, other = other, wanted
    return pl.when(pl.col(wanted) > 0).then(wanted).otherwise(pl.col(other).clip(lower_bound=0))


def _leave_out(records: pl.DataFrame, options: Mapping[str, Any]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The records that are jobs, and how many are not, each under the first reason that holds."""
    status = pl.col("status")
    reasons = {
        "part of a job that has a record of its own (status 2, 3 or 4)": status.is_in(_PARTS),
        "cancelled (status 5)": status == _CANCELLED if options["cancelled"] == "drop" else None,
        "submit time unknown": pl.col("submit") < 0,
        "run time unknown (-1)": pl.col("run") < 0 if options["unknown_run"] == "drop" else None,
        "ran for 0 seconds": pl.col("run") == 0 if options["zero_length"] == "drop" else None,
        "number of processors unknown": pl.col("processors") == 0,
    }
    left_out: dict[str, int] = {}
    for reason, without in reasons.items():
        if without is None:
            continue
        kept = records.filter(~without)
        if kept.height < records.height:
            left_out[reason] = records.height - kept.height
        records = kept
    return records, left_out


def _memory() -> pl.Expr:
    """Bytes that a job requests, so many KiB a processor, as int128; null where the log does not say."""
    total = pl.col("requested_memory").cast(pl.Int128) * pl.col("processors").cast(pl.Int64) * _KIB
    return pl.when(pl.col("requested_memory") > 0).then(total)


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64).cast(pl.String)


def _named(name: str) -> pl.Expr:
    """The number of a queue, user, ... as its name; null where it is unknown."""
    return pl.when(pl.col(name) >= 0).then(_number(name))


def _leading_number(text: str) -> int | None:
    """The number that a header's value begins with, as in `338 (batch partition; 512 total)`."""
    match = re.match(r"\d+", text)
    return int(match[0]) if match and len(match[0]) <= _LONGEST_NUMBER else None


def _notes(
    jobs: pl.DataFrame, options: Mapping[str, Any], start: int | None, overran: int, *, asks_memory: bool
) -> tuple[str, ...]:
    """What was assumed, each convention with the number of jobs that it concerns."""
    wanted, tenant = str(options["processors"]), str(options["tenant"])
    other = "allocated" if wanted == "requested" else "requested"

    def count(which: pl.Expr) -> int:
        return int(jobs.select(which.sum()).item())

    def where(number: int, text: str) -> str:
        return f"; {number:,} jobs {text}" if number else ""

    ends = "end at the requested time" if options["cut_at_request"] else "keep their recorded run time"
    unknown = count(pl.col("run") < 0)
    cancelled = count(pl.col("status") == _CANCELLED)
    silent = where(count(pl.col("requested_memory") <= 0), "do not say and ask for none")
    why_no_memory = "no job requests any" if options["memory"] == "requested" else "it is ignored"
    notes = (
        "a job is one pod that asks for all its processors",
        f"processors are those {wanted}"
        + where(count(pl.col(wanted) <= 0), f"do not say and have those {other}"),
        f"{overran:,} jobs ran longer than they requested and {ends}" if overran else "",
        f"{unknown:,} jobs without a run time run for 0 seconds" if unknown else "",
        f"{cancelled:,} jobs that were cancelled are replayed like any other" if cancelled else "",
        f"the queue is the log's {tenant}"
        + where(count(pl.col(tenant) < 0), "have none and are in queue 'default'"),
        f"memory is what was requested, in KiB a processor{silent}"
        if asks_memory
        else f"memory is not modelled: {why_no_memory}",
        "times are durations, because the header has no UnixStartTime"
        if start is None
        else f"times are UTC, counted from the header's UnixStartTime, {start}",
    )
    return tuple(note for note in notes if note)


def _metadata(header: Mapping[str, str], name: str) -> dict[str, str]:
    where = [header[key] for key in ("Installation", "Computer") if key in header]
    metadata = {"harness.source": ", ".join([*where, f"Standard Workload Format log {name}"])}
    if "Acknowledge" in header:
        metadata["harness.license"] = (
            "no formal licence; acknowledge the Parallel Workloads Archive (Dror Feitelson) and "
            f"{header['Acknowledge']}"
        )
    processors = _leading_number(header.get("MaxProcs", ""))
    if processors:
        metadata["harness.capacity.cpu"] = str(processors * 1000)
    return metadata
