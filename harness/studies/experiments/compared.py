"""Compares settings of an experiment seed by seed, as text, Markdown, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import polars as pl

from harness.analysis.comparison.changes import Evidence, Ground, Row, Verdict, change_of, gates
from harness.analysis.comparison.family import Family, equal_ones
from harness.analysis.comparison.figures import name_of
from harness.analysis.comparison.headlines import HEADLINES
from harness.analysis.comparison.paired import GEOMETRIC, Paired
from harness.analysis.comparison.plain_values import changes_frame, json_row
from harness.analysis.comparison.table import line_of, markdown_table
from harness.base.errors import OptionError, RunError
from harness.base.markdown import plain
from harness.base.options import did_you_mean
from harness.base.text import aligned
from harness.plugins.measurement import Measurement
from harness.runs.measuring import Key, key_of
from harness.studies.experiments.missing_values import about_values
from harness.studies.experiments.objectives import Judged, Setting
from harness.studies.experiments.table import setting_text

_LISTED = "harness experiment show EXPERIMENT lists some items"


class Compared:
    """A comparison of settings with the first of them.

    Args:
        items: the number of one item (replay) for each setting. The item represents all seeds of its setting.
        metrics: the names of the metrics; if empty, the headline metrics.

    Raises:
        OptionError: an item does not exist or has not run yet, or two items have the same setting.
        RunError: a metric was not measured for all jobs, so it can't be compared.
    """

    def __init__(self, judged: Judged, items: Sequence[int], metrics: Sequence[str] = ()) -> None:
        known = judged.frame.filter(scope="all")["metric"].unique()
        for metric in metrics:
            if metric not in known:
                raise RunError(f"{metric} was not measured", hint=did_you_mean(metric, known))
        by_item = {item: setting for setting in judged.settings for item in _items_of(judged, setting)}
        for item in items:
            if item not in by_item:
                raise OptionError(f"item {item} does not exist or has not run yet", hint=_LISTED)
        self.settings = [by_item[item] for item in items]
        if len({each.item for each in self.settings}) < len(self.settings):
            raise OptionError(
                "two of the items belong to the same setting",
                hint="give one item for each setting, because all seeds of a setting are compared together",
            )
        self._judged = judged
        self._rows, self._family = _compared(judged, self.settings, metrics or HEADLINES)

    @property
    def names(self) -> list[str]:
        """The names of the settings, such as `item 3`, where 3 is the setting's first item."""
        return [f"item {setting.item}" for setting in self.settings]

    def text(self, width: int | None = None) -> str:
        """Returns a table with notes for a terminal. A `width` of None means no limit."""
        body = [
            [name_of(line.measured), *(" ".join(filter(None, cell)) for cell in line.cells)]
            for line in map(line_of, self._rows)
        ]
        table = aligned([["metric", *self.names], *body], width=width)
        return "\n".join([*self._told(), "", table, *self._notes()])

    def markdown(self) -> str:
        """Returns a Markdown table with notes, for a pull request."""
        table = markdown_table(self.names, [line_of(row) for row in self._rows])
        told, notes = ([f"- {plain(each)}" for each in some] for some in (self._told(), self._notes()))
        return "\n".join([*told, "", *table, "", *notes])

    def to_polars(self) -> pl.DataFrame:
        """Returns one row per metric and setting, with the columns of `Comparison.changes`."""
        return changes_frame(self._rows, self.names)

    def to_json(self) -> dict[str, Any]:
        """Returns the comparison as plain values. Its `metrics` have the form of `Comparison.to_json`."""
        return {
            "schema": "1",
            "experiment": self._judged.experiment.name,
            "baseline": self.names[0],
            "settings": [
                {"name": name, "item": each.item, "values": dict(each.point)}
                for name, each in zip(self.names, self.settings, strict=True)
            ],
            "seeds": self._judged.seeds,
            "tests": self._family.size,
            "notes": list(self._notes()),
            "metrics": [json_row(row, self.names) for row in self._rows],
        }

    def _told(self) -> list[str]:
        return [f"item {setting.item}: {setting_text(setting)}" for setting in self.settings]

    def _notes(self) -> Iterator[str]:
        yield from _about_changes(self._rows, self._family, seeds=self._judged.seeds > 1)
        yield from about_values(self._judged, self.settings, self._rows)


