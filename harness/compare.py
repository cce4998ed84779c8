"""Compares runs of one trace: each metric's value in every run, and what changed against the baseline."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from harness.errors import RunError
from harness.metrics.measurement import Measurement, Window
from harness.metrics.utilization import measure as measure_utilization
from harness.options import did_you_mean
from harness.run import Run
from harness.text import aligned
from harness.units import SECOND, format_duration

HEADLINES = (
    "utilization.allocated",
    "utilization.useful",
    "utilization.lost",
    "utilization.idle_held",
    "utilization.of_demand",
    "wait.first_start.mean",
    "wait.first_start.p50",
    "wait.first_start.p95",
    "wait.total.p95",
    "slowdown.bounded.mean",
    "makespan",
    "jobs.finished",
    "jobs.unfinished",
    "jobs.rejected",
    "disruption.preemptions",
    "disruption.preempted_jobs",
    "disruption.lost",
)
"""The metrics that a table shows unless others are asked for."""

_PRACTICAL = 0.01  # a change below one per cent is not called one


class Comparison:
    """Several runs of one trace on one cluster, side by side.

    Utilization is measured over the window that all runs share where their ends differ; everything else over
    each run's own window.

    Args:
        runs: at least one.
        baseline: label of the run that the others are compared with; the first by default.

    Raises:
        RunError: the runs are not of one trace and one cluster, or two have the same label.
    """

    def __init__(self, runs: Sequence[Run], *, baseline: str | None = None) -> None:
        if not runs:
            raise RunError("there is nothing to compare", hint="give at least one run folder")
        self.runs = _baseline_first(list(runs), baseline)
        _check_comparable(self.runs)
        start = min(run.window.start for run in self.runs)
        self.window = Window(start, min(run.window.end for run in self.runs))

    @property
    def shares_window(self) -> bool:
        """Whether all runs ended at the same time."""
        return all(run.window == self.window for run in self.runs)

    def to_polars(self, *metrics: str, scope: str | None = "all") -> pl.DataFrame:
        """One row a metric, scope and resource, one column a run.

        Args:
            metrics: names or patterns such as `wait.*`; all by default.
            scope: `all`, `queue`, `priority`, `reason`, or one of them such as `queue=prod`; None for every
                scope.

        Raises:
            RunError: a metric is in none of the runs.
        """
        tables = [self._rows(run) for run in self.runs]
        keys: dict[tuple[str, str, str], Measurement] = {}
        for table in tables:
            for key, row in table.items():
                keys.setdefault(key, row)
        known = sorted({name for name, _, _ in keys})
        for pattern in metrics:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise RunError(f"no run has a metric {pattern!r}", hint=did_you_mean(pattern, known))
        chosen = [
            key
            for key in keys
            if (not metrics or any(fnmatchcase(key[0], pattern) for pattern in metrics))
            and (scope is None or key[1] == scope or key[1].startswith(f"{scope}="))
        ]
        schema: dict[str, Any] = {
            "metric": pl.String,
            "scope": pl.String,
            "resource": pl.String,
            "unit": pl.String,
            "better": pl.String,
        }
        data: dict[str, list[Any]] = {
            "metric": [key[0] for key in chosen],
            "scope": [key[1] for key in chosen],
            "resource": [key[2] for key in chosen],
            "unit": [keys[key].unit for key in chosen],
            "better": [keys[key].better for key in chosen],
        }
        for run, table in zip(self.runs, tables, strict=True):
            schema[run.label] = pl.Float64
            data[run.label] = [table[key].value if key in table else None for key in chosen]
        return pl.DataFrame(data, schema=schema)

    def rows(self, *metrics: str, scope: str | None = "all") -> list[list[str]]:
        """The table as text, header first: see `to_polars`; without metrics the headlines."""
        frame = self.to_polars(*(metrics or HEADLINES), scope=scope)
        if not metrics:
            order = pl.col("metric").replace_strict(
                list(HEADLINES), list(range(len(HEADLINES))), return_dtype=pl.Int32
            )
            frame = frame.sort(order, maintain_order=True)
        base, *others = [run.label for run in self.runs]
        rows = [["metric", base, *(cell for other in others for cell in (other, "change"))]]
        for row in frame.iter_rows(named=True):
            name = " ".join(part for part in (row["metric"], row["resource"]) if part)
            if row["scope"] != "all":
                name += f" {{{row['scope']}}}"
            cells = [name, shown(row[base], row["unit"])]
            for other in others:
                cells += [shown(row[other], row["unit"]), change(row[base], row[other], row["better"])]
            rows.append(cells)
        return rows

    def table(self, *metrics: str, scope: str | None = "all") -> str:
        """The comparison for a terminal."""
        lines = [aligned(self.rows(*metrics, scope=scope)), *self.remarks()]
        return "\n".join(lines)

    def remarks(self) -> list[str]:
        """What a reader must know to read the table right."""
        found = []
        if len(self.runs) > 1:
            found.append("▲ better, ▼ worse, ~ within 1 %; changes are against the first run")
        if not self.shares_window:
            end = format_duration(self.window.end - self.window.start)
            found.append(f"utilization: over the first {end}, which all runs share")
        found += [
            f"{run.label}: {len(gangs):,} gangs held resources at the end without all their pods being bound"
            for run in self.runs
            if (gangs := run.info["outcome"]["half_bound_gangs"])
        ]
        return found

    def to_json(self, *metrics: str, scope: str | None = "all") -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "schema": "1",
            "trace": self.runs[0].info["trace"],
            "cluster": self.runs[0].info["cluster"],
            "runs": [
                {
                    "label": run.label,
                    "path": str(run.path),
                    "stored": run.stored,
                    "policy": run.info["policy"],
                    "settings": run.info["settings"],
                    "window": list(run.window),
                    "outcome": run.info["outcome"],
                }
                for run in self.runs
            ],
            "common_window": list(self.window),
            "metrics": self.to_polars(*metrics, scope=scope).to_dicts(),
        }

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        header, *rows = self.rows()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        notes = "".join(f"<p>{html.escape(remark)}</p>" for remark in self.remarks())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _rows(self, run: Run) -> dict[tuple[str, str, str], Measurement]:
        """A run's measurements; utilization over the shared window if the run's own is longer."""
        rows: Iterable[Measurement] = (
            Measurement(
                row["metric"], row["value"], row["unit"], row["better"], row["scope"], row["resource"]
            )
            for row in run.metrics.iter_rows(named=True)
        )
        found = {(row.metric, row.scope, row.resource): row for row in rows}
        if run.window != self.window:
            for row in measure_utilization(run, self.window):
                found[row.metric, row.scope, row.resource] = row
        return found


def shown(value: float | None, unit: str) -> str:
    """A value at a glance."""
    if value is None:
        return "-"
    if unit == "ratio":
        return f"{100 * value:.1f} %" if abs(value) < 10 else f"{value:,.1f}"
    if unit == "s":
        return format_duration(value * SECOND)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def change(base: float | None, value: float | None, better: str) -> str:
    """How a value differs from the baseline's, and whether that is good."""
    if base is None or value is None:
        return ""
    difference = value - base
    if base == 0:
        if difference == 0:
            return "~"
        relative = "new"
    else:
        if abs(difference / base) < _PRACTICAL:
            return "~"
        relative = f"{100 * difference / base:+,.1f} %"
    if not better:
        return relative
    return f"{relative} {'▲' if (difference > 0) == (better == 'higher') else '▼'}"


def _baseline_first(runs: list[Run], baseline: str | None) -> list[Run]:
    labels = [run.label for run in runs]
    for label in labels:
        if labels.count(label) > 1:
            raise RunError(
                f"two runs are called {label!r}", hint="replay one with another label: --plugin NAME@LABEL"
            )
    if baseline is None:
        return runs
    if baseline not in labels:
        raise RunError(f"no run is called {baseline!r}", hint=did_you_mean(baseline, labels))
    return sorted(runs, key=lambda run: run.label != baseline)


def _check_comparable(runs: list[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        for what, key in (("traces", "trace"), ("clusters", "cluster")):
            if run.info[key]["sha256"] != first.info[key]["sha256"]:
                raise RunError(
                    f"{first.path} and {run.path} are runs of different {what}, so they do not compare",
                    hint="replay one trace on one cluster: harness replay TRACE --plugin A --plugin B",
                )
        ours, theirs = (each.info["settings"]["scale_arrivals"] for each in (first, run))
        if ours != theirs:
            raise RunError(
                f"{first.path} and {run.path} do not compare: arrivals are scaled by {ours} and by {theirs}"
            )
