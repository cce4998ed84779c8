"""Lists the formats that harness reads. A format has a recognition function, a module and options.

A page docs/sources*.md needs a section for each format, with the heading `### name: ...`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Option, ReaderSpec
from harness.plugins.hookspecs import late
from harness.readers.recordings import is_recording
from harness.readers.sniff import names_columns
from harness_plugins.readers import options, sniff

_HERE = "harness_plugins.readers"


def _format(
    name: str,
    help: str,
    sniff: Callable[[Path, bytes], bool],
    options: tuple[Option, ...] = (),
    module: str = "",
    **more: Any,
) -> ReaderSpec:
    """Returns a reader. Its module, by default with the name of the format, is imported when it is needed."""
    read = late(f"{_HERE}.{module or name.replace('-', '_')}:read")
    return ReaderSpec(name, read, help=help, sniff=sniff, options=options, **more)


FORMATS: tuple[ReaderSpec, ...] = (
    _format("parquet", "Parquet in the canonical schema", sniff.is_parquet, suffixes=(".parquet",)),
    _format(
        "swf",
        "Standard Workload Format (Parallel Workloads Archive), also with MetaCentrum's extension",
        sniff.is_swf,
        options=options.SWF_OPTIONS,
        suffixes=(".swf", ".swf.gz"),
    ),
    _format(
        "philly",
        "extract of Microsoft's Philly trace: timestamp,duration,num_gpus,gpu_time,cluster",
        names_columns(*sniff.PHILLY_COLUMNS),
        options=(options.GPUS_PER_NODE,),
    ),
    _format(
        "openb",
        "pod lists of Alibaba's openb (cluster-trace-gpu-v2023)",
        names_columns(*sniff.OPENB_COLUMNS),
        options=options.OPENB_OPTIONS,
    ),
    _format(
        "chronus",
        "Chronus' mixes of Philly jobs with deadlines and best-effort jobs",
        names_columns(*sniff.CHRONUS_COLUMNS),
        options=options.CHRONUS_OPTIONS,
    ),
    _format(
        "dlrm",
        "Alibaba's disaggregated DLRM inference instances of 2025 (cluster-trace-gpu-v2025)",
        names_columns(*sniff.DLRM_COLUMNS),
        options=options.DLRM_OPTIONS,
    ),
    _format(
        "spot-gpu",
        "jobs of Alibaba's spot GPU trace of 2026 (cluster-trace-v2026-spot-gpu)",
        names_columns(*sniff.SPOT_COLUMNS),
        options=options.SPOT_OPTIONS,
    ),
    _format(
        "opendc",
        "tasks of OpenDC's Parquet traces and of the Workflow Trace Format",
        sniff.is_opendc,
        suffixes=(".parquet",),
    ),
    _format(
        "kubernetes",
        "kubectl get -o yaml or json of Kueue's Workloads, of Jobs and of Pods, also with --watch",
        sniff.is_kubernetes,
        options=options.KUBERNETES_OPTIONS,
        folder=is_recording,
    ),
    _format(
        "prometheus",
        "answers of Prometheus to query or query_range, with metrics of kube-state-metrics",
        sniff.is_prometheus,
        options=options.PROMETHEUS_OPTIONS,
        advise=late(f"{_HERE}.prometheus.others:advise"),
    ),
    _format(
        "slurm",
        "Slurm's accounting: sacct -P and sacct --json",
        sniff.is_slurm,
        options=options.SLURM_OPTIONS,
        advise=late(f"{_HERE}.slurm.others:advise"),
    ),
    _format(
        "csv",
        "tables with any columns, such as delimited text, described by a short mapping: see docs/sources.md",
        sniff.is_canonical_csv,
        options=options.CSV_OPTIONS,
        module="tables.short",
    ),
    _format(
        "table",
        "job tables with any columns in Parquet, JSON or text, described by a mapping: see docs/tables.md",
        lambda path, head: False,
        options=options.TABLE_OPTIONS,
        folder=lambda path: False,
        advise=late(f"{_HERE}.tables.fitting:advise"),
        draft=late(f"{_HERE}.tables.suggest:suggest"),
        module="tables",
    ),
    _format(
        "philly-log",
        "the full log of Microsoft's Philly: cluster_job_log, JSON with every attempt",
        sniff.is_philly_log,
        options=options.PHILLY_LOG_OPTIONS,
    ),
    _format(
        "pai",
        "the job and task tables of Alibaba's PAI (cluster-trace-gpu-v2020)",
        sniff.is_pai,
        options=options.PAI_OPTIONS,
    ),
    _format(
        "helios",
        "job logs of SenseTime's Helios: cluster_log.csv",
        names_columns(*sniff.HELIOS_COLUMNS),
        options=options.HELIOS_OPTIONS,
    ),
    _format(
        "acme",
        "job traces of Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv",
        names_columns(*sniff.ACME_COLUMNS),
        options=options.ACME_OPTIONS,
    ),
    _format(
        "google-2019",
        "Google's ClusterData 2019: collection and instance events, JSON lines",
        sniff.is_google,
        options=options.GOOGLE_OPTIONS,
        module="google",
    ),
)
