"""Makes random choices, which are equal on all machines.

The random numbers come from the streams of `harness.trace.generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import polars as pl

from harness.trace.generate.uniform import key_of, splitmix64

_T = TypeVar("_T")
_BLOCK = 256


class Chance:
    """A source of random choices. Sources with different keys are independent of each other.

    Args:
        key: the purpose, such as a seed and a word.
    """

    def __init__(self, *key: object) -> None:
        self._key = key_of(*key)
        self._made = 0
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """Returns a whole number from 0 to `bound` - 1."""
        if not self._words:
            numbers = pl.int_range(self._made, self._made + _BLOCK, eager=True)
            self._words = splitmix64(self._key, numbers).to_pylist()[::-1]
            self._made += _BLOCK
        return self._words.pop() * bound >> 64

    def between(self, least: int, most: int) -> int:
        """Returns a whole number from `least` to `most`."""
        return least + self.below(most - least + 1)

    def choice(self, options: Sequence[_T]) -> _T:
        """Returns one of the options. An option that occurs twice is chosen twice as often."""
        return options[self.below(len(options))]

    def percent(self, share: int) -> bool:
        """Returns True with this probability, given as a percentage."""
        return self.below(100) < share
