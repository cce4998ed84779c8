"""The family of tests that are corrected together, which does not depend on what a table shows.

The family consists of the headline metrics of all jobs, for every compared run. Runs with equal figures
count only once. A run that is equal to the baseline has nothing to test. In a family of k tests, p is
corrected by Holm's method. A test of any other metric or scope is outside the family, and its p is
multiplied by k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.analysis.comparison.figures import Key
from harness.analysis.comparison.statistics.significance import holm


class Family:
    """Tests by metric and by run, with their corrected p.

    Args:
        tests: the p of each test; a test is a metric with its scope and resource, and a run. The p is 1 if
            a test of the family was not possible.
        same_as: for each run, the first run that has equal figures.

    Attributes:
        size: the number of tests.
    """

    def __init__(self, tests: Mapping[tuple[Key, int], float], same_as: Sequence[int]) -> None:
        self._same_as = same_as
        self.size = len(tests)
        self._corrected = dict(zip(tests, holm(list(tests.values())), strict=True))

    def corrected(self, key: Key, run: int, p: float) -> float:
        """Returns the corrected p of a test of a metric and run, whether or not the test is in the family."""
        known = self._corrected.get((key, self._same_as[run]))
        return min(1.0, max(1, self.size) * p) if known is None else known


def equal_ones(figures: Sequence[Mapping[Key, object]]) -> list[int]:
    """Returns for each of several runs the first run whose figures are equal."""
    return [next(at for at, other in enumerate(figures) if other == own) for own in figures]
