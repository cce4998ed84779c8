"""The results of an experiment, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from harness.analysis.comparison.changes import Evidence, Ground, Row, Verdict, change_of, gates
from harness.analysis.comparison.family import Family, equal_ones
from harness.analysis.comparison.figures import (
    Key,
    change_between,
    changed,
    digits_of,
    key_of,
    name_of,
    shown,
)
from harness.analysis.comparison.headlines import HEADLINES
from harness.analysis.comparison.paired import GEOMETRIC, Paired
from harness.base.errors import OptionError, RunError
from harness.base.options import did_you_mean
from harness.base.text import aligned, counted, first_of
from harness.plugins.measurement import Measurement
from harness.studies.experiments.effects import effects, unpaired
from harness.studies.experiments.experiment import DONE, Experiment
from harness.studies.experiments.frontier import Outcome, Shift, outcomes, shifts
from harness.studies.experiments.missing_values import about_objectives, about_values
from harness.studies.experiments.objectives import Estimate, Judged, Setting, value_text

_EXTREMES = 3
_NAMED = 5
_QUEUES = 2


def show(judged: Judged, width: int | None = None) -> str:
    """Best and worst settings, main effects, the frontier with gains and losses, and what is missing.

    Tables are at most `width` characters wide.
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
    """A sentence on items that were stopped because they made no progress; "" if there are none."""
    stopped = experiment.stopped
    if not stopped:
        return ""
    numbers = first_of([str(each) for each in stopped], _NAMED)
    which = f"item {numbers} was" if len(stopped) == 1 else f"items {numbers} were"
    return f"{which} ended because the replay made no progress: these figures do not cover all jobs"


def setting_text(setting: Setting) -> str:
    """A setting in a line."""
    told = [f"{name}={value_text(value)}" for name, value in setting.point.items() if value is not None]
    return ", ".join(told)


def figure(found: Estimate, measured: Measurement) -> str:
    """A value with its interval, if it has one, and with its number of seeds, if these are not all."""
    digits = digits_of(found.value, found.low, found.high)
    parts = [shown(found.value, measured.unit, digits, at_least=found.at_least)]
    if found.low is not None and found.high is not None:
        low, high = (shown(end, measured.unit, digits) for end in (found.low, found.high))
        parts.append(f"[{low}, {high}]")
    return " ".join(filter(None, (*parts, found.partly)))


def value_of(found: Estimate, unit: str) -> str:
    """A value without its interval."""
    return shown(found.value, unit, at_least=found.at_least)


def _extremes(judged: Judged, found: Sequence[Outcome], width: int | None) -> str:
    """The best and worst settings by each objective."""
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
    """The main effects on one objective."""
    found = effects(judged, measured)
    if not found:
        return ""
    seeds = judged.experiment.description["seeds"] is not None
    how = "95 % interval between seeds" if seeds else "least to most over the other settings"
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
    """The difference of a metric from a first value, written as in comparisons: in per cent of that value.

    If that value is 0 or below, the difference is in the metric's unit.
    """
    relative = base is not None and base > 0
    each = value / base if relative and base else value
    return change_between(each, each, measured.unit, relative=relative)


def _frontier(judged: Judged, found: Sequence[Outcome], width: int | None) -> str:
    """The Pareto set, with the queues that gain and lose most compared with the first setting."""
    rows = [["frontier", "item", *map(name_of, judged.objectives), ""]]
    moved = shifts(judged)
    rows[0][-1] = f"mean wait of queues, against item {judged.settings[0].item}"
    for each in (each for each in found if each.best):
        figures = [figure(*pair) for pair in zip(each.values, judged.objectives, strict=True)]
        rows.append(
            [setting_text(each.setting), str(each.setting.item), *figures, _moved(moved[each.setting.item])]
        )
    return aligned(rows, left=(0, len(rows[0]) - 1), width=width)


def _moved(found: Sequence[Shift]) -> str:
    """The queues that gain most, and the queues that lose most."""
    winners = [each for each in found if each.longer < 0][:_QUEUES]
    losers = [each for each in found if each.longer > 0][-_QUEUES:]
    told = [
        f"{each.queue} {value_of(each.before, 's')} to {value_of(each.after, 's')}"
        for each in (*winners, *losers)
    ]
    return "; ".join(told) or "-"


def compare(
    judged: Judged, items: Sequence[int], metrics: Sequence[str] = (), width: int | None = None
) -> str:
    """Compares settings with the first one, paired by seeds, in the headline metrics unless others are named.

    Raises:
        OptionError: there is no such item, or it was not made.
        RunError: a metric was not measured for all jobs; only such metrics can be compared.
    """
    known = judged.frame.filter(scope="all")["metric"].unique()
    for metric in metrics:
        if metric not in known:
            raise RunError(f"{metric} was not measured", hint=did_you_mean(metric, known))
    by_item = {item: setting for setting in judged.settings for item in _items_of(judged, setting)}
    for item in items:
        if item not in by_item:
            raise OptionError(
                f"item {item} does not exist or has not run yet", hint="harness experiment show lists some"
            )
    chosen = [by_item[item] for item in items]
    if len({each.item for each in chosen}) < len(chosen):
        raise OptionError(
            "two of the items belong to the same setting", hint="seeds of a setting are compared together"
        )
    rows, family = _compared(judged, chosen, metrics or HEADLINES)
    head = ["metric", *(f"item {setting.item}" for setting in chosen)]
    body = []
    for row in rows:
        unit, digits = row.measured.unit, digits_of(*row.values)
        base, *others = (
            shown(value, unit, digits, at_least=row.is_least(place)) for place, value in enumerate(row.values)
        )
        cells = zip(others, (changed(change, unit, digits) for change in row.changes), strict=True)
        body.append([name_of(row.measured), base, *(" ".join(cell).rstrip() for cell in cells)])
    told = [f"item {setting.item}: {setting_text(setting)}" for setting in chosen]
    notes = [*_about_changes(rows, family, seeds=judged.seeds > 1), *about_values(judged, chosen, rows)]
    return "\n".join([*told, "", aligned([head, *body], width=width), *notes])


def _about_changes(rows: Sequence[Row], family: Family, *, seeds: bool) -> Iterator[str]:
    """Notes on the differences in a table."""
    if not seeds:
        yield "?: without seeds, one replay cannot separate the setting's effect from luck"
        return
    yield f"values: means over seeds; {GEOMETRIC}"
    changes = [change for row in rows for change in row.changes]
    if any(change.interval is not None for change in changes):
        how = "of logarithms where means are geometric"
        yield f"[95 % interval]: Student's, of differences paired by seed; {how}"
        yield gates(f"corrected for {family.size} tests, Holm" if family.size > 1 else "one test")
    if any(change.ground is Ground.FEW and change.verdict is Verdict.OPEN for change in changes):
        yield "?: no verdict: fewer than 2 seeds have a value in both settings"


def _items_of(judged: Judged, setting: Setting) -> Iterator[int]:
    names = list(setting.point)
    for row in judged.items.select("item", *names).iter_rows(named=True):
        if {name: row[name] for name in names} == dict(setting.point):
            yield row["item"]


def _compared(judged: Judged, chosen: Sequence[Setting], metrics: Sequence[str]) -> tuple[list[Row], Family]:
    """The measurements of the chosen settings with verdicts on their differences, and the family of tests."""
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
    """The tests of all headline metrics, which are corrected together whatever is shown."""
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
    """The values of each setting, seed by seed."""
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
