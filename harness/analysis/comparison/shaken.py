"""Compares runs over twins of the trace, with a paired interval for every metric.

All runs are replayed on the same twins (`harness.trace.shake`). The module `comparison.paired` computes means
and differences, even if some twins have no value. An interval covers only small shifts of this trace's
arrivals, so it says nothing about other months.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from harness.analysis.comparison.changes import Change, Evidence, Ground, Verdict, gates
from harness.analysis.comparison.coarse import SMALLER, why_coarse
from harness.analysis.comparison.missing import Lack, lack_of, number
from harness.analysis.comparison.one_replay import measurements_of
from harness.analysis.comparison.paired import GEOMETRIC, Paired, mean_of
from harness.analysis.metrics.shared_window import Shared, shared_by
from harness.base.errors import RunError
from harness.runs.measuring import Key, key_of

if TYPE_CHECKING:
    from harness.plugins.measurement import Measurement
    from harness.runs.run import Run
    from harness.trace.shake import Shake


class Shaken:
    """The measurements of runs over several twins.

    The baseline's run and twins come first. `shared` says whether twins with the same number have equal
    arrivals and can therefore share a window.

    Raises:
        RunError: a twin was not measured over the shared window.
    """

    def __init__(
        self, runs: Sequence[Run], shake: Shake, twins: Sequence[Sequence[Run]], *, shared: bool
    ) -> None:
        self._shake, self._shared, self._first = shake, shared, runs[0]
        self._own = [[measurements_of(twin) for twin in of_run] for of_run in twins]
        self._tables = self._own
        if shared:
            of_numbers = [shared_by(each) for each in zip(*twins, strict=True)]
            self._tables = [
                [_over(*each) for each in zip(of_run, tables, shares, strict=True)]
                for of_run, tables, shares in zip(
                    twins, self._own, zip(*of_numbers, strict=True), strict=True
                )
            ]
        self._known: dict[Key, Paired] = {}

    def own(self, place: int) -> dict[Key, Measurement]:
        """Returns a run's mean values over the twins' own windows.

        The result contains only the metrics whose values differ from the values over the shared windows.
        """
        tables, own = self._tables[place], self._own[place]
        differing = dict.fromkeys(
            key for table, other in zip(tables, own, strict=True) for key in other if table[key] != other[key]
        )
        found = {}
        for key in differing:
            values = [value for table in own if (value := number(table, key)) is not None]
            mean = mean_of(values, ratio=self.paired(key).ratio and min(values, default=0) > 0)
            found[key] = _as_one([table[key] for table in own if key in table], mean)
        return found

    @cached_property
    def measured(self) -> list[dict[Key, Measurement]]:
        """The measurements of each run, as means over its twins."""
        return [self._means(place) for place in range(len(self._tables))]

    def outcome(self, place: int) -> dict[Key, list[float | None]]:
        """Returns the values of every metric of a run, with one value for each twin."""
        tables = self._tables[place]
        return {key: [number(table, key) for table in tables] for key in _keys(tables)}

    def lack(self, measured: Measurement, place: int) -> Lack:
        """Returns how many of a run's twins have no value of a metric."""
        return self.paired(key_of(measured)).lacks[place]

    def testable(self, measured: Measurement) -> bool:
        """Returns True, because twins can test every metric."""
        return bool(measured.metric)

    def evidence(self, measured: Measurement, place: int) -> Evidence:
        """Returns the evidence for a run's difference from the baseline."""
        return self.paired(key_of(measured)).evidence(place)

    def remarks(self, changes: Iterable[Change], tests: str) -> Iterator[str]:
        """Yields notes that explain the values, the intervals and the missing verdicts of these changes.

        `tests` is a clause about the correction of p, such as `corrected for 9 tests, Holm`.
        """
        several = list(changes)
        yield f"values: means over {self._shake.told()}; {GEOMETRIC}"
        coarse = why_coarse(self._first, self._shake)
        if coarse:
            yield f"{coarse}: the twins are different traces, not variations of this trace; {SMALLER}"
        if not self._shared and len(self._tables) > 1:
            yield "arrivals differ, so each twin is measured over its own window"
        if any(change.interval is not None and not change.exact for change in several):
            yield (
                "[95 % interval]: Student's t of paired differences (of logarithms if means are "
                "geometric); intervals cover this trace, not other months"
            )
            yield gates(tests)
        if any(change.ground is Ground.FEW and change.verdict is Verdict.OPEN for change in several):
            yield "?: no verdict, because fewer than 2 twins have a value in both runs"

    def _means(self, place: int) -> dict[Key, Measurement]:
        tables = self._tables[place]
        found = {}
        for key in _keys(tables):
            rows = [table[key] for table in tables if key in table]
            found[key] = _as_one(rows, self.paired(key).mean(place))
        return found

    def paired(self, key: Key) -> Paired:
        """Returns the values of a metric over the twins, with their means and differences."""
        if key not in self._known:
            of_runs = [[number(table, key) for table in tables] for tables in self._tables]
            lacks = [lack_of(key, tables) for tables in self._tables]
            rows = (table[key] for tables in self._tables for table in tables if key in table)
            self._known[key] = Paired(of_runs, lacks, next(rows).unit)
        return self._known[key]


def _as_one(rows: Sequence[Measurement], mean: float | None) -> Measurement:
    """Combines the twins' values into their mean, which is a lower bound if any of the values is one."""
    least = {row.at_least for row in rows}
    return rows[0]._replace(value=mean, at_least=None if None in least else True in least)


def _over(twin: Run, own: dict[Key, Measurement], shared: Shared) -> dict[Key, Measurement]:
    """Returns a twin's measurements, with those over the shared window in place of the twin's own."""
    if shared.is_own(twin):
        return own
    rows = twin.windows.get(shared.key)
    if rows is None:
        raise RunError(
            f"{twin.path} was not measured over the window that these twins share",
            hint="harness.compare(runs, shake=N) makes twins that are measured over this window",
        )
    return {**own, **{key_of(row): row for row in rows if key_of(row) in own}}


def _keys(tables: Sequence[dict[Key, Measurement]]) -> list[Key]:
    return list(dict.fromkeys(key for table in tables for key in table))
