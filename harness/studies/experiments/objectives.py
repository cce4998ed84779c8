"""Finds the objectives of an experiment, and their values for each setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import fsum, isfinite
from typing import Any, NamedTuple

import polars as pl

from harness.analysis.comparison.conditions import Condition, parse_condition
from harness.analysis.comparison.figures import PARTS
from harness.analysis.comparison.missing import SEEDS, Lack, number
from harness.analysis.comparison.statistics.bounded import of_level
from harness.analysis.comparison.statistics.significance import Interval, of_pairs
from harness.base.errors import OptionError, RunError
from harness.base.options import did_you_mean
from harness.base.units import plain_number
from harness.plugins.measurement import Measurement
from harness.runs.measuring import Key, key_of
from harness.studies.experiments.experiment import DONE, Experiment
from harness.studies.experiments.specification import SEED
from harness.studies.experiments.store import value_text as stored_text

DEFAULT = ("wait.first_start.p95", "disruption.lost", "fairness.share_deviation")

_FORM = "write a metric, with its scope or resource: 'disruption.lost{resource=nvidia.com/gpu}'"


class Estimate(NamedTuple):
    """A mean over seeds, with its 95 % interval.

    Attributes:
        value: the mean, or the value if there is only one.
        low: the lower end of the interval; None if there are fewer than two values.
        high: the upper end of the interval.
        p: the probability of a mean at least this far from 0 if only chance matters; None without an
            interval.
        values: the number of values.
        partly: a text with the number of seeds that the mean covers; "" if the mean covers all seeds.
        at_least: whether the mean is a lower bound and can still grow.
    """

    value: float
    low: float | None
    high: float | None
    p: float | None
    values: int
    partly: str = ""
    at_least: bool = False


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of values that differ only by chance, with Student's interval."""
    return _with_interval(values, of_pairs([0.0] * len(values), values, ratio=False))


def _with_interval(values: Sequence[float], found: Interval | None) -> Estimate:
    mean = plain_mean(values)
    if found is None:
        return mean
    return mean._replace(low=found.low, high=found.high, p=found.p, values=found.size)


def plain_mean(values: Sequence[float], *, at_least: bool = False) -> Estimate:
    """Returns the mean without an interval, for values that do not differ by chance."""
    return Estimate(fsum(values) / len(values), None, None, None, len(values), at_least=at_least)


def value_text(value: Any) -> str:
    """Formats a value for people. Numbers have few digits, even if the table stores them as text."""
    if value is None:
        return "-"
    text = stored_text(value)
    try:
        number = float(text)
    except ValueError:
        return text
    # A text such as 007 looks like a number, but is not one.
    of_float = isinstance(value, float) or text == str(number)
    return plain_number(number, 6) if of_float and isfinite(number) else text


_WRITTEN: Sequence[Callable[[Any], str]] = (stored_text, value_text)
"""The functions that format a value, first with all digits and then for people."""


def _where(experiment: Experiment, where: Mapping[str, str]) -> pl.DataFrame:
    items = experiment.items
    for name, text in where.items():
        if name not in experiment.factors:
            raise OptionError(
                f"{name} does not vary in this experiment", hint=did_you_mean(name, experiment.factors)
            )
        values = experiment.factors[name]
        written = next((each for each in _WRITTEN if text in map(each, values)), None)
        if written is None:
            raise OptionError(f"{name} is never {text!r}", hint=did_you_mean(text, map(value_text, values)))
        meant = {each for value in values if written(value) == text for each in _in_table(value)}
        items = items.filter(
            pl.Series([stored_text(value) in meant for value in items[name]], dtype=pl.Boolean)
        )
    return items


def _in_table(value: Any) -> Iterator[str]:
    """Yields the texts that a value may have in the table, where an integer may be stored as a float."""
    yield stored_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        yield stored_text(float(value))


class Setting(NamedTuple):
    """A combination of values of an experiment's factors, without the seed.

    Attributes:
        item: the number of the setting's first item.
        point: the value of each factor, as in the table.
    """

    item: int
    point: Mapping[str, Any]


