"""Compares runs of the same jobs: each metric's value in every run, and what changed against the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from harness.comparison.changes import Chance, Change, Row, judged
from harness.comparison.conditions import Check, Condition, parse_condition
from harness.comparison.head import Head, chosen_by
from harness.comparison.names import names_of, place_of
from harness.comparison.pairs import Pairs
from harness.comparison.samples import Samples, Statistic, is_of_jobs, statistic_of
from harness.comparison.table import html, markdown, text
from harness.errors import RunError
from harness.metrics import fairness, quota, utilization
from harness.metrics.measurement import Measurement, Window
from harness.metrics.scopes import ALL, hint_at, parse_scope
from harness.metrics.utilization import HOURS
from harness.options import did_you_mean
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.statistics.bootstrap import Paired

Key: TypeAlias = tuple[str, str, str]
"""Metric, scope and resource."""

_NO_CHANCE = Chance(possible=False, interval=None)

_COLUMNS = ("metric", "scope", "resource", "unit", "better")


class Comparison:
    """Several runs of the same jobs side by side, whatever cluster, plugin or settings they had.

    What comes from values of jobs is measured over the jobs that all runs have in common, each over its run's
    own window. All else is measured over the whole of each run; utilization, fairness and quota over the
    window that all runs share where their ends differ and the same jobs arrive at the same times.

    Args:
        runs: at least one.
        baseline: name of the run that the others are compared with; the first by default.
        chosen: how the baseline came to be the first; by default it is told from how the runs were given.

    Attributes:
        runs: the baseline first.
        names: what each run is called: its label; where that is not enough, its folder's name or path.
        head: what they differ in.
        pairs: the jobs that they have in common.
        window: what utilization and fairness are measured over; None where arrivals differ, and each run has
            its own.

    Raises:
        RunError: the runs have too few jobs in common, or one is given twice; or there is no such baseline.
    """

    def __init__(self, runs: Sequence[Run], *, baseline: str | None = None, chosen: str = "") -> None:
        if not runs:
            raise RunError("there is nothing to compare", hint="give at least one run folder")
        names = names_of(runs, taken=_COLUMNS)
        order = list(range(len(runs)))
        if baseline is not None:
            order.sort(key=lambda place: place != place_of(baseline, runs, names))
        self.runs = [runs[place] for place in order]
        self.names = [names[place] for place in order]
        self.pairs = Pairs(self.runs)
        self.head = Head(self.runs, self.names, chosen or chosen_by(runs, baseline))
        self.window = self._shared_window() if self.pairs.same_arrivals else None

    @classmethod
    def of(cls, runs: Sequence[Run | str | Path], *, baseline: str | None = None) -> Comparison:
        """Compare runs or their folders; see `harness.compare`."""
        return cls([run if isinstance(run, Run) else Run.open(run) for run in runs], baseline=baseline)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)}>"

    def __str__(self) -> str:
        """The table of the headlines, as the command prints it."""
        return self.table()

    @property
    def shares_window(self) -> bool:
        """Whether all runs are measured over the same time throughout."""
        return all(run.window == self.window for run in self.runs)

    @cached_property
    def differing_capacities(self) -> frozenset[str]:
        """The resources of which the runs have different capacities, of those that jobs ask for."""
        resources = {resource for run in self.runs for resource in run.resources}
        return frozenset(each for each in resources if len({run.capacity.get(each) for run in self.runs}) > 1)

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

    def absent(self, *metrics: str, scope: str | None = "all") -> list[str]:
        """Which of the metrics asked for have nothing in the scope, while others have: in sentences."""
        if scope is None:
            return []
        keys = {(row.metric, row.scope) for measured in self._measured for row in measured.values()}
        wanted, said = parse_scope(scope), []
        for pattern in metrics:
            scopes = {of for name, of in keys if fnmatchcase(name, pattern)}
            if scopes and not any(wanted.holds(of) for of in scopes):
                kinds = sorted({of.partition("=")[0] for of in scopes})
                said.append(f"{pattern}: not measured for scope {scope!r}, but for {', '.join(kinds)}")
        return said

    def rows(self, *metrics: str, scope: str | None = "all") -> list[Row]:
        """What was measured, with what changed; see `to_polars` for the arguments and errors."""
        return self.judge(self.select(*metrics, scope=scope))

    def judge(self, found: Iterable[tuple[Measurement, list[float | None]]]) -> list[Row]:
        """What `select` gave, with what changed; p values are corrected for all tests of these rows."""
        several = list(found)
        return judged(several, [self._tests(*each) for each in several])

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
            scope: `all`, a kind such as `queue` or `reason`, or one of a kind such as `queue=prod`: see
                `harness.metrics.scopes`; None for every scope.

        Raises:
            OptionError: there is no such kind of scope.
            RunError: a metric is in none of the runs, or in none of that scope; or a run is damaged.
        """
        rows = [
            (row.metric, row.scope, row.resource, row.unit, row.better, *values)
            for row, values in self.select(*metrics, scope=scope)
        ]
        schema = dict.fromkeys(_COLUMNS, pl.String) | dict.fromkeys(self.names, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def check(self, *conditions: str | Condition) -> list[Check]:
        """Ask conditions such as `wait.first_start.p95{queue=prod} > +5%` of every run but the baseline.

        Raises:
            OptionError: a condition is not understood, or its bound does not fit the metric.
            RunError: nothing like that was measured, or a run has no value.
        """
        parsed = [parse_condition(each) if isinstance(each, str) else each for each in conditions]
        return [check for condition in parsed for check in condition.checks(self)]

    def table(self, *metrics: str, scope: str | None = "all", width: int | None = None) -> str:
        """The comparison for a terminal of so many columns, None for any number; the headlines by default."""
        return text(self, metrics, scope, width)

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
            "cluster": _size(self.runs[0]),
            "baseline": self.names[0],
            "chosen": self.head.chosen,
            "jobs": self.pairs.count,
            "runs": [
                {
                    "name": name,
                    "label": run.label,
                    "path": str(run.path),
                    "stored": run.stored,
                    "differences": [each.to_json() for each in found],
                    "cluster": _size(run),
                    "jobs_left_out": jobs - self.pairs.count,
                    "policy": run.info["policy"],
                    "settings": run.info["settings"],
                    "window": list(run.window),
                    "outcome": run.info["outcome"],
                    "unmeasured": run.unmeasured,
                }
                for name, run, found, jobs in zip(
                    self.names, self.runs, self.head.distinctions, self.pairs.jobs, strict=True
                )
            ],
            "common_window": None if self.window is None else list(self.window),
            "absent": self.absent(*metrics, scope=scope),
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

    def _shared_window(self) -> Window:
        windows = [run.window for run in self.runs]
        return Window(min(each.start for each in windows), min(each.end for each in windows))

    def _tests(self, measured: Measurement, values: Sequence[float | None]) -> list[Chance]:
        """For each run but the baseline, whether a metric can be told from chance, and its interval."""
        statistic = statistic_of(measured)
        if statistic is None:
            return [_NO_CHANCE] * (len(self.runs) - 1)
        return [
            Chance(possible=True, interval=None)
            if value is None or values[0] is None
            else self._test(statistic, measured.scope, place)
            for place, value in enumerate(values[1:], start=1)
        ]

    def _test(self, statistic: Statistic, scope: str, place: int) -> Chance:
        paired = self._paired(place, statistic.column, scope)
        return (
            _NO_CHANCE if paired is None else Chance(possible=True, interval=paired.interval(statistic.name))
        )

    def _paired(self, place: int, column: str, scope: str) -> Paired | None:
        """The values of the jobs of a scope in two runs; None where it is not of the same jobs."""
        key = (place, column, scope)
        if key not in self._paired_values:
            base, other = self._samples[0], self._samples[place]
            of_scope = [each.members(scope) for each in (base, other)]
            self._paired_values[key] = _paired_within(of_scope, base.of(column), other.of(column))
        return self._paired_values[key]

    @cached_property
    def _samples(self) -> list[Samples]:
        return [Samples(run, rows) for run, rows in zip(self.runs, self.pairs.rows, strict=True)]

    @cached_property
    def _paired_values(self) -> dict[tuple[int, str, str], Paired | None]:
        return {}

    @cached_property
    def _measured(self) -> list[dict[Key, Measurement]]:
        return [self._measurements(place) for place in range(len(self.runs))]

    def _measurements(self, place: int) -> dict[Key, Measurement]:
        """A run's measurements: over the shared window where its own is longer, and over the common jobs."""
        run = self.runs[place]
        with reading(run.path):
            rows: Iterable[Measurement] = (
                Measurement(
                    row["metric"], row["value"], row["unit"], row["better"], row["scope"], row["resource"]
                )
                for row in run.metrics.iter_rows(named=True)
            )
            found = {(row.metric, row.scope, row.resource): row for row in rows}
            for row in self._measured_again(run, found):
                key = (row.metric, row.scope, row.resource)
                if key in found or row.metric.endswith(HOURS):
                    found[key] = row
            if self.pairs.jobs[place] > self.pairs.count:
                rows = self._samples[place].measure()
                of_common = {(row.metric, row.scope, row.resource): row for row in rows}
                found = {
                    key: of_common.get(key, row)
                    for key, row in found.items()
                    if key in of_common or not is_of_jobs(row)
                }
        return found

    def _measured_again(self, run: Run, found: Iterable[Key]) -> Iterator[Measurement]:
        """What is relative to capacity: over the shared window, and of a run of schema 2 in hours."""
        if self.window is not None and run.window != self.window:
            for family in (utilization, fairness, quota):
                yield from family.measure(run, self.window)
        elif self.differing_capacities and not any(name.endswith(HOURS) for name, _, _ in found):
            yield from utilization.measure(run, run.window)


def _paired_within(of_scope: Sequence[pl.Series | None], base: pl.Series, other: pl.Series) -> Paired | None:
    """The values of those jobs that are in a scope in both runs; None where others are in it in each."""
    mine, theirs = of_scope
    if mine is None or theirs is None:
        return Paired(base, other)
    return Paired(base.filter(mine), other.filter(theirs)) if (mine == theirs).all() else None


def _chosen(keys: Mapping[Key, Measurement], metrics: Sequence[str], scope: str | None) -> list[Key]:
    """The keys that some metrics and a scope stand for."""
    for pattern in metrics:
        if not any(fnmatchcase(name, pattern) for name, _, _ in keys):
            hint = did_you_mean(pattern, {name for name, _, _ in keys})
            raise RunError(f"no run has a metric {pattern!r}", hint=hint)
    of_metrics = [
        key for key in keys if not metrics or any(fnmatchcase(key[0], pattern) for pattern in metrics)
    ]
    if scope is None:
        return of_metrics
    wanted = parse_scope(scope)
    chosen = [key for key in of_metrics if wanted.holds(key[1])]
    if not chosen and (metrics or wanted.kind != ALL):
        what = f" of {', '.join(metrics)}" if metrics else ""
        hint = hint_at(wanted, {known for _, known, _ in of_metrics})
        raise RunError(f"nothing{what} was measured for scope {scope!r}", hint=hint)
    return chosen


def _size(run: Run) -> dict[str, Any]:
    """What there is to say of a run's cluster, without its content."""
    return {key: value for key, value in run.info["cluster"].items() if key != "content"}


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
