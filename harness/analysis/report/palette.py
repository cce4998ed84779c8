"""Defines colours for charts that colour-blind readers can distinguish, for light and dark pages.

The lines of runs use Okabe and Ito's palette, and also have different dashes. The areas of queues use Paul
Tol's "muted" palette, and everything else uses his "medium contrast" palette. Charts are drawn with the light
tones. On dark pages, the style sheet replaces these tones with the dark tones.
"""

from __future__ import annotations

from typing import NamedTuple


class Tone(NamedTuple):
    """A colour on light backgrounds and its counterpart on dark backgrounds."""

    light: str
    dark: str


RUNS = (
    Tone("#0072b2", "#4aa8e0"),
    Tone("#d55e00", "#ff8c42"),
    Tone("#009e73", "#2fc99c"),
    Tone("#b0528c", "#e08fc0"),
    Tone("#a07800", "#e6b422"),
    Tone("#2f8fc4", "#8fd0f5"),
)
DASHES = ((), (7, 3), (2, 2), (9, 3, 2, 3), (5, 5), (1, 3))
QUEUES = (
    Tone("#332288", "#8577e0"),
    Tone("#cc6677", "#d9788a"),
    Tone("#117733", "#3a9d5b"),
    Tone("#ddcc77", "#d9c766"),
    Tone("#88ccee", "#79bfe3"),
    Tone("#882255", "#c2528b"),
    Tone("#44aa99", "#4dbdaa"),
    Tone("#999933", "#a9a94a"),
    Tone("#aa4499", "#c265b2"),
)
OTHER = Tone("#b4b9c2", "#6b7280")
KINDS = (
    Tone("#004488", "#5b93d6"),
    Tone("#eecc66", "#e0bd55"),
    Tone("#994455", "#cf7688"),
    Tone("#6699cc", "#8fbbe8"),
    Tone("#997700", "#c29f2e"),
    Tone("#ee99aa", "#f0a8b6"),
)
INK = Tone("#1f2430", "#e8eaee")
"""The colour of axes, labels and reference lines."""

GRID = Tone("#c9ced6", "#4a515e")
"""The colour of grid lines and axis lines."""

ALL = (*RUNS, *QUEUES, OTHER, *KINDS, INK, GRID)