class OverSeeds(NamedTuple):
    """The values of a metric in a setting, seed by seed.

    Attributes:
        values: the value for each seed of the experiment; None if a seed has no value.
        at_least: whether any value is a lower bound and can still grow.
        unit: the unit of the metric. Shares are at most 1.
    """

    values: Mapping[int, float | None]
    at_least: bool = False
    unit: str = ""

    @property
    def lack(self) -> Lack:
        """The number of seeds without a value."""
        missing = sum(value is None for value in self.values.values())
        return Lack(missing, len(self.values), SEEDS)

    @property
    def mean(self) -> Estimate | None:
        """The mean over the seeds with a value, and its interval; None if no seed has a value."""
        there = [value for value in self.values.values() if value is not None]
        if not there:
            return None
        found = of_level(there, 1.0 if self.unit in PARTS else None)
        return _with_interval(there, found)._replace(partly=self.lack.partly, at_least=self.at_least)


class Judged:
    """The metrics of an experiment's settings.

    Args:
        experiment: an experiment with at least one finished item.
        objectives: texts of the form `METRIC` or `METRIC{SCOPE,resource=NAME}`; if empty, the default
            objectives that were measured.
        where: the values of factors that select items; by default, all items are selected.

    Raises:
        RunError: there are no finished items, or a metric was not measured.
        OptionError: a text is not a metric, or lacks the resource of the metric.
    """

    def __init__(
        self, experiment: Experiment, objectives: Sequence[str] = (), where: Mapping[str, str] | None = None
    ) -> None:
        self.experiment = experiment
        self._asked = _where(experiment, where or {})
        self.items = self._asked.filter(state=DONE)
        self._known: dict[Key, Mapping[int, OverSeeds]] = {}
        self.frame = experiment.to_polars().filter(pl.col("item").is_in(self.items["item"].implode()))
        if self.frame.is_empty():
            what = f"{experiment.root}: no item has run"
            raise RunError(
                f"{what} with these values" if where else f"{what} yet", hint="harness sweep makes them"
            )
        self.objectives = [
            measured_as(self.frame, text, given=bool(objectives)) for text in objectives or self._default()
        ]

    @property
    def seeds(self) -> int:
        """The number of seeds of a setting, whether or not they have run; 1 if there are no seeds."""
        return max(map(len, self._items_of.values()))

    @property
    def whole(self) -> bool:
        """True if all items have run."""
        return self.items.height == self._asked.height

    @cached_property
    def settings(self) -> list[Setting]:
        """Every setting for which an item has run, in order."""
        names = [name for name in self.experiment.factors if name != SEED]
        first = self.items.group_by(names, maintain_order=True).agg(pl.col("item").first())
        return [
            Setting(row["item"], {name: row[name] for name in names})
            for row in first.sort("item").iter_rows(named=True)
        ]

    @cached_property
    def _items_of(self) -> Mapping[int, Mapping[int, int]]:
        """Maps the first item of each setting to the setting's items by seed, whether or not they have run.

        The seed is 0 if there are no seeds.
        """
        names = [name for name in self.experiment.factors if name != SEED]
        first = {tuple(each.point.values()): each.item for each in self.settings}
        found: dict[int, dict[int, int]] = {item: {} for item in first.values()}
        asked = self._asked
        seeds = asked[SEED] if SEED in asked.columns else [0] * asked.height
        for item, row, seed in zip(asked["item"], asked.select(names).iter_rows(), seeds, strict=True):
            if row in first:
                found[first[row]][seed] = item
        return found

    def values(self, measured: Measurement) -> Mapping[int, OverSeeds]:
        """Maps the first item of each setting to the setting's values."""
        key = key_of(measured)
        if key not in self._known:
            self._known[key] = self._values(key)
        return self._known[key]

    def _values(self, key: Key) -> Mapping[int, OverSeeds]:
        tables = self._measured([key])
        found = {}
        for setting, items in self._items_of.items():
            of_seeds = {seed: tables.get(item, {}) for seed, item in items.items()}
            values = {seed: number(table, key) for seed, table in of_seeds.items()}
            there = [table[key] for table in of_seeds.values() if key in table]
            least = any(each.at_least for each in there)
            found[setting] = OverSeeds(values, least, there[0].unit if there else "")
        return found

    def _measured(self, keys: Sequence[Key]) -> Mapping[int, Mapping[Key, Measurement]]:
        wanted = [
            (pl.col("metric") == metric) & (pl.col("scope") == scope) & (pl.col("resource") == resource)
            for metric, scope, resource in keys
        ]
        columns = ("metric", "value", "unit", "better", "scope", "resource", "at_least")
        found: dict[int, dict[Key, Measurement]] = {}
        for item, *row in self.frame.filter(pl.any_horizontal(wanted)).select("item", *columns).iter_rows():
            measured = Measurement(*row)
            found.setdefault(item, {})[key_of(measured)] = measured
        return found

    def estimates(self, measured: Measurement) -> Mapping[int, Estimate | None]:
        """Maps the first item of each setting to the mean over the seeds, or to None if there is no value."""
        return {item: each.mean for item, each in self.values(measured).items()}

    def scopes(self, kind: str) -> list[str]:
        """Returns the measured scopes of a kind, such as all `queue=NAME`."""
        scopes = self.frame.filter(pl.col("scope").str.starts_with(f"{kind}="))["scope"]
        return sorted(scopes.unique())

    def _default(self) -> list[str]:
        there = set(self.frame["metric"].unique())
        found = [name for name in DEFAULT if name in there]
        return found or sorted(self.frame.filter(pl.col("better") != "")["metric"].unique())[:1]


