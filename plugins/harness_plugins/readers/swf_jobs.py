"""Converts the records of a log in the Standard Workload Format to jobs, and notes the conventions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from harness import Reading
from harness.base.units import SECOND
from harness.readers.counts import agreeing, counted
from harness.readers.schema import leave_out
from harness_plugins.readers.swf_layout import layout_of, recorded_hosts

_CANCELLED = 5
_PARTS = (2, 3, 4)
_LONGEST_NUMBER = 11


def jobs_of(
    records: pl.DataFrame, header: Mapping[str, str], name: str, options: Mapping[str, Any]
) -> Reading:
    """Returns the jobs of a log.

    `records` has one row for each record, with named columns and times in microseconds. Negative values are
    unknown. The keys of `header` are in lower case.
    """
    read = records.height
    records = records.with_columns(_processors(options).alias("processors"))
    records, left_out = _leave_out(records, options)
    layout = layout_of(records, options)
    unix = "node_spec" in records.columns and "unixstarttime" not in header
    times = _Times(0 if unix else _leading_number(header.get("unixstarttime", "")))
    known_request = pl.col("requested_time") > 0
    cut = known_request & (pl.col("requested_time") < pl.col("run"))
    run = pl.col("run").clip(lower_bound=0)
    run = pl.when(cut).then(pl.col("requested_time")).otherwise(run) if options["cut_at_request"] else run
    began = pl.when(pl.col("wait") >= 0).then(pl.col("submit") + pl.col("wait"))
    ended = pl.when(pl.col("run") >= 0).then(began + pl.col("run"))
    tenant = _tenant(records, options)
    jobs = records.select(
        _number("job").alias("job_id"),
        times.column(pl.col("submit")).alias("submit_time"),
        run.cast(pl.Duration("us")).alias("duration"),
        tenant.fill_null("default").alias("queue"),
        _named("user").alias("user"),
        times.column(began).alias("recorded_start"),
        times.column(ended).alias("recorded_end"),
        _named("group").alias("group"),
        pl.col("status").cast(pl.Int64),
        pl.when(known_request).then("requested_time").cast(pl.Duration("us")).alias("requested_time"),
        *([] if options["tenant"] == "queue" else [_queue(records).alias("swf_queue")]),
        _named("partition").alias("partition"),
        *recorded_hosts(records),
    )
    frame = jobs[layout.job].hstack(layout.columns)
    processors, unsure = _machine(header, options, records)
    empty = [column.name for column in frame if column.null_count() == frame.height]
    notes = (
        *layout.notes,
        *_notes(records, options, int(records.select(cut.sum()).item())),
        times.note(unix=unix),
        *unsure,
    )
    metadata = {**_metadata(header, name, processors), **layout.metadata}
    return Reading(frame.drop(empty), read, left_out, notes, metadata)


class _Times:
    """Converts times to timestamps, or to durations if the log does not have its start time."""

    def __init__(self, start: int | None) -> None:
        self._start = start

    def column(self, since_start: pl.Expr) -> pl.Expr:
        if self._start is None:
            return since_start.cast(pl.Duration("us"))
        return (since_start + self._start * SECOND).cast(pl.Datetime("us", "UTC"))

    def note(self, *, unix: bool) -> str:
        if self._start is None:
            return "times are durations, because the header has no UnixStartTime"
        if unix:
            return "times are UTC, because the extended log counts them from 1970"
        return f"times are UTC, relative to the header's UnixStartTime, {self._start}"


def _processors(options: Mapping[str, Any]) -> pl.Expr:
    """Returns the requested or allocated processors of a job, as the options prefer, or 0 if unknown."""
    wanted, other = "requested", "allocated"
    if options["processors"] == "allocated":
        wanted, other = other, wanted
    return pl.when(pl.col(wanted) > 0).then(wanted).otherwise(pl.col(other).clip(lower_bound=0))


def _leave_out(records: pl.DataFrame, options: Mapping[str, Any]) -> tuple[pl.DataFrame, dict[str, int]]:
    status = pl.col("status")
    part = status.is_in(_PARTS)
    whole = (~part).any().over("job")
    drops_unknown = options["unknown_run"] == "drop"
    reasons = {
        "only a part of a job, which has another record (status 2, 3 or 4)": part & whole,
        "only a part of a job, which has no other record (status 2, 3 or 4)": part & ~whole,
        "cancelled (status 5)": status == _CANCELLED if options["cancelled"] == "drop" else None,
        "submit time unknown": pl.col("submit") < 0,
        "run time unknown (-1)": pl.col("run") == -SECOND if drops_unknown else None,
        "run time negative: the job never ended": pl.col("run") < -SECOND if drops_unknown else None,
        "ran for 0 seconds": pl.col("run") == 0 if options["zero_length"] == "drop" else None,
        "number of processors unknown": pl.col("processors") == 0,
    }
    return leave_out(records, reasons)


def _queue(records: pl.DataFrame) -> pl.Expr:
    return pl.col("queue_name") if "queue_name" in records.columns else _named("queue")


def _tenant(records: pl.DataFrame, options: Mapping[str, Any]) -> pl.Expr:
    return _queue(records) if options["tenant"] == "queue" else _named(str(options["tenant"]))


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64).cast(pl.String)


def _named(name: str) -> pl.Expr:
    return pl.when(pl.col(name) >= 0).then(_number(name))


def _leading_number(text: str) -> int | None:
    """Returns the number at the beginning of a header value, such as `1,338 (batch partition; 512 total)`.

    The result is None if the number is only part of a term, such as `16+16` or `16x4`.
    """
    match = re.match(r"(\d{1,3}(,\d{3})+|\d+)(?=[\s(;]|,\s|$)", text)
    digits = match[1].replace(",", "") if match else ""
    return int(digits) if 0 < len(digits) <= _LONGEST_NUMBER else None


def _notes(jobs: pl.DataFrame, options: Mapping[str, Any], overran: int) -> tuple[str, ...]:
    wanted, tenant = str(options["processors"]), str(options["tenant"])
    other = "allocated" if wanted == "requested" else "requested"

    def count(which: pl.Expr) -> int:
        return int(jobs.select(which.sum()).item())

    def where(number: int, text: str) -> str:
        does, _, rest = text.partition(" ")
        return f"; {agreeing(number, 'job', does)} {rest}" if number else ""

    ends = "end at the requested time" if options["cut_at_request"] else "keep their recorded run time"
    unknown = count(pl.col("run") < 0)
    cancelled = count(pl.col("status") == _CANCELLED)
    never_waited = jobs.height > 1 and count(pl.col("wait") > 0) == 0
    nameless = count(_tenant(jobs, options).is_null())
    after = count(pl.col("preceding") > 0)
    notes = (
        f"a job has the {wanted} number of processors"
        + where(count(pl.col(wanted) <= 0), f"lack this number, so the {other} number is used"),
        f"{counted(overran, 'job')} ran longer than they requested and {ends}" if overran else "",
        f"{agreeing(unknown, 'job', 'have')} no run time: they run for 0 seconds" if unknown else "",
        f"{agreeing(cancelled, 'job', 'were')} cancelled: they are replayed like other jobs"
        if cancelled
        else "",
        "no job of the log waited: its submit times may be start times" if never_waited else "",
        f"{agreeing(after, 'job', 'follow')} another job (column 17), but all arrive at their submit time"
        if after
        else "",
        f"the queue is the log's {tenant}" + where(nameless, "have no {tenant}, so their queue is 'default'"),
    )
    return tuple(note for note in notes if note)


def _machine(
    header: Mapping[str, str], options: Mapping[str, Any], jobs: pl.DataFrame
) -> tuple[int, tuple[str, ...]]:
    """Returns the machine's number of processors, or 0 if it is unknown, and a note if the header misleads.

    If the header has only the number of nodes, a node has one processor, unless an option says otherwise.
    """
    processors = _leading_number(header.get("maxprocs", ""))
    if processors:
        return processors, ()
    nodes, per_node = _leading_number(header.get("maxnodes", "")) or 0, options["processors_per_node"]
    largest = int(jobs["processors"].max() or 0)  # type: ignore[arg-type]
    if nodes and not per_node and largest > nodes:
        why = (
            f"the header gives {counted(nodes, 'node')} but no MaxProcs, and a job has {largest:,} processors"
        )
        option = "machines=FILE" if "node_spec" in jobs.columns else "processors_per_node=N"
        return 0, (f"the size of the machine is unknown: {why}; convert the log with --set {option}",)
    return nodes * (per_node or 1), ()


def _metadata(header: Mapping[str, str], name: str, processors: int) -> dict[str, str]:
    where = [header[key] for key in ("installation", "computer") if key in header]
    metadata = {"harness.source": ", ".join([*where, f"Standard Workload Format log {name}"])}
    if "acknowledge" in header:
        metadata["harness.license"] = (
            "no formal licence; acknowledge the Parallel Workloads Archive (Dror Feitelson) and "
            f"{header['acknowledge']}"
        )
    if processors:
        metadata["harness.capacity.cpu"] = str(processors * 1000)
    return metadata
