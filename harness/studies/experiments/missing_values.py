"""Which values of an experiment are missing, and what that is left out of, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.comparison.changes import Row
from harness.analysis.comparison.missing import Lack, about_missing, named
from harness.plugins.measurement import Measurement
from harness.studies.experiments.objectives import Judged, Setting


def about_values(judged: Judged, settings: Sequence[Setting], rows: Sequence[Row]) -> Iterator[str]:
    """What `-` means in these lines, and which means are over some seeds only.

    Args:
        judged: the experiment.
        settings: the columns of the lines.
        rows: the lines.
    """

    def lack(measured: Measurement, place: int) -> Lack:
        return judged.values(measured)[settings[place].item].lack

    names = [f"item {each.item}" for each in settings]
    or_else = "" if judged.whole else ", or they were not made"
    yield from about_missing(rows, lack, names, or_else=or_else)


def about_objectives(judged: Judged) -> Iterator[str]:
    """The same of the objectives in all settings, and which settings are not ranked for that."""
    settings, rows = judged.settings, []
    for measured in judged.objectives:
        means = judged.estimates(measured)
        values = [None if (mean := means[each.item]) is None else mean.value for each in settings]
        rows.append(Row(measured, values, []))
    yield from about_values(judged, settings, rows)
    lacking = [each for at, each in enumerate(settings) if any(row.values[at] is None for row in rows)]
    if lacking:
        yield (
            "neither best or worst nor on the frontier, as not all objectives are known: "
            f"{named(f'item {each.item}' for each in lacking)}"
        )
