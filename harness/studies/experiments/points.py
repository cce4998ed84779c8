"""Computes the points of an experiment. Each point has one value for each factor.

The points are all points of a grid that are not excluded, or a sample of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from random import Random
from typing import TypeAlias

from harness.studies.experiments.specification import SEED, Point, Spec, Value

_MOST_TRIED = 2_000_000
"""The maximum number of grid points that are tried when random points are drawn."""

Applies: TypeAlias = Callable[[str, Point], bool]
"""Returns True if a factor applies to a point. An option applies only to plugins that have it."""


def size(spec: Spec) -> int:
    """Returns the largest possible number of items."""
    whole = prod(len(group[0].values) for group in spec.axes)
    drawn = whole if spec.random is None else min(whole, spec.random.count)
    return drawn * (1 if spec.seeds is None else spec.seeds.count)


def points(spec: Spec, applies: Applies) -> list[Point]:
    """Returns every point once, in the order of the specification.

    Seeds vary fastest, and then the last of the other factors. If a factor does not apply to a point, its
    value is None. Points that differ only in such factors are the same point.
    """
    found: dict[tuple[Value, ...], Point] = {}
    for point in (meant(each, applies) for each in _chosen(spec, applies)):
        found.setdefault(tuple(point.values()), point)
    seeds: Iterable[int | None] = (None,) if spec.seeds is None else spec.seeds.numbers
    return [point if seed is None else {**point, SEED: seed} for point in found.values() for seed in seeds]


def meant(point: Point, applies: Applies) -> Point:
    """Returns a point in which the factors that do not apply to it have the value None."""
    return {name: value if applies(name, point) else None for name, value in point.items()}


def _chosen(spec: Spec, applies: Applies) -> Iterator[Point]:
    """Yields the points that are not excluded, or the requested number of different ones at random."""
    whole = prod([len(group[0].values) for group in spec.axes])
    if spec.random is None or spec.random.count >= whole:
        yield from filter(
            lambda point: not _excluded(spec, point), (_at(spec, each) for each in range(whole))
        )
        return
    draw, seen = Random(spec.random.seed), set[int]()  # noqa: S311 - a sample
    kept: dict[tuple[Value, ...], int] = {}
    while len(kept) < spec.random.count and len(seen) < min(whole, _MOST_TRIED):
        number = draw.randrange(whole)
        if number not in seen:
            seen.add(number)
            point = _at(spec, number)
            if not _excluded(spec, point):
                kept.setdefault(tuple(meant(point, applies).values()), number)
    yield from (_at(spec, number) for number in sorted(kept.values()))


def _at(spec: Spec, number: int) -> Point:
    places: list[int] = []
    for group in reversed(spec.axes):
        number, place = divmod(number, len(group[0].values))
        places.append(place)
    return {
        factor.name: factor.values[place]
        for group, place in zip(spec.axes, reversed(places), strict=True)
        for factor in group
    }


def _excluded(spec: Spec, point: Point) -> bool:
    return any(_met(rule, point) for rule in spec.exclude)


def _met(rule: Mapping[str, tuple[Value, ...]], point: Point) -> bool:
    return all(point[name] in values for name, values in rule.items())
