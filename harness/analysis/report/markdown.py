"""Writes a report as Markdown for a pull request, with text instead of charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.report.blocks import Block, Cell, Code, Figure, Points, Scores, Table, Text
from harness.analysis.report.report import Report
from harness.base.markdown import pipe_table, plain
from harness.base.text import printable
from harness.plugins.section import named


def markdown(report: Report) -> str:
    """Writes a report as Markdown. Names are escaped, so they cannot act as Markdown or HTML.

    Raises:
        PluginError: a plugin's section cannot be written.
    """
    lines = [f"# {plain(report.title)}", "", plain(report.summary), ""]
    for chapter in report.chapters:
        lines += [f"## {plain(chapter.title)}", ""]
        with named(chapter.name, chapter.owner):
            for block in chapter.blocks:
                lines += [*_block(block), ""]
    return "\n".join(lines)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(text, lead):
            yield f"**{plain(text)}**" if lead else plain(text)
        case Points(items, title):
            if title:
                yield from (f"**{plain(title)}**", "")
            yield from (f"- {plain(item)}" for item in items)
        case Code(text, folded):
            # The lines are indented, because the text itself could close a fence.
            lines = [f"    {printable(line)}" for line in text.split("\n")]
            head, end = ([f"<details><summary>{plain(folded)}</summary>", ""], ["", "</details>"])
            yield from [*head, *lines, *end] if folded else lines
        case Table(caption, head, rows, folded=True):
            yield from (f"<details><summary>{plain(caption)}</summary>", "")
            yield from _rows(head, rows)
            yield from ("", "</details>")
        case Table(caption, head, rows):
            yield from (f"**{plain(caption)}**", "")
            yield from _rows(head, rows)
        case Scores(scores):
            names = [name for name, _, _ in scores[0].values] if scores else []
            rows = [
                [
                    score.topic,
                    *(f"{value} {_cell(change)}".rstrip() for _, value, change in score.values),
                    score.meaning,
                ]
                for score in scores
            ]
            yield from _rows(["", *names, "what it is"], rows)
        case Figure(title, words):
            yield f"**{plain(title)}.** {plain(words)}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> list[str]:
    return pipe_table([head, *([_cell(cell) for cell in row] for row in rows)])


def _cell(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else f"{cell.text} {cell.sign}".strip()
