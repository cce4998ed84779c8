"""Searches a space for the best points. Optuna proposes the points, and the caller tries them.

A point has one value for each parameter.

Points are proposed in batches of a fixed size, and Optuna receives their results in order, so the number of
processes does not affect the search. If a search is stopped and started again, it proposes the same points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from math import ceil
from typing import Any, NamedTuple, TypeAlias

from harness.base.errors import InputError
from harness.studies.experiments.specification import Point, Value

TPE, NSGA2, GP = "tpe", "nsga2", "gp"
SAMPLERS = (TPE, NSGA2, GP)
"""The methods that choose the next points: Parzen estimators, a genetic algorithm, and Gaussian processes."""

_INSTALL = "pip install 'harness-replay[tune]'"
_INSTALL_TORCH = (
    f"pip install torch, or leave 'sampler' out: {TPE!r} is for one objective, {NSGA2!r} for several"
)
_POPULATION = 20


@dataclass(frozen=True, slots=True)
class Range:
    """A parameter that takes equidistant numbers.

    Attributes:
        high: the upper bound of the numbers.
        step: the distance between two consecutive numbers.
    """

    name: str
    low: Fraction
    high: Fraction
    step: Fraction

    @property
    def last(self) -> int:
        """The index of the largest number. The smallest number has index 0."""
        return int((self.high - self.low) // self.step)

    def at(self, place: int) -> Fraction:
        """Returns the number at an index."""
        return self.low + place * self.step

    def place(self, number: Fraction) -> int | None:
        """Returns the index of a number, or None if the number is not in the range."""
        place = (number - self.low) / self.step
        return int(place) if place.denominator == 1 and 0 <= place <= self.last else None


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter that takes one of several values."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Ranges with the same step, whose numbers must add up to a fixed total."""

    names: tuple[str, ...]
    total: Fraction


@dataclass(frozen=True, slots=True)
class Space:
    """The search space.

    Attributes:
        ranges: the parameters that are numbers.
        choices: the parameters with a list of values.
        sums: the ranges with a fixed sum; each range belongs to at most one sum.
    """

    ranges: tuple[Range, ...]
    choices: tuple[Choice, ...] = ()
    sums: tuple[Sum, ...] = ()


class Found(NamedTuple):
    """The measured result of a point.

    Attributes:
        values: the value of each objective.
        excess: the excess of each constraint, which is above 0 if the constraint is not met.
        at_least: for each objective, whether its value is a lower bound and can still grow.
    """

    values: Sequence[float]
    excess: Sequence[float] = ()
    at_least: Sequence[bool] = ()

    @property
    def allowed(self) -> bool:
        """Returns True if all constraints are met."""
        return all(each <= 0 for each in self.excess)


class Trial(NamedTuple):
    """A point that was tried.

    Attributes:
        found: the result of the point on the whole window; None if the point failed or was pruned.
        pruned: whether the trial was stopped early, because the point was worse than other points on a part
            of the window.
    """

    point: Point
    found: Found | None
    pruned: bool = False


Try: TypeAlias = Callable[[Sequence[Point], int], Sequence[Found | None]]
"""Tries points on a part, given by its index, or on the whole window.

The index of the whole window is the number of parts. The function returns the result of each point, or None
for points that failed.
"""


def search(
    space: Space,
    attempt: Try,
    *,
    better: Sequence[str],
    first: Point,
    trials: int,
    seed: int,
    at_once: int = 1,
    parts: int = 0,
    sampler: str = "",
) -> list[Trial]:
    """Tries the present point, and then the points that the search proposes.

    Without `parts`, each point is tried on the whole window of the trace. With `parts`, each point is first
    tried on one part of the window after another. After each part, Optuna's `MedianPruner` decides whether to
    prune the point, which means to stop its trial. The pruner compares the gains of points over the present
    point on the same part. It prunes a point if the point's largest gain so far is below the median gain of
    the other points.

    `better` has `lower` or `higher` for each objective. `first` is the present point, which need not be in
    the space. Before the first result, `at_once` points are proposed. Several `parts` require a single
    objective, and parts on which the present point fails are ignored. Equal seeds give equal points.
    `sampler` is one of `SAMPLERS`, by default `tpe` for one objective and `nsga2` for several.

    Raises:
        InputError: a package that the sampler needs is not installed.
    """
    optuna = ready(sampler)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        study = _study(optuna, better, seed, sampler)
        bases = {part: base for part in range(parts) if (base := attempt([first], part)[0]) is not None}
        tried = [Trial(first, attempt([first], parts)[0])]
        places = _places(space, first)
        if places is not None:
            study.enqueue_trial(places)
            trial, _ = _asked(study, space)
            for part in bases:
                trial.report(0.0, part)
            _tell(optuna, study, trial, tried[0].found)
        while len(tried) < trials:
            asked = [_asked(study, space) for _ in range(min(at_once, trials - len(tried)))]
            points = [{**first, **point} for _, point in asked]
            going = dict(enumerate(asked))
            pruned: set[int] = set()
            for part, base in bases.items():
                founds = attempt([points[at] for at in going], part)
                for at, found in zip(list(going), founds, strict=True):
                    trial, _ = going[at]
                    if found is None:
                        _tell(optuna, study, trial, None)
                    elif _pruned(
                        optuna, study, trial, part, gain(base.values[0], found.values[0], better[0])
                    ):
                        pruned.add(at)
                    else:
                        continue
                    del going[at]
            whole = dict(zip(going, attempt([points[at] for at in going], parts), strict=True))
            for at, found in whole.items():
                _tell(optuna, study, going[at][0], found)
            tried += [Trial(point, whole.get(at), at in pruned) for at, point in enumerate(points)]
    return tried


