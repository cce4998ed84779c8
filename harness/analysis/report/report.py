"""Composes a report on runs from all registered sections, and writes it as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from harness.analysis.comparison import Comparison
from harness.analysis.report.blocks import Block, Cell, Code, Figure, Points, Scores, Table, Text
from harness.analysis.report.material import Material
from harness.base.markdown import pipe_table, plain
from harness.base.text import printable
from harness.plugins import Plugins
from harness.plugins.section import named


class Chapter(NamedTuple):
    """A section with its blocks. The attribute `owner` is the plugin that registered the section."""

    name: str
    owner: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A report that has not been written yet.

    Attributes:
        summary: a sentence that says what the report is about.
    """

    title: str
    summary: str
    chapters: Sequence[Chapter]

    def html(self, *, interactive: bool = False) -> str:
        """Writes the report as a single, self-contained HTML page.

        Args:
            interactive: whether to add a script that lets readers zoom charts and see values.

        Raises:
            InputError: the packages that draw charts are not installed.
            PluginError: a chart of a plugin's section cannot be drawn.
        """
        from harness.analysis.report.page import page

        return page(self, interactive=interactive)

    def markdown(self) -> str:
        """Writes the report as Markdown for a pull request, with text instead of charts."""
        return markdown(self)


def compose(
    comparison: Comparison, plugins: Plugins, *, command: str | None = None, gantt: str | None = None
) -> Report:
    """Collects the blocks of every section for some runs.

    `command` is the command line that makes the report. `gantt` is the span of time in which jobs are shown
    individually, as `FROM..TO`. By default, all jobs are shown if the runs are small.

    Raises:
        PluginError: a section failed.
        InputError: a time of `gantt` cannot be read.
        OptionError: `gantt` does not have the form `FROM..TO`, or it contains no part of the run.
    """
    material = Material(comparison, command=command, part=gantt)
    chapters = []
    for spec in sorted(plugins.sections, key=lambda spec: spec.order):
        with named(spec.name, spec.owner):
            blocks = list(spec.make(material))
            for block in blocks:
                if not isinstance(block, get_args(Block)):
                    raise TypeError(f"{block!r} is not a block")
        if blocks:
            chapters.append(Chapter(spec.name, spec.owner, spec.title, blocks))
    trace = material.runs[0].info["trace"]
    title = f"{trace['name']}: {', '.join(material.names)}"
    head = comparison.head.title if len(material.runs) > 1 else "one run"
    jobs = max(run.info["outcome"]["jobs"] for run in material.runs)
    summary = f"{jobs:,} {'job' if jobs == 1 else 'jobs'} replayed; {head}"
    return Report(title, summary, chapters)


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
