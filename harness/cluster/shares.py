"""Divides integer quantities in proportion to weights."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor


def largest_remainder(total: int, weights: Mapping[str, int | Fraction]) -> dict[str, int]:
    """Divides a total into integer shares in proportion to weights.

    All shares are rounded down first. The units that remain go to the shares with the largest remainders.
    Equal remainders are ordered by name.

    The weights are 0 or more, and at least one weight is greater than 0.
    """
    whole = sum(weights.values())
    exact = {name: Fraction(total) * weight / whole for name, weight in weights.items()}
    shares = {name: floor(share) for name, share in exact.items()}
    by_remainder = sorted(weights, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares


def split_in_units(total: int, weights: Mapping[str, int | Fraction], unit: int) -> dict[str, int]:
    """Divides a total into shares that are multiples of `unit`, by `largest_remainder`.

    If the total isn't a multiple of `unit`, the first share by name also gets the remainder.
    """
    units, rest = divmod(total, unit)
    shares = {name: share * unit for name, share in largest_remainder(units, weights).items()}
    if rest:
        shares[min(shares)] += rest
    return shares
