"""Formats the results of an experiment as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.comparison.figures import change_between, digits_of, name_of, shown
from harness.base.text import aligned, counted, first_of
from harness.plugins.measurement import Measurement
from harness.studies.experiments.effects import effects, unpaired
from harness.studies.experiments.experiment import DONE, Experiment
from harness.studies.experiments.frontier import Outcome, Shift, circumstances, frontier, outcomes, shifts
from harness.studies.experiments.missing_values import about_objectives
from harness.studies.experiments.objectives import Estimate, Judged, Setting, value_text

_EXTREMES = 3
_NAMED = 5
_QUEUES = 2


def show(judged: Judged, width: int | None = None) -> str:
    """Returns the best and worst settings, main effects, the frontier, and notes on missing values.

    Tables have at most `width` columns.
    """
    found = outcomes(judged)
    parts = [_state(judged), _extremes(judged, found, width)]
    parts += [*(_effects(judged, each, width) for each in judged.objectives), unpaired(judged)]
    parts += [_frontier(judged, found, width), "\n".join(about_objectives(judged))]
    return "\n\n".join(part for part in parts if part)


def _state(judged: Judged) -> str:
    experiment = judged.experiment
    items = experiment.items
    done = items.filter(state=DONE).height
    seeds = experiment.description["seeds"]
    repeats = f", {counted(judged.seeds, 'seed')} ({seeds['of']} {seeds['by']}) each" if seeds else ""
    made = f"{done:,} of {counted(items.height, 'item')}, {counted(len(judged.settings), 'setting')}{repeats}"
    return "\n".join(filter(None, (f"{experiment.name}: {made}", stopped_text(experiment))))


def stopped_text(experiment: Experiment) -> str:
    """Returns a sentence about items that were stopped because they made no progress, or ""."""
    stopped = experiment.stopped
    if not stopped:
        return ""
    numbers = first_of([str(each) for each in stopped], _NAMED)
    which = f"item {numbers} was" if len(stopped) == 1 else f"items {numbers} were"
    return f"{which} ended because the replay made no progress: these figures do not cover all jobs"


def setting_text(setting: Setting) -> str:
    """Returns a setting as one line of text."""
    told = [f"{name}={value_text(value)}" for name, value in setting.point.items() if value is not None]
    return ", ".join(told)


def figure(found: Estimate, measured: Measurement) -> str:
    """Formats a value with its interval, if it has one.

    If some seeds have no value, the text also has the number of seeds that count.
    """
    digits = digits_of(found.value, found.low, found.high)
    parts = [shown(found.value, measured.unit, digits, at_least=found.at_least)]
    if found.low is not None and found.high is not None:
        low, high = (shown(end, measured.unit, digits) for end in (found.low, found.high))
        parts.append(f"[{low}, {high}]")
    return " ".join(filter(None, (*parts, found.partly)))


def value_of(found: Estimate, unit: str) -> str:
    """Formats a value without its interval."""
    return shown(found.value, unit, at_least=found.at_least)


def _extremes(judged: Judged, found: Sequence[Outcome], width: int | None) -> str:
    rows = [["", "item", "setting", "value"]]
    for at, measured in enumerate(judged.objectives):

        def cost(each: Outcome, at: int = at) -> tuple[float, int]:
            return each.values[at].value, each.setting.item

        ranked = sorted(found, key=cost, reverse=measured.better == "higher")
        half = min(_EXTREMES, (len(ranked) + 1) // 2)
        for word, some in (("best", ranked[:half]), ("worst", ranked[half:][-half:][::-1])):
            for each in some:
                about = [f"{word} {name_of(measured)}", str(each.setting.item), setting_text(each.setting)]
                rows.append([*about, figure(each.values[at], measured)])
    return aligned(rows, left=(0, 2), width=width)


def _effects(judged: Judged, measured: Measurement, width: int | None) -> str:
    found = effects(judged, measured)
    if not found:
        return ""
    seeds = judged.experiment.description["seeds"] is not None
    how = "95 % interval over seeds" if seeds else "least to most over the other settings"
    rows = [[f"effect on {name_of(measured)}", "against", "at first", "difference", how]]
    for each in found:
        about = [f"{each.factor}={value_text(each.value)}", value_text(each.against)]
        ends = (each.difference.low, each.difference.high) if seeds else (each.least, each.most)
        base = each.base.value
        told = " to ".join("-" if end is None else moved(end, base, measured) for end in ends)
        partly = f" {each.lack.partly}" if each.lack.partly else ""
        difference = moved(each.difference.value, base, measured)
        rows.append([*about, value_of(each.base, measured.unit), difference, f"{told}{partly}"])
    return aligned(rows, left=(0, 1), width=width)


def moved(value: float, base: float | None, measured: Measurement) -> str:
    """Formats a difference as a percentage of the base value, as in comparisons.

    If the base is unknown or not above 0, the difference is in the metric's unit.
    """
    relative = base is not None and base > 0
    each = value / base if relative and base else value
    return change_between(each, each, measured.unit, relative=relative)


def _frontier(judged: Judged, found: Sequence[Outcome], width: int | None) -> str:
    apart = circumstances(judged)
    title = f"frontier at each {', '.join(apart)}" if apart else "frontier"
    rows = [[title, "item", *map(name_of, judged.objectives), ""]]
    moved = shifts(judged)
    rows[0][-1] = f"mean wait of queues, compared with item {judged.settings[0].item}"
    for each in frontier(judged, found):
        figures = [figure(*pair) for pair in zip(each.values, judged.objectives, strict=True)]
        rows.append(
            [setting_text(each.setting), str(each.setting.item), *figures, _moved(moved[each.setting.item])]
        )
    return aligned(rows, left=(0, len(rows[0]) - 1), width=width)


def _moved(found: Sequence[Shift]) -> str:
    winners = [each for each in found if each.longer < 0][:_QUEUES]
    losers = [each for each in found if each.longer > 0][-_QUEUES:]
    told = [
        f"{each.queue} {value_of(each.before, 's')} to {value_of(each.after, 's')}"
        for each in (*winners, *losers)
    ]
    return "; ".join(told) or "-"
