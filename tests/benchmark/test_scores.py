"""Scores between the worst built-in policy and the best, and the ranks of policies."""

from __future__ import annotations

import pytest

from harness.studies.benchmark.scores import Scale, pareto_ranks, scales, scored
from harness.studies.benchmark.suite import Suite


def of(**values: tuple[float | None, ...]) -> dict[str, dict[int, float | None]]:
    """Objective -> twin -> value; `_` stands for a dot."""
    return {name.replace("_", "."): dict(enumerate(found, start=1)) for name, found in values.items()}


BETTER = {"delay.mean": "lower", "goodput.of_demand": "higher", "disruption.lost": "lower"}


def named(values: dict[str, dict[int, float | None]]) -> dict[str, dict[int, float | None]]:
    """With the one name that has an underscore of its own."""
    return {name.replace("goodput.of.demand", "goodput.of_demand"): found for name, found in values.items()}


def test_zero_is_the_worst_built_in_and_one_the_best_and_it_is_linear_beyond(small: Suite) -> None:
    """Whichever direction is better; a tie of all built-ins within 1 % does not count."""
    built_in = {
        "a": named(of(delay_mean=(90, 110), goodput_of_demand=(0.5, 0.5), disruption_lost=(3, 3))),
        "b": named(of(delay_mean=(40, 60), goodput_of_demand=(0.9, 0.9), disruption_lost=(3, 3.01))),
    }
    found = scales(small.task("morning"), built_in, BETTER)
    assert [(scale.objective, scale.worst, scale.best) for scale in found] == [
        ("goodput.of_demand", 0.5, 0.9),
        ("delay.mean", 100, 50),
    ]
    assert [found[1].score(value) for value in (100, 50, 0, 150)] == [0, 1, 2, -1]


def test_a_score_is_the_mean_over_groups_with_an_interval_over_twins() -> None:
    """However many objectives a group has; without twins there is no interval."""
    on = [Scale("x", "one", 0, 1), Scale("x", "two", 0, 2), Scale("y", "three", 0, 1)]
    score = scored(on, {"one": {1: 1, 2: 1}, "two": {1: 0, 2: 2}, "three": {1: 0, 2: 0}})
    assert {name: found.value for name, found in score.groups.items()} == {"x": 0.75, "y": 0}
    assert score.score.value == pytest.approx(0.375)
    assert score.score.low is not None
    assert score.score.low < 0.25
    assert scored(on, {"one": {1: 1}, "two": {1: 1}, "three": {1: 1}}).score.low is None


def test_what_has_no_value_counts_as_far_below_the_worst() -> None:
    """As far as the best is above it, so that nothing is gained by what cannot be measured."""
    score = scored([Scale("x", "one", 5, 3)], {"one": {1: None}})
    assert score.score.value == -1
    assert score.objectives == {"one": None}


def test_the_first_rank_is_the_frontier_of_the_groups() -> None:
    """The second one is the frontier of the others."""
    on = [Scale("x", "one", 0, 1), Scale("y", "two", 0, 1)]
    given = {"best": (1, 0.5), "other": (0.2, 0.9), "beaten": (0.9, 0.4), "last": (0.1, 0.1)}
    scores = {name: scored(on, {"one": {1: a}, "two": {1: b}}) for name, (a, b) in given.items()}
    assert pareto_ranks(scores) == {"best": 1, "other": 1, "beaten": 2, "last": 3}
