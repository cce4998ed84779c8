"""Computes scores, which place a policy between the worst built-in policy (0) and the best one (1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from harness.analysis.comparison.changes import PRACTICAL
from harness.analysis.comparison.statistics.frontier import undominated
from harness.plugins.measurement import Measurement
from harness.studies.benchmark.suite import Task
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import Estimate, Judged, estimate, plain_mean

LACKING = -1.0
"""The score of an objective that has no value, as far below 0 as the best built-in policy is above 0."""

Values = Mapping[str, Mapping[int, float | None]]
"""Maps an objective to the value of each twin, or to None for a twin without a value."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The values of an objective that give the scores 0 and 1.

    Twins are versions of the task's trace with slightly shifted arrivals.

    Attributes:
        objective: the name of the objective, with its resource.
        worst: the mean over twins of the worst built-in policy.
        best: the mean over twins of the best built-in policy.
    """

    group: str
    objective: str
    worst: float
    best: float

    def score(self, value: float | None) -> float:
        """Returns the score of a value, on a linear scale that extends below 0 and above 1."""
        return LACKING if value is None else (value - self.worst) / (self.best - self.worst)


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a policy in a task.

    Attributes:
        score: the mean over groups and twins, with its interval.
        groups: for each group, the mean over its objectives, with its interval.
        objectives: for each objective, its mean over twins; None if it has no values.
    """

    score: Estimate
    groups: Mapping[str, Estimate]
    objectives: Mapping[str, float | None]


def values_of(experiment: Experiment, task: Task) -> Mapping[str, Values]:
    """Returns the values of a task's objectives for each policy, twin by twin.

    Raises:
        RunError: an item is damaged, or no item has run yet.
    """
    judged = Judged(experiment, _measured(experiment, task))
    found: dict[str, dict[str, Mapping[int, float | None]]] = {}
    for objective in judged.objectives:
        of_settings = judged.values(objective)
        for setting in judged.settings:
            policy = str(setting.point["plugin"])
            found.setdefault(policy, {})[called(objective)] = of_settings[setting.item].values
    return found


def values_of_rows(rows: Sequence[Sequence[Measurement]], task: Task) -> Values:
    """Returns the values of a task's objectives in some replays, where the first replay is twin 1."""
    found: dict[str, dict[int, float | None]] = {}
    for metric in _metrics(task):
        for twin, measured in enumerate(rows, start=1):
            for row in measured:
                if (row.metric, row.scope) == (metric, "all") and row.resource in ("", task.resource):
                    found.setdefault(called(row), {})[twin] = row.value
    return found


def called(row: Measurement) -> str:
    """Returns the name that texts use for an objective."""
    return f"{row.metric}{{resource={row.resource}}}" if row.resource else row.metric


def scales(task: Task, built_in: Mapping[str, Values], better: Mapping[str, str]) -> list[Scale]:
    """Returns the scale of every objective in which the built-in policies differ by more than 1 %.

    For each objective, `better` says whether `higher` or `lower` values are better.
    """
    found = []
    for group, metrics in task.objectives.items():
        for objective in better:
            if objective.partition("{")[0] not in metrics:
                continue
            means = [
                mean for values in built_in.values() if (mean := _mean(values.get(objective, {}))) is not None
            ]
            if not means:
                continue
            low, high = min(means), max(means)
            if high - low > PRACTICAL * max(abs(low), abs(high)):
                ends = (low, high) if better[objective] == "higher" else (high, low)
                found.append(Scale(group, objective, *ends))
    return found


def scored(on: Sequence[Scale], values: Values) -> Score:
    """Returns the score of a policy."""
    twins = sorted({twin for of in values.values() for twin in of}) or [1]
    groups: dict[str, list[float]] = {}
    for group in dict.fromkeys(scale.group for scale in on):
        mine = [scale for scale in on if scale.group == group]
        groups[group] = [
            fsum(scale.score(values.get(scale.objective, {}).get(twin)) for scale in mine) / len(mine)
            for twin in twins
        ]
    of_twins = [fsum(of[at] for of in groups.values()) / max(1, len(groups)) for at in range(len(twins))]
    return Score(
        _estimated(of_twins),
        {group: _estimated(of) for group, of in groups.items()},
        {objective: _mean(of) for objective, of in values.items()},
    )


def pareto_ranks(scores: Mapping[str, Score]) -> Mapping[str, int]:
    """Returns the rank of each policy: 1 if no policy dominates it, 2 if only policies of rank 1 do, etc."""
    left = dict(scores)
    found: dict[str, int] = {}
    rank = 1
    while left:
        names = list(left)
        best = undominated([[-group.value for group in left[name].groups.values()] for name in names])
        found |= {names[place]: rank for place in best}
        left = {name: left[name] for place, name in enumerate(names) if place not in best}
        rank += 1
    return found


def _estimated(values: Sequence[float]) -> Estimate:
    return estimate(values) if len(values) > 1 else plain_mean(values)


def _mean(values: Mapping[int, float | None]) -> float | None:
    there = [value for value in values.values() if value is not None]
    return fsum(there) / len(there) if there else None


def _metrics(task: Task) -> list[str]:
    return [metric for metrics in task.objectives.values() for metric in metrics]


def _measured(experiment: Experiment, task: Task) -> list[str]:
    table = experiment.to_polars().filter(scope="all").select("metric", "resource").unique()
    there = set(table.rows())
    return [
        f"{metric}{{resource={resource}}}" if resource else metric
        for metric in _metrics(task)
        for resource in ("", task.resource)
        if (metric, resource) in there
    ]
