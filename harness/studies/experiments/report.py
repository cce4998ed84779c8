"""Composes the report on an experiment, with the frontier, effects of factors, and changes for queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.analysis.comparison.figures import name_of
from harness.analysis.report import charts, palette
from harness.analysis.report.amounts import Scale, scale_of
from harness.analysis.report.blocks import Block, Cell, Figure, Key, Points, Table, Text
from harness.analysis.report.choices import Axis, Choice
from harness.analysis.report.report import Chapter, Report
from harness.plugins.measurement import Measurement
from harness.studies.experiments.basis import basis
from harness.studies.experiments.effects import effects, unpaired
from harness.studies.experiments.frontier import Outcome, circumstances, frontier, outcomes, shifts
from harness.studies.experiments.missing_values import about_objectives
from harness.studies.experiments.objectives import Estimate, Judged, Setting, plain_mean, value_text
from harness.studies.experiments.specification import SEED
from harness.studies.experiments.table import figure, moved, setting_text, stopped_text, value_of

if TYPE_CHECKING:
    from altair.typing import ChartType

_OWNER = "report"
_LISTED = 12
"""The maximum number of settings on the frontier that a table lists."""
_PAIRS = 3
"""The maximum number of heat maps per objective. They show the pairs of factors whose means differ most."""
_LINES = len(palette.RUNS)
_PANELS = 12
_QUEUES = 12


class _Scaled(NamedTuple):
    measured: Measurement
    scale: Scale

    @property
    def title(self) -> str:
        """The title of an axis. The unit names the resource, and the heading has the metric and scope."""
        return f"{self.measured.metric}, {self.scale.unit}" if self.scale.unit else name_of(self.measured)

    @property
    def axis(self) -> Axis:
        return Axis(self.title, self.scale.shown_as, -1 if self.measured.better == "higher" else 1)

    def of(self, value: float | None) -> float | None:
        return None if value is None else value / self.scale.size


def report(judged: Judged, *, command: str | None = None) -> Report:
    """Returns the report with all chapters.

    The report shows `command`, which is the command line that made the report.
    """
    found = outcomes(judged)
    scaled = [
        _Scaled(each, scale_of(each.unit, [one.values[at].value for one in found]))
        for at, each in enumerate(judged.objectives)
    ]
    chapters = [
        Chapter(
            "frontier", _OWNER, "Which settings, and at what cost?", list(_frontier(judged, found, scaled))
        ),
        Chapter("queues", _OWNER, "Who wins, who loses", list(_queues(judged, found))),
        Chapter("effects", _OWNER, "What each factor does", list(_effects(judged, scaled))),
        Chapter("pairs", _OWNER, "Two factors at a time", list(_pairs(judged, scaled))),
        Chapter("multiples", _OWNER, "Every setting", list(_multiples(judged, scaled))),
        Chapter("assumed", _OWNER, "What this rests on", list(basis(judged.experiment, command))),
    ]
    experiment = judged.experiment
    varied = ", ".join(name for name in experiment.factors if name != SEED)
    summary = f"{len(judged.settings):,} settings of {varied}"
    return Report(f"experiment {experiment.name}", summary, [each for each in chapters if each.blocks])


def _frontier(judged: Judged, found: Sequence[Outcome], scaled: Sequence[_Scaled]) -> Iterator[Block]:
    best, apart = frontier(judged, found), circumstances(judged)
    missing = list(about_objectives(judged))
    if not best:
        yield Text("No setting has a value for every objective, so none is best.", lead=True)
        yield Points(missing)
        return
    about = ", ".join(name_of(each.measured) for each in scaled)
    count = f"{'one' if len(best) == 1 else f'{len(best):,}'} that no other setting beats"
    there = "is" if len(best) == 1 else "are"
    yield Text(f"Of {len(found):,} settings there {there} {count} in {about}{_at(apart)}.", lead=True)
    if judged.experiment.description["seeds"] is None:
        yield Text(
            "Every setting was replayed once, so luck may explain small differences. For more replays, "
            "add 'seeds: 10' to the specification, or run harness sweep with --seeds 10."
        )
    if stopped := stopped_text(judged.experiment):
        yield Text(f"{stopped[0].upper()}{stopped[1:]}.")
    if missing:
        yield Points(missing)
    rows = [
        [
            setting_text(each.setting),
            str(each.setting.item),
            *(figure(value, one.measured) for value, one in zip(each.values, scaled, strict=True)),
        ]
        for each in best[:_LISTED]
    ]
    more = f": the first {_LISTED} of {len(best):,}" if len(best) > _LISTED else ""
    head = ["setting", "item", *(name_of(each.measured) for each in scaled)]
    yield Table(f"The frontier{more}", head, rows)
    for at in range(1, len(scaled)):
        yield _frontier_chart(found, scaled, at, apart)


def _at(apart: Sequence[str]) -> str:
    return f" at the same {' and '.join(apart)}" if apart else ""


def _frontier_chart(
    found: Sequence[Outcome], scaled: Sequence[_Scaled], at: int, apart: Sequence[str]
) -> Figure:
    upright, flat = scaled[0], scaled[at]
    choices = []
    for each in found:
        values = ", ".join(
            f"{name_of(one.measured)} {figure(value, one.measured)}"
            for value, one in zip(each.values, scaled, strict=True)
        )
        x, y = each.values[at].value / flat.scale.size, each.values[0].value / upright.scale.size
        told = f"item {each.setting.item}: {setting_text(each.setting)}; {values}"
        choices.append(Choice(f"item {each.setting.item}", x, y, told, 0 if each.best else 1))
    best = {place for place, each in enumerate(found) if each.best}
    keys = [Key("no other beats it", palette.KINDS[0].light), Key("beaten", palette.OTHER.light)]

    joined = None if len(scaled) == 2 and not apart else best
    return Figure(
        title=f"{name_of(upright.measured)}, against {name_of(flat.measured)}",
        words=" ".join(f"{choices[place].told}." for place in sorted(best)[:_LISTED]),
        draw=lambda width: charts.frontier.frontier(
            choices, keys, flat.axis, upright.axis, width, best=joined
        ),
        keys=keys,
        note=f"Better is {_direction(flat.axis, 'to the left', 'to the right')} and "
        f"{_direction(upright.axis, 'down', 'up')}. Filled points are those that no other point beats"
        + (" in all objectives" if len(scaled) > 2 else "")
        + _at(apart)
        + "; the pointer shows the values of a point.",
    )


def _direction(axis: Axis, less: str, more: str) -> str:
    return less if axis.sign > 0 else more


def _queues(judged: Judged, found: Sequence[Outcome]) -> Iterator[Block]:
    moved = shifts(judged)
    first = judged.settings[0]
    others = (each.setting for each in frontier(judged, found))
    best = [each for each in others if each.item != first.item][:_LISTED]
    befores = {shift.queue: shift.before for each in best for shift in moved[each.item]}
    if len(befores) < 2:
        return
    changes = {each.item: {shift.queue: shift for shift in moved[each.item]} for each in best}

    def most(queue: str) -> float:
        return max(abs(of[queue].longer) if queue in of else 0 for of in changes.values())

    ranked = sorted(befores, key=lambda queue: (-most(queue), queue))[:_QUEUES]
    widest = most(ranked[0])
    rows: list[list[str | Cell]] = []
    for queue in ranked:
        row: list[str | Cell] = [queue, value_of(befores[queue], "s")]
        for each in best:
            change = changes[each.item].get(queue)
            bar = change.longer / widest if change is not None and widest else None
            row.append(Cell("-" if change is None else value_of(change.after, "s"), bar=bar))
        rows.append(row)
    of = f" (the {_QUEUES} of {len(befores):,} queues that differ most)" if len(befores) > _QUEUES else ""
    caption = f"Mean wait of queues at each point of the frontier, compared with item {first.item}{of}"
    yield Table(caption, ["queue", f"item {first.item}", *(f"item {each.item}" for each in best)], rows)
    yield Text(f"Bars to the left: jobs wait less than with item {first.item} ({setting_text(first)}).")


def _effects(judged: Judged, scaled: Sequence[_Scaled]) -> Iterator[Block]:
    seeds = judged.experiment.description["seeds"] is not None
    for one in scaled:
        found = effects(judged, one.measured)
        if not found:
            continue
        rows, words = [], []
        for each in found:
            name, against = f"{each.factor}={value_text(each.value)}", value_text(each.against)
            told = f"{name} instead of {against}: "
            low, high = (each.difference.low, each.difference.high) if seeds else (each.least, each.most)
            base = each.base.value
            told += moved(each.difference.value, base, one.measured)
            if low is not None and high is not None:
                told += f" [{moved(low, base, one.measured)}, {moved(high, base, one.measured)}]"
            told = " ".join(filter(None, (told, each.lack.partly)))
            rows.append((name, one.of(each.difference.value), one.of(low), one.of(high), told))
            words.append(f"{told}.")
        lines = "95 % intervals over seeds" if seeds else "the ranges of the differences"
        yield Figure(
            title=f"Effects on {name_of(one.measured)}",
            words=" ".join(words),
            draw=partial(_effects_chart, rows, one),
            note="The mean difference from the factor's first value over all settings that differ in nothing "
            f"else. Lines are {lines}.",
        )
    lonely = unpaired(judged)
    if lonely:
        yield Text(f"{lonely[0].upper()}{lonely[1:]}.")


def _effects_chart(rows: Sequence[tuple[Any, ...]], one: _Scaled, width: int) -> ChartType:
    title = ", ".join(filter(None, ("change", one.scale.unit)))
    found = [charts.factors.Effect(*row) for row in rows]
    return charts.factors.effects_chart(found, title=title, shown_as=one.scale.shown_as, width=width)


def _varied(judged: Judged) -> list[str]:
    names = [name for name in judged.experiment.factors if name != SEED]
    return [name for name in names if len(_levels(judged, name)) > 1]


def _levels(judged: Judged, name: str) -> list[str]:
    """Returns the values of a factor in finished items, as texts, in the order of the specification."""
    there = {value_text(setting.point[name]) for setting in judged.settings}
    every = dict.fromkeys(map(value_text, [*judged.experiment.factors[name], None]))
    return [each for each in every if each in there]


def _pairs(judged: Judged, scaled: Sequence[_Scaled]) -> Iterator[Block]:
    """Yields heat maps for pairs of factors, with means over all other factors."""
    pairs = list(combinations(_varied(judged), 2))
    for one in scaled:
        values = judged.estimates(one.measured)
        made = []
        for across, down in pairs:
            means: dict[tuple[str, str], list[Estimate]] = {}
            for setting in judged.settings:
                value = values[setting.item]
                place = value_text(setting.point[across]), value_text(setting.point[down])
                if value is not None:
                    means.setdefault(place, []).append(value)
            of_cells = {place: _mean(each) for place, each in means.items()}
            if len(of_cells) > 1:
                height = [each.value for each in of_cells.values()]
                widest = max(height) - min(height)
                made.append((widest, across, down, of_cells))
        ranked = sorted(made, key=lambda each: (-each[0], each[1], each[2]))[:_PAIRS]
        for _, across, down, of_cells in ranked:
            yield _heat_map(judged, one, across, down, of_cells)


def _mean(some: Sequence[Estimate]) -> Estimate:
    return plain_mean([each.value for each in some], at_least=any(each.at_least for each in some))


def _heat_map(
    judged: Judged, one: _Scaled, across: str, down: str, of_cells: Mapping[tuple[str, str], Estimate]
) -> Figure:
    columns, rows = _levels(judged, across), _levels(judged, down)
    squares = []
    for column in columns:
        for row in rows:
            if (column, row) in of_cells:
                value = of_cells[column, row]
                text = value_of(value, one.measured.unit)
                squares.append((column, row, value.value, text, f"{across}={column}, {down}={row}: {text}"))

    def draw(width: int) -> ChartType:
        cells = [charts.factors.Square(*each) for each in squares]
        return charts.factors.heat_map(cells, columns, rows, titles=(across, down), width=width)

    return Figure(
        title=f"{name_of(one.measured)} by {across} and {down}",
        words=" ".join(f"{each[4]}." for each in squares),
        draw=draw,
        note="Means over all settings that have both values; a stronger colour is a higher value, and "
        + ("higher is better." if one.measured.better == "higher" else "lower is better."),
    )


def _multiples(judged: Judged, scaled: Sequence[_Scaled]) -> Iterator[Block]:
    """Yields charts of all settings, with the factor that has the most values on the horizontal axis."""
    varied = sorted(_varied(judged), key=lambda name: -len(_levels(judged, name)))
    if not varied:
        return
    along, rest = varied[0], varied[1:]
    lines = next((name for name in rest if len(_levels(judged, name)) <= _LINES), None)
    others = [name for name in rest if name != lines]
    panels = list(dict.fromkeys(_told(setting, others) for setting in judged.settings))[:_PANELS]
    of_lines = _levels(judged, lines) if lines else ["all"]
    keys = [
        Key(f"{lines}={name}" if lines else "all settings", tone.light, dash, line=True)
        for name, tone, dash in zip(of_lines, palette.RUNS, palette.DASHES, strict=False)
    ]
    for one in scaled:
        dots = []
        for setting, value in _valued(judged, one):
            panel = _told(setting, others)
            if panel not in panels:
                continue
            key = of_lines.index(value_text(setting.point[lines])) if lines else 0
            ends = one.of(value.value), one.of(value.low), one.of(value.high)
            told = f"item {setting.item}: {setting_text(setting)}; {figure(value, one.measured)}"
            dots.append((panels.index(panel), value_text(setting.point[along]), key, *ends, told))
        if dots:
            yield _multiple(one, dots, panels, along, _levels(judged, along), keys)


def _multiple(
    one: _Scaled,
    dots: Sequence[tuple[Any, ...]],
    panels: Sequence[str],
    along: str,
    places: Sequence[str],
    keys: Sequence[Key],
) -> Figure:
    def draw(width: int) -> ChartType:
        titles = along, one.scale.unit or "value"
        drawn = [charts.factors.Dot(*each) for each in dots]
        return charts.factors.multiples(
            drawn, panels, places, keys, titles=titles, shown_as=one.scale.shown_as, width=width
        )

    return Figure(
        title=f"{name_of(one.measured)} along {along}",
        words=" ".join(f"{each[-1]}." for each in dots[: 4 * _LISTED]),
        draw=draw,
        keys=keys if len(keys) > 1 else (),
        note="Vertical lines are 95 % intervals over seeds."
        if any(each[4] is not None for each in dots)
        else "",
    )


def _told(setting: Setting, names: Sequence[str]) -> str:
    return ", ".join(f"{name}={value_text(setting.point[name])}" for name in names)


def _valued(judged: Judged, one: _Scaled) -> Iterator[tuple[Setting, Estimate]]:
    values = judged.estimates(one.measured)
    for setting in judged.settings:
        value = values[setting.item]
        if value is not None:
            yield setting, value
