"""Reads the extract of Microsoft's Philly trace that scheduler simulators use, a CSV file with five columns.

The extract has no job ids, users, priorities or statuses, and its rows are in no particular order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.readers.cells import moment, seconds, text, whole
from harness.readers.delimited import Check, open_table
from harness.readers.gangs import gpu_columns, gpu_notes

LICENSE = (
    "CC-BY-4.0; Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads, "
    "USENIX ATC 2019"
)
METADATA = {
    "harness.source": "Microsoft Philly (github.com/msr-fiddle/philly-traces), extract of jobs "
    "timestamp,duration,num_gpus,gpu_time,cluster",
    "harness.license": LICENSE,
}

_MOST_GPUS = 1_000_000
_ROUNDING = 500_000  # microseconds by which gpu_time may differ from duration x num_gpus

_FIELDS = (
    moment("timestamp", "%Y-%m-%d %H:%M:%S"),
    seconds("duration"),
    whole("num_gpus", 1, _MOST_GPUS),
    seconds("gpu_time"),
    text("cluster"),
)
_GPU_SECONDS = pl.col("duration").cast(pl.Int128) * pl.col("num_gpus")
_CHECK = Check(
    "gpu_time",
    (pl.col("gpu_time") - _GPU_SECONDS).abs() > _ROUNDING,
    "is not duration x num_gpus: the row was damaged",
)


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads the extract. If a job has more GPUs than a node, it becomes a gang of equal pods.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
        OptionError: the number of GPUs on a node is less than 1.
    """
    per_node = options["gpus_per_node"]
    rows = open_table(path).typed(_FIELDS, checks=[_CHECK]).sort("timestamp", maintain_order=True)
    frame = rows.select(
        pl.int_range(1, pl.len() + 1).cast(pl.String).alias("job_id"),
        pl.col("timestamp").alias("submit_time"),
        pl.col("duration").cast(pl.Duration("us")),
        pl.col("cluster").alias("queue"),
        *gpu_columns(rows["num_gpus"], per_node),
    )
    notes = (
        "a job's id is its row number after a stable sort by submit time",
        "the queue is the virtual cluster; the time zone of submit times is not stated",
        *gpu_notes(per_node, frame["gang"]),
        "CPU, memory, users, priorities and the reasons for waiting are not in the extract",
    )
    return Reading(frame, frame.height, notes=notes, metadata=METADATA)
