"""Shares averaged over days: a holder that is behind for hours and catches up by night is treated fairly.

Days are spans of 24 h from the beginning of the window; the last one may be shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import fsum

import numpy as np

from harness.analysis.metrics.inequality import gini, jain
from harness.analysis.metrics.levels import Piece
from harness.analysis.metrics.shares import Shares
from harness.base.arrays import Floats
from harness.base.units import DAY
from harness.plugins.measurement import SHARE, Measurement, Window


class Daily:
    """Adds up actual and ideal shares day by day.

    Args:
        window: the measured time.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sums: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def add(self, found: Shares, piece: Piece) -> None:
        """Take a piece into account."""
        start, times, end = self._window.start, piece.times, piece.end
        first, last = (int(times[0]) - start) // DAY, max(0, end - start - 1) // DAY
        borders = [start + day * DAY for day in range(first, last + 2)]
        begins = times.searchsorted(borders).tolist()
        # A level counts with the day in which it begins; what of it lasts into the next day is moved there.
        beyond = [
            (until - 1, max(0, (int(times[until]) if until < len(times) else end) - border))
            for until, border in zip(begins[1:-1], borders[1:-1], strict=True)
        ]
        spans = piece.spans.astype(np.float64)
        sums = self._areas(found.share, spans, begins, beyond)
        of_ideal = sums if found.ideal is found.share else self._areas(found.ideal, spans, begins, beyond)
        for kind, areas in enumerate((sums, of_ideal)):
            for day, of_holders in enumerate(areas, first):
                for holder, area in zip(found.holders.tolist(), of_holders.tolist(), strict=True):
                    self._sums[day][holder][kind] += area

    @staticmethod
    def _areas(
        cells: Floats, spans: Floats, begins: Sequence[int], beyond: Sequence[tuple[int, int]]
    ) -> list[Floats]:
        """For each day, the time-weighted sum of each holder's shares.

        Args:
            cells: a row for each holder, a column for each instant.
            spans: the time from each instant to the next.
            begins: the instants at which days begin, and the end.
            beyond: for each day but the last, its last instant, and how much of that span is in the next day.
        """
        areas = cells * spans
        found = [areas[:, begin:until].sum(axis=1) for begin, until in pairwise(begins)]
        for day, (instant, left) in enumerate(beyond):
            if left:
                moved = cells[:, instant] * left
                found[day] -= moved
                found[day + 1] += moved
        return found

    def measurements(self) -> Iterator[Measurement]:
        """The measurements of the sums."""
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
