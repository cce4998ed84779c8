"""The formats that are read: how each is known, which module reads it, and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import Option
from harness_plugins.readers import options, signs


@dataclass(frozen=True, slots=True)
class Format:
    """One format.

    Attributes:
        name: of its reader.
        module: of this package, whose function `read` reads it; imported when it is first needed.
        help: one line that says what it is.
        sign: whether a file, by its path and its first bytes, is of it.
        options: of its reader.
        suffixes: that decide by themselves, unless another format has them too.
    """

    name: str
    module: str
    help: str
    sign: Callable[[Path, bytes], bool]
    options: tuple[Option, ...] = ()
    suffixes: tuple[str, ...] = ()


FORMATS: tuple[Format, ...] = (
    Format(
        "parquet",
        "parquet",
        "Parquet in the canonical schema",
        signs.is_parquet,
        suffixes=(".parquet",),
    ),
    Format(
        "swf",
        "swf",
        "Standard Workload Format (Parallel Workloads Archive), and MetaCentrum's extension of it",
        signs.is_swf,
        options=options.SWF_OPTIONS,
        suffixes=(".swf", ".swf.gz"),
    ),
    Format(
        "philly",
        "philly",
        "extract of Microsoft's Philly trace: timestamp,duration,num_gpus,gpu_time,cluster",
        signs.names_columns(*signs.PHILLY_COLUMNS),
        options=(options.GPUS_PER_NODE,),
    ),
    Format(
        "openb",
        "openb",
        "pod lists of Alibaba's openb (cluster-trace-gpu-v2023)",
        signs.names_columns(*signs.OPENB_COLUMNS),
        options=options.OPENB_OPTIONS,
    ),
    Format(
        "chronus",
        "chronus",
        "Chronus' mixes of Philly jobs with deadlines and best-effort jobs",
        signs.names_columns(*signs.CHRONUS_COLUMNS),
        options=options.CHRONUS_OPTIONS,
    ),
    Format(
        "dlrm",
        "dlrm",
        "Alibaba's disaggregated DLRM inference instances of 2025 (cluster-trace-gpu-v2025)",
        signs.names_columns(*signs.DLRM_COLUMNS),
        options=options.DLRM_OPTIONS,
    ),
    Format(
        "spot-gpu",
        "spot_gpu",
        "jobs of Alibaba's spot GPU trace of 2026 (cluster-trace-v2026-spot-gpu)",
        signs.names_columns(*signs.SPOT_COLUMNS),
        options=options.SPOT_OPTIONS,
    ),
    Format(
        "opendc",
        "opendc",
        "tasks of OpenDC's Parquet traces and of the Workflow Trace Format",
        signs.is_opendc,
        suffixes=(".parquet",),
    ),
    Format(
        "kubernetes",
        "kubernetes",
        "kubectl get -o yaml or json of Kueue's Workloads, of Jobs and of Pods",
        signs.is_kubernetes,
        options=options.KUBERNETES_OPTIONS,
    ),
    Format(
        "prometheus",
        "prometheus",
        "answers of Prometheus' query_range and query about kube-state-metrics",
        signs.is_prometheus,
        options=options.PROMETHEUS_OPTIONS,
    ),
    Format(
        "slurm",
        "slurm",
        "Slurm's accounting: sacct -P and sacct --json",
        signs.is_slurm,
        options=options.SLURM_OPTIONS,
    ),
    Format(
        "csv",
        "mapped_csv",
        "delimited text of any columns, by a mapping",
        signs.is_canonical_csv,
        options=options.CSV_OPTIONS,
    ),
    Format(
        "philly-log",
        "philly_log",
        "the whole log of Microsoft's Philly: cluster_job_log, JSON with every attempt",
        signs.is_philly_log,
        options=options.PHILLY_LOG_OPTIONS,
    ),
    Format(
        "pai",
        "pai",
        "the job and task tables of Alibaba's PAI (cluster-trace-gpu-v2020)",
        signs.is_pai,
        options=options.PAI_OPTIONS,
    ),
    Format(
        "helios",
        "helios",
        "job logs of SenseTime's Helios: cluster_log.csv",
        signs.names_columns(*signs.HELIOS_COLUMNS),
        options=options.HELIOS_OPTIONS,
    ),
    Format(
        "acme",
        "acme",
        "job traces of Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv",
        signs.names_columns(*signs.ACME_COLUMNS),
        options=options.ACME_OPTIONS,
    ),
    Format(
        "google-2019",
        "google",
        "Google's ClusterData 2019: collection and instance events, JSON lines",
        signs.is_google,
        options=options.GOOGLE_OPTIONS,
    ),
)
