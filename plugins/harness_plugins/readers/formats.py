"""Lists the formats that harness reads, with how to recognise each format, its module, and its options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import Option
from harness.readers.recordings import is_recording
from harness.readers.sniff import names_columns
from harness_plugins.readers import options, sniff


@dataclass(frozen=True, slots=True)
class Format:
    """A trace format.

    Attributes:
        name: the name of the format's reader.
        help: a one-line description of the format.
        sniff: a function that returns True if a file has this format, based on the path and the first bytes
            of the file.
        options: the options of the reader.
        suffixes: file suffixes that identify the format, unless another format has the same suffix.
        folder: a function that returns True if a folder has this format. It is None if the format is only for
            files.
        advise: the module whose function `advise` says what to do about input that no reader accepts, or ""
            for no module.
        draft: the module whose function `suggest` drafts a mapping, or "" for no module.
        module: the module of this package whose function `read` reads the format. It is imported when it is
            first needed. By default, its name is that of the format.
    """

    name: str
    help: str
    sniff: Callable[[Path, bytes], bool]
    options: tuple[Option, ...] = ()
    suffixes: tuple[str, ...] = ()
    folder: Callable[[Path], bool] | None = None
    advise: str = ""
    draft: str = ""
    module: str = ""


FORMATS: tuple[Format, ...] = (
    Format("parquet", "Parquet in the canonical schema", sniff.is_parquet, suffixes=(".parquet",)),
    Format(
        "swf",
        "Standard Workload Format (Parallel Workloads Archive), also with MetaCentrum's extension",
        sniff.is_swf,
        options=options.SWF_OPTIONS,
        suffixes=(".swf", ".swf.gz"),
    ),
    Format(
        "philly",
        "extract of Microsoft's Philly trace: timestamp,duration,num_gpus,gpu_time,cluster",
        names_columns(*sniff.PHILLY_COLUMNS),
        options=(options.GPUS_PER_NODE,),
    ),
    Format(
        "openb",
        "pod lists of Alibaba's openb (cluster-trace-gpu-v2023)",
        names_columns(*sniff.OPENB_COLUMNS),
        options=options.OPENB_OPTIONS,
    ),
    Format(
        "chronus",
        "Chronus' mixes of Philly jobs with deadlines and best-effort jobs",
        names_columns(*sniff.CHRONUS_COLUMNS),
        options=options.CHRONUS_OPTIONS,
    ),
    Format(
        "dlrm",
        "Alibaba's disaggregated DLRM inference instances of 2025 (cluster-trace-gpu-v2025)",
        names_columns(*sniff.DLRM_COLUMNS),
        options=options.DLRM_OPTIONS,
    ),
    Format(
        "spot-gpu",
        "jobs of Alibaba's spot GPU trace of 2026 (cluster-trace-v2026-spot-gpu)",
        names_columns(*sniff.SPOT_COLUMNS),
        options=options.SPOT_OPTIONS,
    ),
    Format(
        "opendc",
        "tasks of OpenDC's Parquet traces and of the Workflow Trace Format",
        sniff.is_opendc,
        suffixes=(".parquet",),
    ),
    Format(
        "kubernetes",
        "kubectl get -o yaml or json of Kueue's Workloads, of Jobs and of Pods, also with --watch",
        sniff.is_kubernetes,
        options=options.KUBERNETES_OPTIONS,
        folder=is_recording,
    ),
    Format(
        "prometheus",
        "answers of Prometheus' query_range and query about kube-state-metrics",
        sniff.is_prometheus,
        options=options.PROMETHEUS_OPTIONS,
    ),
    Format(
        "slurm",
        "Slurm's accounting: sacct -P and sacct --json",
        sniff.is_slurm,
        options=options.SLURM_OPTIONS,
        advise="slurm.others",
    ),
    Format(
        "csv",
        "tables of any columns, such as delimited text, by a short mapping: see docs/sources.md",
        sniff.is_canonical_csv,
        options=options.CSV_OPTIONS,
        module="tables.short",
    ),
    Format(
        "table",
        "job tables of any columns, Parquet, JSON or text, by a mapping: see docs/tables.md",
        lambda path, head: False,
        options=options.TABLE_OPTIONS,
        folder=lambda path: False,
        advise="tables.fitting",
        draft="tables.suggest",
        module="tables",
    ),
    Format(
        "philly-log",
        "the full log of Microsoft's Philly: cluster_job_log, JSON with every attempt",
        sniff.is_philly_log,
        options=options.PHILLY_LOG_OPTIONS,
    ),
    Format(
        "pai",
        "the job and task tables of Alibaba's PAI (cluster-trace-gpu-v2020)",
        sniff.is_pai,
        options=options.PAI_OPTIONS,
    ),
    Format(
        "helios",
        "job logs of SenseTime's Helios: cluster_log.csv",
        names_columns(*sniff.HELIOS_COLUMNS),
        options=options.HELIOS_OPTIONS,
    ),
    Format(
        "acme",
        "job traces of Shanghai AI Lab's Acme: trace_seren.csv, trace_kalos.csv",
        names_columns(*sniff.ACME_COLUMNS),
        options=options.ACME_OPTIONS,
    ),
    Format(
        "google-2019",
        "Google's ClusterData 2019: collection and instance events, JSON lines",
        sniff.is_google,
        options=options.GOOGLE_OPTIONS,
        module="google",
    ),
)
