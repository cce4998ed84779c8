"""Compares runs of one trace: each metric's value in every run, and what changed against the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, TypeAlias

import polars as pl

from harness import comparison_table
from harness.errors import RunError
from harness.metrics.measurement import Measurement, Window
from harness.metrics.utilization import measure as measure_utilization
from harness.options import did_you_mean
from harness.run import Run
from harness.run_folder import reading
from harness.units import format_amount

Key: TypeAlias = tuple[str, str, str]
"""Metric, scope and resource."""

_COLUMNS = ("metric", "scope", "resource", "unit", "better")


class Comparison:
    """Several runs of one trace on one cluster, side by side.

    Utilization is measured over the window that all runs share where their ends differ; everything else over
    each run's own window.

    Args:
        runs: at least one.
        baseline: name of the run that the others are compared with; the first by default.

    Attributes:
        runs: the baseline first.
        names: what each run is called: its label; where that is not enough, its folder's name or path.
        window: what all runs have in common.

    Raises:
        RunError: the runs are not of one trace and one cluster, or one is given twice; or there is no such
            baseline.
    """

    def __init__(self, runs: Sequence[Run], *, baseline: str | None = None) -> None:
        if not runs:
            raise RunError("there is nothing to compare", hint="give at least one run folder")
        _check_comparable(runs)
        names = _names(runs)
        order = list(range(len(runs)))
        if baseline is not None:
            order.sort(key=lambda place: place != _place(baseline, runs, names))
        self.runs = [runs[place] for place in order]
        self.names = [names[place] for place in order]
        start = min(run.window.start for run in runs)
        self.window = Window(start, min(run.window.end for run in runs))

    @property
    def shares_window(self) -> bool:
        """Whether all runs ended at the same time."""
        return all(run.window == self.window for run in self.runs)

    def select(
        self, *metrics: str, scope: str | None = "all"
    ) -> Iterator[tuple[Measurement, list[float | None]]]:
        """What was measured, with its value in each run; see `to_polars` for the arguments and errors."""
        tables = [self._rows(run) for run in self.runs]
        keys: dict[Key, Measurement] = {}
        for table in tables:
            for key, row in table.items():
                keys.setdefault(key, row)
        for key in _chosen(keys, metrics, scope):
            yield keys[key], [table[key].value if key in table else None for table in tables]

    def to_polars(self, *metrics: str, scope: str | None = "all") -> pl.DataFrame:
        """One row a metric, scope and resource, one column a run.

        Args:
            metrics: names or patterns such as `wait.*`; all by default.
            scope: `all`, `queue`, `priority`, `reason`, or one of them such as `queue=prod`; None for every
                scope.

        Raises:
            RunError: a metric is in none of the runs, or in none of that scope; or a run is damaged.
        """
        rows = [
            (row.metric, row.scope, row.resource, row.unit, row.better, *values)
            for row, values in self.select(*metrics, scope=scope)
        ]
        schema = dict.fromkeys(_COLUMNS, pl.String) | dict.fromkeys(self.names, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def table(self, *metrics: str, scope: str | None = "all") -> str:
        """The comparison for a terminal; without metrics the headlines."""
        return comparison_table.text(self, metrics, scope)

    def to_json(self, *metrics: str, scope: str | None = "all") -> dict[str, Any]:
        """The comparison as plain values; a number that JSON does not have becomes null."""
        return {
            "schema": "1",
            "trace": self.runs[0].info["trace"],
            "cluster": self.runs[0].info["cluster"],
            "baseline": self.names[0],
            "runs": [
                {
                    "name": name,
                    "label": run.label,
                    "path": str(run.path),
                    "stored": run.stored,
                    "policy": run.info["policy"],
                    "settings": run.info["settings"],
                    "window": list(run.window),
                    "outcome": run.info["outcome"],
                }
                for name, run in zip(self.names, self.runs, strict=True)
            ],
            "common_window": list(self.window),
            "metrics": [
                {
                    **{column: getattr(row, column) for column in _COLUMNS},
                    "values": dict(zip(self.names, map(_json_number, values), strict=True)),
                }
                for row, values in self.select(*metrics, scope=scope)
            ],
        }

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return comparison_table.html(self)

    def _rows(self, run: Run) -> dict[Key, Measurement]:
        """A run's measurements; utilization over the shared window if the run's own is longer."""
        with reading(run.path):
            rows: Iterable[Measurement] = (
                Measurement(
                    row["metric"], row["value"], row["unit"], row["better"], row["scope"], row["resource"]
                )
                for row in run.metrics.iter_rows(named=True)
            )
            found = {(row.metric, row.scope, row.resource): row for row in rows}
            if run.window != self.window:
                for row in measure_utilization(run, self.window):
                    if (row.metric, row.scope, row.resource) in found:
                        found[row.metric, row.scope, row.resource] = row
        return found


def _chosen(keys: Mapping[Key, Measurement], metrics: Sequence[str], scope: str | None) -> list[Key]:
    """The keys that some metrics and a scope stand for."""
    for pattern in metrics:
        if not any(fnmatchcase(name, pattern) for name, _, _ in keys):
            hint = did_you_mean(pattern, {name for name, _, _ in keys})
            raise RunError(f"no run has a metric {pattern!r}", hint=hint)
    of_metrics = [
        key for key in keys if not metrics or any(fnmatchcase(key[0], pattern) for pattern in metrics)
    ]
    if scope is None or scope == "all":
        return [key for key in of_metrics if scope in (None, key[1])]
    chosen = [key for key in of_metrics if key[1] == scope or key[1].startswith(f"{scope}=")]
    if not chosen:
        scopes = {known for _, known, _ in of_metrics}
        if "=" not in scope:
            scopes = {known.partition("=")[0] for known in scopes}
        what = f" of {', '.join(metrics)}" if metrics else ""
        raise RunError(f"nothing{what} was measured for scope {scope!r}", hint=did_you_mean(scope, scopes))
    return chosen


def _names(runs: Sequence[Run]) -> list[str]:
    """A name for each run, all different: its label, else its folder's name, else its path."""
    places = [run.path.resolve() for run in runs]
    for place, run in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise RunError(f"{run.path} is given twice")
    names = [run.label for run in runs]
    for other in (lambda run: run.info["run"], lambda run: str(run.path)):
        names = [
            other(run) if names.count(name) > 1 or name in _COLUMNS else name
            for name, run in zip(names, runs, strict=True)
        ]
    return names


