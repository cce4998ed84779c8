"""The Pareto set: the entries that are not dominated by any other entry."""

from __future__ import annotations

from collections.abc import Sequence


def undominated(costs: Sequence[Sequence[float]]) -> set[int]:
    """Returns the indexes of the entries that no entry dominates.

    An entry dominates another entry if none of its costs is higher and at least one cost is lower.
    """
    order = sorted(range(len(costs)), key=lambda at: tuple(costs[at]))
    found: list[int] = []
    for at in order:
        mine = costs[at]
        if not any(_dominates(costs[other], mine) for other in found):
            found.append(at)
    return set(found)


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)
