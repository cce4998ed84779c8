"""Sums that are exact: of floats until they are rounded once, of resource-time whatever its size.

No order of adding up shows in them.
"""

from __future__ import annotations

from itertools import chain
from math import fsum

import numpy as np

from harness.base.arrays import Floats, Ints

_SLICE = 1 << 16
_BITS = 62  # of a sum that is added up in 64 bits


def exact_sum(values: Floats) -> float:
    """The sum of values, slice by slice: Python's floats are four times as large."""
    starts = range(0, len(values), _SLICE)
    return fsum(chain.from_iterable(values[start : start + _SLICE].tolist() for start in starts))


def whole_sum(values: Ints) -> int:
    """The sum of whole numbers, which may not fit 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def resource_time(amounts: Ints, spans: Ints) -> int:
    """The sum of amounts of a resource times spans of microseconds, which does not fit 64 bits."""
    return resource_times(amounts, spans, np.zeros(min(1, len(amounts)), np.intp))[0] if len(amounts) else 0


def resource_times(amounts: Ints, spans: Ints, begins: Ints) -> list[int]:
    """The same of each group of neighbouring rows.

    Args:
        amounts: what is held, ...
        spans: how long.
        begins: the row at which each group begins, ascending from 0; none is empty.
    """
    found = [0] * len(begins)
    if not found:
        return found
    bits = (_BITS - len(amounts).bit_length()) // 2
    # Factors that are too long are cut into digits of so many bits, as one multiplies on paper.
    wide = _length(amounts) + _length(spans) + len(amounts).bit_length() > _BITS
    for left, amount in _digits(amounts, bits) if wide else [(0, amounts)]:
        for right, span in _digits(spans, bits) if wide else [(0, spans)]:
            sums = np.add.reduceat(amount * span, begins).tolist()
            found = [total + (part << left + right) for total, part in zip(found, sums, strict=True)]
    return found


def _length(values: Ints) -> int:
    """How many bits the largest of some values has, without its sign."""
    return max(int(values.max()).bit_length(), int(values.min()).bit_length())


def _digits(values: Ints, bits: int) -> list[tuple[int, Ints]]:
    """Digits of values, and how far each stands to the left; the last one has the sign."""
    length, digits, shift = _length(values), [], 0
    while length - shift > bits:
        digits.append((shift, values >> shift & (1 << bits) - 1))
        shift += bits
    return [*digits, (shift, values >> shift)]
