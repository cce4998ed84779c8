"""Exact sums: of floats, rounded only once at the end, and of resource-time of any size.

The result does not depend on the order of the summands.
"""

from __future__ import annotations

from itertools import pairwise
from math import frexp, fsum

import numpy as np

from harness.base.arrays import Floats, Ints

_SLICE = 1 << 16
_FEW = 64  # up to so many values, Python adds faster than arrays
_BITS = 62  # bits that a partial sum may have in 64-bit arithmetic


def exact_sum(values: Floats) -> float:
    """The sum of values below 2 to the power of 1,000. It equals that of `math.fsum`, at ten times the speed.

    The leading digits of all values are added up first, then the next digits, until none remain. Each step
    takes as many digits as add up without rounding.
    """
    if len(values) < _FEW:
        return fsum(values.tolist())
    parts = []
    for start in range(0, len(values), _SLICE):
        rest = values[start : start + _SLICE]
        while top := max(float(rest.max()), -float(rest.min())):
            # Adding and subtracting this number rounds values to digits close to those of the largest.
            rounds = 2.0 ** (frexp(top)[1] + _SLICE.bit_length())
            leading = (rest + rounds) - rounds
            parts.append(float(leading.sum()))
            rest = rest - leading
    return fsum(parts)


def exact_sums(values: Floats, begins: Ints) -> list[float]:
    """The sums of neighbouring values, each rounded by itself.

    Args:
        values: the values.
        begins: the place at which each sum begins, ascending from 0; if two are equal, the first of these
            sums is empty.
    """
    return [exact_sum(values[begin:end]) for begin, end in pairwise([*begins.tolist(), len(values)])]


def whole_sum(values: Ints) -> int:
    """The sum of whole numbers, which may not fit 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def resource_time(amounts: Ints, spans: Ints) -> int:
    """The sum of amounts of a resource times spans in microseconds; it may exceed 64 bits."""
    return resource_times(amounts, spans, np.zeros(min(1, len(amounts)), np.intp))[0] if len(amounts) else 0


def resource_times(amounts: Ints, spans: Ints, begins: Ints) -> list[int]:
    """The sum of amounts times spans, for each group of neighbouring rows.

    Args:
        amounts: the amount in each row.
        spans: how long each amount is held.
        begins: the row at which each group begins, ascending from 0; no group is empty.
    """
    found = [0] * len(begins)
    if not found:
        return found
    room = _BITS - len(amounts).bit_length()
    # Factors that are too long are cut into digits of so many bits, as in long multiplication.
    bits, others = (max(room // 2, room - _length(factors)) for factors in (spans, amounts))
    for left, amount in _digits(amounts, bits):
        for right, span in _digits(spans, others):
            sums = np.add.reduceat(amount * span, begins).tolist()
            found = [total + (part << left + right) for total, part in zip(found, sums, strict=True)]
    return found


def _length(values: Ints) -> int:
    """The number of bits of the largest absolute value."""
    return max(int(values.max()).bit_length(), int(values.min()).bit_length())


def _digits(values: Ints, bits: int) -> list[tuple[int, Ints]]:
    """Groups of digits of the values, each with its shift to the left; the last group has the sign."""
    length, digits, shift = _length(values), [], 0
    while length - shift > bits:
        digits.append((shift, values >> shift & (1 << bits) - 1))
        shift += bits
    return [*digits, (shift, values >> shift if shift else values)]
