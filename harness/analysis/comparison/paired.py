"""A metric over several replays of each of several things: over twins of runs, or seeds of settings.

Where some replays lack a value, the mean is over the others, and differences are of those in which both sides
have one. The figures of one never depend on what another lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import exp, fsum, log

from harness.analysis.comparison.changes import Evidence, Ground
from harness.analysis.comparison.missing import Lack
from harness.analysis.comparison.statistics.significance import Interval, of_pairs


class Paired:
    """A metric's values, and how they are averaged and compared.

    Args:
        values: for each run or setting, the baseline first, its values in the order of twins or seeds, which
            are the same for all; None where one has none.
        lacks: for each, in how many of its replays.
    """

    def __init__(self, values: Sequence[Sequence[float | None]], lacks: Sequence[Lack]) -> None:
        self.values, self.lacks = values, lacks

    @cached_property
    def ratio(self) -> bool:
        """Whether means are geometric and differences are factors: where all values are above 0."""
        there = (value for row in self.values for value in row if value is not None)
        return min(there, default=0) > 0

    def mean(self, place: int) -> float | None:
        """That of a run over its twins; None where none of them has a value."""
        return mean_of([value for value in self.values[place] if value is not None], ratio=self.ratio)

    def evidence(self, place: int) -> Evidence:
        """What a run's difference from the baseline can be judged by."""
        sides = self._sides(place)
        interval = of_pairs(*sides, ratio=self.ratio)
        if interval is None:
            return Evidence(Ground.FEW)
        if len(sides[0]) == len(self.values[0]):
            return Evidence(Ground.TWINS, interval)
        base, other = (mean_of(side, ratio=self.ratio) for side in sides)
        assert base is not None
        assert other is not None
        return Evidence(Ground.TWINS, interval, (base, other))

    def difference(self, place: int) -> Interval | None:
        """The interval of a run's difference from the baseline, in the metric's unit; None without pairs."""
        return of_pairs(*self._sides(place), ratio=False)

    def relative(self, place: int) -> tuple[float, float] | None:
        """The interval of a run's change as a part of the baseline's value; None of fewer than two pairs.

        It rests on this pair alone, whatever else is compared. Where both are above 0 it is that of their
        factor, else that of the change in each replay; where a baseline is 0, the difference by its mean.
        """
        bases, others = self._sides(place)
        if min((*bases, *others), default=0) > 0:
            factor = of_pairs(bases, others, ratio=True)
            return None if factor is None else (factor.low - 1, factor.high - 1)
        if min(bases, default=0) > 0:
            parts = [(other - base) / base for base, other in zip(bases, others, strict=True)]
            part = of_pairs([0.0] * len(parts), parts, ratio=False)
            return None if part is None else (part.low, part.high)
        difference = of_pairs(bases, others, ratio=False)
        if difference is None:
            return None
        mean = fsum(map(abs, bases)) / len(bases)
        ends = difference.low, difference.high
        low, high = (end / mean if mean else end and end * float("inf") for end in ends)
        return low, high

    def level(self, place: int) -> Interval | None:
        """The interval of a run's mean, in the metric's unit; None of fewer than two values."""
        there = [value for value in self.values[place] if value is not None]
        # Equal values need no logarithms, which would round them.
        ratio = bool(there) and 0 < min(there) < max(there)
        return of_pairs([1.0 if ratio else 0.0] * len(there), there, ratio=ratio)

    def _sides(self, place: int) -> tuple[list[float], list[float]]:
        """The baseline's values and a run's, of the replays in which both have one."""
        pairs = zip(self.values[0], self.values[place], strict=True)
        both = [(base, other) for base, other in pairs if base is not None and other is not None]
        return [base for base, _ in both], [other for _, other in both]


def mean_of(values: Sequence[float], *, ratio: bool) -> float | None:
    """The mean, which is geometric where values are compared by factors; None of no values."""
    if not values:
        return None
    if min(values) == max(values):
        return values[0]
    return exp(fsum(map(log, values)) / len(values)) if ratio else fsum(values) / len(values)
