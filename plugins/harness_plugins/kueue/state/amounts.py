"""Represents amounts of quota by flavor-resource."""

from __future__ import annotations

from collections.abc import Iterable

Amounts = tuple[tuple[int, int], ...]
"""Pairs of a flavor-resource number and an amount. The numbers are in ascending order."""


def total(amounts: Iterable[Amounts], cell: int) -> int:
    """Returns the total quantity of a flavor-resource in these amounts."""
    return sum(amount for each in amounts for taken, amount in each if taken == cell)
