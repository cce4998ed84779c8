"""Reads the jobs of Alibaba's spot GPU trace of 2026, which are high-priority and spot jobs of organizations.

The reader multiplies a worker's request by the number of workers, as other users of the trace do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.readers.cells import amount, choice, seconds, text, whole
from harness.readers.delimited import open_table
from harness.readers.names import GPU, MODEL, affinity_to_models
from harness.readers.priorities import Band, priority_column, priority_note

METADATA = {
    "harness.source": "Alibaba cluster-trace-v2026-spot-gpu (github.com/alibaba/clusterdata), "
    "job_info_df.csv; Duan et al., GFS: A Preemptive Scheduling Framework for GPU Clusters, ASPLOS 2026"
}
BANDS = {"HP": Band("high-priority", 1000), "Spot": Band("spot", 0)}
"""The priority band of each job type. Spot jobs have the lower priority."""

_MOST_GPUS = 1_000
_MOST_WORKERS = 1_000_000
_FIELDS = (
    text("job_name"),
    text("organization"),
    text("gpu_model").or_empty(),
    amount("cpu_request", 1000),
    whole("gpu_request", most=_MOST_GPUS),
    whole("worker_num", 1, _MOST_WORKERS),
    seconds("submit_time"),
    seconds("duration"),
    choice("job_type", *BANDS),
)


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads the jobs. The workers of a job become a gang.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
    """
    jobs = open_table(path).typed(_FIELDS)
    affinity = affinity_to_models(pl.col("gpu_model")).alias("affinity")
    frame = jobs.select(
        pl.col("job_name").alias("job_id"),
        pl.col("submit_time").cast(pl.Duration("us")),
        pl.col("duration").cast(pl.Duration("us")),
        pl.col("organization").alias("queue"),
        pl.col("cpu_request").alias("request.cpu"),
        pl.col("gpu_request").alias(f"request.{GPU}"),
        pl.col("worker_num").cast(pl.Int32).alias("pods"),
        (pl.col("worker_num") > 1).alias("gang"),
        *priority_column(pl.col("job_type"), BANDS, options["priority"]),
        *([affinity] if options["gpu_model"] == "affinity" else []),
        "job_type",
        "gpu_model",
    )
    notes = (
        "a worker is a pod that requests cpu_request and gpu_request; the workers of a job are a gang",
        "the queue is the organization",
        f"gpu_model is a required node affinity to the label {MODEL}"
        if options["gpu_model"] == "affinity"
        else "gpu_model is not requested",
        priority_note("job_type", BANDS, options["priority"]),
        "the trace does not record when jobs started or whether they were preempted",
    )
    return Reading(frame, jobs.height, notes=notes, metadata=METADATA)
