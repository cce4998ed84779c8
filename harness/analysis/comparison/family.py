"""Corrects the p values of a family of tests. The family does not depend on what a table shows.

The family consists of the headline metrics of all jobs, for every compared run. If several runs have equal
values, they count only once. A run that equals the baseline needs no test. Holm's method corrects the p
values of the family. A test of any other metric or scope is outside the family, and its p value is multiplied
by the size of the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.analysis.comparison.statistics.significance import holm
from harness.runs.measuring import Key


class Family:
    """Tests by metric and by run, with their corrected p values.

    Args:
        tests: the p value of each test. A test is identified by a run and a metric with its scope and
            resource. The p value is 1 if a test of the family was not possible.
        same_as: for each run, the index of the first run whose metrics all have the same values.

    Attributes:
        size: the number of tests.
    """

    def __init__(self, tests: Mapping[tuple[Key, int], float], same_as: Sequence[int]) -> None:
        self._same_as = same_as
        self.size = len(tests)
        self._corrected = dict(zip(tests, holm(list(tests.values())), strict=True))

    def corrected(self, key: Key, run: int, p: float) -> float:
        """Returns the corrected p value of a test.

        If the test is outside the family, `p` is multiplied by the size of the family.
        """
        known = self._corrected.get((key, self._same_as[run]))
        return min(1.0, max(1, self.size) * p) if known is None else known


def equal_ones(figures: Sequence[Mapping[Key, object]]) -> list[int]:
    """Returns, for each run, the index of the first run whose metrics all have the same values."""
    return [next(at for at, other in enumerate(figures) if other == own) for own in figures]
