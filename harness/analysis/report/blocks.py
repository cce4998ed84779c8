"""What a section of a report is made of: text, tables and charts, with no word yet of HTML or Markdown.

All text is plain: whoever renders it escapes it, so that a name from a trace or a manifest may stand
anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from altair.typing import ChartType

Verdict: TypeAlias = Literal["better", "worse", "same", "equal", "open", ""]
"""What a change against the baseline means; empty where nothing can be said."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Attributes:
        text: what it says.
        lead: whether it is what all else is there for, and stands out.
    """

    text: str
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A list of sentences.

    Attributes:
        items: one or more.
        title: what they are about, if that needs saying.
    """

    items: Sequence[str]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Something to copy, such as a command, as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table that says whether its figure is a good one.

    Attributes:
        text: the figure.
        verdict: what it means.
        sign: what stands for the verdict; it is read out as a word.
        bar: how long a bar beside it is, from -1 (to the left) to 1 (to the right); None for no bar.
    """

    text: str
    verdict: Verdict = ""
    sign: str = ""
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row says what the others are of.

    Attributes:
        caption: what it shows.
        head: a name for each column.
        rows: as many cells in each as `head` has.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]


@dataclass(frozen=True, slots=True)
class Score:
    """One headline figure of every run.

    Attributes:
        topic: what it is about, in a word.
        meaning: what is measured, and which direction is good.
        values: for each run its name, the figure, and how that differs from the baseline's.
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
    """What a colour of a chart stands for.

    Attributes:
        name: a queue, a run, ...
        colour: as the chart has it, one of `harness.analysis.report.palette`.
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
        title: what it shows.
        words: the same in sentences with figures, for those who cannot see it, and for Markdown.
        draw: makes the chart for a width in pixels, which is that of the whole chart, axes included. It is
            asked for more than one width, and not at all for Markdown.
        keys: what its colours stand for; the chart itself needs no legend.
        note: how to read it, where that is not plain.
    """

    title: str
    words: str
    draw: Callable[[int], ChartType]
    keys: Sequence[Key] = ()
    note: str = ""


Block: TypeAlias = Text | Points | Code | Table | Scores | Figure
