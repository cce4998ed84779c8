"""A run's timeline as time series in the OpenMetrics text format, for Prometheus and Grafana.

The series contain what a Prometheus server would have scraped at regular intervals, so changes between two
scrapes are not visible. The format is described at https://prometheus.io/docs/specs/om/open_metrics_spec/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from harness.analysis.metrics.levels import quotas_named
from harness.base.errors import OptionError
from harness.base.units import SECOND, format_duration
from harness.plugins.measurement import Window
from harness.runs.epochs import Step
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.runs.tenants import timeline_queues

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

MOST = 20_000_000
"""The maximum number of samples of queues in a file. Such a file has about two gigabytes."""

_LEVELS = {
    "allocated": "Resources that pods of the queue hold.",
    "pending": "Resources that waiting pods of the queue request.",
    "held": "The quota that admitted jobs of the queue hold.",
}
_JOBS = {
    "running_jobs": "Jobs of the queue that hold resources.",
    "pending_jobs": "Jobs of the queue that wait.",
}
_UNITS = {"cpu": "core", "memory": "byte", "ephemeral-storage": "byte"}


def write_openmetrics(run: Run, window: Window, step: int, file: SupportsWrite[bytes]) -> None:
    """Writes samples of the amounts that queues, quotas and the cluster hold or request, and of preemptions.

    The first sample is at the beginning of the window, and no sample is after its end. `step` is the interval
    between samples, in microseconds. If the trace has no timestamps, times in the file count from 1970-01-01.

    Raises:
        OptionError: the file would have more than `MOST` samples.
        RunError: a table is damaged.
    """
    for text in _Series(run, window, step).families():
        file.write(text.encode("utf-8", errors="replace"))
    file.write(b"# EOF\n")


class _Series:
    """The samples of all series. Each series is in order of time.

    Raises:
        OptionError: there would be more than `MOST` samples.
    """

    def __init__(self, run: Run, window: Window, step: int) -> None:
        self._run = run
        with reading(run.path):
            self._timeline = run.micros("timeline").collect()
        self._queues = self._timeline["queue"].unique().sort().to_list()
        each = len(_LEVELS) * len(run.resources) + len(_JOBS)
        samples = ((window.end - window.start) // step + 1) * len(self._queues) * each
        if samples > MOST:
            raise OptionError(
                f"one sample every {format_duration(step)} would result in {samples:,} samples, but at most "
                f"{MOST:,} are allowed",
                hint="choose a longer --step, or a shorter part of the run with --from and --to",
            )
        times = pl.int_range(window.start, window.end + 1, step, dtype=pl.Int64, eager=True)
        self._times = pl.DataFrame({"time": times})
        origin = run.info["trace"]["origin_us"]
        self._stamps = [_seconds(origin + time) for time in times]

    def families(self) -> Iterator[str]:
        resources = self._run.resources
        for column, help_text in _LEVELS.items():
            name = f"harness_queue_{column}"
            yield _head(name, "gauge", help_text)
            for queue in self._queues:
                for resource in resources:
                    labels = self._labels(queue=queue, **_of(resource))
                    yield self._lines(name, labels, self._sampled(queue, resource, column), resource)
        for column, help_text in _JOBS.items():
            name = f"harness_queue_{column}"
            yield _head(name, "gauge", help_text)
            for queue in self._queues:
                yield self._lines(name, self._labels(queue=queue), self._sampled(queue, resources[0], column))
        yield _head("harness_quota_nominal", "gauge", "The nominal quota.")
        for quota, named in quotas_named(self._run).items():
            for resource in named:
                labels = self._labels(quota=quota, **_of(resource))
                levels = self._run.nominal_steps(quota, resource)
                yield self._stepped("harness_quota_nominal", labels, levels, resource)
        yield _head("harness_cluster_capacity", "gauge", "The total capacity of all nodes, or of all quotas.")
        for resource in dict.fromkeys(
            each for _, cluster in self._run.epochs for each in cluster["capacity"]
        ):
            labels = self._labels(**_of(resource))
            levels = self._run.capacity_steps(resource)
            yield self._stepped("harness_cluster_capacity", labels, levels, resource)
        yield from self._preemptions()

    def _sampled(self, queue: str, resource: str, column: str) -> pl.Series:
        """Returns the level at the time of each sample: the level after the last change up to then."""
        of_it = self._timeline.filter((pl.col("queue") == queue) & (pl.col("resource") == resource))
        return self._times.join_asof(of_it.select("time", column), on="time")[column].fill_null(0)

    def _preemptions(self) -> Iterator[str]:
        name = "harness_preemptions"
        yield _head(name, "counter", "Preemptions of jobs or pods of the queue, by reason.")
        run = self._run
        with reading(run.path):
            jobs = run.micros("jobs").collect()
            shown = timeline_queues(jobs, run.info["cluster"]["quota_of"])
            rows = (
                run.micros("decisions")
                .filter(pl.col("action") == "preempt")
                .select("time", "job", pl.col("reason").fill_null(""))
                .collect()
            )
        rows = rows.with_columns(queue=shown.gather(rows["job"]))
        for (queue, reason), found in sorted(rows.partition_by("queue", "reason", as_dict=True).items()):
            reached = found.select("time", total=pl.int_range(1, pl.len() + 1))
            totals = self._times.join_asof(reached, on="time")["total"].fill_null(0)
            yield self._lines(f"{name}_total", self._labels(queue=queue, reason=reason), totals)

    def _stepped(self, name: str, labels: str, levels: Sequence[Step], resource: str) -> str:
        """Formats a quantity at the time of each sample. Samples are left out while there is no limit."""
        times = pl.Series([each.time for each in levels], dtype=pl.Int64)
        amounts = pl.Series([each.amount for each in levels], dtype=pl.Int64)
        reached = pl.DataFrame({"time": times, "amount": amounts})
        return self._lines(name, labels, self._times.join_asof(reached, on="time")["amount"], resource)

    def _labels(self, **labels: str) -> str:
        known = {"run": self._run.label, **labels}
        return ",".join(f'{name}="{_escaped(value)}"' for name, value in known.items())

    def _lines(self, name: str, labels: str, values: pl.Series, resource: str = "") -> str:
        start = f"{name}{{{labels}}}"
        known = [each for each in zip(values, self._stamps, strict=True) if each[0] is not None]
        shown = _cores if resource == "cpu" else str
        return "".join(f"{start} {shown(value)} {stamp}\n" for value, stamp in known)


def _head(name: str, kind: str, help_text: str) -> str:
    return f"# TYPE {name} {kind}\n# HELP {name} {_escaped(help_text)}\n"


def _of(resource: str) -> Mapping[str, str]:
    return {"resource": resource, "unit": _UNITS.get(resource, "count")}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _cores(millicores: int) -> str:
    return f"{Decimal(millicores) / 1000:f}"


def _seconds(microseconds: int) -> str:
    return f"{Decimal(microseconds) / SECOND:f}"
