"""Reads `trace_seren.csv` and `trace_kalos.csv`, the job traces of Shanghai AI Lab's Acme from 2023.

In the rows of Kalos, the column `duration` starts at the submission, although its description says otherwise.
The reader therefore computes run times from the start and end times.
"""

from __future__ import annotations

from harness.readers.cells import iso_moment
from harness_plugins.readers.node_jobs import reader_of

METADATA = {
    "harness.source": "Shanghai AI Lab Acme (github.com/InternLM/AcmeTrace), job trace",
    "harness.license": "CC-BY-4.0; Hu et al., Characterization of Large Language Model Development in the "
    "Datacenter, NSDI 2024",
}

read = reader_of(
    iso_moment,
    kept=("type",),
    note="times are in UTC; memory, if known, is in GiB per pod",
    metadata=METADATA,
)
"""Reads a trace. The queue of a job is the type of its workload, or its user."""
