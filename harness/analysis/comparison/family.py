"""The family of tests that are corrected together. It does not depend on what a table shows.

The family consists of the headline metrics of all jobs, for every compared run. Runs with equal figures count
only once, and a run that is equal to the baseline needs no test. In a family of k tests, Holm's method
corrects p. If a test is about any other metric or scope, it is outside the family, and its p is multiplied by
k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.analysis.comparison.figures import Key
from harness.analysis.comparison.statistics.significance import holm


class Family:
    """Tests by metric and by run, with their corrected p values.

    Args:
        tests: the p value of each test. A test is identified by a run and a metric with its scope and
            resource. The p value is 1 if a test of the family was not possible.
        same_as: for each run, the first run that has equal figures.

    Attributes:
        size: the number of tests.
    """

    def __init__(self, tests: Mapping[tuple[Key, int], float], same_as: Sequence[int]) -> None:
        self._same_as = same_as
        self.size = len(tests)
        self._corrected = dict(zip(tests, holm(list(tests.values())), strict=True))

    def corrected(self, key: Key, run: int, p: float) -> float:
        """Returns the corrected p value of a test of a metric and run, even if it is outside the family."""
        known = self._corrected.get((key, self._same_as[run]))
        return min(1.0, max(1, self.size) * p) if known is None else known


def equal_ones(figures: Sequence[Mapping[Key, object]]) -> list[int]:
    """Returns for each of several runs the first run whose figures are equal."""
    return [next(at for at, other in enumerate(figures) if other == own) for own in figures]
