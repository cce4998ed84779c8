"""Represents amounts of quota by flavor-resource."""

from __future__ import annotations

from collections.abc import Iterable

Amounts = tuple[tuple[int, int], ...]
"""Pairs of a flavor-resource number and an amount. The numbers are in ascending order."""


def total(amounts: Iterable[Amounts]) -> Amounts:
    """Returns the sum of amounts, in the order in which the flavor-resources first occur."""
    found: dict[int, int] = {}
    for each in amounts:
        for cell, amount in each:
            found[cell] = found.get(cell, 0) + amount
    return tuple(found.items())
