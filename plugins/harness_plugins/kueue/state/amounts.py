"""Amounts of quota by flavor-resource."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

Amounts = tuple[tuple[int, int], ...]
"""Amounts by number of a flavor-resource, in ascending order of the numbers."""


def amounts_of(amounts: Amounts, cells: Sequence[int]) -> Amounts:
    """Returns the amounts of some flavor-resources, each found by bisection."""
    if len(cells) >= len(amounts):
        return amounts
    found: list[tuple[int, int]] = []
    for cell in cells:
        at = bisect_left(amounts, (cell,))
        if at < len(amounts) and amounts[at][0] == cell:
            found.append(amounts[at])
    return tuple(found)


def amounts_besides(amounts: Amounts, cells: Sequence[int]) -> Amounts:
    """Returns the amounts of all other flavor-resources: the amounts that `amounts_of` leaves out."""
    if len(cells) >= len(amounts):
        return ()
    asked = set(cells)
    return tuple([each for each in amounts if each[0] not in asked])
