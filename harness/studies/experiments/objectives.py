"""What an experiment is judged by: metrics with a direction, and their values in each of its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import fsum, isfinite
from typing import Any, NamedTuple

import polars as pl

from harness.analysis.comparison.conditions import Condition, parse_condition
from harness.analysis.comparison.figures import Key, key_of
from harness.analysis.comparison.missing import SEEDS, Lack, number
from harness.analysis.comparison.statistics.significance import of_pairs
from harness.base.errors import OptionError, RunError
from harness.base.options import did_you_mean
from harness.base.units import plain_number
from harness.plugins.measurement import Measurement
from harness.studies.experiments.experiment import DONE, Experiment
from harness.studies.experiments.specification import SEED
from harness.studies.experiments.store import value_text as stored_text

DEFAULT = ("wait.first_start.p95", "disruption.lost", "fairness.share_deviation")
"""What experiments are judged by unless somebody says otherwise."""

_FORM = "write a metric, with its scope or resource: 'disruption.lost{resource=nvidia.com/gpu}'"


class Estimate(NamedTuple):
    """A mean over seeds, with its 95 % interval.

    Attributes:
        value: the mean; of one value that itself.
        low: the lower end of its interval; None where there are less than two values.
        high: the upper end.
        p: how likely a mean at least so far from 0 is by chance alone; None without an interval.
        values: of how many.
        partly: of how many of its seeds the mean is, in words; "" where it is of all.
        at_least: whether it is the least that it can become.
    """

    value: float
    low: float | None
    high: float | None
    p: float | None
    values: int
    partly: str = ""
    at_least: bool = False


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of values that differ by chance alone, with Student's interval."""
    mean = plain_mean(values)
    found = of_pairs([0.0] * len(values), values, ratio=False)
    if found is None:
        return mean
    return mean._replace(low=found.low, high=found.high, p=found.p, values=found.size)


def plain_mean(values: Sequence[float], *, at_least: bool = False) -> Estimate:
    """The mean of values that do not differ by chance alone, without an interval."""
    return Estimate(fsum(values) / len(values), None, None, None, len(values), at_least=at_least)


def value_text(value: Any) -> str:
    """A value for people: a number of a few digits, also where the table has it as text among texts."""
    if value is None:
        return "-"
    text = stored_text(value)
    try:
        number = float(text)
    except ValueError:
        return text
    of_float = isinstance(value, float) or text == str(number)  # no text that only looks like a number: 007
    return plain_number(number, 6) if of_float and isfinite(number) else text


_WRITTEN: Sequence[Callable[[Any], str]] = (stored_text, value_text)
"""How a value may be written: with all of its digits, or as it is shown."""


def _where(experiment: Experiment, where: Mapping[str, str]) -> pl.DataFrame:
    """The items that are set so.

    Raises:
        OptionError: something does not vary, or has no such value.
    """
    items = experiment.items
    for name, text in where.items():
        if name not in experiment.factors:
            raise OptionError(f"{name} does not vary here", hint=did_you_mean(name, experiment.factors))
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
    """How the table may have a value: a whole number among others is one of them there."""
    yield stored_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        yield stored_text(float(value))


class Setting(NamedTuple):
    """What an experiment is set to, seeds apart.

    Attributes:
        item: the number of its first item.
        point: factor -> value, as the table has it.
    """

    item: int
    point: Mapping[str, Any]


class OverSeeds(NamedTuple):
    """What a setting leads to in a metric, seed by seed.

    Attributes:
        values: seed -> value, of all seeds of the experiment; None where there is none.
        at_least: whether any of them is the least that it can become.
    """

    values: Mapping[int, float | None]
    at_least: bool = False

    @property
    def lack(self) -> Lack:
        """In how many seeds it has no value."""
        missing = sum(value is None for value in self.values.values())
        return Lack(missing, len(self.values), SEEDS)

    @property
    def mean(self) -> Estimate | None:
        """The mean over those that have a value; None where none has one."""
        there = [value for value in self.values.values() if value is not None]
        if not there:
            return None
        return estimate(there)._replace(partly=self.lack.partly, at_least=self.at_least)


