"""Represents amounts of quota by flavor-resource."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

Amounts = tuple[tuple[int, int], ...]
"""Pairs of a flavor-resource number and an amount. The numbers are in ascending order."""


def amounts_of(amounts: Amounts, cells: Sequence[int]) -> Amounts:
    """Returns the amounts of the given flavor-resources. They are found by bisection."""
    if len(cells) >= len(amounts):
        return amounts
    found: list[tuple[int, int]] = []
    for cell in cells:
        at = bisect_left(amounts, (cell,))
        if at < len(amounts) and amounts[at][0] == cell:
            found.append(amounts[at])
    return tuple(found)


def amounts_besides(amounts: Amounts, cells: Sequence[int]) -> Amounts:
    """Returns the amounts of all flavor-resources except the given ones."""
    if len(cells) >= len(amounts):
        return ()
    asked = set(cells)
    return tuple([each for each in amounts if each[0] not in asked])


def total(amounts: Iterable[Amounts]) -> Amounts:
    """Returns the sum of amounts, in the order in which the flavor-resources first occur."""
    found: dict[int, int] = {}
    for each in amounts:
        for cell, amount in each:
            found[cell] = found.get(cell, 0) + amount
    return tuple(found.items())
