"""Sums that are exact: of floats until they are rounded once, of resource-time whatever its size.

No order of adding up shows in them.
"""

from __future__ import annotations

import numpy as np

from harness.base.arrays import Floats, Ints

_SLICE = 1 << 16
_BITS = 62  # of a sum that is added up in 64 bits
_DIGITS = 53  # of a float
_HALF = 27  # of these
_LEAST = 1126
"""Every float is a whole number of 2 to the power of minus this."""


def exact_sum(values: Floats) -> float:
    """The sum of finite values, as `math.fsum` has it, which takes twice as long or more.

    Of equal exponents the digits of floats are whole numbers, which are added up in two halves.
    """
    found = 0
    for start in range(0, len(values), _SLICE):
        parts, exponents = np.frexp(values[start : start + _SLICE])
        digits = (parts * 2.0**_DIGITS).astype(np.int64)
        least = int(exponents.min())
        places = exponents - least
        # Floats, in which so few halves add up exactly.
        highs, lows = (np.bincount(places, half) for half in (digits >> _HALF, digits & (1 << _HALF) - 1))
        least += _LEAST - _DIGITS
        for place in np.flatnonzero((highs != 0) | (lows != 0)).tolist():
            found += (int(highs[place]) << _HALF) + int(lows[place]) << least + place
    return found / (1 << _LEAST)


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
    room = _BITS - len(amounts).bit_length()
    # Factors that are too long are cut into digits of so many bits, as one multiplies on paper.
    bits, others = (max(room // 2, room - _length(factors)) for factors in (spans, amounts))
    for left, amount in _digits(amounts, bits):
        for right, span in _digits(spans, others):
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
    return [*digits, (shift, values >> shift if shift else values)]
