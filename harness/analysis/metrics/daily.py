"""Averages shares over days, so that quotas that catch up at night do not count as disadvantaged.

Each day lasts 24 h, and the first day begins with the window. The last day may be shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import fsum

import numpy as np

from harness.analysis.metrics.inequality import gini, jain
from harness.analysis.metrics.pieces import Piece
from harness.analysis.metrics.shares import Shares
from harness.base.arrays import Floats, Ints
from harness.base.units import DAY
from harness.plugins.measurement import SHARE, Measurement, Window


class Daily:
    """The sums of actual and ideal shares for each day."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sums: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def add(self, found: Shares, piece: Piece) -> None:
        """Adds the shares during a period to the sums of the days. `piece` contains the period's times."""
        start, times, end = self._window.start, piece.times, piece.end
        first, last = (int(times[0]) - start) // DAY, max(0, end - start - 1) // DAY
        begins = times[piece.parts]
        midnights = np.arange(first + 1, last + 1) * DAY + start
        borders = midnights[begins.searchsorted(midnights) == begins.searchsorted(midnights, side="right")]
        # A level first counts toward the day in which it begins. The part after the end of that day is then
        # moved to the next day.
        stretches = np.sort(np.concatenate((begins, borders)))
        at = times.searchsorted(stretches)
        until = np.append(times, end)[at]
        beyond = [(place, int(until[place] - stretches[place])) for place in stretches.searchsorted(borders)]
        days = ((stretches - start) // DAY).tolist()
        spans = piece.spans.astype(np.float64)
        sums = self._areas(found.share, spans, at, beyond)
        of_ideal = sums if found.ideal is found.share else self._areas(found.ideal, spans, at, beyond)
        for kind, areas in enumerate((sums, of_ideal)):
            for holder, of_holder in zip(found.holders.tolist(), areas.tolist(), strict=True):
                for day, area in zip(days, of_holder, strict=True):
                    self._sums[day][holder][kind] += area

    @staticmethod
    def _areas(cells: Floats, spans: Floats, begins: Ints, beyond: Sequence[tuple[int, int]]) -> Floats:
        """Returns the integral of each holder's shares over each stretch of time.

        Args:
            cells: the shares, with a row for each holder and a column for each moment at which a share
                changes.
            spans: the time from each of these moments to the next.
            begins: the first of these moments within each stretch. A stretch that contains none has the same
                value as the next stretch.
            beyond: the numbers of the stretches that begin within a span, and how much of the span is in each
                stretch.
        """
        # Each sum begins with 0, so that a stretch without changes has a sum, too.
        areas = np.insert(cells * spans, begins, 0.0, axis=1)
        found: Floats = np.add.reduceat(areas, begins + np.arange(len(begins)), axis=1)
        for place, left in beyond:
            moved = cells[:, begins[place] - 1] * left
            found[:, place - 1] -= moved
            found[:, place] += moved
        return found

    def measurements(self) -> Iterator[Measurement]:
        """Yields the metrics that are derived from the daily sums."""
        off, ideal, even, uneven, compared = [], [], [], [], 0
        for day in sorted(self._sums):
            shares = [self._sums[day][holder] for holder in sorted(self._sums[day])]
            off.append(fsum(abs(held - due) for held, due in shares) / 2)
            ideal.append(fsum(due for _, due in shares))
            parts = [held / due for held, due in shares if due > 0]
            index, coefficient = jain(parts), gini(parts)
            if len(parts) >= 2 and index is not None and coefficient is not None:
                begin = self._window.start + day * DAY
                span = min(self._window.end, begin + DAY) - begin
                even.append(index * span)
                uneven.append(coefficient * span)
                compared += span
        whole = fsum(ideal)
        for name, value, unit, better in (
            ("share_deviation", fsum(off) / whole if whole else None, SHARE, "lower"),
            ("jain_share", fsum(even) / compared if compared else None, "ratio", "higher"),
            ("gini_share", fsum(uneven) / compared if compared else None, "ratio", "lower"),
        ):
            yield Measurement(f"fairness.{name}_daily", value, unit, better)
