"""Plain text for terminals: aligned tables, and nothing that an untrusted name could do to a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterator, Sequence

_UNPRINTABLE = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Categories of characters that steer or cannot be shown, and of those that end a line or a paragraph."""


def printable(text: str) -> str:
    """Text from a trace or manifest on one line, without control characters, which could steer a terminal."""
    return "".join(
        char if unicodedata.category(char) not in _UNPRINTABLE else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def counted(count: int, what: str) -> str:
    """So many of something: `1 node`, `15 nodes`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def times(count: int) -> str:
    """How often: `once`, `15 times`."""
    return "once" if count == 1 else f"{count:,} times"


def shortened(text: str, most: int) -> str:
    """Text of at most so many characters; what is left out of a longer one is its middle."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def aligned(rows: Sequence[Sequence[str]], *, left: Container[int] = (0,)) -> str:
    """Rows of cells in columns; the first row heads.

    Args:
        rows: as many cells in each.
        left: the columns that are flush left, the first one by default; figures are flush right.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(columns(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for number, row in enumerate(cells):
        padded = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - columns(cell))
            padded.append(cell + space if column in left else space + cell)
        lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("─" * width for width in widths))
    return "\n".join(lines)


def folded(sentences: Sequence[str], width: int | None) -> Iterator[str]:
    """Sentences in lines of at most so many columns."""
    for sentence in sentences:
        line = ""
        for word in sentence.split(" "):
            if line and width is not None and columns(line) + 1 + columns(word) > width:
                yield line
                line = f"  {word}"
            else:
                line = f"{line} {word}" if line else word
        yield line
