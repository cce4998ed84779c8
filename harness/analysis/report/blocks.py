"""The blocks of a report's section: text, tables and charts, independent of HTML and Markdown.

All text is plain. The renderer escapes it, so that any block may contain names from a trace or a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from altair.typing import ChartType

Verdict: TypeAlias = Literal["better", "worse", "same", "equal", "open", ""]
"""The verdict on a change against the baseline; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Attributes:
        text: its words.
        lead: whether it is the main message and stands out.
    """

    text: str
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A list of sentences.

    Attributes:
        items: one or more.
        title: their topic, if they need one.
    """

    items: Sequence[str]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy exactly, such as a command.

    Attributes:
        text: its lines.
        folded: what readers see until they open it; "" if the text is always shown.
    """

    text: str
    folded: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table with a verdict on its figure.

    Attributes:
        text: the figure.
        verdict: the verdict on it.
        sign: the sign of the verdict; screen readers read it as a word.
        bar: the length of a bar beside it, from -1 (to the left) to 1 (to the right); None for no bar.
    """

    text: str
    verdict: Verdict = ""
    sign: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row names the row.

    Attributes:
        caption: the topic of the table.
        head: a name for each column.
        rows: the rows, each with as many cells as `head`.
        prose: whether cells are words, which begin at the left and wrap.
        folded: whether readers see only the caption until they open it.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    prose: bool = False
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """One headline figure of every run.

    Attributes:
        topic: its subject, in a word.
        meaning: the measured quantity, and which direction is good.
        values: for each run its name, the figure, and its difference from the baseline's.
    """

    topic: str
    meaning: str
    values: Sequence[tuple[str, str, Cell]]


@dataclass(frozen=True, slots=True)
class Scores:
    """The headline figures, side by side."""

    scores: Sequence[Score]


@dataclass(frozen=True, slots=True)
class Key:
    """The meaning of a colour in a chart.

    Attributes:
        name: a queue, a run, ...
        colour: its colour in the chart, one of `harness.analysis.report.palette`.
        dash: the dashes of a line, in pixels; empty for a solid line or an area.
        line: whether it is a line rather than an area.
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
        words: the same content in sentences with figures, for readers who cannot see the chart, and for
            Markdown.
        draw: makes the chart for a width in pixels, that of the whole chart with its axes. It is called for
            several widths, and never for Markdown.
        keys: the meanings of its colours; the chart itself needs no legend.
        note: how to read it, if that is not obvious.
    """

    title: str
    words: str
    draw: Callable[[int], ChartType]
    keys: Sequence[Key] = ()
    note: str = ""


Block: TypeAlias = Text | Points | Code | Table | Scores | Figure
