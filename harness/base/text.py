"""Formats plain text for terminals, such as aligned tables and names without control characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

_UNPRINTABLE = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""The categories of characters that control a terminal, are invisible, or end a line or a paragraph."""


def printable(text: str) -> str:
    """Returns text from a trace or manifest on one line, without control characters."""
    return "".join(
        char if unicodedata.category(char) not in _UNPRINTABLE else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def counted(count: int, what: str) -> str:
    """Returns a count with its noun: `1 node`, `15 nodes`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}


def agreeing(count: int, what: str, does: str) -> str:
    """Returns a count with its noun and an agreeing verb: `1 node is`, `15 nodes are`."""
    return f"{counted(count, what)} {_SINGULAR.get(does, f'{does}s') if count == 1 else does}"


def times(count: int) -> str:
    """Returns how often something happens: `once`, `15 times`."""
    return "once" if count == 1 else f"{count:,} times"


def first_of(names: Sequence[str], most: int, what: str = "") -> str:
    """Returns the first names and the number of the others, such as `a, b and 2 more nodes`.

    `what` is the singular of the noun.
    """
    more = len(names) - most
    others = counted(more, f"more {what}") if what else f"{more:,} more"
    return ", ".join(names[:most]) + (f" and {others}" if more > 0 else "")


def shortened(text: str, most: int, head: int | None = None) -> str:
    """Shortens a text to at most `most` characters, by removing its middle.

    It keeps `head` characters of the beginning. The default is half of `most`.
    """
    if len(text) <= most:
        return text
    head = most // 2 if head is None else head
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def told_apart(names: Iterable[str], most: int | None = None) -> list[str]:
    """Returns a distinct label for each name, in at most `most` characters if there is a limit.

    Longer names are shortened. If they are then no longer distinct, a number distinguishes them. A number
    also distinguishes names that differ only in control characters.
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
    """Returns how many columns of a terminal a text occupies."""
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


_NARROWEST_NAME, _NARROWEST_TEXT = 12, 20


def aligned(
    rows: Sequence[Sequence[str]],
    *,
    left: Container[int] = (0,),
    names: Mapping[int, Iterable[str]] | None = None,
    width: int | None = None,
) -> str:
    """Align rows of cells in columns. The first row is the header.

    Args:
        rows: rows with equal numbers of cells.
        left: the columns that are aligned to the left. The default is the first column. Other columns are
            aligned to the right. If the table is too wide, the cells of left-aligned columns are folded,
            except for names.
        names: maps a column with names to all names that must remain distinct, in this column and elsewhere.
            If the table is too wide, names are shortened, beginning with the widest column.
        width: the width of the terminal, or None for no limit. If the table doesn't fit even with shorter
            names, its last columns move to further tables below. Each further table repeats the first
            column, and leaves out rows without values.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(columns(row[column]) for row in cells) for column in range(len(cells[0]))]
    least = [
        min(wide, max(_NARROWEST_NAME, columns(cells[0][column])))
        if column in (names or {})
        else min(wide, _NARROWEST_TEXT)
        if column in left
        else wide
        for column, wide in enumerate(widths)
    ]
    parts = _parts(widths, least, names or {}, width)
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
    excess = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    rooms = _rooms(widths, {column: least[column] for column in names or {}}, excess)
    for column, room in rooms.items():
        every = list(dict.fromkeys([*(names or {})[column], *(row[column] for row in rows[1:])]))
        labels = dict(zip(every, told_apart(every, room), strict=True))
        for row, shown in zip(rows[1:], cells[1:], strict=True):
            shown[column] = labels[row[column]]
        widths[column] = max(columns(row[column]) for row in cells)
    excess = 0 if width is None else sum(widths) + 2 * (len(widths) - 1) - width
    texts = {column: least[column] for column in range(len(widths)) if column in left and column not in rooms}
    for column, room in _rooms(widths, texts, excess).items():
        widths[column] = room or widths[column]
    lines = []
    for number, row in enumerate(cells):
        parted = [list(_within(cell, wide)) for cell, wide in zip(row, widths, strict=True)]
        for line in zip_longest(*parted, fillvalue=""):
            padded = []
            for column, (cell, wide) in enumerate(zip(line, widths, strict=True)):
                space = " " * (wide - columns(cell))
                padded.append(cell + space if column in left else space + cell)
            lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("─" * wide for wide in widths))
    return "\n".join(lines)


def _parts(
    widths: Sequence[int], least: Sequence[int], names: Container[int], width: int | None
) -> list[list[int]]:
    """Divide the columns among tables that fit the width. Every table includes the first column."""
    if width is None or sum(least) + 2 * (len(least) - 1) <= width:
        return [list(range(len(widths)))]
    usual = [wide if column in names else least[column] for column, wide in enumerate(widths)]
    parts, taken = [[0]], usual[0]
    for column, wide in enumerate(usual[1:], 1):
        taken += 2 + wide
        if taken > width and len(parts[-1]) > 1:
            parts.append([0])
            taken = usual[0] + 2 + wide
        parts[-1].append(column)
    return parts


def _rooms(widths: Sequence[int], least: Mapping[int, int], excess: int) -> dict[int, int | None]:
    """Returns the maximum width of the cells in each column with names, or None for no limit.

    The widest columns become narrower, until the table is narrower by `excess`.
    """
    rooms = {column: widths[column] for column in least}
    while excess > 0:
        wider = [column for column in rooms if rooms[column] > least[column]]
        if not wider:
            break
        rooms[max(wider, key=lambda column: (rooms[column], -column))] -= 1
        excess -= 1
    return {column: None if room == widths[column] else room for column, room in rooms.items()}


def _within(cell: str, width: int) -> Iterator[str]:
    """Yields the lines of a cell, which break between words, or in a word that is too wide for a line."""
    line = ""
    for word in cell.split(" ") if columns(cell) > width else [cell]:
        if line and columns(line) + 1 + columns(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
        while columns(line) > width:
            size = next(at for at in range(len(line), 0, -1) if at == 1 or columns(line[:at]) <= width)
            yield line[:size]
            line = line[size:]
    yield line


def folded(sentences: Iterable[str], width: int | None) -> Iterator[str]:
    """Yields sentences in lines of at most `width` characters, with indented continuation lines."""
    for sentence in sentences:
        indent = sentence[: len(sentence) - len(sentence.lstrip(" "))]
        line, *words = sentence[len(indent) :].split(" ")
        line = indent + line
        for word in words:
            if width is not None and columns(line) + 1 + columns(word) > width:
                yield line
                line = f"{indent}  {word}"
            else:
                line = f"{line} {word}"
        yield line
