"""Records how the positions of nodes change.

A caller that caches results by position can move them, and then evaluates only nodes that are new or changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, final

_MOST = 128  # if a reader is more than this many moves behind, it may have to evaluate all nodes again

Move: TypeAlias = tuple[int, int, Sequence[int]]
"""Two positions between which nodes are replaced, and the former position of each node that is there now.

The former position of a new or changed node is -1.
"""


@final
class Moves:
    """The moves so far.

    Attributes:
        count: the number of moves.
    """

    __slots__ = ("_moves", "count")

    def __init__(self) -> None:
        self.count = 0
        self._moves: list[Move | None] = []  # None for a change that moved no node

    def add(self, start: int, end: int, sources: Sequence[int]) -> None:
        """Records a `Move`, which replaces the nodes between two positions.

        A move that changes no position also increments `count`.
        """
        self.count += 1
        if len(self._moves) == 2 * _MOST:
            del self._moves[:_MOST]
        self._moves.append((start, end, sources) if sources or start < end else None)

    def since(self, count: int) -> Sequence[Move] | None:
        """Returns the moves after the first `count` moves, or None if some of them are no longer known."""
        left = self.count - count
        if left > len(self._moves):
            return None
        return [move for move in self._moves[len(self._moves) - left :] if move is not None]


def follow(moves: Iterable[Move], *columns: tuple[Any, Any]) -> None:
    """Applies moves of nodes to columns, which have one value for each node at the node's position.

    Args:
        moves: the moves.
        columns: pairs of a column (a list or bytearray) and the value that it gets for new or changed nodes.
    """
    for start, end, sources in moves:
        for column, blank in columns:
            if sources:
                column[start:end] = [column[source] if source >= 0 else blank for source in sources]
            else:
                del column[start:end]
