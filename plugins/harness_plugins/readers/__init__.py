"""Trace readers: canonical Parquet, the Standard Workload Format, the Philly extract, and openb.

Only what registers them is imported with the plugin; a reader's own module is loaded when it first reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import Option, Reading, RegisterReader, boolean, hookimpl
from harness.units import HOUR, parse_duration
from harness_plugins.readers.signs import is_openb, is_parquet, is_philly, is_swf


def read_parquet(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a trace that has the canonical schema."""
    from harness_plugins.readers import parquet

    return parquet.read(path, options)


def read_swf(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a log in the Standard Workload Format."""
    from harness_plugins.readers import swf

    return swf.read(path, options)


def read_philly(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read the Philly extract."""
    from harness_plugins.readers import philly

    return philly.read(path, options)


def read_openb(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a pod list of openb."""
    from harness_plugins.readers import openb

    return openb.read(path, options)


SWF_OPTIONS = (
    Option(
        "processors",
        "requested",
        "how many a job gets; where that is unknown, the other",
        choices=("requested", "allocated"),
    ),
    Option(
        "cut_at_request",
        False,
        "end jobs at the run time they requested, as the machine might have done",
        type=boolean,
    ),
    Option("tenant", "queue", "which column is the queue", choices=("queue", "user", "group")),
    Option("cancelled", "keep", "jobs with status 5 (cancelled)", choices=("keep", "drop")),
    Option("zero_length", "keep", "jobs that ran for 0 seconds", choices=("keep", "drop")),
    Option(
        "unknown_run",
        "drop",
        "jobs without a run time (-1): leave them out, or let them run for 0 seconds",
        choices=("drop", "zero"),
    ),
    Option("memory", "requested", "whether jobs ask for memory", choices=("requested", "ignore")),
)

PHILLY_OPTIONS = (
    Option("gpus_per_node", 8, "a job of more GPUs becomes a gang of equal pods of at most these", type=int),
)

OPENB_OPTIONS = (
    Option(
        "gpu",
        "milli",
        "GPUs in thousandths, so that pods can share one, or whole",
        choices=("milli", "count"),
    ),
    Option("tenant", "qos", "which column is the queue", choices=("qos", "gpu_spec")),
    Option("priority", "qos", "derive priorities from the QoS class, or give none", choices=("qos", "none")),
    Option(
        "pending", "drop", "pods that never ran: leave them out, or let them run", choices=("drop", "keep")
    ),
    Option("run", HOUR, "how long pods run of which the list does not say it", type=parse_duration),
)


@hookimpl
def harness_register_readers(register: RegisterReader) -> None:
    """Register the built-in readers."""
    register(
        "parquet",
        read_parquet,
        help="Parquet in the canonical schema",
        suffixes=(".parquet",),
        sniff=is_parquet,
    )
    register(
        "swf",
        read_swf,
        help="Standard Workload Format, 18 columns (Parallel Workloads Archive)",
        suffixes=(".swf", ".swf.gz"),
        sniff=is_swf,
        options=SWF_OPTIONS,
    )
    register(
        "philly",
        read_philly,
        help="extract of Microsoft's Philly trace: timestamp,duration,num_gpus,gpu_time,cluster",
        sniff=is_philly,
        options=PHILLY_OPTIONS,
    )
    register(
        "openb",
        read_openb,
        help="pod lists of Alibaba's openb (cluster-trace-gpu-v2023)",
        sniff=is_openb,
        options=OPENB_OPTIONS,
    )
