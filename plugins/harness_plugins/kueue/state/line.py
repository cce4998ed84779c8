"""Implements a line, which orders the first workloads of all equivalence classes of a pending queue.

Because lines can be long, they are divided into blocks. A reader can store data about each block and each of
its entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container
from typing import Any, TypeAlias, final

from harness_plugins.kueue.state.workload import EquivalenceClass, Workload

Place: TypeAlias = tuple[int, int, str, int, Workload, EquivalenceClass]
"""The negated priority, the queue order time, the UID, a unique ticket, the workload, and its class. Neither
workloads nor classes are ever compared.
"""

MOST = 128
"""If a block has more entries than this, it is split in half."""


@final
class Block:
    """Consecutive entries of a line.

    Attributes:
        known: the data that the reader stores about the block.
        notes: the data that the reader stores about each entry, or None.
    """

    __slots__ = ("entries", "known", "notes")

    def __init__(self, entries: list[Place]) -> None:
        self.entries = entries
        self.known: object = None
        self.notes: list[Any] = [None] * len(entries)


@final
class Line:
    """The first workload of every equivalence class, whether or not the class is inadmissible.

    The line has a position. All entries before the position are inadmissible. When a class becomes
    inadmissible, or all classes are requeued, the entries stay in the line and only the position moves.

    Args:
        inadmissible: the inadmissible classes.

    Attributes:
        scattered: whether entries after the position can also be inadmissible.
    """

    def __init__(self, inadmissible: Container[EquivalenceClass]) -> None:
        self._inadmissible = inadmissible
        self._blocks = [Block([])]
        self._block = self._at = 0
        self.scattered = False

    def become(self, other: Line) -> None:
        """Copies the entries and the position of another line, but not the data that readers have stored."""
        self._blocks = [Block(block.entries.copy()) for block in other._blocks]
        self._block, self._at, self.scattered = other._block, other._at, other.scattered

    def enter(self, entry: Place) -> None:
        """Adds the entry of a workload that has become the first of its class."""
        number = self._number(entry)
        block = self._blocks[number]
        at = bisect_left(block.entries, entry)
        block.entries.insert(at, entry)
        block.notes.insert(at, None)
        inadmissible = entry[5] in self._inadmissible
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
        """Removes the entry of a workload that is no longer the first of its class."""
        number = self._number(entry)
        block = self._blocks[number]
        at = bisect_left(block.entries, entry)
        del block.entries[at], block.notes[at]
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
        """Returns the first workload that is not inadmissible, or None if there is none."""
        inadmissible = self._inadmissible
        while True:
            entries, at = self._blocks[self._block].entries, self._at
            while at < len(entries):
                if entries[at][5] not in inadmissible:
                    self._at = at
                    return entries[at][4]
                at += 1
            self._at = at
            if self._block + 1 == len(self._blocks):
                return None
            self._block, self._at = self._block + 1, 0

    def ahead(self) -> tuple[Block, int]:
        """Returns the block of the workload that `first` has just found, and the index of its entry."""
        return self._blocks[self._block], self._at

    def find(self, entry: Place) -> tuple[Block, int] | None:
        """Returns the block that contains an entry, and its index there, or None if no block does."""
        block = self._blocks[self._number(entry)]
        at = bisect_left(block.entries, entry)
        # Tickets are unique. Compiled code has no identity for tuples, so `is` would always be false there.
        return (block, at) if at < len(block.entries) and block.entries[at][3] == entry[3] else None

    def becomes_inadmissible(self, equivalence_class: EquivalenceClass) -> None:
        """Updates the position when a class becomes inadmissible."""
        entries, at = self._blocks[self._block].entries, self._at
        if at < len(entries) and entries[at][5] is equivalence_class:
            self._at += 1
        else:
            self.scattered = True

    def pass_over(self, number: int) -> None:
        """Moves the position past the next `number` entries, which have become inadmissible.

        The first of them is the entry that `ahead` returns.
        """
        self._at += number

    def start_over(self) -> None:
        """Resets the position when no workload is inadmissible any more."""
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
        del block.entries[half:], block.notes[half:]
        if self._block > number:
            self._block += 1
        elif self._block == number and self._at >= half:
            self._block, self._at = number + 1, self._at - half


def _last(block: Block) -> Place:
    return block.entries[-1]
