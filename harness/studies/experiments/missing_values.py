"""Explains which values of an experiment are missing, and how this affects means and rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.comparison.changes import Row
from harness.analysis.comparison.missing import Lack, about_missing, named
from harness.plugins.measurement import Measurement
from harness.studies.experiments.objectives import Judged, Setting


def about_values(judged: Judged, settings: Sequence[Setting], rows: Sequence[Row]) -> Iterator[str]:
    """Yields sentences about missing values in some rows of a table, which the table shows as `-`.

    The sentences also name the means that cover only some seeds.
    """

    def lack(measured: Measurement, place: int) -> Lack:
        return judged.values(measured)[settings[place].item].lack

    names = [f"item {each.item}" for each in settings]
    or_else = "" if judged.whole else ", or were not replayed"
    yield from about_missing(rows, lack, names, or_else=or_else)


def about_objectives(judged: Judged) -> Iterator[str]:
    """Yields sentences about missing values of objectives, and about settings without a rank."""
    settings, rows = judged.settings, []
    for measured in judged.objectives:
        means = judged.estimates(measured)
        values = [None if (mean := means[each.item]) is None else mean.value for each in settings]
        rows.append(Row(measured, values, []))
    yield from about_values(judged, settings, rows)
    lacking = [each for at, each in enumerate(settings) if any(row.values[at] is None for row in rows)]
    if lacking:
        yield (
            "not ranked and not on the frontier, because an objective has no value: "
            f"{named(f'item {each.item}' for each in lacking)}"
        )
