"""Reads the specification of a tuning, with its search space, objectives and weeks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from harness.analysis.comparison.conditions import Condition, parse_condition
from harness.base.errors import Fault, HarnessError, OptionError, SpecError
from harness.base.units import exact_number
from harness.cluster.derive import plain_stem
from harness.cluster.yaml.fields import Fields, shown
from harness.studies.experiments.objectives import DEFAULT
from harness.studies.experiments.parsing import read_content, spec_of
from harness.studies.experiments.specification import Factor, Spec
from harness.studies.tuning.search import SAMPLERS, Choice, Range, Space, Sum
from harness.trace.window import Window

EXAMPLE = (
    'tune: {space: {"ClusterQueue/a.quota[cpu]": {low: 8, high: 64, step: 8}, evictionLatency: [1s, 10s]}, '
    'objectives: [wait.first_start.p95], constraints: ["disruption.preemptions <= +20%"], trials: 50}'
)
"""An example of the field `tune`, for messages."""
_HINT = f"for example {EXAMPLE}; docs/experiments.md describes every field"
_MOST_TRIALS = 100_000
_MOST_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Tuning:
    """The specification of a tuning, which searches for better values.

    Attributes:
        spec: the replay, as an experiment in which nothing varies.
        objectives: the metrics, in the form `METRIC{SCOPE,resource=NAME}`.
        constraints: the conditions that the result must meet.
        trials: the number of points to try.
        seed: the seed of the search. Equal seeds give equal points.
        at_once: the number of points that are proposed before the first result.
        search: the window of the trace for the search; "" for the first half of the trace.
        held_out: the window for testing how much of the gain remains; "" for the second half of the trace.
        parts: windows on which points are tried before the search window. A point is pruned if it is worse
            than other points there.
        sampler: the method that chooses the next points, one of `SAMPLERS`; "" for the default.
    """

    spec: Spec
    space: Space
    objectives: tuple[str, ...]
    constraints: tuple[Condition, ...]
    trials: int
    seed: int
    at_once: int
    search: str
    held_out: str
    parts: tuple[str, ...]
    sampler: str


def load_tuning(path: Path) -> Tuning:
    """Reads a tuning from a file, which has the form of an experiment with a field `tune`.

    Raises:
        SpecError: the file can't be read, or has faults. The error lists each fault with its line or field.
    """
    return tuning_of(read_content(path), source=str(path), folder=path.parent, name=plain_stem(path))


def tuning_of(content: Any, *, source: str, folder: Path = Path(), name: str = "tuning") -> Tuning:
    """Reads a tuning from a mapping.

    For the meaning of the arguments, see `harness.studies.experiments.parsing.spec_of`.

    Raises:
        SpecError: the mapping has faults. The error lists each fault with its field.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("tune"), Mapping):
        raise SpecError(
            source, [Fault("tune", "is missing: it gives the space to search and the objectives")], hint=_HINT
        )
    rest = {key: value for key, value in content.items() if key != "tune"}
    spec = spec_of(rest, source=source, folder=folder, name=name)
    faults: list[Fault] = []
    fields = Fields(content["tune"], "", faults, "tune")
    varied = [key for key in ("vary", "zip", "exclude", "random") if key in rest]
    faults += [
        Fault(key, "is for harness sweep; harness tune reads what to tune from tune.space") for key in varied
    ]
    for key, several in (("traces", spec.traces), ("clusters", spec.clusters), ("plugins", spec.arms)):
        if len(several) > 1:
            faults.append(Fault(key, "must have a single entry, because a tuning uses only one"))
    if "patches" in rest:
        faults.append(Fault("patches", "cannot be tuned; change the manifests, and tune the result"))
    ranges, choices = _space(fields)
    tuning = Tuning(
        spec=replace(spec, groups=tuple((Factor(each.name, each.values),) for each in choices)),
        space=Space(ranges, choices, _sums(fields, ranges)),
        objectives=fields.texts("objectives") or DEFAULT,
        constraints=_constraints(fields),
        trials=fields.integer("trials", 100, least=2, most=_MOST_TRIALS),
        seed=fields.integer("seed", 1, least=0),
        at_once=fields.integer("at-once", 1, least=1, most=_MOST_AT_ONCE),
        search=fields.string("search"),
        held_out=fields.string("held-out"),
        parts=fields.texts("prune"),
        sampler=fields.choice("sampler", SAMPLERS, "") if "sampler" in fields else "",
    )
    if "window" in spec.settings:
        faults.append(Fault("settings.window", "is set by tune.search and tune.held-out"))
    if bool(tuning.search) != bool(tuning.held_out):
        fields.fault("held-out", "must be given if and only if tune.search is given")
    _check_held_out(fields, tuning)
    _check_parts(fields, tuning)
    faults += [Fault(key, "is not a known field; is it misspelled?") for key in fields.unread()]
    if faults:
        raise SpecError(source, faults, hint=_HINT)
    return tuning


