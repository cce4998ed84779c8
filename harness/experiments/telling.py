"""What an experiment found, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from harness.comparison.changes import Evidence, Ground, Row, change_of
from harness.comparison.figures import changed, name_of, shown
from harness.comparison.headlines import HEADLINES
from harness.errors import OptionError
from harness.experiments.effects import effects
from harness.experiments.experiment import DONE
from harness.experiments.frontier import Outcome, Shift, outcomes, shifts
from harness.experiments.objectives import Estimate, Judged, Setting, value_text
from harness.metrics.measurement import Measurement
from harness.statistics.significance import holm, of_pairs
from harness.text import aligned

_EXTREMES = 3
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
    return (
        f"{experiment.name}: {done:,} of {items.height:,} items, {len(judged.settings):,} settings{repeats}"
    )


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
        told = ["-" if end is None else _signed(end, measured) for end in ends]
        rows.append(
            [
                f"{each.factor}={value_text(each.value)}",
                value_text(each.against),
                shown(each.base, measured.unit, measured.resource),
                _signed(each.difference.value, measured),
                " to ".join(told),
            ]
        )
    return aligned(rows, left=(0, 1))


def _signed(value: float, measured: Measurement) -> str:
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
    rows = _compared(judged, chosen, metrics or HEADLINES)
    head = ["metric", *(f"item {setting.item}" for setting in chosen)]
    body = [
        [
            name_of(row.measured),
            shown(row.values[0], row.measured.unit, row.measured.resource),
            *(f"{value} {difference}".rstrip() for value, difference in _cells(row)),
        ]
        for row in rows
    ]
    told = [f"item {setting.item}: {setting_text(setting)}" for setting in chosen]
    tests = sum(change.p is not None for row in rows for change in row.changes)
    note = (
        f"[95 % interval]: Student's, of differences paired by seed; a change where p < 0.05 after Holm's "
        f"correction for {tests} tests"
        if tests
        else "without seeds nothing is told from chance"
    )
    return "\n".join([*told, "", aligned([head, *body]), note])


def _items_of(judged: Judged, setting: Setting) -> Iterator[int]:
    names = list(setting.point)
    for row in judged.items.select("item", *names).iter_rows(named=True):
        if {name: row[name] for name in names} == dict(setting.point):
            yield row["item"]


def _cells(row: Row) -> Iterator[tuple[str, str]]:
    """A row's values but the first, each with how it differs from that."""
    unit, resource = row.measured.unit, row.measured.resource
    for value, change in zip(row.values[1:], row.changes, strict=True):
        yield shown(value, unit, resource), changed(change, unit, resource)


def _compared(judged: Judged, chosen: Sequence[Setting], metrics: Sequence[str]) -> list[Row]:
    """What was measured of the chosen settings, with what is said of each difference."""
    found: list[tuple[Measurement, list[float | None], list[Evidence]]] = []
    for measured in _measured(judged, metrics):
        values = judged.values(measured)
        sides = [values[setting.item] for setting in chosen]
        if any(sides):
            evidence = [_evidence(sides[0], side) for side in sides[1:]]
            found.append((measured, [_mean(side) for side in sides], evidence))
    tested = [each.interval.p for _, _, told in found for each in told if each.interval is not None]
    corrected = iter(holm(tested))
    rows = []
    for measured, means, told in found:
        changes = [
            change_of(
                means[0], mean, measured.better, each, None if each.interval is None else next(corrected)
            )
            for mean, each in zip(means[1:], told, strict=True)
        ]
        rows.append(Row(measured, means, changes))
    return rows


def _measured(judged: Judged, metrics: Sequence[str]) -> Iterator[Measurement]:
    for metric in metrics:
        rows = judged.frame.filter(metric=metric, scope="all").unique(
            "resource", keep="first", maintain_order=True
        )
        for row in rows.iter_rows(named=True):
            yield Measurement(metric, None, row["unit"], row["better"], "all", row["resource"])


def _mean(of_seed: Mapping[int, float]) -> float | None:
    return fsum(of_seed.values()) / len(of_seed) if of_seed else None


def _evidence(base: Mapping[int, float], other: Mapping[int, float]) -> Evidence:
    """What a difference can be judged by: the seeds that both have."""
    both = [seed for seed in base if seed in other]
    if not both:
        return Evidence(Ground.REPLAY)
    pairs = [base[seed] for seed in both], [other[seed] for seed in both]
    interval = of_pairs(*pairs, ratio=min(map(min, pairs)) > 0)
    return Evidence(Ground.REPLAY if interval is None else Ground.TWINS, interval)
