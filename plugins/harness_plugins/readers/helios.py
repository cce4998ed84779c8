"""Reads the job logs of SenseTime's Helios, `cluster_log.csv`: four GPU clusters of 2020."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from harness import Reading
from harness.readers.cells import moment
from harness_plugins.readers.node_jobs import read_node_jobs

METADATA = {
    "harness.source": "SenseTime Helios (github.com/S-Lab-System-Group/HeliosData), cluster_log.csv",
    "harness.license": "CC-BY-4.0; Hu et al., Characterization and Prediction of Deep Learning Workloads in "
    "Large-Scale GPU Datacenters, SC 2021",
}


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Read a log; the queue is the virtual cluster or the user.

    Raises:
        TraceError: malformed lines, all of them named.
        OptionError: a node without GPUs.
    """
    return read_node_jobs(
        path,
        partial(moment, form="%Y-%m-%d %H:%M:%S"),
        options["tenant"],
        ("vc",),
        options["gpus_per_node"],
        notes=(f"the queue is {options['tenant']}", "memory is not in the log, nor is the time zone"),
        metadata=METADATA,
    )
