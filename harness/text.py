"""Plain text for terminals: aligned tables, and nothing that an untrusted name could do to a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def printable(text: str) -> str:
    """Text from a trace or manifest without control characters, which could steer a terminal."""
    return "".join(
        char if unicodedata.category(char)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns, the first one flush left, the others flush right; the first row heads."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        padded = [
            cell + " " * (width - _width(cell)) if column == 0 else " " * (width - _width(cell)) + cell
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("─" * width for width in widths))
    return "\n".join(lines)


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