def _space(fields: Fields) -> tuple[tuple[Range, ...], tuple[Choice, ...]]:
    """Returns the space. Lists become choices, and mappings with `low`, `high` and `step` become ranges."""
    table = fields.raw("space")
    if not isinstance(table, Mapping) or not table:
        fields.fault("space", "is missing: it gives the parameters to search")
        return (), ()
    ranges, choices = [], []
    for name, value in table.items():
        where = f"space.{name}"
        if isinstance(value, list) and value and all(isinstance(each, (str, int, float)) for each in value):
            choices.append(Choice(str(name), tuple(value)))
        elif isinstance(value, Mapping):
            found = _range(fields, where, str(name), value)
            ranges += [found] if found is not None else []
        else:
            fields.fault(where, "must be a list of values, or a mapping with low, high and step")
    return tuple(ranges), tuple(choices)


def _range(fields: Fields, where: str, name: str, value: Mapping[Any, Any]) -> Range | None:
    numbers: dict[str, Fraction] = {"step": Fraction(1)}
    for key, number in value.items():
        if key not in ("low", "high", "step"):
            fields.fault(f"{where}.{key}", "is not a known field; a range has low, high and step")
            continue
        try:
            numbers[key] = exact_number(str(number))
        except ValueError:
            fields.fault(f"{where}.{key}", f"{shown(number)} is not a number")
    if {"low", "high"} - set(numbers):
        fields.fault(where, "needs low and high")
        return None
    if numbers["step"] <= 0 or numbers["low"] > numbers["high"] or numbers["low"] < 0:
        fields.fault(where, "must have 0 <= low <= high, and a step above 0")
        return None
    return Range(name, numbers["low"], numbers["high"], numbers["step"])


def _sums(fields: Fields, ranges: tuple[Range, ...]) -> tuple[Sum, ...]:
    by_name = {each.name: each for each in ranges}
    found: list[Sum] = []
    for number, item in enumerate(fields.items("sums")):
        names = item.texts("of")
        try:
            total = exact_number(str(item.raw("is")))
        except ValueError:
            item.fault("is", "must be a number")
            continue
        unknown = [name for name in names if name not in by_name]
        taken = {name for each in found for name in each.names}
        if len(names) < 2 or unknown or len(set(names)) < len(names) or taken & set(names):
            item.fault("of", "must name two or more ranges of the space, which are in no other sum")
            continue
        members = [by_name[name] for name in names]
        rest = total - sum(each.low for each in members)
        room = sum(each.at(each.last) - each.low for each in members)
        if len({each.step for each in members}) > 1:
            item.fault("of", "must name ranges with the same step, so that the last range can reach the sum")
        elif rest % members[0].step or not 0 <= rest <= room:
            fields.fault(f"sums[{number}].is", "cannot be reached by these ranges and their step")
        else:
            found.append(Sum(names, total))
    return tuple(found)


def _check_held_out(fields: Fields, tuning: Tuning) -> None:
    """Adds a fault if a job may be in both windows, because held-out jobs must not affect the search."""
    if not (tuning.search and tuning.held_out):
        return
    try:
        search, held_out = Window.parse(tuning.search), Window.parse(tuning.held_out)
    except OptionError:
        return  # An invalid window is reported when it is tried.
    if search.dates != held_out.dates:
        fields.fault("held-out", f"{held_out} and tune.search, {search}, must both be dates, or durations")
    elif held_out.overlaps(search):
        fields.fault("held-out", f"{held_out} overlaps with tune.search, {search}")


def _check_parts(fields: Fields, tuning: Tuning) -> None:
    """Adds a fault for each part outside the search window. Held-out jobs must not affect the search."""
    if not tuning.parts:
        return
    if len(tuning.objectives) > 1:
        fields.fault(
            "prune", "needs a single objective, because several may disagree on which trial is worse"
        )
    if not tuning.search:
        fields.fault("prune", "has windows within tune.search, so give tune.search too")
        return
    try:
        whole = Window.parse(tuning.search)
    except OptionError:
        return  # An invalid window is reported when it is tried.
    for number, text in enumerate(tuning.parts):
        try:
            if not Window.parse(text).within(whole):
                fields.fault(f"prune[{number}]", f"{text} is not within tune.search, {whole}")
        except OptionError as error:
            fields.fault(f"prune[{number}]", error.message)


def _constraints(fields: Fields) -> tuple[Condition, ...]:
    found = []
    for number, text in enumerate(fields.texts("constraints")):
        try:
            found.append(parse_condition(text))
        except HarnessError as error:
            fields.fault(f"constraints[{number}]", f"{error.message}; {error.hint}")
    return tuple(found)
