"""Reads the extract of Microsoft's Philly trace that scheduler simulators use: a CSV of five columns.

The extract has neither job ids nor users, priorities or statuses, and its rows are in no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv

from harness import Reading
from harness.errors import Fault, OptionError, TraceError
from harness_plugins.readers.numbers import SECONDS, is_seconds, microseconds
from harness_plugins.readers.signs import PHILLY_COLUMNS
from harness_plugins.readers.source import contents, lines_of, refuse_lines, shown

METADATA = {
    "harness.source": "Microsoft Philly (github.com/msr-fiddle/philly-traces), extract of jobs "
    "timestamp,duration,num_gpus,gpu_time,cluster",
    "harness.license": "CC-BY-4.0; Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN "
    "Training Workloads, USENIX ATC 2019",
}

_TIME = "%Y-%m-%d %H:%M:%S"
_MOST_GPUS = 1_000_000
_ROUNDING = 0.5  # seconds by which gpu_time may differ from duration x num_gpus


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read the extract; a job of more GPUs than a node has becomes a gang of equal pods.

    Raises:
        TraceError: malformed lines, all of them named.
        OptionError: a node without GPUs.
    """
    per_node = options["gpus_per_node"]
    if per_node < 1:
        raise OptionError(f"option gpus_per_node: {per_node} must be at least 1")
    rows = _rows(path, contents(path)).sort("time", maintain_order=True)
    sizes = rows["gpus"].unique().sort().to_list()
    per_pod = {size: _per_pod(size, per_node) for size in sizes}
    gpus = pl.col("gpus").replace_strict(per_pod, return_dtype=pl.Int64)
    frame = rows.select(
        pl.int_range(1, pl.len() + 1).cast(pl.String).alias("job_id"),
        pl.col("time").alias("submit_time"),
        microseconds(pl.col("seconds")).cast(pl.Duration("us")).alias("duration"),
        pl.col("cluster").alias("queue"),
        gpus.alias("request.nvidia.com/gpu"),
        (pl.col("gpus") // gpus).cast(pl.Int32).alias("pods"),
        (pl.col("gpus") > gpus).alias("gang"),
    )
    gangs = int(frame["gang"].sum())
    notes = (
        "a job's id is its row number after a stable sort by submit time",
        "the queue is the virtual cluster; the time zone of submit times is not stated",
        f"a job of more than {per_node} GPUs ({gangs:,} jobs) is a gang of equal pods of at most {per_node}",
        "GPUs of each pod of a gang are the largest such divisor; any other job is one pod",
        "CPU, memory, users, priorities and what was waited for are not in the extract",
    )
    return Reading(frame, frame.height, notes=notes, metadata=METADATA)


def _per_pod(gpus: int, per_node: int) -> int:
    """GPUs of each pod: all that fit one node, else the largest divisor that does."""
    if gpus <= per_node:
        return gpus
    return max(size for size in range(1, per_node + 1) if gpus % size == 0)


def _rows(path: Path, data: bytes) -> pl.DataFrame:
    """The extract's rows in typed columns `time, seconds, gpus, cluster`."""
    head, _, body = (part.strip() for part in data.lstrip().partition(b"\n"))
    if head != ",".join(PHILLY_COLUMNS).encode():
        found = f"the columns are {shown(head)}, those of the extract are {','.join(PHILLY_COLUMNS)}"
        raise TraceError(str(path), [Fault("line 1", found)])
    if not body:
        raise TraceError(str(path), [Fault("", "holds no jobs")])
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            read_options=pyarrow.csv.ReadOptions(column_names=PHILLY_COLUMNS),
            parse_options=pyarrow.csv.ParseOptions(quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(PHILLY_COLUMNS, pa.string()), null_values=[]
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise refuse_lines(path, _jobs(data), _wrong, f"cannot be read: {reason}") from error
    texts = pl.from_arrow(table)
    assert isinstance(texts, pl.DataFrame)
    number = {name: pl.col(name).cast(pl.Float64, strict=False) for name in PHILLY_COLUMNS[1:4]}
    rows = texts.select(
        pl.col("timestamp").str.to_datetime(_TIME, time_unit="us", strict=False).alias("time"),
        number["duration"].alias("seconds"),
        number["num_gpus"].alias("gpus"),
        number["gpu_time"].alias("gpu_seconds"),
        pl.col("cluster").str.strip_chars(),
    )
    good = rows.select(
        pl.col("time").is_not_null().all()
        & (is_seconds(pl.col("seconds")) & (pl.col("seconds") >= 0)).fill_null(value=False).all()
        & _is_size(pl.col("gpus")).fill_null(value=False).all()
        & _agrees().fill_null(value=False).all()
        & (pl.col("cluster") != "").all()
    )
    if not good.item():
        raise refuse_lines(path, _jobs(data), _wrong, "has values that cannot be read")
    return rows.with_columns(pl.col("gpus").cast(pl.Int64))


def _is_size(gpus: pl.Expr) -> pl.Expr:
    return gpus.is_between(1, _MOST_GPUS) & (gpus == gpus.floor())


def _agrees() -> pl.Expr:
    """The extract states GPU time as well: a row in which it differs was damaged."""
    return (pl.col("gpu_seconds") - pl.col("seconds") * pl.col("gpus")).abs() <= _ROUNDING


def _jobs(data: bytes) -> Iterator[tuple[int, bytes]]:
    return islice(lines_of(data), 1, None)


def _wrong(line: bytes) -> list[str]:
    """What is wrong with one line."""
    words = [word.strip() for word in line.split(b",")]
    if len(words) != len(PHILLY_COLUMNS):
        return [f"has {len(words)} columns instead of {len(PHILLY_COLUMNS)}"]
    time, duration, gpus, gpu_time, cluster = words
    found: list[str] = []
    try:
        datetime.strptime(time.decode(), _TIME)  # the extract states no zone
    except ValueError:
        found.append(f"timestamp: {shown(time)} is not a time such as 2017-10-09 07:01:55")
    numbers = [_number(word) for word in (duration, gpus, gpu_time)]
    seconds, count, together = numbers
    for name, word, number in zip(PHILLY_COLUMNS[1:4], words[1:4], numbers, strict=True):
        if number is None:
            found.append(f"{name}: {shown(word)} is not a number")
    if seconds is not None and not 0 <= seconds <= SECONDS:
        found.append(f"duration: {shown(duration)} is out of range")
    if count is not None and not (1 <= count <= _MOST_GPUS and count.is_integer()):
        found.append(f"num_gpus: {shown(gpus)} is not a number of GPUs")
    if not found and abs(together - seconds * count) > _ROUNDING:  # type: ignore[operator]
        found.append(f"gpu_time: {shown(gpu_time)} is not duration x num_gpus")
    if not cluster:
        found.append("cluster: is empty")
    return found


def _number(word: bytes) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None
