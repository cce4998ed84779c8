"""Recommends one of several runs, or explains why no run is recommended.

A recommendation names its conditions, and the disadvantages of the recommended run. It is based only on
verdicts over twins and on equal values. A single replay of each run is one draw from a chaotic system, so
differences between single replays are not evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from harness.analysis.comparison.changes import Change, Ground, Row, Verdict
from harness.analysis.comparison.coarse import SMALLER, why_coarse
from harness.analysis.comparison.figures import name_of, shown, within
from harness.analysis.comparison.headlines import GROUPS, comes_first
from harness.analysis.comparison.pairs import why_not_shaken
from harness.analysis.comparison.samples import LOST

if TYPE_CHECKING:
    from harness.analysis.comparison.comparison import Comparison
    from harness.plugins.measurement import Measurement

WAITS = ("wait.first_start.p95", "delay.mean")
"""The metrics by which waiting is judged.

The first metric that has a value in every run, or in all twins, counts.
"""
SERVED = "goodput.of_demand"
SHARES = "fairness.share_deviation"

_DECIDED = (Verdict.BETTER, Verdict.WORSE)
_TELLING = 10
_ADD = f"Add `--shake {_TELLING}`"
_LOSSES = {"restart": "all their progress", "resume": "no progress"}


class _Aim(NamedTuple):
    """A metric over all jobs, by which runs are judged.

    Attributes:
        name: what the metric measures, in one or two words.
        of_resource: whether the metric is judged for the resource that the baseline uses most.
        counts: whether the metric matters only if a value is not 0.
    """

    group: str
    metric: str
    name: str
    told: str
    of_resource: bool = False
    counts: bool = False


_AIMS = (
    _Aim("served", SERVED, "work done", "{} of the requested {resource} served", of_resource=True),
    _Aim("served", "jobs.unfinished", "unfinished jobs", "{} jobs unfinished", counts=True),
    _Aim("served", "jobs.rejected", "rejected jobs", "{} jobs rejected", counts=True),
    _Aim("waited", WAITS[0], "waits", "95 of 100 jobs start within {}"),
    _Aim("waited", WAITS[1], "delays", "a mean delay of {}"),
    _Aim("shared", SHARES, "shares", "shares {} away from ideal"),
    _Aim("disrupted", LOST, "lost work", "{} of {resource} lost to evictions", of_resource=True),
)


class Recommendation(NamedTuple):
    """A recommendation of a run, with the gains and losses of the alternatives.

    Attributes:
        sentence: the recommended run and the conditions of the recommendation. If no run is recommended, the
            sentence says why, and which command can change this.
        prices: the gains and losses of each run except the baseline, with a line for each group of headline
            metrics.
        weighed: the runs that are better than the baseline by at least one metric. If some of these runs are
            worse by no metric, `weighed` contains only the runs without a loss.
    """

    sentence: str
    prices: Mapping[str, Sequence[str]] = MappingProxyType({})
    weighed: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """The recommendation as lines of text, with the gains and losses of the runs in `weighed`."""
        found = [self.sentence]
        for name in self.weighed:
            found += [f"Gains and losses of {_quoted(name)}:", *(f"  {price}" for price in self.prices[name])]
        return found


class _Judged(NamedTuple):
    aim: _Aim
    row: Row

    def told(self, place: int) -> str:
        measured = self.row.measured
        value, base = (
            shown(self.row.values[at], measured.unit, at_least=self.row.is_least(at)) for at in (place, 0)
        )
        return f"{self.aim.told.format(value, resource=measured.resource)} instead of {base}"


class _Sides(NamedTuple):
    name: str
    better: bool
    worse: bool
    price: Sequence[str]


def recommendation(comparison: Comparison) -> Recommendation | None:
    """Recommends one of the runs.

    Returns None if there is only one run, or if there is no metric to judge runs by.
    """
    aims = list(_aims(comparison))
    if len(comparison.runs) < 2 or not aims:
        return None
    others = list(_others(comparison, aims))
    why_not = _refused(comparison, aims, others)
    if why_not:
        return Recommendation(f"No recommendation: {why_not}.")
    places = range(1, len(comparison.runs))
    return _answer(comparison, [_sides(comparison, aims, place) for place in places], others)


def _aims(comparison: Comparison) -> Iterator[_Judged]:
    known = {(measured.metric, measured.resource): (measured, row) for measured, row in comparison.select()}
    waits = {metric: known[metric, ""][0] for metric in WAITS if (metric, "") in known}
    places = range(len(comparison.runs))
    whole = (
        metric
        for metric, measured in waits.items()
        if not any(comparison.lack(measured, place).absent for place in places)
    )
    wait = next(whole, WAITS[0])
    for aim in _AIMS:
        found = known.get((aim.metric, comparison.fullest if aim.of_resource else ""))
        if found is None or (aim.metric in WAITS and aim.metric != wait):
            continue
        if any(found[1]) or not aim.counts:
            yield _Judged(aim, _row(comparison, found))


def _others(comparison: Comparison, aims: Sequence[_Judged]) -> Iterator[Row]:
    """A recommendation must not contradict the marks of the other metrics that the brief table shows."""
    judged = {(each.row.measured.metric, each.row.measured.resource) for each in aims}
    for found in comparison.select():
        measured = found[0]
        if (measured.metric, measured.resource) not in judged and comes_first(
            *found, fullest=comparison.fullest
        ):
            yield _row(comparison, found)


def _row(comparison: Comparison, found: tuple[Measurement, list[float | None]]) -> Row:
    return Row(*found, []) if comparison.shake is None else comparison.judge([found])[0]


def _refused(comparison: Comparison, aims: Sequence[_Judged], others: Sequence[Row]) -> str:
    """Explains why there is no recommendation; "" if there is one."""
    for name, run in zip(comparison.names, comparison.runs, strict=True):
        if run.is_record:
            return f"{name} is a record of what happened, so you cannot choose it"
        if run.stopped is not None:
            return f"{name} was stopped because it made no progress, so its figures do not cover all jobs"
    unknown = next((run.without_run_times for run in comparison.runs if run.without_run_times), "")
    if unknown:
        return unknown
    if not comparison.pairs.same_arrivals:
        return "jobs arrive at different times in these runs, and you cannot choose when jobs arrive"
    missing = [each.aim.name for each in aims if None in each.row.values]
    if missing:
        return f"not every run has a value for {_listed(missing)}"
    if comparison.shake is None:
        if not any(len(set(row.values)) > 1 for row in (*(each.row for each in aims), *others)):
            return ""
        why = "one replay of each run cannot separate differences from luck"
        in_vain = why_not_shaken(comparison.runs, comparison.pairs)
        return f"{why}, and {in_vain}" if in_vain else f"{why}. {_ADD}"
    coarse = why_coarse(comparison.runs[0], comparison.shake)
    if coarse:
        return f"{coarse}; {SMALLER}"
    few = [each.aim.name for each in aims if any(of.ground is not Ground.TWINS for of in each.row.changes)]
    more = f". {_ADD}" if comparison.shake.count < _TELLING else ""
    return f"too few twins have values for {_listed(few)}{more}" if few else ""


def _sides(comparison: Comparison, aims: Sequence[_Judged], place: int) -> _Sides:
    """Describes the gains and losses of a run. For a single replay, all values are equal here."""
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    verdicts = set()
    for each in aims:
        change = each.row.changes[place - 1] if each.row.changes else None
        verdicts.add(Verdict.SAME if change is None else change.verdict)
        groups[each.aim.group].append((each.aim.name, _judgement(change, each, place)))
    price = [f"{group}: {_together(each)}" for group, each in groups.items()]
    return _Sides(comparison.names[place], Verdict.BETTER in verdicts, Verdict.WORSE in verdicts, price)


def _together(judgements: Sequence[tuple[str, str]]) -> str:
    distinct = dict.fromkeys(judgement for _, judgement in judgements)
    if len(distinct) > 1:
        return "; ".join(f"{name} {judgement}" for name, judgement in judgements)
    return next(iter(distinct), "not measured")


def _judgement(change: Change | None, judged: _Judged, place: int) -> str:
    if change is None or change.verdict is Verdict.SAME:
        return "equal"
    how = within(change, judged.row.measured.unit)
    if change.verdict not in _DECIDED:
        return f"unclear, {how}" if how else "unclear"
    word = "better" if change.verdict is Verdict.BETTER else "worse"
    return f"{word}, {judged.told(place)}{f' ({how})' if how else ''}"


def _answer(comparison: Comparison, sides: Sequence[_Sides], others: Sequence[Row]) -> Recommendation:
    base = _quoted(comparison.names[0])
    marked = [row for row in others if any(of.verdict in _DECIDED for of in row.changes)]
    clear = [each for each in sides if each.better and not each.worse]
    weighed = clear or [each for each in sides if each.better]
    names = _listed([_quoted(each.name) for each in weighed], last="or") if weighed else ""
    if len(clear) == 1:
        text = f"take {names}: it is better than {base} by at least one judged metric, and worse by none"
        at = comparison.names.index(clear[0].name) - 1
        also = [name_of(row.measured) for row in marked if row.changes[at].verdict is Verdict.WORSE]
        text += f" (the table also marks {_listed(also)} as worse)" if also else ""
    elif clear:
        text = (
            f"take {names}: each is better than {base} by at least one judged metric, and worse by none; "
            f"--baseline {clear[0].name} compares them with each other"
        )
    elif weighed:
        text = f"keep {base}, unless the gains with {names} are worth their costs"
    elif any(each.worse for each in sides):
        text = f"keep {base}: no other run is better by any judged metric"
        better = (row for row in marked if any(each.verdict is Verdict.BETTER for each in row.changes))
        gains = [name_of(row.measured) for row in better]
        text += f" (the table marks {_listed(gains)} as better)" if gains else ""
    elif marked:
        differing = _listed(name_of(row.measured) for row in marked)
        text = f"keep {base}, unless {differing} matters to you: no judged metric differs significantly"
    else:
        text = f"no difference is significant: {base} does as well as the others"
    sentence = f"{_conditions(comparison)}{text}."
    return Recommendation(
        sentence[0].upper() + sentence[1:],
        {each.name: each.price for each in sides},
        [each.name for each in weighed],
    )


def _conditions(comparison: Comparison) -> str:
    losses = {str(run.info["settings"]["on_preemption"]) for run in comparison.runs}
    parts = []
    if len(losses) == 1:
        (model,) = losses
        loses = f"lose {_LOSSES[model]}" if model in _LOSSES else f"keep what {model} saves"
        parts.append(f"preempted jobs {loses}")
    if comparison.differing_capacities:
        parts.append("the cost of the capacity itself does not matter")
    return f"if {' and '.join(parts)}, " if parts else ""


def _quoted(name: str) -> str:
    """Puts a name in quotation marks. A name such as `none` would be confusing without them."""
    return f"“{name}”"


def _listed(names: Iterable[str], last: str = "and") -> str:
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end