def measured_as(frame: pl.DataFrame, text: str, *, given: bool) -> Measurement:
    """Returns the metric that a text names. The result has no value.

    The columns of `frame` are `metric`, `scope`, `resource`, `unit` and `better`. `text` is `METRIC` or
    `METRIC{SCOPE,resource=NAME}`. If a user wrote it (`given`), it must name the resource if the metric was
    measured for several resources.

    Raises:
        OptionError: the text is not a metric or does not name its resource. Or neither higher nor lower
            values of the metric are better.
        RunError: no such metric was measured.
    """
    try:
        asked = parse_condition(f"{text} > 0")
    except OptionError as error:
        raise OptionError(f"objective {text!r} is not understood", hint=_FORM) from error
    found = found_as(frame, asked, given=given)
    if not found.better:
        what = "neither higher nor lower values of this metric are better"
        raise OptionError(f"objective {text!r}: {what}", hint=_FORM)
    return found


def found_as(frame: pl.DataFrame, asked: Condition, *, given: bool) -> Measurement:
    """Returns the metric that a condition names, without its value. See `measured_as`."""
    rows = frame.filter(metric=asked.metric)
    if rows.is_empty():
        known = frame["metric"].unique()
        raise RunError(f"{asked.metric} was not measured", hint=did_you_mean(asked.metric, known))
    rows = rows.filter(scope=asked.scope)
    if rows.is_empty():
        known = frame.filter(metric=asked.metric)["scope"].unique()
        what = f"{asked.metric} was not measured for {asked.scope}"
        raise RunError(what, hint=did_you_mean(asked.scope, known))
    resources = rows["resource"].unique(maintain_order=True).to_list()
    resource = asked.resource
    if resource and resources == [""]:
        raise OptionError(f"{asked.metric} has no resource", hint=f"leave out resource={resource}")
    if resource is None:
        resource = resources[0] if len(resources) == 1 else None if given else _main(resources)
    if resource is None or resource not in resources:
        raise OptionError(
            f"{asked.metric} needs a resource: {', '.join(resources)}",
            hint=f"{asked.metric}{{resource={_main(resources)}}}",
        )
    row = rows.filter(resource=resource).row(0, named=True)
    return Measurement(asked.metric, None, row["unit"], row["better"], asked.scope, resource)


def _main(resources: Sequence[str]) -> str:
    """Returns the main resource of a cluster: devices if there are any, or else cpu or the first resource."""
    devices = sorted(each for each in resources if "/" in each)
    return devices[0] if devices else "cpu" if "cpu" in resources else resources[0]