def _about_changes(rows: Sequence[Row], family: Family, *, seeds: bool) -> Iterator[str]:
    if not seeds:
        yield "?: without seeds, one replay cannot separate the setting's effect from luck"
        return
    yield f"values: means over seeds; {GEOMETRIC}"
    changes = [change for row in rows for change in row.changes]
    if any(change.interval is not None for change in changes):
        how = "or differences of logarithms if means are geometric"
        yield f"[95 % interval]: Student's t interval of differences paired by seed, {how}"
        yield gates(f"corrected for {family.size} tests by Holm's method" if family.size > 1 else "one test")
    if any(change.ground is Ground.FEW and change.verdict is Verdict.OPEN for change in changes):
        yield "?: no verdict: fewer than 2 seeds have a value in both settings"


def _items_of(judged: Judged, setting: Setting) -> Iterator[int]:
    names = list(setting.point)
    for row in judged.items.select("item", *names).iter_rows(named=True):
        if {name: row[name] for name in names} == dict(setting.point):
            yield row["item"]


def _compared(judged: Judged, chosen: Sequence[Setting], metrics: Sequence[str]) -> tuple[list[Row], Family]:
    family = _family(judged, chosen)
    rows = []
    for measured in _measured(judged, metrics):
        paired = _paired(judged, chosen, measured)
        if all(lack.absent == lack.replays for lack in paired.lacks):
            continue
        base, *others = (paired.mean(place) for place in range(len(chosen)))
        changes = []
        for place, other in enumerate(others, 1):
            evidence = paired.evidence(place)
            if evidence.ground is Ground.FEW and judged.seeds == 1:
                evidence = Evidence(Ground.REPLAY)
            interval = evidence.interval
            p = interval and family.corrected(key_of(measured), place, interval.p)
            changes.append(change_of(base, other, measured.better, evidence, p))
        values = judged.values(measured)
        least = [values[setting.item].at_least for setting in chosen]
        rows.append(Row(measured, [base, *others], changes, least))
    return rows, family


def _family(judged: Judged, chosen: Sequence[Setting]) -> Family:
    """Returns the tests of all headline metrics, which are corrected together even if not all are shown."""
    figures: list[dict[Key, Sequence[float | None]]] = [{} for _ in chosen]
    tests: dict[tuple[Key, int], float] = {}
    for measured in _measured(judged, HEADLINES):
        paired = _paired(judged, chosen, measured)
        key = key_of(measured)
        for at, side in enumerate(paired.values):
            figures[at][key] = side
        for at in range(1, len(chosen)):
            interval = paired.evidence(at).interval
            if interval is not None:
                tests[key, at] = interval.p
    return Family(tests, equal_ones(figures))


def _paired(judged: Judged, chosen: Sequence[Setting], measured: Measurement) -> Paired:
    values = judged.values(measured)
    of_settings = [values[each.item] for each in chosen]
    seeds = dict.fromkeys(chain.from_iterable(each.values for each in of_settings))
    rows = [[each.values.get(seed) for seed in seeds] for each in of_settings]
    return Paired(rows, [each.lack for each in of_settings], measured.unit)


def _measured(judged: Judged, metrics: Sequence[str]) -> Iterator[Measurement]:
    for metric in metrics:
        rows = judged.frame.filter(metric=metric, scope="all").unique(
            "resource", keep="first", maintain_order=True
        )
        for row in rows.iter_rows(named=True):
            yield Measurement(metric, None, row["unit"], row["better"], "all", row["resource"])