def _pruned(optuna: Any, study: Any, trial: Any, part: int, gained: float) -> bool:
    """Reports a trial's gain on a part to the study, and returns True if the trial is pruned."""
    lower = study.direction == optuna.study.StudyDirection.MINIMIZE
    trial.report(-gained if lower else gained, part)
    if trial.should_prune():
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        return True
    return False


def best_of(tried: Sequence[Trial], better: Sequence[str]) -> Trial | None:
    """Returns the trial with the largest gain over the first trial, or None if no trial is better.

    Trials that violate a constraint do not count. The same is true for trials that are worse than the first
    trial in any objective. With several objectives, gains are relative to the first trial's values, and
    their mean counts.
    """
    today = tried[0].found
    if today is None:
        return None

    def gains(found: Found) -> list[float]:
        return [
            gain(before, after, way)
            for before, after, way in zip(today.values, found.values, better, strict=True)
        ]

    candidates = [
        (sum(gains(each.found)), each)
        for each in tried[1:]
        if each.found is not None
        and each.found.allowed
        and all(part >= 0 for part in gains(each.found))
        and any(part > 0 for part in gains(each.found))
    ]
    return max(candidates, key=lambda pair: pair[0], default=(0.0, None))[1]


def gain(before: float, after: float, better: str) -> float:
    """Returns an improvement as a fraction of the value before it, or as a difference if that value is 0."""
    change = (after - before) if better == "higher" else (before - after)
    return change / abs(before) if before else change


def ready(sampler: str = "") -> Any:
    """Returns Optuna, after checking that the packages that a sampler needs are installed.

    Raises:
        InputError: a package is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Notebooks warn about progress bars that are not shown.
            found = import_module("optuna")
    except ImportError as error:
        raise InputError("optuna is not installed", hint=_INSTALL) from error
    found.logging.set_verbosity(found.logging.ERROR)
    if sampler == GP:  # Optuna would report a missing package only after ten trials.
        try:
            import_module("torch")
        except ImportError as error:
            raise InputError(
                f"tune.sampler: {GP} needs torch, which is not installed", hint=_INSTALL_TORCH
            ) from error
    return found


def _study(optuna: Any, better: Sequence[str], seed: int, name: str) -> Any:
    makers = {
        TPE: optuna.samplers.TPESampler,
        NSGA2: partial(optuna.samplers.NSGAIISampler, population_size=_POPULATION),
        # Replays are deterministic, so equal points have equal values.
        GP: partial(optuna.samplers.GPSampler, deterministic_objective=True),
    }
    sampler = makers[name or (TPE if len(better) == 1 else NSGA2)](seed=seed)
    ways = ["maximize" if each == "higher" else "minimize" for each in better]
    return optuna.create_study(sampler=sampler, directions=ways, pruner=optuna.pruners.MedianPruner())


def _asked(study: Any, space: Space) -> tuple[Any, Point]:
    trial = study.ask()
    point: dict[str, Value] = {}
    of_sums = {name: each for each in space.sums for name in each.names}
    for each in space.ranges:
        low, high = 0, each.last
        held = of_sums.get(each.name)
        if held is not None:
            low, high = _room(space, held, each, point)
        place = low if low == high else trial.suggest_int(each.name, low, high)
        point[each.name] = plain(each.at(place))
    for choice in space.choices:
        values = choice.values
        place = trial.suggest_categorical(choice.name, range(len(values))) if len(values) > 1 else 0
        point[choice.name] = values[place]
    return trial, point


def _room(space: Space, held: Sum, mine: Range, point: Point) -> tuple[int, int]:
    """Returns the indexes that a range of a sum may take so that later ranges can complete the total."""
    others = [each for each in space.ranges if each.name in held.names and each.name != mine.name]
    taken = sum((exact(point[each.name]) for each in others if each.name in point), Fraction(0))
    after = [each for each in others if each.name not in point]
    least = sum((each.low for each in after), Fraction(0))
    most = sum((each.at(each.last) for each in after), Fraction(0))
    low = max(0, ceil((held.total - taken - most - mine.low) / mine.step))
    high = min(mine.last, int((held.total - taken - least - mine.low) // mine.step))
    return low, high


def _places(space: Space, point: Point) -> dict[str, int] | None:
    """Returns a point as indexes, which Optuna uses, or None if the point is not in the space."""
    found: dict[str, int] = {}
    for each in space.ranges:
        value = point[each.name]
        place = None if value is None or isinstance(value, str) else each.place(exact(value))
        if place is None:
            return None
        found[each.name] = place
    for held in space.sums:
        if sum(exact(point[name]) for name in held.names) != held.total:
            return None
    for choice in space.choices:
        if point[choice.name] not in choice.values:
            return None
        found[choice.name] = choice.values.index(point[choice.name])
    return found


def _tell(optuna: Any, study: Any, trial: Any, found: Found | None) -> None:
    if found is None:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return
    for number, excess in enumerate(found.excess):
        trial.set_constraint(str(number), excess)
    study.tell(trial, list(found.values))


def exact(value: Value) -> Fraction:
    """Returns the exact value of a number from its decimal notation."""
    return Fraction(str(value))


def plain(number: Fraction) -> int | float:
    """Converts a number to the form that specifications use."""
    return int(number) if number.denominator == 1 else float(number)
