"""How a value differs from the baseline's, and whether that is called a change.

There are two gates. The practical one: a difference below 1 % of the baseline's value is none. The
statistical one, for metrics that come from values of jobs: 0 is outside the 95 % interval of the difference,
and the difference is significant at 5 % after Holm's correction for all the tests of one table. What comes
from the run as a whole has no interval: nothing in a replay varies but its jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

from harness.metrics.measurement import Measurement
from harness.statistics.bootstrap import CONFIDENCE, Interval
from harness.statistics.significance import holm

PRACTICAL = 0.01
"""A smaller part of the baseline's value is no change."""

LEVEL = 1 - CONFIDENCE


class Verdict(StrEnum):
    """What is said of a difference."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"  # of a metric of which neither more nor less is better
    NONE = "~"  # too small, or not told from chance
    UNKNOWN = ""  # one of the two values is not there


class Change(NamedTuple):
    """One run's value against the baseline's.

    Attributes:
        difference: the value less the baseline's; None where one of them is not there.
        relative: the difference as a part of the baseline's absolute value; None if that is 0.
        verdict: what is said of it.
        interval: of the difference, in the metric's unit; None for what does not come from values of jobs,
            and where jobs are too few.
        p: corrected for all tests of the table; None without an interval.
        tested: whether the metric comes from values of jobs, so that it could be told from chance.
    """

    difference: float | None
    relative: float | None
    verdict: Verdict
    interval: Interval | None = None
    p: float | None = None
    tested: bool = False

    @property
    def relative_interval(self) -> tuple[float, float] | None:
        """The interval as parts of the baseline's absolute value."""
        if self.interval is None or not self.relative or not self.difference:
            return None
        scale = self.relative / self.difference
        return self.interval.low * scale, self.interval.high * scale


class Row(NamedTuple):
    """What was measured, in every run.

    Attributes:
        measured: the metric, scope, resource and unit; its value is the baseline's.
        values: one a run, the baseline's first.
        changes: one for each run but the baseline.
    """

    measured: Measurement
    values: list[float | None]
    changes: list[Change]


class Chance(NamedTuple):
    """Whether a difference can be told from chance, and what is known of it then."""

    possible: bool
    interval: Interval | None


def judged(
    found: Sequence[tuple[Measurement, list[float | None]]], tests: Sequence[Sequence[Chance]]
) -> list[Row]:
    """Rows of one table, with p values corrected for all of its tests.

    Args:
        found: what was measured, with its value in each run.
        tests: for each of these, one for each run but the baseline.
    """
    corrected = iter(
        holm([each.interval.p for of_row in tests for each in of_row if each.interval is not None])
    )
    rows = []
    for (measured, values), of_row in zip(found, tests, strict=True):
        base, *others = values
        changes = [
            _change(base, value, measured.better, test, next(corrected) if test.interval else None)
            for value, test in zip(others, of_row, strict=True)
        ]
        rows.append(Row(measured, values, changes))
    return rows


def _change(base: float | None, value: float | None, better: str, test: Chance, p: float | None) -> Change:
    if base is None or value is None or not isfinite(base) or not isfinite(value):
        return Change(None, None, Verdict.UNKNOWN, test.interval, p, test.possible)
    difference = value - base
    relative = difference / abs(base) if base else None
    verdict = _verdict(difference, relative, better)
    if verdict is not Verdict.NONE and test.possible and not _significant(test.interval, p):
        verdict = Verdict.NONE
    return Change(difference, relative, verdict, test.interval, p, test.possible)


def _verdict(difference: float, relative: float | None, better: str) -> Verdict:
    """What is said of a difference by its size alone."""
    if not difference or (relative is not None and abs(relative) < PRACTICAL):
        return Verdict.NONE
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (difference > 0) == (better == "higher") else Verdict.WORSE


def _significant(interval: Interval | None, p: float | None) -> bool:
    """Whether a difference is told from chance; without an interval nothing can be said."""
    if interval is None or p is None:
        return False
    return p <= LEVEL and not interval.low <= 0 <= interval.high
