"""The search: it finds what is known to be best, keeps sums, heeds constraints, and is the same again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from harness.studies.experiments.specification import Point
from harness.studies.tuning.search import Choice, Found, Range, Space, Sum, Trial, best_of, search

pytest.importorskip("optuna", reason="optuna is not installed (extra tune)")

A, B, C = "ClusterQueue/a.quota[cpu]", "ClusterQueue/b.quota[cpu]", "ClusterQueue/c.quota[cpu]"
SPLIT = Space(
    (Range(A, Fraction(1), Fraction(59), Fraction(1)), Range(B, Fraction(1), Fraction(59), Fraction(1))),
    sums=(Sum((A, B), Fraction(60)),),
)


def wait(point: Point) -> float:
    """Mean wait of 300 jobs of a minute and 300 of four, with as many cores: least where b has twice a's."""
    a, b = float(str(point[A])), float(str(point[B]))
    return (300 * 300 * 1 / a + 300 * 300 * 4 / b) / 2


START: Point = {A: 30, B: 30}


def split(attempt: Callable[[Point], Found | None], trials: int, seed: int = 1, **how: Any) -> list[Trial]:
    """A search for the best split of two queues."""
    how = {"better": ["lower"], "first": START, **how}
    return search(SPLIT, each(attempt), trials=trials, seed=seed, **how)


def each(function: Callable[[Point], Found | None]) -> Callable[[Sequence[Point], int], list[Found | None]]:
    return lambda points, _: [function(point) for point in points]


def test_the_best_split_of_two_queues_is_found_within_2_per_cent_in_60_trials() -> None:
    """The known optimum is 20 and 40; the present split is the first trial."""
    tried = search(
        SPLIT,
        each(lambda point: Found([wait(point)])),
        better=["lower"],
        first={A: 30, B: 30},
        trials=60,
        seed=1,
    )
    assert len(tried) == 60
    assert tried[0].point == {A: 30, B: 30}
    best = best_of(tried, ["lower"])
    assert best is not None
    assert best.found is not None
    assert best.found.values[0] <= 1.02 * wait({A: 20, B: 40})


def test_sums_are_held_in_every_trial() -> None:
    """Whatever is tried, quotas stay whole steps and add up."""
    ranges = tuple(Range(name, Fraction(8), Fraction(80), Fraction(8)) for name in (A, B, C))
    space = Space(ranges, sums=(Sum((A, B, C), Fraction(96)),))
    first = {A: 32, B: 32, C: 32}
    tried = search(
        space,
        each(lambda point: Found([float(str(point[A]))])),
        better=["lower"],
        first=first,
        trials=25,
        seed=3,
    )
    for trial in tried:
        assert sum(float(str(trial.point[name])) for name in (A, B, C)) == 96
        assert all(float(str(trial.point[name])) % 8 == 0 for name in (A, B, C))


@pytest.mark.parametrize("better", [["lower"], ["lower", "higher"]])
def test_the_same_seed_tries_the_same_points(better: list[str]) -> None:
    """With one objective and with several, and a failed trial is no end."""

    def attempt(point: Point) -> Found | None:
        if point[A] == 7:
            return None
        return Found([wait(point), float(str(point[A]))][: len(better)])

    first = {A: 30, B: 30}
    one, two = (
        search(SPLIT, each(attempt), better=better, first=first, trials=30, seed=5, at_once=3) for _ in "ab"
    )
    assert one == two
    assert one != search(SPLIT, each(attempt), better=better, first=first, trials=30, seed=6, at_once=3)


def test_what_does_badly_on_a_part_is_pruned_and_what_is_best_is_still_found() -> None:
    """Most points are given up on the first part, and the best of them is worse than what was not."""
    asked: list[tuple[int, Point]] = []

    def attempt(points: Sequence[Point], stage: int) -> list[Found | None]:
        asked.extend((stage, point) for point in points)
        return [Found([wait(point) * (0.1, 0.5, 1)[stage]]) for point in points]

    tried = search(SPLIT, attempt, better=["lower"], first=START, trials=60, seed=1, at_once=2, parts=2)
    best = best_of(tried, ["lower"])
    assert best is not None
    assert best.found is not None
    assert best.found.values[0] <= 1.02 * wait({A: 20, B: 40})
    pruned = [trial.point for trial in tried if trial.pruned]
    assert len(pruned) > 20
    assert all(trial.found is None for trial in tried if trial.pruned)
    stages = [sum(stage == wanted for stage, _ in asked) for wanted in range(3)]
    assert stages == [60, 60 - len(pruned), 60 - len(pruned)]
    waits = [wait(trial.point) for trial in tried if not trial.pruned]
    assert min(map(wait, pruned)) > min(waits)


def test_a_point_that_fails_on_a_part_has_failed() -> None:
    """It is not tried on the whole; a part on which the present point fails is no reason to give up any."""

    def attempt(points: Sequence[Point], stage: int) -> list[Found | None]:
        assert stage < 2 or all(point == START or point[A] != 29 for point in points)
        fails = [stage == 0 or (stage == 1 and point[A] == 29) for point in points]
        return [
            None if failing else Found([wait(point)]) for failing, point in zip(fails, points, strict=True)
        ]

    space = Space((Range(A, Fraction(29), Fraction(31), Fraction(1)),))
    tried = search(space, attempt, better=["lower"], first=START, trials=12, seed=1, parts=2)
    failed = [trial for trial in tried if trial.point[A] == 29]
    assert failed
    assert all(trial.found is None and not trial.pruned for trial in failed)


def test_what_breaks_a_constraint_does_not_win() -> None:
    """Of the allowed points the best one does."""
    space = Space((), (Choice("model", ("restart", "resume", "free")),))
    values = {"restart": 5.0, "resume": 3.0, "free": 1.0}

    def attempt(point: Point) -> Found:
        return Found([values[str(point["model"])]], [1.0 if point["model"] == "free" else -1.0])

    tried = search(space, each(attempt), better=["lower"], first={"model": "restart"}, trials=20, seed=1)
    best = best_of(tried, ["lower"])
    assert best is not None
    assert best.point == {"model": "resume"}


def test_a_point_outside_of_the_space_is_tried_first_all_the_same() -> None:
    """The present configuration is what others are held against, wherever it is."""
    tried = search(
        SPLIT,
        each(lambda point: Found([wait(point)])),
        better=["lower"],
        first={A: 30, B: 70},
        trials=5,
        seed=1,
    )
    assert tried[0].point == {A: 30, B: 70}
    assert len(tried) == 5


def test_nothing_wins_that_is_worse_in_something() -> None:
    """A gain in one objective does not pay for a loss in another."""
    tried = [Trial({"x": 0}, Found([10.0, 5.0])), Trial({"x": 1}, Found([1.0, 6.0])), Trial({"x": 2}, None)]
    assert best_of(tried, ["lower", "lower"]) is None
    found = best_of([*tried, Trial({"x": 3}, Found([9.0, 5.0]))], ["lower", "lower"])
    assert found is not None
    assert found.point == {"x": 3}
