"""What an experiment found, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from statistics import geometric_mean

from harness.comparison.changes import Evidence, Ground, Row, change_of, gates
from harness.comparison.family import Family, equal_ones
from harness.comparison.figures import Key, changed, key_of, name_of, shown
from harness.comparison.headlines import HEADLINES
from harness.errors import OptionError
from harness.experiments.effects import effects
from harness.experiments.experiment import DONE, Experiment
from harness.experiments.frontier import Outcome, Shift, outcomes, shifts
from harness.experiments.objectives import Estimate, Judged, Setting, value_text
from harness.metrics.measurement import Measurement
from harness.statistics.significance import of_pairs
from harness.text import aligned

_EXTREMES = 3
_NAMED = 5
_QUEUES = 2


def show(judged: Judged) -> str:
    """Best and worst settings, main effects, the frontier, and who wins and loses there."""
    found = outcomes(judged)
    parts = [_state(judged), _extremes(judged, found)]
    parts += [_effects(judged, each) for each in judged.objectives]
    parts.append(_frontier(judged, found))
    return "\n\n".join(part for part in parts if part)


def _state(judged: Judged) -> str:
    experiment = judged.experiment
    items = experiment.items
    done = items.filter(state=DONE).height
    seeds = experiment.description["seeds"]
    repeats = f", {seeds['count']:,} seeds ({seeds['of']} {seeds['by']}) each" if seeds else ""
    counted = f"{done:,} of {items.height:,} items, {len(judged.settings):,} settings{repeats}"
    return "\n".join(filter(None, (f"{experiment.name}: {counted}", stopped_text(experiment))))


def stopped_text(experiment: Experiment) -> str:
    """That items were ended where they went nowhere, in a sentence; nothing where none was."""
    stopped = experiment.stopped
    if not stopped:
        return ""
    rest = f" and {len(stopped) - _NAMED:,} more" if len(stopped) > _NAMED else ""
    numbers = ", ".join(map(str, stopped[:_NAMED])) + rest
    which = f"item {numbers} was" if len(stopped) == 1 else f"items {numbers} were"
    return f"{which} ended where the replay went nowhere: figures there are not of all jobs"


def setting_text(setting: Setting) -> str:
    """A setting in a line."""
    told = [f"{name}={value_text(value)}" for name, value in setting.point.items() if value is not None]
    return ", ".join(told)


def figure(found: Estimate, measured: Measurement) -> str:
    """A value with its interval, if it has one."""
    text = shown(found.value, measured.unit, measured.resource)
    if found.low is None or found.high is None:
        return text
    low, high = (shown(end, measured.unit, measured.resource) for end in (found.low, found.high))
    return f"{text} [{low}, {high}]"


def _extremes(judged: Judged, found: Sequence[Outcome]) -> str:
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
    return aligned(rows, left=(0, 2))


def _effects(judged: Judged, measured: Measurement) -> str:
    """The main effects on one objective."""
    found = effects(judged, measured)
    if not found:
        return ""
    seeds = judged.experiment.description["seeds"] is not None
    how = "95 % interval between seeds" if seeds else "least to most over the other settings"
    rows = [[f"effect on {name_of(measured)}", "against", "at first", "difference", how]]
    for each in found:
        ends = (each.difference.low, each.difference.high) if seeds else (each.least, each.most)
        told = ["-" if end is None else signed(end, measured) for end in ends]
        rows.append(
            [
                f"{each.factor}={value_text(each.value)}",
                value_text(each.against),
                shown(each.base, measured.unit, measured.resource),
                signed(each.difference.value, measured),
                " to ".join(told),
            ]
        )
    return aligned(rows, left=(0, 1))


def signed(value: float, measured: Measurement) -> str:
    """A difference of a metric."""
    text = shown(value, measured.unit, measured.resource)
    return f"+{text}" if value > 0 else text


def _frontier(judged: Judged, found: Sequence[Outcome]) -> str:
    """The Pareto set, with the queues that win and lose most against the first setting."""
    rows = [["frontier", "item", *map(name_of, judged.objectives), ""]]
    moved = shifts(judged)
    rows[0][-1] = f"mean wait of queues, against item {judged.settings[0].item}"
    for each in (each for each in found if each.best):
        figures = [figure(*pair) for pair in zip(each.values, judged.objectives, strict=True)]
        rows.append(
            [setting_text(each.setting), str(each.setting.item), *figures, _moved(moved[each.setting.item])]
        )
    return aligned(rows, left=(0, len(rows[0]) - 1))


def _moved(found: Sequence[Shift]) -> str:
    """The queues that win most, and those that lose most."""
    winners = [each for each in found if each.after < each.before][:_QUEUES]
    losers = [each for each in found if each.after > each.before][-_QUEUES:]
    told = [
        f"{each.queue} {shown(each.before, 's')} to {shown(each.after, 's')}" for each in (*winners, *losers)
    ]
    return "; ".join(told) or "-"


def compare(judged: Judged, items: Sequence[int], metrics: Sequence[str] = ()) -> str:
    """Settings against the first of them, paired by seeds; the headlines unless metrics are named.

    Raises:
        OptionError: there is no such item, or it was not made.
    """
    by_item = {item: setting for setting in judged.settings for item in _items_of(judged, setting)}
    for item in items:
        if item not in by_item:
            raise OptionError(
                f"there is no item {item} that was made", hint="harness experiment show lists some"
            )
    chosen = [by_item[item] for item in items]
    if len({each.item for each in chosen}) < len(chosen):
        raise OptionError(
            "two of the items are of one setting", hint="seeds of a setting are compared together"
        )
    rows, family = _compared(judged, chosen, metrics or HEADLINES)
    head = ["metric", *(f"item {setting.item}" for setting in chosen)]
    body = []
    for row in rows:
        unit, resource = row.measured.unit, row.measured.resource
        others = zip(row.values[1:], row.changes, strict=True)
        cells = (
            f"{shown(value, unit, resource)} {changed(change, unit, resource)}" for value, change in others
        )
        body.append([name_of(row.measured), shown(row.values[0], unit, resource), *map(str.rstrip, cells)])
    told = [f"item {setting.item}: {setting_text(setting)}" for setting in chosen]
    notes = (
        [
            "values: means over seeds; geometric means where all values are above 0",
            "[95 % interval]: Student's, of differences paired by seed; of logarithms where all are above 0",
            gates(f"corrected for {family.size} tests, Holm"),
        ]
        if family.size
        else ["?: without seeds, one replay does not say whether it is the setting or luck"]
    )
    return "\n".join([*told, "", aligned([head, *body]), *notes])


def _items_of(judged: Judged, setting: Setting) -> Iterator[int]:
    names = list(setting.point)
    for row in judged.items.select("item", *names).iter_rows(named=True):
        if {name: row[name] for name in names} == dict(setting.point):
            yield row["item"]


def _compared(judged: Judged, chosen: Sequence[Setting], metrics: Sequence[str]) -> tuple[list[Row], Family]:
    """What was measured of the chosen settings and is said of each difference; and the family of tests."""
    family = _family(judged, chosen)
    rows = []
    for measured in _measured(judged, metrics):
        sides = _sides(judged, chosen, measured)
        if not any(sides):
            continue
        ratio = min(min(side, default=1.0) for side in sides) > 0
        base, *others = (_mean(side, ratio=ratio) for side in sides)
        evidence = [_evidence(sides[0], side, ratio=ratio) for side in sides[1:]]
        corrected = [
            None if each.interval is None else family.corrected(key_of(measured), at, each.interval.p)
            for at, each in enumerate(evidence, 1)
        ]
        changes = [
            change_of(base, other, measured.better, each, p)
            for other, each, p in zip(others, evidence, corrected, strict=True)
        ]
        rows.append(Row(measured, [base, *others], changes))
    return rows, family


def _family(judged: Judged, chosen: Sequence[Setting]) -> Family:
    """The tests of all headlines, which are corrected together whatever is shown."""
    figures: list[dict[Key, list[float]]] = [{} for _ in chosen]
    tests: dict[tuple[Key, int], float] = {}
    for measured in _measured(judged, HEADLINES):
        sides = _sides(judged, chosen, measured)
        key = key_of(measured)
        for at, side in enumerate(sides):
            figures[at][key] = side
        ratio = min(min(side, default=1.0) for side in sides) > 0
        for at, side in enumerate(sides[1:], 1):
            interval = _evidence(sides[0], side, ratio=ratio).interval
            if interval is not None:
                tests[key, at] = interval.p
    return Family(tests, equal_ones(figures))


def _sides(judged: Judged, chosen: Sequence[Setting], measured: Measurement) -> list[list[float]]:
    """The values of each setting, seed by seed, of the seeds in which all that have any have one."""
    values = judged.values(measured)
    having = [values[setting.item] for setting in chosen if values[setting.item]]
    seeds = [seed for seed in having[0] if all(seed in side for side in having)] if having else []
    return [[side[seed] for seed in seeds if seed in side] for side in (values[each.item] for each in chosen)]


def _measured(judged: Judged, metrics: Sequence[str]) -> Iterator[Measurement]:
    for metric in metrics:
        rows = judged.frame.filter(metric=metric, scope="all").unique(
            "resource", keep="first", maintain_order=True
        )
        for row in rows.iter_rows(named=True):
            yield Measurement(metric, None, row["unit"], row["better"], "all", row["resource"])


def _mean(values: Sequence[float], *, ratio: bool) -> float | None:
    if not values:
        return None
    return geometric_mean(values) if ratio else fsum(values) / len(values)


def _evidence(base: Sequence[float], other: Sequence[float], *, ratio: bool) -> Evidence:
    """What a difference can be judged by: differences of the seeds, where there are several."""
    interval = of_pairs(base, other, ratio=ratio) if base and other else None
    return Evidence(Ground.REPLAY) if interval is None else Evidence(Ground.TWINS, interval)
