"""Compares runs of the same jobs by the values of their metrics and the changes from a baseline."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from harness.analysis.comparison.changes import Change, Evidence, Ground, Row, change_of
from harness.analysis.comparison.family import Family, equal_ones
from harness.analysis.comparison.figures import chosen
from harness.analysis.comparison.head import Head, chosen_by
from harness.analysis.comparison.headlines import HEADLINES
from harness.analysis.comparison.missing import Lack, depends_on_run_times
from harness.analysis.comparison.one_replay import OneReplay, measurements_of
from harness.analysis.comparison.pairs import Pairs, shares_of
from harness.analysis.comparison.plain_values import COLUMNS, changes_frame, cluster_size, json_row
from harness.analysis.comparison.shaken import Shaken
from harness.analysis.comparison.table import html, markdown, text
from harness.base.errors import OptionError, RunError
from harness.base.options import did_you_mean
from harness.plugins.measurement import Measurement
from harness.plugins.scopes import ALL, parse_scope
from harness.runs.arguments import opened
from harness.runs.measuring import Key, key_of
from harness.runs.run import Run

if TYPE_CHECKING:
    from harness.analysis.comparison.conditions import Check, Condition
    from harness.analysis.comparison.paired import Paired
    from harness.trace.shake import Shake


class Comparison:
    """A comparison of several runs of the same jobs, whose clusters, plugins and settings may differ.

    Metrics of jobs are measured over the jobs that all runs have in common and that no run rejected on
    arrival. If the same jobs arrive at the same times in all runs, the runs share their windows
    (`harness.analysis.metrics.shared_window`). Otherwise, each run is measured over its own window.

    Args:
        runs: the runs, at least one.
        baseline: the name of the run with which the others are compared; by default, the first run.
        chosen: a text for the output that explains why this run is the baseline. By default, the text says
            that the caller requested this run, or that it is the first run.
        shake: the jitter and the number of twins, if twins are compared instead of the runs themselves. A
            twin is a replay of the same jobs whose arrivals are slightly shifted.
        twins: the replayed twins of each run, in the order of the runs.

    Attributes:
        runs: the runs, with the baseline first.
        names: the name of each run: its label or, if labels are not distinct, the name or path of its folder.
        head: the differences between the runs' plugins, settings, traces and clusters.
        pairs: the jobs that all runs have in common.
        shares: the window of each run. Empty if twins are compared, because twins with the same number share
            a window.
        window: the window of metrics that are integrated over time. None if twins are compared, or if each
            run has its own window because arrivals differ.
        shake: the jitter and the number of twins; None if the runs themselves are compared.
        twins: the twins of each run.

    Raises:
        RunError: the runs have too few jobs in common, a run is given twice, no run has the baseline's name,
            or twins are requested although the runs have different jobs.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        *,
        baseline: str | None = None,
        chosen: str = "",
        shake: Shake | None = None,
        twins: Sequence[Sequence[Run]] = (),
    ) -> None:
        if not runs:
            raise RunError("there is nothing to compare", hint="give at least one run folder")
        names = names_of(runs, taken=COLUMNS)
        order = list(range(len(runs)))
        if baseline is not None:
            order.sort(key=lambda place: place != place_of(baseline, runs, names))
        self.runs = [runs[place] for place in order]
        self.names = [names[place] for place in order]
        self.pairs = Pairs(self.runs)
        self.head = Head(self.runs, self.names, chosen or chosen_by(runs, baseline))
        self.shake, self.twins = shake, [twins[place] for place in order] if shake is not None else []
        if shake is not None:
            self.pairs.require_whole()
        self.shares = shares_of(self.runs, self.pairs) if shake is None else []
        shared = self.pairs.same_arrivals and shake is None
        self.window = self.runs[0].window._replace(end=self.shares[0].integrals) if shared else None
        self._figures: OneReplay | Shaken = (
            OneReplay(self.runs, self.pairs, self.shares, hours=bool(self.differing_capacities))
            if shake is None
            else Shaken(self.runs, shake, self.twins, shared=self.pairs.same_arrivals)
        )

    @classmethod
    def of(cls, runs: Sequence[Run | str | Path], *, baseline: str | None = None) -> Comparison:
        """Compares runs or their folders; see `harness.compare`.

        Raises:
            RunError: the runs cannot be compared, or a single run was given instead of a sequence.
            OptionError: the arguments are not runs.
        """
        return cls(opened(runs), baseline=baseline)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.names)}>"

    def __str__(self) -> str:
        """Returns the table of the headlines, as the command prints it."""
        return self.table()

    def over_own_window(self, place: int) -> Mapping[Key, Measurement]:
        """Returns a run's values over its own window. Empty if the comparison uses this window anyway.

        If twins are compared, these values are means over the twins, like all other values.
        """
        if isinstance(self._figures, Shaken):
            return self._figures.own(place)
        if self.shares[place].is_own(self.runs[place]):
            return {}
        return measurements_of(self.runs[place])

    @property
    def measured(self) -> Sequence[Mapping[Key, Measurement]]:
        """The measurements of each run."""
        return self._figures.measured

    @property
    def shares_window(self) -> bool:
        """True if all runs have the same window, so that every metric is measured over it."""
        return all(run.window == self.window for run in self.runs)

    @cached_property
    def fullest(self) -> str:
        """The resource that the baseline uses most, or the first resource if no utilization is known."""
        known = {
            measured.resource: values[0]
            for measured, values in self.select()
            if measured.metric == "utilization.allocated" and values[0] is not None
        }
        return max(self.runs[0].resources, key=lambda resource: known.get(resource) or 0.0)

    @cached_property
    def differing_capacities(self) -> frozenset[str]:
        """The resources that jobs request and whose capacity differs between the runs at some time."""
        resources = {resource for run in self.runs for resource in run.resources}
        return frozenset(
            each for each in resources if len({tuple(run.capacity_steps(each)) for run in self.runs}) > 1
        )

    def select(
        self, *metrics: str, scope: str | None = "all"
    ) -> Iterator[tuple[Measurement, list[float | None]]]:
        """Yields each metric with its value in each run; see `to_polars` for the arguments and errors."""
        keys: dict[Key, Measurement] = {}
        for measured in self._figures.measured:
            for key, row in measured.items():
                keys.setdefault(key, row)
        for key in chosen(keys, metrics, scope):
            yield keys[key], [each[key].value if key in each else None for each in self._figures.measured]

    def at_least(self, measured: Measurement) -> list[bool | None]:
        """Returns for each run whether its value is a lower bound that can still grow, or None if unknown."""
        key = key_of(measured)
        return [each[key].at_least if key in each else None for each in self._figures.measured]

    def lack(self, measured: Measurement, place: int) -> Lack:
        """Returns how many replays of a run have no value of a metric.

        The replays are the twins if twins are compared, or else the run itself.
        """
        return self._figures.lack(measured, place)

    def without_run_times(self, measured: Measurement, place: int) -> str:
        """Explains why unknown run times make a run's value and its change meaningless.

        Waits and losses have no meaning if the run times of some jobs are unknown. For all other values, the
        result is "".
        """
        if not depends_on_run_times(measured.metric):
            return ""
        return self.runs[0].without_run_times or self.runs[place].without_run_times

    def absent(self, *metrics: str, scope: str | None = "all") -> list[str]:
        """Returns a sentence for each requested metric that was measured only for other scopes."""
        if scope is None:
            return []
        keys = {(row.metric, row.scope) for measured in self._figures.measured for row in measured.values()}
        wanted, said = parse_scope(scope), []
        for pattern in metrics:
            scopes = {of for name, of in keys if fnmatchcase(name, pattern)}
            if scopes and not any(wanted.holds(of) for of in scopes):
                kinds = sorted({of.partition("=")[0] for of in scopes})
                said.append(f"{pattern} is not measured for scope {scope!r}, but for {', '.join(kinds)}")
        return said

    def rows(self, *metrics: str, scope: str | None = "all") -> list[Row]:
        """Returns the measured metrics with their changes; see `to_polars` for the arguments and errors."""
        return self.judge(self.select(*metrics, scope=scope))

    def judge(self, found: Iterable[tuple[Measurement, list[float | None]]]) -> list[Row]:
        """Adds the changes to the metrics and values that `select` yields."""
        return [self._judged(measured, values) for measured, values in found]

    def remarks(self, changes: Sequence[Change]) -> Iterator[str]:
        """Yields notes that explain where the intervals come from, and which differences are not judged."""
        size = self._family.size
        tests = f"corrected for {size:,} tests, Holm" if size > 1 else "one test"
        yield from self._figures.remarks(changes, tests)

    def changes(self, *metrics: str, scope: str | None = "all") -> pl.DataFrame:
        """Returns a table of values and changes, with one row for each metric, scope, resource and run.

        The baseline is the first run. The table has these columns:

        - `metric`, `scope`, `resource`, `unit`, `better` and `run`.
        - `value`, `at_least` (whether the value is a lower bound that can still grow) and `baseline` (the
          baseline's value).
        - `difference`, `relative`, `low` and `high` (the ends of the 95 % interval), `scale` (whether these
          ends are differences or factors), `p`, `ground` and `verdict`; see `Change`.

        The arguments and errors are those of `to_polars`.
        """
        return changes_frame(self.rows(*metrics, scope=scope), self.names)

    def to_polars(self, *metrics: str, scope: str | None = "all") -> pl.DataFrame:
        """Returns a table with one row for each metric, scope and resource, and one column for each run.

        Args:
            metrics: names or patterns such as `wait.*`; by default, all metrics.
            scope: `all`, a kind such as `queue` or `reason`, or a single scope such as `queue=prod`; see
                `harness.plugins.scopes`. None selects every scope.

        Raises:
            OptionError: there is no such kind of scope.
            RunError: no run has the metric, no run has the metric for that scope, or a run is damaged.
        """
        rows = [
            (row.metric, row.scope, row.resource, row.unit, row.better, *values)
            for row, values in self.select(*metrics, scope=scope)
        ]
        schema = dict.fromkeys(COLUMNS, pl.String) | dict.fromkeys(self.names, pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def check(self, *conditions: str | Condition, values: bool = False) -> list[Check]:
        """Checks conditions such as `wait.first_start.p95{queue=prod} > +5%` for every run but the baseline.

        Args:
            conditions: the conditions that must not hold.
            values: True to judge point values. By default, a condition is judged by the 95 % interval over
                twins. The condition holds if the whole interval meets the condition. If only a part of the
                interval meets the condition, the check is undecided.

        Raises:
            OptionError: a condition cannot be parsed, its bound does not fit the metric, or there are no
                twins although `values` is false.
            RunError: no such metric was measured, or a run has no value.
        """
        from harness.analysis.comparison.conditions import NEEDS_TWINS, parse_condition

        parsed = [parse_condition(each) if isinstance(each, str) else each for each in conditions]
        for condition in parsed:  # Report a misspelt metric, even if there are no twins either.
            condition.rows(self)
        if parsed and self.shake is None and not values:
            raise OptionError(
                NEEDS_TWINS,
                hint="harness.compare(runs, shake=5) makes twins; values=True judges point values",
            )
        return [check for condition in parsed for check in condition.checks(self, values=values)]

    def paired(self, measured: Measurement) -> Paired | None:
        """Returns the values of a metric over the twins, or None without twins."""
        return self._figures.paired(key_of(measured)) if isinstance(self._figures, Shaken) else None

    def table(
        self,
        *metrics: str,
        scope: str | None = "all",
        width: int | None = None,
        brief: bool = False,
        every_note: bool = False,
    ) -> str:
        """Returns a table of metrics for a terminal.

        If `brief` is true, the table has only the most important metrics, and most notes are hidden unless
        `every_note` is true.
        """
        return text(self, metrics, scope, width, brief=brief, every_note=every_note)

    def markdown(self, *metrics: str, scope: str | None = "all", brief: bool = False) -> str:
        """Returns the comparison as a Markdown table for a pull request."""
        return markdown(self, metrics, scope, brief=brief)

    def to_json(self, *metrics: str, scope: str | None = "all", changes: bool = True) -> dict[str, Any]:
        """Returns the comparison as plain values, with None for a number that JSON cannot express.

        `metrics` and `scope` are as in `to_polars`. If `changes` is false, the result contains no changes,
        which saves time if there are very many scopes.
        """
        found = self.select(*metrics, scope=scope)
        rows = self.judge(found) if changes else [Row(*each, [], self.at_least(each[0])) for each in found]
        return {
            "schema": "1",
            "trace": self.runs[0].info["trace"],
            "cluster": cluster_size(self.runs[0]),
            "baseline": self.names[0],
            "chosen": self.head.chosen,
            "jobs": self.pairs.count,
            "twins": None if self.shake is None else str(self.shake),
            "tests": self._family.size if changes else None,
            "runs": [
                {
                    "name": name,
                    "label": run.label,
                    "path": str(run.path),
                    "stored": run.stored,
                    "differences": [each.to_json() for each in found],
                    "cluster": cluster_size(run),
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
            "metrics": [json_row(row, self.names) for row in rows],
        }

    def _repr_html_(self) -> str:
        return html(self)

    def _judged(self, measured: Measurement, values: list[float | None]) -> Row:
        base, *others = values
        changes = []
        for place, value in enumerate(others, start=1):
            evidence = self._evidence(measured, place)
            interval = evidence.interval
            p = interval and self._family.corrected(key_of(measured), place, interval.p)
            changes.append(change_of(base, value, measured.better, evidence, p))
        return Row(measured, values, changes, self.at_least(measured))

    def _evidence(self, measured: Measurement, place: int) -> Evidence:
        key = (key_of(measured), place)
        if key not in self._known:
            unknown = self.without_run_times(measured, place)
            found = Evidence(Ground.RUN_TIMES) if unknown else self._figures.evidence(measured, place)
            self._known[key] = found
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[Key, int], Evidence]:
        return {}

    @cached_property
    def _family(self) -> Family:
        same_as = equal_ones([self._figures.outcome(place) for place in range(len(self.runs))])
        tests: dict[tuple[Key, int], float] = {}
        for key, measured in self._figures.measured[0].items():
            if measured.scope != ALL or measured.metric not in HEADLINES or measured.value is None:
                continue
            for place in range(1, len(self.runs)):
                if same_as[place] == place and self._figures.testable(measured):
                    interval = self._evidence(measured, place).interval
                    tests[key, place] = 1.0 if interval is None else interval.p
        return Family(tests, same_as)


def names_of(runs: Sequence[Run], *, taken: Container[str] = ()) -> list[str]:
    """Returns a distinct name for each run: its label, or else its folder's name, or else the folder's path.

    A label is not used if several runs have it, or if it is in `taken`. The same applies to the names of
    folders.

    Raises:
        RunError: a run is given twice.
    """
    places = [run.path.resolve() for run in runs]
    for place, run in zip(places, runs, strict=True):
        if places.count(place) > 1:
            raise RunError(f"{run.path} is given twice")
    names = [run.label for run in runs]
    for other in (lambda run: run.info["run"], lambda run: str(run.path)):
        names = [
            other(run) if names.count(name) > 1 or name in taken else name
            for name, run in zip(names, runs, strict=True)
        ]
    return names


def place_of(baseline: str, runs: Sequence[Run], names: Sequence[str]) -> int:
    """Returns the index of the baseline, which is given by name, label, folder, or the name of the folder."""
    folders = [str(run.path) for run in runs]
    for known in (names, [run.label for run in runs], [run.info["run"] for run in runs], folders):
        if baseline in known:
            return known.index(baseline)
    raise RunError(f"no run is named {baseline!r}", hint=did_you_mean(baseline, names))
