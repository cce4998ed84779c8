"""Computes sums of floats with a single rounding, and sums of resource-time that may exceed 64 bits.

The results do not depend on the order of the values.
"""

from __future__ import annotations

from itertools import pairwise
from math import frexp, fsum

import numpy as np

from harness.base.arrays import Floats, Ints

_SLICE = 1 << 16
_FEW = 64  # Up to this many values, Python adds faster than NumPy.
_BITS = 62  # The bits that a partial sum can use in 64-bit arithmetic.


def exact_sum(values: Floats) -> float:
    """Adds up values below 2 to the power of 1,000, like `math.fsum` but ten times as fast.

    The function adds up the leading digits of all values, then the next digits, and so on until no digits
    remain. Each step takes as many digits as can be added without rounding.
    """
    if len(values) < _FEW:
        return fsum(values.tolist())
    parts = []
    for start in range(0, len(values), _SLICE):
        rest = values[start : start + _SLICE]
        while top := max(float(rest.max()), -float(rest.min())):
            # If this number is added to each value and then subtracted, each value is rounded to the leading
            # digits of the largest value.
            rounds = 2.0 ** (frexp(top)[1] + _SLICE.bit_length())
            leading = (rest + rounds) - rounds
            parts.append(float(leading.sum()))
            rest = rest - leading
    return fsum(parts)


def exact_sums(values: Floats, begins: Ints) -> list[float]:
    """Adds up groups of adjacent values. Each sum is rounded once.

    `begins` contains the index at which each group begins, in ascending order from 0. If two indexes are
    equal, the first of the two groups is empty.
    """
    return [exact_sum(values[begin:end]) for begin, end in pairwise([*begins.tolist(), len(values)])]


def whole_sum(values: Ints) -> int:
    """Adds up integers whose sum may need more than 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def resource_time(amounts: Ints, spans: Ints) -> int:
    """Multiplies each quantity by its time span in microseconds, and returns the sum of the products.

    The sum may exceed 64 bits.
    """
    return resource_times(amounts, spans, np.zeros(min(1, len(amounts)), np.intp))[0] if len(amounts) else 0


def resource_times(amounts: Ints, spans: Ints, begins: Ints) -> list[int]:
    """Multiplies quantities by spans and adds up the products of each group of adjacent rows.

    `begins` contains the row at which each group begins, in ascending order from 0. No group is empty.
    """
    found = [0] * len(begins)
    if not found:
        return found
    room = _BITS - len(amounts).bit_length()
    # If the factors are too long, they are split into digits of this many bits, as in long multiplication.
    bits, others = (max(room // 2, room - _length(factors)) for factors in (spans, amounts))
    for left, amount in _digits(amounts, bits):
        for right, span in _digits(spans, others):
            sums = np.add.reduceat(amount * span, begins).tolist()
            found = [total + (part << left + right) for total, part in zip(found, sums, strict=True)]
    return found


def _length(values: Ints) -> int:
    return max(int(values.max()).bit_length(), int(values.min()).bit_length())


def _digits(values: Ints, bits: int) -> list[tuple[int, Ints]]:
    """Splits values into groups of digits, each with its left shift. The last group carries the sign."""
    length, digits, shift = _length(values), [], 0
    while length - shift > bits:
        digits.append((shift, values >> shift & (1 << bits) - 1))
        shift += bits
    return [*digits, (shift, values >> shift if shift else values)]
