"""Plain text for terminals: aligned tables, and nothing that an untrusted name could do to a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

_UNPRINTABLE = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Categories of characters that steer or cannot be shown, and of those that end a line or a paragraph."""


def printable(text: str) -> str:
    """Text from a trace or manifest on one line, without control characters, which could steer a terminal."""
    return "".join(
        char if unicodedata.category(char) not in _UNPRINTABLE else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def counted(count: int, what: str) -> str:
    """This many of something: `1 node`, `15 nodes`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def times(count: int) -> str:
    """How often: `once`, `15 times`."""
    return "once" if count == 1 else f"{count:,} times"


def shortened(text: str, most: int, head: int | None = None) -> str:
    """Text of at most this many characters; what is left out of a longer one is its middle.

    Args:
        text: the text.
        most: how many characters.
        head: how many of these are its first ones; half of them by default.
    """
    if len(text) <= most:
        return text
    head = most // 2 if head is None else head
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def told_apart(names: Iterable[str], most: int | None = None) -> list[str]:
    """Names for people: no two the same, and none longer than that where there is a limit.

    Longer ones are shortened where that leaves them different; else, and where they differ in control
    characters alone, a number tells them apart.
    """
    whole = list(map(printable, names))
    shown, kinds = whole, len(set(whole))
    if most is not None:
        for head in (most // 2, most // 4, most // 8, 0, 3 * most // 4, most - 1, most // 2):
            shown = [shortened(name, most, head) for name in whole]
            if len(set(shown)) == kinds:
                break
    found: dict[str, None] = {}
    counts: dict[str, int] = {}
    for name in shown:
        label = name
        while label in found:
            counts[name] = counts.get(name, 1) + 1
            mark = f" ({counts[name]})"
            label = (name if most is None else shortened(name, max(1, most - len(mark)))) + mark
        found[label] = None
    return list(found)


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


_NARROWEST_NAME = 12


def aligned(
    rows: Sequence[Sequence[str]],
    *,
    left: Container[int] = (0,),
    names: Mapping[int, Iterable[str]] | None = None,
    width: int | None = None,
) -> str:
    """Rows of cells in columns; the first row heads.

    Args:
        rows: as many cells in each.
        left: the columns that are flush left, the first one by default; figures are flush right.
        names: columns with names, and all the names that must not look alike, those in the column and others
            of the kind. Where the table is too wide they are shortened, the longest column first.
        width: columns of the terminal; None for any number. Where shorter names are not enough, further
            columns follow in tables below, each with the first column and the rows that say more.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(columns(row[column]) for row in cells) for column in range(len(cells[0]))]
    parts = _parts(widths, [columns(cell) for cell in cells[0]], names or {}, width)
    if len(parts) > 1:
        tables = []
        for part in parts:
            head, *body = [[row[column] for column in part] for row in rows]
            told = [row for row in body if part is parts[0] or any(row[1:])]
            left_here = [place for place, column in enumerate(part) if column in left]
            names_here = {
                part.index(column): every for column, every in (names or {}).items() if column in part
            }
            tables += [aligned([head, *told], left=left_here, names=names_here, width=width)] if told else []
        return "\n\n".join(tables)
    for column, room in _rooms(widths, [columns(cell) for cell in cells[0]], names or {}, width).items():
        every = list(dict.fromkeys([*(names or {})[column], *(row[column] for row in rows[1:])]))
        labels = dict(zip(every, told_apart(every, room), strict=True))
        for row, shown in zip(rows[1:], cells[1:], strict=True):
            shown[column] = labels[row[column]]
        widths[column] = max(columns(row[column]) for row in cells)
    lines = []
    for number, row in enumerate(cells):
        padded = []
        for column, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            space = " " * (wide - columns(cell))
            padded.append(cell + space if column in left else space + cell)
        lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("─" * wide for wide in widths))
    return "\n".join(lines)


def _parts(
    widths: Sequence[int], heads: Sequence[int], names: Container[int], width: int | None
) -> list[list[int]]:
    """The columns of each table, of one where they all fit; each has the first column."""
    least = [
        min(wide, max(_NARROWEST_NAME, heads[column])) if column in names else wide
        for column, wide in enumerate(widths)
    ]
    if width is None or sum(least) + 2 * (len(least) - 1) <= width:
        return [list(range(len(widths)))]
    parts, taken = [[0]], widths[0]
    for column, wide in enumerate(widths[1:], 1):
        taken += 2 + wide
        if taken > width and len(parts[-1]) > 1:
            parts.append([0])
            taken = widths[0] + 2 + wide
        parts[-1].append(column)
    return parts


def _rooms(
    widths: Sequence[int], heads: Sequence[int], names: Iterable[int], width: int | None
) -> dict[int, int | None]:
    """How many letters each column with names has; None for any number."""
    rooms = {column: widths[column] for column in names}
    least = {column: min(widths[column], max(_NARROWEST_NAME, heads[column])) for column in rooms}
    excess = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    while excess > 0:
        wider = [column for column in rooms if rooms[column] > least[column]]
        if not wider:
            break
        rooms[max(wider, key=lambda column: (rooms[column], -column))] -= 1
        excess -= 1
    return {column: None if room == widths[column] else room for column, room in rooms.items()}


def folded(sentences: Sequence[str], width: int | None) -> Iterator[str]:
    """Sentences in lines of at most this many columns."""
    for sentence in sentences:
        line = ""
        for word in sentence.split(" "):
            if line and width is not None and columns(line) + 1 + columns(word) > width:
                yield line
                line = f"  {word}"
            else:
                line = f"{line} {word}" if line else word
        yield line
