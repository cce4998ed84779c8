"""Reads the job mixes of Chronus, which contain jobs with deadlines and best-effort jobs.

The authors of Chronus sampled the jobs from Philly and added the models, deadlines and classes. Every
virtual cluster has about the same number of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import OptionError
from harness.base.units import format_duration
from harness.readers.cells import choice, seconds, text, whole
from harness.readers.counts import agreeing
from harness.readers.delimited import open_table
from harness.readers.gangs import gpu_columns, gpu_notes
from harness.readers.priorities import Band, priority_column, priority_note

METADATA = {
    "harness.source": "Chronus (github.com/S-Lab-System-Group/ChronusArtifact), a mix sampled from Philly",
    "harness.license": "MIT; Gao et al., Chronus: A Novel Deadline-aware Scheduler for Deep Learning "
    "Training Jobs, SoCC 2021",
}
BANDS = {"strict": Band("strict", 2000), "soft": Band("soft", 1000), "best": Band("best-effort", 0)}
"""The priority bands of jobs with a strict deadline, with a soft deadline, and without a deadline."""

_MOST_GPUS = 1_000_000
_KEPT = ("job_type", "model_name", "expect_time_list", "expect_value_list")


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads a mix of jobs. By default, its times are in minutes, as Chronus' code implies.

    Raises:
        TraceError: lines are malformed. The error lists all faults.
        OptionError: an option is out of range.
    """
    unit = options["unit"]
    if unit <= 0:
        raise OptionError("option unit: must be longer than 0")
    fields = [
        text("job_id"),
        text("user"),
        whole("num_gpu", most=_MOST_GPUS),
        seconds("submit_time", unit=unit),
        seconds("duration", unit=unit),
        choice("job_type", *BANDS),
        *(text(name) for name in _KEPT[1:]),
    ]
    jobs = open_table(path).typed(fields)
    per_node = options["gpus_per_node"]
    frame = jobs.select(
        "job_id",
        pl.col("submit_time").cast(pl.Duration("us")),
        pl.col("duration").cast(pl.Duration("us")),
        pl.col("user").alias("queue"),
        *gpu_columns(jobs["num_gpu"], per_node),
        *priority_column(pl.col("job_type"), BANDS, options["priority"]),
        *_KEPT,
    )
    without = int((jobs["num_gpu"] == 0).sum())
    notes = (
        f"times are in units of {format_duration(unit)}; this unit is not in the files, but in Chronus' code",
        "the queue is the virtual cluster; the authors made all virtual clusters about equally large",
        *gpu_notes(per_node, frame["gang"]),
        *((f"{agreeing(without, 'job', 'have')} no GPU and no request",) if without else ()),
        priority_note("job_type", BANDS, options["priority"]),
        "the trace keeps deadlines (expect_time_list), but policies do not see them",
    )
    return Reading(frame, jobs.height, notes=notes, metadata=METADATA)
