"""The figures of runs that were replayed once each, and the evidence for their differences.

If a metric is derived from values of jobs (waits, slowdown, lost work), blocks of jobs are resampled. The
blocks must be long enough to be independent. For any other metric, a run is a single draw from a chaotic
system, so only twins can separate a difference from luck (`harness.analysis.comparison.shaken`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from harness.analysis.comparison.changes import Change, Evidence, Ground, Verdict, gates
from harness.analysis.comparison.missing import Lack, lack_of
from harness.analysis.comparison.pairs import Pairs, why_not_shaken
from harness.analysis.comparison.samples import LOST, Samples, is_of_jobs, statistic_of
from harness.analysis.metrics import utilization
from harness.analysis.metrics.shared_window import Shared, measure_shared
from harness.analysis.metrics.utilization import HOURS
from harness.plugins.measurement import Measurement
from harness.runs.folder import reading
from harness.runs.measuring import Key, key_of

if TYPE_CHECKING:
    import polars as pl

    from harness.analysis.comparison.statistics.bootstrap import Paired
    from harness.runs.run import Run

_REPLAY = Evidence(Ground.REPLAY)


class OneReplay:
    """The measurements of runs that were replayed once each.

    `shares` contains the window and the jobs over which each run is measured. `hours` is true if capacities
    differ, so that utilization is also given in resource-hours.
    """

    def __init__(self, runs: Sequence[Run], pairs: Pairs, shares: Sequence[Shared], *, hours: bool) -> None:
        self._runs, self._pairs, self._shares, self._hours = runs, pairs, shares, hours

    @cached_property
    def measured(self) -> list[dict[Key, Measurement]]:
        """The measurements of each run."""
        return [self._measurements(place) for place in range(len(self._runs))]

    def outcome(self, place: int) -> dict[Key, float | None]:
        """Returns the value of every metric of a run."""
        return {key: row.value for key, row in self.measured[place].items()}

    def lack(self, measured: Measurement, place: int) -> Lack:
        """Returns how many of a run's replays have no value of a metric: 0 or 1, as there is one replay."""
        return lack_of(key_of(measured), [self.measured[place]])

    def testable(self, measured: Measurement) -> bool:
        """Returns True if a metric is derived from values of jobs, so that it can be tested."""
        return statistic_of(measured) is not None

    def evidence(self, measured: Measurement, place: int) -> Evidence:
        """Returns the evidence for a run's difference from the baseline."""
        statistic = statistic_of(measured)
        if statistic is None:
            return _REPLAY
        key = key_of(measured)
        if any(key not in of or of[key].value is None for of in (self.measured[0], self.measured[place])):
            return Evidence(Ground.FEW)
        if measured.metric == LOST and self._cut_apart(place):
            return Evidence(Ground.CUT)
        paired = self._paired(place, statistic.column, measured.scope)
        if paired is None:
            return _REPLAY
        if not paired.blocks:
            return Evidence(Ground.FEW)
        if paired.congested(statistic.name):
            return Evidence(Ground.CONGESTED)
        interval = paired.interval(statistic.name)
        return Evidence(Ground.FEW) if interval is None else Evidence(Ground.BLOCKS, interval)

    def remarks(self, changes: Iterable[Change], tests: str) -> Iterator[str]:
        """Yields notes that explain the intervals and the missing verdicts of these changes.

        `tests` is a clause about the correction of p, such as `corrected for 9 tests, Holm`.
        """
        several = list(changes)
        undecided = {change.ground for change in several if change.verdict is Verdict.OPEN}
        if any(change.interval is not None for change in several):
            from harness.analysis.comparison.statistics.bootstrap import BLOCKS, RESAMPLES, SEED

            yield (
                f"[95 % interval]: paired bootstrap over {BLOCKS} blocks of jobs in order of arrival, "
                f"{RESAMPLES:,} resamples, seed {SEED}, corrected for skewness"
            )
            yield gates(tests)
        in_vain = why_not_shaken(self._runs, self._pairs)
        if Ground.CONGESTED in undecided:
            use = f", and {in_vain}" if in_vain else ": use --shake 10"
            yield f"?: the cluster is too congested for a verdict from one replay{use}"
        if Ground.CUT in undecided:
            yield "?: one run stops earlier and has less time to lose work; give both the same --until"
        if Ground.FEW in undecided:
            from harness.analysis.comparison.statistics.bootstrap import LEAST_JOBS

            yield f"?: fewer than {LEAST_JOBS} jobs have a value, which is too few for a verdict"
        if Ground.REPLAY in undecided:
            tells = f", and {in_vain}" if in_vain else "; add --shake 10"
            yield f"changes without a sign: one replay of each run cannot separate them from luck{tells}"

    def _cut_apart(self, place: int) -> bool:
        """Returns True if a run and the baseline are measured up to different times because of a cut.

        This happens only if their jobs arrive at different times. Otherwise, both are measured up to the
        earlier cut.
        """
        ends = [self._shares[of].jobs for of in (0, place)]
        cut = any(self._runs[of].cut_at is not None for of in (0, place))
        return ends[0] != ends[1] and cut

    def _paired(self, place: int, column: str, scope: str) -> Paired | None:
        key = (place, column, scope)
        if key not in self._paired_values:
            base, other = self._samples[0], self._samples[place]
            of_scope = [each.members(scope) for each in (base, other)]
            self._paired_values[key] = _paired_within(of_scope, base.of(column), other.of(column))
        return self._paired_values[key]

    @cached_property
    def _samples(self) -> list[Samples]:
        return [
            Samples(run, rows, shared)
            for run, rows, shared in zip(self._runs, self._pairs.rows, self._shares, strict=True)
        ]

    @cached_property
    def _paired_values(self) -> dict[tuple[int, str, str], Paired | None]:
        return {}

    def _measurements(self, place: int) -> dict[Key, Measurement]:
        run = self._runs[place]
        with reading(run.path):
            found = measurements_of(run)
            for row in self._measured_again(run, self._shares[place], found):
                key = key_of(row)
                if key in found or row.metric.endswith(HOURS):
                    found[key] = row
            if self._pairs.jobs[place] > self._pairs.count:
                of_common = {key_of(row): row for row in self._samples[place].measure()}
                found = {
                    key: of_common.get(key, row)
                    for key, row in found.items()
                    if key in of_common or not is_of_jobs(row)
                }
        return found

    def _measured_again(self, run: Run, shared: Shared, found: Iterable[Key]) -> Iterator[Measurement]:
        """Yields metrics that the run's table lacks: over shared windows or jobs, or hours in schema 2."""
        if not shared.is_own(run):
            yield from measure_shared(run, shared)
        elif self._hours and not any(name.endswith(HOURS) for name, _, _ in found):
            yield from utilization.measure(run, run.window)


def measurements_of(run: Run) -> dict[Key, Measurement]:
    """Returns the measurements in a run's table of metrics."""
    rows = map(Measurement._make, run.metrics.select(Measurement._fields).iter_rows())
    return {key_of(row): row for row in rows}


def _paired_within(of_scope: Sequence[pl.Series | None], base: pl.Series, other: pl.Series) -> Paired | None:
    """Returns the values of a scope's jobs, or None if the scope's jobs differ between the runs."""
    from harness.analysis.comparison.statistics.bootstrap import Paired

    mine, theirs = of_scope
    if mine is None or theirs is None:
        return Paired(base, other)
    return Paired(base.filter(mine), other.filter(theirs)) if (mine == theirs).all() else None
