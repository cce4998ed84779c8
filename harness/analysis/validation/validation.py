"""Defines `Validation`, which compares a simulation with a record, as values, JSON and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.validation.errors import GROUPS, Errors, by_group, errors_of, is_short
from harness.analysis.validation.findings import LATE, Finding, findings_of
from harness.analysis.validation.load import Bins, Level, levels
from harness.analysis.validation.objects import use_of
from harness.analysis.validation.pairs import pairs_of
from harness.runs.recorded import notes_of
from harness.runs.run import Run

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.trace.trace import Trace

_LARGEST = 10
_CLOSE, _NEAR = 0.9, 0.6
_RANKED = 0.8
_UNRELATED = 0.3
"""Below this rank correlation, waits are unrelated, so the simulation does not show which jobs wait."""
_MOST_MORE = 0.5
"""If total waits differ by more than this fraction of the recorded waits, the verdict is poor."""
_TIMES = 3
_POOR = "poor: the simulation behaves differently from the recorded cluster"


class Difference(NamedTuple):
    """A job whose start differs much between the record and the simulation.

    Attributes:
        recorded, simulated: the first starts of the job, in microseconds since the origin.
        error: the simulated start minus the recorded start.
        because: the findings that cover the time between both starts, in sentences. It is empty if there are
            none.
    """

    job: str
    queue: str
    recorded: int
    simulated: int
    error: int
    because: tuple[str, ...]


@dataclass
class Validation:
    """A record compared with a simulation of the same trace."""

    trace: Trace
    cluster: Cluster
    recorded: Run
    simulated: Run

    @property
    def resource(self) -> str:
        """The resource for sizes and use: GPUs if jobs request any, else cpu, else the first resource."""
        names = self.recorded.resources
        gpus = [name for name in names if "gpu" in name]
        return next((name for name in (*gpus, "cpu", *names) if name in names), "")

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The jobs of both runs, as `harness.analysis.validation.pairs.pairs_of` returns them."""
        return pairs_of(self.recorded, self.simulated, self.resource)

    @cached_property
    def errors(self) -> Errors:
        """The errors over all jobs."""
        return errors_of(self.pairs, short=self.short)

    @property
    def short(self) -> bool:
        """True if the record is so short that an error of ten minutes would be large."""
        return is_short(self.recorded.window)

    @cached_property
    def findings(self) -> list[Finding]:
        """The reasons for the differences, the most important first."""
        return findings_of(self.trace, self.cluster, self.recorded, self.simulated, self.pairs)

    @cached_property
    def clock(self) -> Clock:
        """The formatter of times."""
        return Clock(self.recorded)

    def told(self, finding: Finding) -> str:
        """Returns a finding as a sentence."""
        start, end = self.clock.text(finding.start), self.clock.text(finding.end)
        return finding.told.replace("{start}", start).replace("{end}", end)

    @cached_property
    def use(self) -> list[tuple[int, float, float]]:
        """The mean use of `resource` over time, in the record and in the simulation.

        There is an entry for each of many time spans: its beginning in microseconds, and the two means.
        """
        bins, name = Bins.of(self.recorded.window), self.resource
        several: list[list[Level]] = []
        for run in (self.recorded, self.simulated):
            use = use_of(run, (name,))
            several.append(levels(bins, (span for spans in use.held.values() for span in spans), 1))
        return [
            (bins.begin(number), one.mean[0], other.mean[0])
            for number, (one, other) in enumerate(zip(*several, strict=True))
        ]

    @property
    def use_difference(self) -> float | None:
        """The mean difference in use, as a fraction of the use in the record."""
        used = sum(one for _, one, _ in self.use)
        return sum(abs(one - other) for _, one, other in self.use) / used if used else None

    def largest(self) -> Iterator[Difference]:
        """The jobs whose starts differ most, with the findings that may explain the difference."""
        order = self.pairs.filter(pl.col("error").is_not_null()).sort(
            pl.col("error").abs(), descending=True, maintain_order=True
        )
        for row in order.head(_LARGEST).iter_rows(named=True):
            if not row["error"]:
                return
            span = sorted((row["recorded"], row["simulated"]))
            because = [
                each
                for each in self.findings
                if each.kind != LATE and each.covers(row["submit"], span[1]) and self._concerns(each, row)
            ]
            yield Difference(
                row["job_id"],
                row["queue"],
                row["recorded"],
                row["simulated"],
                row["error"],
                tuple(self.told(each) for each in because),
            )

    def _concerns(self, finding: Finding, row: dict[str, Any]) -> bool:
        quota_of = self.simulated.info["cluster"]["quota_of"]
        return finding.object != "queue" or quota_of.get(row["queue"], row["queue"]) == finding.name

    @property
    def verdict(self) -> str:
        """The verdict on the simulation, as a sentence."""
        found = self.errors
        share = found.within_tenth if self.short else found.within_ten_minutes
        if found.absolute is None or share is None:
            return "no verdict: no job that started in the record starts in the simulation"
        times = found.simulated_wait / max(1, found.recorded_wait)
        alike = found.simulated_wait == found.recorded_wait
        unrelated = found.rank is not None and found.rank < _UNRELATED
        # If all waits are equal in one of the two, ranks say nothing, and only starts can agree.
        ranked = share == 1 if found.rank is None else found.rank >= _RANKED
        most_start = found.unstarted <= (1 - _NEAR) * found.jobs
        if unrelated or (abs(times - 1) > _MOST_MORE and not alike):
            word = _POOR
        elif share >= _CLOSE and (ranked or found.within_tenth == 1):
            word = "close: the simulated waits are close to the recorded waits"
        elif share >= _NEAR or (ranked and most_start):
            word = "fair: many of the simulated waits are close to the recorded waits, but not all"
        else:
            word = _POOR
        if times > _TIMES:
            total = f"{times:.0f} times as long in total"
        elif abs(times - 1) < 0.005 or alike:
            total = "equally long in total"
        else:
            total = f"{abs(times - 1):.0%} {'longer' if times > 1 else 'shorter'} in total"
        return f"{word}; {found.told}; {'their ' if found.unstarted else ''}waits are {total}"

    def groups(self) -> Iterator[tuple[str, list[tuple[str, Errors]]]]:
        """The ways to divide jobs into groups, with the errors of each group."""
        for group in GROUPS:
            yield group, list(by_group(self.pairs, group, short=self.short))

    def notes(self) -> Sequence[str]:
        """Notes on the record."""
        return list(notes_of(self.recorded.info))

    def to_json(self) -> dict[str, Any]:
        """Returns the validation as plain values, with times and durations in microseconds."""
        return {
            "schema": "1",
            "trace": self.recorded.info["trace"]["name"],
            "policy": self.simulated.info["policy"],
            "runs": {"recorded": str(self.recorded.path), "simulated": str(self.simulated.path)},
            "verdict": self.verdict,
            "errors": self.errors.to_json(),
            "groups": {
                group: [{"name": name, **errors.to_json()} for name, errors in parts]
                for group, parts in self.groups()
            },
            "use": {
                "resource": self.resource,
                "difference": self.use_difference,
                "columns": ["start", "recorded", "simulated"],
                "rows": [list(row) for row in self.use],
            },
            "findings": [{**each.to_json(), "told": self.told(each)} for each in self.findings],
            "largest": [{**each._asdict(), "because": list(each.because)} for each in self.largest()],
            "notes": list(self.notes()),
        }
