"""One line of a pending queue: the first of every equivalence class in their order, in blocks.

A line may be long. So it is kept in blocks, and something that is known of all in a block lasts as long as
the block does not change.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias, final

from harness_plugins.kueue.state.equivalence_class import EquivalenceClass
from harness_plugins.kueue.state.workload import Workload

Place: TypeAlias = tuple[int, int, str, int, Workload]
"""Negated priority, queue order time, UID, ticket; the ticket ends every comparison."""

MOST = 128
"""A block with more than this many is halved."""


@final
class Block:
    """Some that stand one behind the other.

    Attributes:
        entries: those, in their order.
        changed: whether others have come or gone since its reader made this False.
        known: whatever its reader knows of them.
    """

    __slots__ = ("changed", "entries", "known")

    def __init__(self, entries: list[Place]) -> None:
        self.entries = entries
        self.changed = True
        self.known: object = None


@final
class Line:
    """The first of every equivalence class, inadmissible or not.

    What comes before one place is inadmissible, so that neither to make a class inadmissible nor to requeue
    all moves any of them.

    Attributes:
        scattered: whether something may be inadmissible behind that place, too.
    """

    __slots__ = ("_at", "_block", "_blocks", "scattered")

    def __init__(self) -> None:
        self._blocks = [Block([])]
        self._block = self._at = 0
        self.scattered = False

    def enter(self, entry: Place) -> None:
        """One has become the first of its class."""
        number = self._number(entry)
        block = self._blocks[number]
        at = bisect_left(block.entries, entry)
        block.entries.insert(at, entry)
        block.changed = True
        inadmissible = entry[4].place.equivalence_class.inadmissible
        if (number, at) >= (self._block, self._at):
            self.scattered = self.scattered or inadmissible
        elif not inadmissible:
            self._block, self._at = number, at
            self.scattered = True
        elif number == self._block:
            self._at += 1
        if len(block.entries) > MOST:
            self._halve(number)

    def leave(self, entry: Place) -> None:
        """One is not the first of its class any more."""
        number = self._number(entry)
        block = self._blocks[number]
        at = bisect_left(block.entries, entry)
        del block.entries[at]
        block.changed = True
        if number == self._block and at < self._at:
            self._at -= 1
        if not block.entries and len(self._blocks) > 1:
            del self._blocks[number]
            if number < self._block:
                self._block -= 1
            elif self._block == len(self._blocks):
                self._block -= 1
                self._at = len(self._blocks[self._block].entries)

    def first(self) -> Workload | None:
        """The one that comes first among those that are not inadmissible."""
        while True:
            entries, at = self._blocks[self._block].entries, self._at
            while at < len(entries):
                workload = entries[at][4]
                if not workload.place.equivalence_class.inadmissible:
                    self._at = at
                    return workload
                at += 1
            self._at = at
            if self._block + 1 == len(self._blocks):
                return None
            self._block, self._at = self._block + 1, 0

    def ahead(self) -> tuple[Block, int]:
        """The block of the first one, and its place there, right after `first` has found it."""
        return self._blocks[self._block], self._at

    def block_of(self, entry: Place) -> Block | None:
        """The block that an entry is in; None if it is in none."""
        block = self._blocks[self._number(entry)]
        at = bisect_left(block.entries, entry)
        return block if at < len(block.entries) and block.entries[at] is entry else None

    def becomes_inadmissible(self, equivalence_class: EquivalenceClass) -> None:
        """A class becomes inadmissible."""
        entries, at = self._blocks[self._block].entries, self._at
        if at < len(entries) and entries[at][4].place.equivalence_class is equivalence_class:
            self._at += 1
        else:
            self.scattered = True

    def pass_over(self, number: int) -> None:
        """So many became inadmissible that `ahead` has found."""
        self._at += number

    def start_over(self) -> None:
        """Nothing is inadmissible any more."""
        self._block = self._at = 0
        self.scattered = False

    def _number(self, entry: Place) -> int:
        if len(self._blocks) == 1:
            return 0
        number = bisect_left(self._blocks, entry, key=_last)
        return min(number, len(self._blocks) - 1)

    def _halve(self, number: int) -> None:
        block = self._blocks[number]
        half = len(block.entries) // 2
        self._blocks.insert(number + 1, Block(block.entries[half:]))
        del block.entries[half:]
        if self._block > number:
            self._block += 1
        elif self._block == number and self._at >= half:
            self._block, self._at = number + 1, self._at - half


def _last(block: Block) -> Place:
    return block.entries[-1]