class Judged:
    """The values of an experiment's settings in some metrics.

    Args:
        experiment: one with at least one item that was made.
        objectives: `METRIC` or `METRIC{SCOPE,resource=NAME}`; the default ones that were measured if none.
        where: only items that are set so: factor -> value; all by default.

    Raises:
        RunError: no item was made, or a metric was not measured.
        OptionError: a text is no metric, or does not name its resource.
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
            what = f"{experiment.root}: no item was made"
            raise RunError(
                f"{what} that is set so" if where else f"{what} yet", hint="harness sweep makes them"
            )
        self.objectives = [
            measured_as(self.frame, text, given=bool(objectives)) for text in objectives or self._default()
        ]

    @property
    def seeds(self) -> int:
        """How many seeds a setting has, made or not; 1 without any."""
        return max(map(len, self._items_of.values()))

    @property
    def whole(self) -> bool:
        """Whether all items were made."""
        return self.items.height == self._asked.height

    @cached_property
    def settings(self) -> list[Setting]:
        """Every setting with an item that was made, in order."""
        names = [name for name in self.experiment.factors if name != SEED]
        first = self.items.group_by(names, maintain_order=True).agg(pl.col("item").first())
        return [
            Setting(row["item"], {name: row[name] for name in names})
            for row in first.sort("item").iter_rows(named=True)
        ]

    @cached_property
    def _items_of(self) -> Mapping[int, Mapping[int, int]]:
        """Setting, by its first item -> seed (0 without any) -> item, whether that was made or not."""
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
        """Setting, by its first item -> its values."""
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
            least = any(table[key].at_least for table in of_seeds.values() if key in table)
            found[setting] = OverSeeds(values, least)
        return found

    def _measured(self, keys: Sequence[Key]) -> Mapping[int, Mapping[Key, Measurement]]:
        """Item -> these, as far as they were measured of it."""
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
        """Setting, by its first item -> the mean over its seeds.

        None where there is no value.
        """
        return {item: each.mean for item, each in self.values(measured).items()}

    def scopes(self, kind: str) -> list[str]:
        """The scopes of a kind that were measured, such as all `queue=NAME`."""
        scopes = self.frame.filter(pl.col("scope").str.starts_with(f"{kind}="))["scope"]
        return sorted(scopes.unique())

    def _default(self) -> list[str]:
        there = set(self.frame["metric"].unique())
        found = [name for name in DEFAULT if name in there]
        return found or sorted(self.frame.filter(pl.col("better") != "")["metric"].unique())[:1]


def measured_as(frame: pl.DataFrame, text: str, *, given: bool) -> Measurement:
    """What a text means among what was measured; its value is none.

    Args:
        frame: rows with `metric`, `scope`, `resource`, `unit` and `better`.
        text: `METRIC` or `METRIC{SCOPE,resource=NAME}`.
        given: whether somebody wrote it, so that a resource that is left out is asked for.

    Raises:
        OptionError: the text is no metric, does not name its resource, or has no direction.
        RunError: nothing like that was measured.
    """
    try:
        asked = parse_condition(f"{text} > 0")
    except OptionError as error:
        raise OptionError(f"objective {text!r} is not understood", hint=_FORM) from error
    found = found_as(frame, asked, given=given)
    if not found.better:
        raise OptionError(f"objective {text!r}: neither more nor less of it is better", hint=_FORM)
    return found


def found_as(frame: pl.DataFrame, asked: Condition, *, given: bool) -> Measurement:
    """What a condition is about, among what was measured; see `measured_as`."""
    rows = frame.filter(metric=asked.metric)
    if rows.is_empty():
        known = frame["metric"].unique()
        raise RunError(f"{asked.metric} was not measured", hint=did_you_mean(asked.metric, known))
    rows = rows.filter(scope=asked.scope)
    if rows.is_empty():
        known = frame.filter(metric=asked.metric)["scope"].unique()
        what = f"{asked.metric} was not measured of {asked.scope}"
        raise RunError(what, hint=did_you_mean(asked.scope, known))
    resources = rows["resource"].unique(maintain_order=True).to_list()
    resource = asked.resource
    if resource and resources == [""]:
        raise OptionError(f"{asked.metric} is of no resource", hint=f"leave out resource={resource}")
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
    """The resource that a cluster is about: devices, where there are any, else cpu."""
    devices = sorted(each for each in resources if "/" in each)
    return devices[0] if devices else "cpu" if "cpu" in resources else resources[0]
