"""A metric over several replays: the twins of each run, or the seeds of each setting.

If some replays have no value, the mean covers the other replays. The difference between two runs covers the
replays in which both have a value. Therefore, a run's missing values never affect the results of a third run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import exp, fsum, log
from typing import TypeAlias

from harness.analysis.comparison.changes import Evidence, Ground
from harness.analysis.comparison.figures import PARTS
from harness.analysis.comparison.missing import Lack
from harness.analysis.comparison.statistics.bounded import of_bounded_pairs
from harness.analysis.comparison.statistics.significance import Interval, of_pairs

_Interval: TypeAlias = Callable[[Sequence[float], Sequence[float]], Interval | None]
_of_factors: _Interval = partial(of_pairs, ratio=True)
_of_differences: _Interval = partial(of_pairs, ratio=False)

GEOMETRIC = "geometric means where all values are above 0 and none is 100 %"
"""A note for tables that explains which means are geometric."""


class Paired:
    """A metric's values, with their means and their differences.

    Args:
        values: the values of each run or setting, with the baseline first, in the order of twins or seeds.
            All runs have the same twins or seeds. A value is None if a replay has no value.
        lacks: the number of replays without a value, for each run or setting.
        unit: the metric's unit. It determines whether values are shares, which cannot exceed 1.
    """

    def __init__(
        self, values: Sequence[Sequence[float | None]], lacks: Sequence[Lack], unit: str = ""
    ) -> None:
        self.values, self.lacks = values, lacks
        self._most = 1.0 if unit in PARTS else None

    @cached_property
    def _interval(self) -> _Interval:
        return self._interval_of([value for row in self.values for value in row if value is not None])

    @property
    def ratio(self) -> bool:
        """True if means are geometric and differences are factors.

        This requires that all values are above 0 and, for a share, below 1.
        """
        return self._interval is _of_factors

    def mean(self, place: int) -> float | None:
        """Returns the mean of a run over its twins, or None if no twin has a value."""
        return mean_of([value for value in self.values[place] if value is not None], ratio=self.ratio)

    def evidence(self, place: int) -> Evidence:
        """Returns the evidence for a run's difference from the baseline."""
        sides = self._sides(place)
        interval = self._interval(*sides)
        if interval is None:
            return Evidence(Ground.FEW)
        if len(sides[0]) == len(self.values[0]):
            return Evidence(Ground.TWINS, interval)
        base, other = (mean_of(side, ratio=self.ratio) for side in sides)
        assert base is not None
        assert other is not None
        return Evidence(Ground.TWINS, interval, (base, other))

    def difference(self, place: int) -> Interval | None:
        """Returns the interval of a run's difference from the baseline, in the metric's unit.

        Returns None if fewer than two twins have a value in both runs.
        """
        sides = self._sides(place)
        return self._interval_of([*sides[0], *sides[1]], factors=False)(*sides)

    def relative(self, place: int) -> tuple[float, float] | None:
        """Returns the interval of a run's relative change, or None with fewer than two pairs.

        The interval depends only on these two runs, no matter what else is compared. There are three cases:

        - If differences are factors, the result is the interval of the factors.
        - Otherwise, if all of the baseline's values are above 0, the result is the interval of the change in
          each replay.
        - Otherwise, the result is the interval of the difference, divided by the baseline's mean.
        """
        bases, others = self._sides(place)
        interval = self._interval_of([*bases, *others])
        if interval is _of_factors:
            factor = interval(bases, others)
            return None if factor is None else (factor.low - 1, factor.high - 1)
        if min(bases, default=0) > 0:
            parts = [(other - base) / base for base, other in zip(bases, others, strict=True)]
            part = interval([0.0] * len(parts), parts)
            return None if part is None else (part.low, part.high)
        difference = interval(bases, others)
        if difference is None:
            return None
        mean = fsum(map(abs, bases)) / len(bases)
        ends = difference.low, difference.high
        low, high = (end / mean if mean else end and end * float("inf") for end in ends)
        return low, high

    def level(self, place: int) -> Interval | None:
        """Returns the interval of a run's mean in the metric's unit, or None with fewer than two values."""
        there = [value for value in self.values[place] if value is not None]
        # Equal values don't need logarithms, which would introduce rounding errors.
        if self._interval_of(there) is _of_factors and min(there) < max(there):
            return _of_factors([1.0] * len(there), there)
        bound = self._most if self._most is not None and max(there, default=0) == self._most else 0.0
        found = self._interval_of(there, factors=False)([bound] * len(there), there)
        return found and found._replace(low=bound + found.low, high=bound + found.high)

    def _interval_of(self, values: Sequence[float], *, factors: bool = True) -> _Interval:
        """Returns the method that computes intervals; `factors` says whether differences may be factors."""
        least, most = min(values, default=0), max(values, default=0)
        if least == 0 or most == self._most:
            return of_bounded_pairs
        return _of_factors if least > 0 and factors else _of_differences

    def _sides(self, place: int) -> tuple[list[float], list[float]]:
        pairs = zip(self.values[0], self.values[place], strict=True)
        both = [(base, other) for base, other in pairs if base is not None and other is not None]
        return [base for base, _ in both], [other for _, other in both]


def mean_of(values: Sequence[float], *, ratio: bool) -> float | None:
    """Returns the mean of the values: the geometric mean if `ratio` is true. None if there are no values."""
    if not values:
        return None
    if min(values) == max(values):
        return values[0]
    return exp(fsum(map(log, values)) / len(values)) if ratio else fsum(values) / len(values)
