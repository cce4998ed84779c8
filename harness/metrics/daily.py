"""Shares averaged over days: who is behind for hours and has it back by night is treated fairly.

Days are spans of 24 h from the beginning of the window; the last one may be shorter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import fsum

from harness.metrics.inequality import gini, jain
from harness.metrics.levels import Piece
from harness.metrics.measurement import Measurement, Window
from harness.metrics.shares import Shares
from harness.units import DAY


class Daily:
    """Adds up shares, and ideal ones, day by day.

    Args:
        window: what is measured.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sums: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def add(self, found: Shares, piece: Piece) -> None:
        """Take a piece into account."""
        start = self._window.start
        times = piece.times
        ends = times.shift(-1, fill_value=piece.end)
        first, last = (times[0] - start) // DAY, max(0, (piece.end - start - 1)) // DAY
        for day in range(first, last + 1):
            low, high = start + day * DAY, start + (day + 1) * DAY
            begin = max(0, int(times.search_sorted(low, side="right")) - 1)
            count = int(times.search_sorted(high, side="left")) - begin
            inside = ends.slice(begin, count).clip(upper_bound=high) - times.slice(begin, count).clip(low)
            for place, holder in enumerate(found.holders):
                cells = place * found.grid.instants + begin
                sums = self._sums[day][holder]
                for kind, column in enumerate((found.share, found.ideal)):
                    sums[kind] += float((column.slice(cells, count) * inside).sum())

    def measurements(self) -> Iterator[Measurement]:
        """What has been added up."""
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
        for name, value, better in (
            ("share_deviation", fsum(off) / whole if whole else None, "lower"),
            ("jain_share", fsum(even) / compared if compared else None, "higher"),
            ("gini_share", fsum(uneven) / compared if compared else None, "lower"),
        ):
            yield Measurement(f"fairness.{name}_daily", value, "ratio", better)
