"""Compares runs of one trace: each metric's value in every run, and what changed against the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from math import isfinite
from typing import Any, TypeAlias

import polars as pl

from harness.comparison.changes import Chance, Change, Row, judged
from harness.comparison.comparable import check_comparable, names_of, place_of
from harness.comparison.samples import Samples, statistic_of
from harness.comparison.table import html, markdown, text
from harness.errors import RunError
from harness.metrics import fairness, utilization
from harness.metrics.measurement import Measurement, Window
from harness.options import did_you_mean
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.statistics.bootstrap import Paired

Key: TypeAlias = tuple[str, str, str]
"""Metric, scope and resource."""

_COLUMNS = ("metric", "scope", "resource", "unit", "better")


class Comparison:
    """Several runs of one trace on one cluster, side by side.

    Utilization and fairness are measured over the window that all runs share where their ends differ;
    everything else over each run's own window.

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
        check_comparable(runs)
        names = names_of(runs, taken=_COLUMNS)
        order = list(range(len(runs)))
        if baseline is not None:
            order.sort(key=lambda place: place != place_of(baseline, runs, names))
        self.runs = [runs[place] for place in order]
        self.names = [names[place] for place in order]
        start = min(run.window.start for run in runs)
        self.window = Window(start, min(run.window.end for run in runs))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)}>"

    @property
    def shares_window(self) -> bool:
        """Whether all runs ended at the same time."""
        return all(run.window == self.window for run in self.runs)

    def select(
        self, *metrics: str, scope: str | None = "all"
    ) -> Iterator[tuple[Measurement, list[float | None]]]:
        """What was measured, with its value in each run; see `to_polars` for the arguments and errors."""
        keys: dict[Key, Measurement] = {}
        for measured in self._measured:
            for key, row in measured.items():
                keys.setdefault(key, row)
        for key in _chosen(keys, metrics, scope):
            yield keys[key], [each[key].value if key in each else None for each in self._measured]

    def rows(self, *metrics: str, scope: str | None = "all") -> list[Row]:
        """What was measured, with what changed; see `to_polars` for the arguments and errors."""
        return self.judge(self.select(*metrics, scope=scope))

    def judge(self, found: Iterable[tuple[Measurement, list[float | None]]]) -> list[Row]:
        """What `select` gave, with what changed; p values are corrected for all tests of these rows."""
        several = list(found)
        return judged(several, [self._tests(measured) for measured, _ in several])

    def changes(self, *metrics: str, scope: str | None = "all") -> pl.DataFrame:
        """One row a metric, scope, resource and run: the value, and how it differs from the baseline's.

        Columns: `metric, scope, resource, unit, better, run, value, baseline` (the value of the baseline)`,
        difference, relative, low, high` (the ends of the difference's 95 % interval)`, p, verdict`: see
        `Change`. The baseline is the first of the runs. Arguments and errors as in `to_polars`.
        """
        rows = []
        for row in self.rows(*metrics, scope=scope):
            about = [getattr(row.measured, column) for column in _COLUMNS]
            base = row.values[0]
            rows.append((*about, self.names[0], base, base, *[None] * 5, ""))
            for name, value, change in zip(self.names[1:], row.values[1:], row.changes, strict=True):
                low, high = (change.interval.low, change.interval.high) if change.interval else (None, None)
                of_change = (change.difference, change.relative, low, high, change.p, str(change.verdict))
                rows.append((*about, name, value, base, *of_change))
        schema: dict[str, type[pl.DataType]] = dict.fromkeys((*_COLUMNS, "run"), pl.String)
        figures = ("value", "baseline", "difference", "relative", "low", "high", "p")
        schema |= dict.fromkeys(figures, pl.Float64) | {"verdict": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

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
        return text(self, metrics, scope)

    def markdown(self, *metrics: str, scope: str | None = "all") -> str:
        """The same table for a pull request."""
        return markdown(self, metrics, scope)

    def to_json(self, *metrics: str, scope: str | None = "all", changes: bool = True) -> dict[str, Any]:
        """The comparison as plain values; a number that JSON does not have becomes null.

        Args:
            metrics: as in `to_polars`.
            scope: as in `to_polars`.
            changes: whether to say what changed; intervals for very many scopes take a while.
        """
        found = self.select(*metrics, scope=scope)
        rows = self.judge(found) if changes else [Row(*each, []) for each in found]
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
                    **{column: getattr(row.measured, column) for column in _COLUMNS},
                    "values": dict(zip(self.names, map(_json_number, row.values), strict=True)),
                    "changes": dict(zip(self.names[1:], map(_json_change, row.changes), strict=False)),
                }
                for row in rows
            ],
        }

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return html(self)

    def _tests(self, measured: Measurement) -> list[Chance]:
        """For each run but the baseline, whether a metric can be told from chance, and its interval."""
        statistic = statistic_of(measured)
        if statistic is None:
            return [Chance(possible=False, interval=None)] * (len(self.runs) - 1)
        return [
            Chance(
                possible=True,
                interval=self._paired(place, statistic.column, measured.scope).interval(statistic.name),
            )
            for place in range(1, len(self.runs))
        ]

    def _paired(self, place: int, column: str, scope: str) -> Paired:
        key = (place, column, scope)
        if key not in self._pairs:
            base, other = self._samples[0], self._samples[place]
            self._pairs[key] = Paired(base.of(column, scope), other.of(column, scope))
        return self._pairs[key]

    @cached_property
    def _samples(self) -> list[Samples]:
        longest = max(self.runs, key=lambda run: run.info["outcome"]["jobs"])
        return [Samples(run, longest) for run in self.runs]

    @cached_property
    def _pairs(self) -> dict[tuple[int, str, str], Paired]:
        return {}

    @cached_property
    def _measured(self) -> list[dict[Key, Measurement]]:
        return [self._measurements(run) for run in self.runs]

    def _measurements(self, run: Run) -> dict[Key, Measurement]:
        """A run's measurements; utilization and fairness over the shared window if its own is longer."""
        with reading(run.path):
            rows: Iterable[Measurement] = (
                Measurement(
                    row["metric"], row["value"], row["unit"], row["better"], row["scope"], row["resource"]
                )
                for row in run.metrics.iter_rows(named=True)
            )
            found = {(row.metric, row.scope, row.resource): row for row in rows}
            if run.window != self.window:
                for row in chain(utilization.measure(run, self.window), fairness.measure(run, self.window)):
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


def _json_number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _json_change(change: Change) -> dict[str, Any]:
    interval = change.interval
    return {
        "difference": change.difference,
        "relative": change.relative,
        "interval": [interval.low, interval.high] if interval else None,
        "blocks": interval.blocks if interval else None,
        "p": change.p,
        "verdict": str(change.verdict),
        "tested": change.tested,
    }
