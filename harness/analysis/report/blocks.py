"""The blocks of a report section: text, tables and charts, independent of HTML and Markdown.

All text is plain. The renderer escapes it, so any block may contain names from a trace or a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from harness.base.text import counted

if TYPE_CHECKING:
    from altair.typing import ChartType

Verdict: TypeAlias = Literal["better", "worse", "same", "equal", "open", ""]
"""The verdict on a change from the baseline; empty if there is no verdict."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Attributes:
        text: the text of the paragraph.
        lead: whether the paragraph is the main message and is highlighted.
    """

    text: str
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A list of sentences.

    Attributes:
        items: the sentences, at least one.
        title: the topic of the list, if it needs one.
    """

    items: Sequence[str]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy exactly, such as a command.

    Attributes:
        text: the lines of the text.
        folded: the heading under which the text is folded; "" if the text is always visible.
    """

    text: str
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell whose figure has a verdict.

    Attributes:
        text: the figure.
        verdict: the verdict on the figure.
        sign: the sign of the verdict, which screen readers read as a word.
        bar: the length of a bar next to the figure, from -1 (to the left) to 1 (to the right); None for no
            bar.
    """

    text: str
    verdict: Verdict = ""
    sign: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table in which the first cell of each row names the row.

    Attributes:
        caption: the topic of the table.
        head: a name for each column.
        rows: the rows, each with as many cells as `head`.
        prose: whether the cells contain text, which is aligned to the left and may wrap.
        folded: whether the table is folded, so that readers first see only the caption.

    Raises:
        TypeError: a cell is neither text nor a `Cell`.
        ValueError: a row has more or fewer cells than `head`.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    prose: bool = False
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.head):
                raise ValueError(f"a row has {counted(len(row), 'cell')}, but head has {len(self.head):,}")
            for cell in row:
                if not isinstance(cell, (str, Cell)):
                    raise TypeError(f"the cell {cell!r} is neither text nor a Cell")


@dataclass(frozen=True, slots=True)
class Score:
    """A headline metric, with its figure in every run.

    Attributes:
        topic: the subject of the figure, in one word.
        meaning: what is measured, and whether more or less is better.
        values: for each run, its name, the figure, and the difference from the baseline's figure.
    """

    topic: str
    meaning: str
    values: Sequence[tuple[str, str, Cell]]


@dataclass(frozen=True, slots=True)
class Scores:
    """Headline figures, which are shown side by side."""

    scores: Sequence[Score]


@dataclass(frozen=True, slots=True)
class Key:
    """The meaning of a colour in a chart.

    Attributes:
        name: what the colour represents, for example the name of a queue or a run.
        colour: the colour in the chart, which comes from `harness.analysis.report.palette`.
        dash: the dash pattern of a line, in pixels; empty for a solid line or an area.
        line: whether the key describes a line and not an area.
    """

    name: str
    colour: str
    dash: Sequence[int] = ()
    line: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart.

    Attributes:
        title: the topic of the chart.
        words: sentences with the content of the chart, for Markdown and for readers who cannot see the chart.
        draw: a function that draws the chart, given the width of the whole chart in pixels. The function is
            called for several widths, but not for Markdown.
        keys: the meanings of the colours, which replace a legend inside the chart.
        note: how to read the chart, if this is not obvious.
    """

    title: str
    words: str
    draw: Callable[[int], ChartType]
    keys: Sequence[Key] = ()
    note: str = ""


Block: TypeAlias = Text | Points | Code | Table | Scores | Figure
