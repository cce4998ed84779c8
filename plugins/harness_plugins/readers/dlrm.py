"""Reads Alibaba's trace of disaggregated DLRM inference (2025), which has instances of long-running services.

An instance that existed before the trace has no creation time. An instance that outlived the trace has no
deletion time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import OptionError
from harness.readers.cells import amount, seconds, text, whole
from harness.readers.counts import counted
from harness.readers.delimited import open_table
from harness.readers.names import GPU
from harness.readers.schema import leave_out

METADATA = {
    "harness.source": "Alibaba cluster-trace-gpu-v2025 (github.com/alibaba/clusterdata), "
    "disaggregated_DLRM_trace.csv; Prism, NSDI 2025"
}
_GIB = 2**30
_RESOURCES = {
    "cpu": ("cpu", 1000),
    "memory": ("memory", _GIB),
    "gpu": (GPU, 1),
    "disk": ("ephemeral-storage", _GIB),
    "rdma": ("alibabacloud.com/rdma-percent", 1),
}
"""The name of each resource in the schema, and the number of schema units in one unit of the trace."""
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_MODELLED = ("cpu", "memory", "gpu")


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads the trace. Every instance becomes a job.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
        OptionError: the priority is not a 32-bit integer.
    """
    priority = options["priority"]
    if not -(2**31) <= priority < 2**31:
        raise OptionError(f"option priority: {priority} is not a 32-bit integer")
    fields = [text("instance_sn"), text("role"), text("app_name"), whole("max_instance_per_node", -1)]
    for name, (_, scale) in _RESOURCES.items():
        fields += [amount(f"{name}_request", scale), amount(f"{name}_limit", scale)]
    fields += [seconds(name).or_empty() for name in _TIMES]
    rows = open_table(path).typed(fields)
    end = int(rows.select(pl.max_horizontal(pl.max(*_TIMES)).fill_null(0)).item())
    outlived = pl.col("deletion_time").is_null()
    never = pl.col("creation_time").is_not_null() & pl.col("scheduled_time").is_null()
    reasons = {
        "created, but never scheduled": never,
        "deleted before it was scheduled": pl.col("deletion_time") < pl.col("scheduled_time"),
        "outlived the trace (no deletion_time)": outlived if options["outlived"] == "drop" else None,
    }
    kept, left_out = leave_out(rows, reasons)
    created, started = pl.col("creation_time").fill_null(0), pl.col("scheduled_time").fill_null(0)
    stopped = pl.col("deletion_time").fill_null(end)
    modelled = _RESOURCES if options["disk_and_rdma"] == "request" else _MODELLED
    frame = kept.select(
        pl.col("instance_sn").alias("job_id"),
        created.cast(pl.Duration("us")).alias("submit_time"),
        (stopped - started).cast(pl.Duration("us")).alias("duration"),
        pl.col("app_name" if options["tenant"] == "app" else "role").alias("queue"),
        *(
            pl.col(f"{name}_{kind}").alias(f"{kind}.{_RESOURCES[name][0]}")
            for kind in ("request", "limit")
            for name in modelled
        ),
        pl.lit(priority, pl.Int32).alias("priority"),
        pl.col("scheduled_time").cast(pl.Duration("us")).alias("recorded_start"),
        pl.col("deletion_time").cast(pl.Duration("us")).alias("recorded_end"),
        "role",
        pl.col("app_name").alias("app"),
        "max_instance_per_node",
    )
    before = int(kept["creation_time"].is_null().sum())
    after = int(kept["deletion_time"].is_null().sum())
    notes = (
        "every instance of a service is a job of one pod",
        f"{counted(before, 'instance')} existed before the trace: they arrive at time 0",
        *((f"{counted(after, 'instance')} outlived the trace: they end with it",) if after else ()),
        "an instance runs from scheduled_time to deletion_time",
        "the limit max_instance_per_node is kept as a column, but not modelled",
        "disk and RDMA are requested as ephemeral-storage and alibabacloud.com/rdma-percent"
        if options["disk_and_rdma"] == "request"
        else "disk and RDMA are not modelled",
    )
    return Reading(frame, rows.height, left_out, notes, METADATA)
