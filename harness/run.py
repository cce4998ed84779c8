"""A replay that is about to begin (`Plan`), and one that is finished (`Run`): a folder of tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness import tables
from harness.cluster.derive import plain_stem
from harness.engine.losses import Losses
from harness.metrics.measurement import Window
from harness.parquet import TIMES
from harness.run_folder import check_tables, read_info, reading
from harness.text import printable

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import PolicySpec
    from harness.trace.trace import Trace

TABLES = ("jobs", "decisions", "stints", "timeline", "metrics")

_BATCH = 1 << 18  # rows


@dataclass(frozen=True)
class Plan:
    """One replay, before it runs: everything that its result depends on.

    Attributes:
        trace: the job trace.
        cluster: what there is to schedule on.
        policy: the registered policy.
        label: what to call this replay; the policy's name unless the user gave one.
        options: every option of the policy, with its value.
        losses: what a preemption costs.
        grace_period: for jobs that do not say, microseconds.
        until: the last instant that is played, microseconds since the origin; None plays to the end.
        scale_arrivals: how many times as fast jobs arrive.
    """

    trace: Trace
    cluster: Cluster
    policy: PolicySpec
    label: str
    options: Mapping[str, Any]
    losses: Losses
    grace_period: int
    until: int | None
    scale_arrivals: Fraction

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen for this replay, in plain values; `calibration` only where there is one."""
        from harness.trace.calibration import calibration_of

        changed = calibration_of(self.trace, self.cluster)
        return {
            "on_preemption": str(self.losses),
            "grace_period_us": self.grace_period,
            "until_us": self.until,
            "scale_arrivals": str(self.scale_arrivals),
            **({"calibration": dict(changed)} if changed else {}),
        }

    @property
    def identity(self) -> dict[str, Any]:
        """What the result is a function of."""
        return {
            "schema": tables.VERSION,
            "trace": self.trace.sha256,
            "cluster": self.cluster.digest,
            "policy": [self.policy.name, self.policy.owner, self.policy.version],
            "options": dict(self.options),
            **self.settings,
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the inputs say that changes nothing here, in sentences."""
        from harness.trace.warnings import unreached

        found = [*self.cluster.warnings, *unreached(self.trace, self.cluster)]
        found += self._other_algorithm()
        found += self._left_out()
        if self.policy.unheeded is not None:
            found += self.policy.unheeded(self.cluster, self.options)
        return tuple(found)

    def _other_algorithm(self) -> Iterator[str]:
        """That the manifests choose another policy; `auto` does what they choose."""
        scheduler, name = self.cluster.scheduler, self.policy.name
        if scheduler is None or scheduler.preemption_algorithm is None:
            return
        if name not in ("auto", scheduler.plugin):
            yield (
                f"KubeSchedulerConfiguration: preemptionAlgorithm {scheduler.preemption_algorithm} "
                f"stands for the plugin {scheduler.plugin}, and is not followed by {name}"
            )

    def _left_out(self) -> Iterator[str]:
        """What is there already according to the manifests, and the policy does not begin with."""
        name, cluster = self.policy.name, self.cluster
        taken = {job.id for job, _, _ in self.policy.running(cluster, 0)} if self.policy.running else set()
        pods = sum(
            pod.node in cluster.nodes and not pod.terminating and f"{pod.namespace}/{pod.name}" not in taken
            for pod in cluster.pods
        )
        if pods:
            yield (
                f"{pods:,} pods of the manifests run already; {name} does not take them over, "
                "so their nodes are taken to be free"
            )
        expected = (each for each in cluster.workloads if each.active and not each.finished)
        workloads = sum(each.key not in taken for each in expected)
        if workloads:
            yield (
                f"{workloads:,} Workloads of the manifests hold quota or wait for it; {name} does not take "
                "them over, so their quota is taken to be free"
            )

    @property
    def run_name(self) -> str:
        """The run folder's name: equal inputs give equal names."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), default=str)
        return f"{self.label}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    @property
    def trace_name(self) -> str:
        """What runs of this trace are filed under: its file's name, made safe, without the endings."""
        return printable(plain_stem(self.trace.path).strip(".")) or "trace"


class Run:
    """A finished replay.

    Args:
        path: its folder.
        info: what `run.json` says.
        stored: whether it had been there before it was asked for.
    """

    def __init__(self, path: Path, info: Mapping[str, Any], *, stored: bool = False) -> None:
        self.path = path
        self.info = info
        self.stored = stored

    @classmethod
    def open(cls, path: str | Path, *, stored: bool = False) -> Run:
        """A run from its folder.

        Raises:
            RunError: the folder is no run, is incomplete, or has another schema.
        """
        folder = Path(path)
        info = read_info(folder)
        check_tables(folder, TABLES)
        return cls(folder, info, stored=stored)

    def __repr__(self) -> str:
        return (
            f"<Run {self.info['run']} of {self.info['trace']['name']}, {self.info['outcome']['jobs']:,} jobs>"
        )

    def _repr_html_(self) -> str:
        """Its figures over all jobs, for a notebook."""
        from harness.comparison import Comparison

        return f"<p>{escape(repr(self))}</p>{Comparison([self])._repr_html_()}"

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return str(self.info["label"])

    @property
    def window(self) -> Window:
        """From the first submission to the last end, release or decision."""
        return Window(*self.info["window"])

    @property
    def capacity(self) -> Mapping[str, int]:
        """Resource -> amount of the whole cluster."""
        return dict(self.info["cluster"]["capacity"])

    @property
    def resources(self) -> list[str]:
        """What jobs of the trace ask for, sorted."""
        return list(self.info["trace"]["resources"])

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row a job, in order of arrival."""
        return self._read("jobs")

    @cached_property
    def decisions(self) -> pl.DataFrame:
        """One row a decision, in order."""
        return self._read("decisions")

    @cached_property
    def stints(self) -> pl.DataFrame:
        """Spans in which pods held resources in one state."""
        return self._read("stints")

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """The state of each queue after every change."""
        return self._read("timeline")

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """One row a measured value."""
        return self._read("metrics")

    def _read(self, table: str) -> pl.DataFrame:
        with reading(self.path):
            return self.scan(table).collect()

    def scan(self, table: str) -> pl.LazyFrame:
        """One of `TABLES`, lazily."""
        return pl.scan_parquet(self.path / f"{table}.parquet", glob=False)

    def micros(self, table: str) -> pl.LazyFrame:
        """One of `TABLES` with all times as integers, microseconds since the trace's origin.

        Durations (`duration`, `lost`, ...) become integers too.
        """
        frame = self.scan(table)
        return frame.select(self._micros(frame.collect_schema()))

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Some columns of one of `TABLES`, in order and piece by piece, with times as in `micros`.

        For what is found out of tables that are longer than memory is large. There is always a piece; that of
        an empty table is empty.
        """
        names = list(columns)
        # Without a buffer that would hold these columns of the whole file.
        with pq.ParquetFile(self.path / f"{table}.parquet", pre_buffer=False) as file:
            pieces = (pa.Table.from_batches([each]) for each in file.iter_batches(_BATCH, columns=names))
            empty = file.schema_arrow.empty_table().select(names)
            for piece in pieces if file.metadata.num_rows else [empty]:
                frame = pl.DataFrame(piece)
                yield frame.select(self._micros(frame.schema))
        pa.default_memory_pool().release_unused()

    def _micros(self, schema: pl.Schema) -> list[pl.Expr]:
        origin = self.info["trace"]["origin_us"]
        columns = []
        for name, dtype in schema.items():
            if name in TIMES:
                columns.append(pl.col(name).cast(pl.Int64) - origin)
            elif dtype == pl.Duration:
                columns.append(pl.col(name).cast(pl.Int64))
            else:
                columns.append(pl.col(name))
        return columns
