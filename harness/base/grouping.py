"""Groups values by key, and adds them up by key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")
_N = TypeVar("_N", int, float)


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Maps each key to the list of its values. Keys and values keep the order in which `pairs` has them."""
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def summed(pairs: Iterable[tuple[_K, _N]]) -> dict[_K, _N]:
    """Maps each key to the sum of its values. Keys keep the order in which `pairs` has them."""
    found: dict[_K, _N] = {}
    for key, value in pairs:
        found[key] = found[key] + value if key in found else value
    return found
