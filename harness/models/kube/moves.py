"""How the positions of nodes change: readers move what they keep by position, and evaluate only other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, final

_MOST = 128
"""A reader that is this many moves behind evaluates all nodes again."""

Move: TypeAlias = tuple[int, int, Sequence[int]]
"""Two positions between which nodes are replaced, and the former position of each new node; -1 if it has none."""


@final
class Moves:
    """The moves so far.

    Attributes:
        count: the number of moves.
    """

    __slots__ = ("_moves", "count")

    def __init__(self) -> None:
        self.count = 0
        self._moves: list[Move] = []

    def add(self, start: int, end: int, sources: Sequence[int]) -> None:
        """Notes that nodes between two positions are replaced; see `Move`."""
        self.count += 1
        if len(self._moves) == 2 * _MOST:
            del self._moves[:_MOST]
        self._moves.append((start, end, sources))

    def since(self, count: int) -> Sequence[Move] | None:
        """Returns the moves after the first `count` moves; None if some of them are no longer known."""
        left = self.count - count
        if left > len(self._moves):
            return None
        return self._moves[len(self._moves) - left :]


def moved(column: Any, move: Move, blank: Any) -> None:
    """Moves the values of a column, one for each node.

    Args:
        column: a list or a bytearray.
        move: the move.
        blank: the value of nodes without a former position.
    """
    start, end, sources = move
    column[start:end] = [column[source] if source >= 0 else blank for source in sources]