def _place(baseline: str, runs: Sequence[Run], names: Sequence[str]) -> int:
    """Which run a baseline is, by its name, its label or its folder's name."""
    for known in (names, [run.label for run in runs], [run.info["run"] for run in runs]):
        if baseline in known:
            return known.index(baseline)
    raise RunError(f"no run is called {baseline!r}", hint=did_you_mean(baseline, names))


def _check_comparable(runs: Sequence[Run]) -> None:
    """Refuse runs of different traces, clusters or arrivals, and say what differs."""
    first = runs[0]
    found = [f"  {run.path}: {what}" for run in runs[1:] for what in _differences(first, run)]
    if found:
        raise RunError(
            "\n".join([f"these runs do not compare with {first.path}:", *found]),
            hint="replay one trace on one cluster: harness replay TRACE --plugin A --plugin B",
        )


def _differences(first: Run, run: Run) -> Iterator[str]:
    ours, theirs = first.info, run.info
    if ours["trace"]["sha256"] != theirs["trace"]["sha256"]:
        yield f"another trace: {_trace(theirs)}, not {_trace(ours)}"
    elif ours["cluster"]["sha256"] != theirs["cluster"]["sha256"]:
        differing = ", ".join(_cluster_differences(ours["cluster"], theirs["cluster"]))
        yield f"another cluster: {differing or 'of the same size, but its manifests say something else'}"
    scales = [info["settings"]["scale_arrivals"] for info in (ours, theirs)]
    if scales[0] != scales[1]:
        yield f"arrivals are scaled by {scales[1]}, not by {scales[0]}"
    changes = [_calibration(info["settings"]) for info in (ours, theirs)]
    if changes[0] != changes[1]:
        yield f"the trace is calibrated by {changes[1]}, not by {changes[0]}"


def _calibration(settings: Mapping[str, Any]) -> str:
    """What was changed of the trace before the replay, as options."""
    changed = settings.get("calibration", {})
    return " ".join(f"--{name.replace('_', '-')} {text}" for name, text in changed.items()) or "nothing"


def _trace(info: Mapping[str, Any]) -> str:
    trace = info["trace"]
    return f"{trace['name']} ({trace['jobs']:,} jobs, sha256 {trace['sha256'][:8]}…)"


def _cluster_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """What differs at a glance: the number of nodes, the size, the queues."""
    if ours["nodes"] != theirs["nodes"]:
        yield f"{theirs['nodes']:,} nodes, not {ours['nodes']:,}"
    for resource in sorted({*ours["capacity"], *theirs["capacity"]}):
        sizes = [format_amount(resource, each["capacity"].get(resource, 0)) for each in (ours, theirs)]
        if sizes[0] != sizes[1]:
            yield f"{resource} {sizes[1]}, not {sizes[0]}"
    queues = [each["queues"] for each in (ours, theirs)]
    names = sorted({*queues[0], *queues[1]})
    differing = [name for name in names if queues[0].get(name) != queues[1].get(name)]
    if differing:
        more = f" and {len(differing) - 3:,} more" if len(differing) > 3 else ""
        yield f"queues differ: {', '.join(differing[:3])}{more}"


def _json_number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
