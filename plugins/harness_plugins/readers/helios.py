"""Reads `cluster_log.csv`, the job logs of SenseTime's Helios: four GPU clusters in 2020."""

from __future__ import annotations

from functools import partial

from harness.readers.cells import moment
from harness_plugins.readers.node_jobs import reader_of

METADATA = {
    "harness.source": "SenseTime Helios (github.com/S-Lab-System-Group/HeliosData), cluster_log.csv",
    "harness.license": "CC-BY-4.0; Hu et al., Characterization and Prediction of Deep Learning Workloads in "
    "Large-Scale GPU Datacenters, SC 2021",
}

read = reader_of(
    partial(moment, form="%Y-%m-%d %H:%M:%S"),
    kept=("vc",),
    note="the log gives neither memory nor the time zone",
    metadata=METADATA,
)
"""Reads a log. The queue of a job is its virtual cluster or its user."""
