"""Compares a value with the baseline's value, and decides whether the difference counts as a change.

A difference must pass two tests to count as a change. The practical test requires that the difference is at
least 1 % of the baseline's value. The statistical test requires that the 95 % interval of the difference
excludes 0 and that p is below 5 %. The p value is corrected for the whole family of tests
(`harness.analysis.comparison.family`). If a single replay cannot separate a difference from luck, the
difference gets no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import isfinite
from typing import NamedTuple

from harness.analysis.comparison.statistics.significance import LEVEL, Interval
from harness.plugins.measurement import Measurement

PRACTICAL = 0.01
"""If a difference is smaller than this fraction of the baseline's value, it doesn't count as a change."""


class Verdict(StrEnum):
    """The verdict on a run's difference from the baseline: better, worse, no clear change, or unknown."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"  # for metrics where neither direction is better
    NONE = "~"  # the difference is too small or may be due to chance
    SAME = "="  # the values are equal
    OPEN = "?"  # one replay cannot separate the effect of the plugin from luck
    UNKNOWN = ""  # one of the two values is missing


class Ground(StrEnum):
    """The kind of evidence for a verdict, or the reason why a difference has no verdict."""

    TWINS = "twins"  # an interval over the twins of a trace or the seeds of an experiment
    BLOCKS = "blocks"  # an interval over blocks of jobs in a single replay
    CONGESTED = "congested"  # values of jobs in a single replay whose blocks are too similar for an interval
    CUT = "cut"  # lost work of runs that were cut short at different times
    FEW = "few"  # too few jobs, twins or seeds have a value
    REPLAY = "replay"  # a value that belongs to a single replay as a whole
    RUN_TIMES = "run times"  # the value depends on run times, and some run times are unknown


class Evidence(NamedTuple):
    """The evidence on which a difference is judged.

    A twin is a replay of the same jobs whose arrivals are slightly shifted.

    Attributes:
        ground: the kind of evidence, or the reason why there is none.
        interval: the 95 % interval of the difference. None if it could not be computed.
        means: the mean of the baseline and the mean of the other run, over the twins in which both runs have
            a value. None if no twin lacks a value, because the usual means are then correct.
    """

    ground: Ground
    interval: Interval | None = None
    means: tuple[float, float] | None = None


class Change(NamedTuple):
    """One run's value compared with the baseline's value.

    A twin is a replay of the same jobs whose arrivals are slightly shifted.

    Attributes:
        difference: the run's value minus the baseline's value, over the twins in which both runs have a
            value. None if either run has no value.
        relative: the difference as a fraction of the baseline's absolute value; None if that value is 0.
        interval: the 95 % interval of the ratio `run / baseline`, or of the difference in the metric's unit.
            The ratio is used if all values are above 0 and, for a share, below 100 %. None if there is no
            interval.
        p: the p value of the difference, corrected for the number of tests. None if there is no interval.
    """

    difference: float | None
    relative: float | None
    verdict: Verdict
    ground: Ground
    interval: Interval | None = None
    p: float | None = None

    @property
    def exact(self) -> bool:
        """True if the difference is the same in every twin, so chance cannot be the cause."""
        return self.interval is not None and self.interval.certain

    @property
    def misses(self) -> bool:
        """True if the interval excludes 0, but the corrected p is too large for a verdict."""
        interval, p = self.interval, self.p
        return interval is not None and p is not None and not interval.has_nothing and p > LEVEL


def gates(tests: str) -> str:
    """Returns a note that explains when a difference counts as a change.

    `tests` is a clause about the correction of p, such as `corrected for 9 tests, Holm`.
    """
    return (
        f"a difference counts as a change if it is {100 * PRACTICAL:g} % or more, its interval excludes 0, "
        f"and p < 0.05 ({tests})"
    )


class Row(NamedTuple):
    """One metric of one scope and resource, with its value in every run.

    Attributes:
        measured: the metric, scope, resource and unit. Its value is the baseline's value.
        values: one value for each run, with the baseline's value first.
        changes: one change for each run except the baseline.
        at_least: for each value, whether it is a lower bound that can still grow; empty if not requested.
    """

    measured: Measurement
    values: list[float | None]
    changes: list[Change]
    at_least: Sequence[bool | None] = ()

    def is_least(self, place: int) -> bool:
        """Returns True if a run's value is a lower bound because some jobs were unfinished at the end."""
        return place < len(self.at_least) and bool(self.at_least[place])


def change_of(
    base: float | None, value: float | None, better: str, evidence: Evidence, p: float | None
) -> Change:
    """Compares a value with the baseline's value and returns the change with its verdict.

    `better` is `higher` or `lower`, whichever is better, or "" if neither is. `p` is the corrected p value of
    the interval in `evidence`, or None if there is no interval.
    """
    ground, interval, means = evidence
    if base is None or value is None or not isfinite(base) or not isfinite(value):
        return Change(None, None, Verdict.UNKNOWN, ground, interval, p)
    if means is not None:
        base, value = means
    difference = value - base
    relative = difference / abs(base) if base else None
    if ground is Ground.RUN_TIMES:
        return Change(difference, relative, Verdict.OPEN, ground)
    verdict = _verdict(difference, relative, better, interval, p)
    return Change(difference, relative, verdict, ground, interval, p)


def _verdict(
    difference: float, relative: float | None, better: str, interval: Interval | None, p: float | None
) -> Verdict:
    if interval is None:
        return Verdict.OPEN if difference else Verdict.SAME
    if interval.certain and interval.has_nothing:
        return Verdict.SAME
    large = difference and (relative is None or abs(relative) >= PRACTICAL)
    if not large or p is None or p > LEVEL or interval.has_nothing:
        return Verdict.NONE
    if not better:
        return Verdict.DIFFERENT
    return Verdict.BETTER if (difference > 0) == (better == "higher") else Verdict.WORSE
