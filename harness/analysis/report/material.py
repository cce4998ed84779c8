"""Prepares runs for the sections of a report, with the data that several sections share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import polars as pl

from harness.analysis.comparison import Comparison
from harness.analysis.comparison.headlines import SHOWN
from harness.analysis.comparison.table import Line, lines, says_something_new
from harness.analysis.export.window import part_of
from harness.analysis.metrics.levels import holder_of_jobs, holders
from harness.analysis.report import palette, series
from harness.analysis.report.blocks import Key
from harness.analysis.report.marks import Mark, marks_of
from harness.analysis.report.reduction import per_pixel
from harness.base.errors import OptionError
from harness.base.text import counted, told_apart
from harness.plugins.measurement import Window
from harness.plugins.scopes import QUEUE, QUOTA
from harness.runs.epochs import Step, steps
from harness.runs.folder import reading
from harness.runs.run import Run

T = TypeVar("T")

_LONGEST_NAME = 100
_FURTHER = ("disruption.lost_of_allocated", "fairness.jain_share", "fairness.jain_slowdown")


class Lane(NamedTuple):
    """A series in charts, which stands for one quota or queue, or for all without a series of their own.

    Attributes:
        name: the displayed name, which is printable, short and unique.
        colour: the colour of the lane, which is the same in every chart.
        nominal: for each run, the lane's own quota for `Material.resource`; None without quotas.
    """

    name: str
    holders: Sequence[str]
    colour: str
    nominal: Sequence[int | None]


class Material:
    """Several runs of the same jobs, prepared for drawing.

    Args:
        command: the command line that makes the report; None if the report is made in Python.
        part: the span of time in which jobs are shown individually, as `FROM..TO`.

    Raises:
        InputError: a time of the part cannot be read.
        OptionError: the part does not have the form `FROM..TO`, or it contains no part of the run.

    Attributes:
        shifts: for each run, the time of its origin on the time axis. The time axis begins at the baseline's
            origin.
        windows: each run's own window, on the time axis.
        window: the span of the time axis, from the first submission to the end of the run that ends last.
        resource: the resource whose amounts charts show, which is the one that the baseline uses most.
        part: the span of time in which jobs are shown individually; None if no part was given.
    """

    def __init__(
        self, comparison: Comparison, *, command: str | None = None, part: str | None = None
    ) -> None:
        self.comparison = comparison
        self.command = command
        self.runs = comparison.runs
        self.names = distinct(comparison.names)
        self.shifts = comparison.pairs.shifts
        self.windows = [moved(run.window, shift) for run, shift in zip(self.runs, self.shifts, strict=True)]
        self.window = Window(
            min(window.start for window in self.windows), max(window.end for window in self.windows)
        )
        self.resource = comparison.fullest
        self.part = None if part is None else self._part(part)

    def _part(self, text: str) -> Window:
        since, dots, until = text.partition("..")
        if not dots:
            hint = "write FROM..TO, such as 1d..1d6h; either time may be left out"
            raise OptionError(f"part {text!r} is not understood", hint=hint)
        asked = f"within {text}"
        return part_of(self.runs[0], since or None, until or None, whole=self.window, asked=asked)

    @property
    def capacities(self) -> list[float | None]:
        """For each run, the mean capacity of `resource` over the run's own window, or None if unknown."""
        found: list[float | None] = []
        for run in self.runs:
            window, first = run.window, run.capacity.get(self.resource)
            whole = run.capacity_time(self.resource, window)
            span = window.end - window.start
            found.append(first if len(run.epochs) == 1 or not span else whole and whole / span)
        return found

    @property
    def capacity_steps(self) -> list[list[Step]]:
        """For each run, the capacity of `resource` over time, as steps on the time axis; see `drawn`."""
        return [
            self.drawn(run.capacity_steps(self.resource), window, shift)
            for run, window, shift in zip(self.runs, self.windows, self.shifts, strict=True)
        ]

    @cached_property
    def marks(self) -> list[list[Mark]]:
        """For each run, its cluster's changes within its own window, with times since its own origin."""
        return [
            [
                mark
                for mark in marks_of(run)
                if mark.begin < run.window.end and (mark.end is None or mark.end > run.window.start)
            ]
            for run in self.runs
        ]

    def nominal_steps(self, lanes: Iterable[Lane]) -> list[list[Step]]:
        """Returns, for each run, how the total quota of these lanes for `resource` changes over time.

        Times are on the time axis.
        """
        names = [name for lane in lanes for name in lane.holders]

        def own(cluster: Mapping[str, Any]) -> int | None:
            quotas = [cluster["queues"].get(name, {}).get("nominal", {}) for name in names]
            return total(each.get(self.resource) for each in quotas)

        found = []
        for run, window, shift in zip(self.runs, self.windows, self.shifts, strict=True):
            levels = steps(run.epochs, own)
            if any(each.amount is not None for each in levels):  # a lane counts as 0 while it has no quota
                levels = [Step(each.time, each.amount or 0) for each in levels]
            found.append(self.drawn(levels, window, shift))
        return found

    def drawn(self, levels: Sequence[Step], window: Window, shift: int) -> list[Step]:
        """Moves steps to the time axis. Steps after the run's end, and steps without a level, are left out.

        Times of steps are relative to the run's origin, which has the time `shift` on the time axis. The
        window is on the time axis.
        """
        on_axis = [Step(max(each.time + shift, self.window.start), each.amount) for each in levels]
        found = [each for each in on_axis if each.time < window.end] or on_axis[:1]
        return [
            each
            for each, after in zip(found, [*found[1:], None], strict=True)
            if each.amount is not None and (after is None or after.time > each.time)
        ]

    @cached_property
    def table(self) -> list[Line]:
        """The table of metrics over all jobs: the metrics of a comparison's table and a few more."""
        measured = {row.metric for row, _ in self.comparison.select()}
        wanted = [metric for metric in (*SHOWN, *_FURTHER) if metric in measured]
        every = lines(self.comparison, wanted, "all") if wanted else []
        found = [line for line in every if says_something_new(self.comparison, line.measured)]
        return sorted(found, key=lambda line: wanted.index(line.measured.metric))

    def lines(self, metric: str, scope: str = "all") -> list[Line]:
        """Returns the table lines of a metric, one for each scope and resource.

        The result is empty if the metric was not measured.
        """
        return lines(self.comparison, [metric], scope) if (metric, scope) in self._measured else []

    @cached_property
    def _measured(self) -> set[tuple[str, str]]:
        """The metrics that have values, paired with their scopes and with the kinds of these scopes."""
        known = {(row.metric, row.scope) for row, _ in self.comparison.select(scope=None)}
        return known | {(metric, scope.partition("=")[0]) for metric, scope in known}

    def of_runs(self, ask: Callable[[Run], T]) -> list[T]:
        """Returns the result of `ask` for each run.

        Raises:
            RunError: a run's table is damaged. The message names the run.
        """
        answers = []
        for run in self.runs:
            with reading(run.path):
                answers.append(ask(run))
        return answers

    @property
    def own_jobs(self) -> str:
        """A sentence for charts that cover all jobs of each run, even jobs that other runs lack.

        The text begins with a space. It is empty if all runs have the same jobs.
        """
        pairs = self.comparison.pairs
        if pairs.whole:
            return ""
        jobs = ", ".join(f"{name} {count:,}" for name, count in zip(self.names, pairs.jobs, strict=True))
        return f" Figures cover all jobs of each run ({jobs}); {pairs.count:,} of them are in all runs."

    @property
    def common_jobs(self) -> str:
        """A description of the jobs that all runs have; empty if all runs have the same jobs."""
        pairs = self.comparison.pairs
        return "" if pairs.whole else f"the {pairs.count:,} jobs that all runs have"

    @cached_property
    def jobs_of_queues(self) -> Sequence[Mapping[str, int]]:
        """For each run and queue, the number of jobs that all runs have and accept.

        Metrics of waits cover these jobs.
        """
        found, pairs = [], self.comparison.pairs
        ends = [each.jobs for each in self.comparison.shares] or [run.window.end for run in self.runs]
        for run, rows, refused, end in zip(self.runs, pairs.rows, pairs.refused, ends, strict=True):
            with reading(run.path):
                jobs = run.micros("jobs").select("queue", "submit_time").with_row_index("row").collect()
            common = jobs[rows].filter((pl.col("submit_time") <= end) & ~pl.col("row").is_in(refused))
            found.append(dict(common.group_by("queue").len().sort("queue").iter_rows()))
        return found

    @cached_property
    def lanes(self) -> list[Lane]:
        """A lane for each of the quotas or queues that hold the most of `resource`, and one for the others.

        The amounts of all runs are added up to find the largest.
        """
        sums: dict[str, int] = {holder.name: 0 for run in self.runs for holder in holders(run)}
        for window, changes in zip(self.windows, self._moves, strict=True):
            for holder, amount in series.used(changes, window).items():
                sums[holder] += amount
        ranked = sorted(sums, key=lambda name: (-sums[name], name))
        most = len(palette.QUEUES)
        alone, rest = ranked[:most], sorted(ranked[most:])
        names = [*alone, counted(len(rest), "other")] if rest else alone
        members = [[name] for name in alone] + ([rest] if rest else [])
        tones = [*palette.QUEUES[: len(alone)], palette.OTHER]
        nominal = [
            {each.name: each.nominal.get(self.resource) for each in holders(run) if each.nominal is not None}
            for run in self.runs
        ]
        return [
            Lane(name, own, tone.light, [total(each.get(holder) for holder in own) for each in nominal])
            for name, own, tone in zip(distinct(names), members, tones, strict=False)
        ]

    @cached_property
    def holder(self) -> str:
        """The word for what a lane represents: `quota`, or `queue` if no run has quotas."""
        known = any(holder.nominal is not None for run in self.runs for holder in holders(run))
        return QUOTA if known else QUEUE

    @property
    def places(self) -> Mapping[str, int]:
        """Maps the name of each quota, and of each queue without a quota, to the index of its lane."""
        return {holder: number for number, lane in enumerate(self.lanes) for holder in lane.holders}

    def lanes_of_jobs(self, run: Run) -> pl.Series:
        """Returns the index of each job's lane, in order of arrival."""
        holders_of = holder_of_jobs(run).cast(pl.String)  # a run may lack the holders of other runs
        return holders_of.replace_strict(list(self.places), list(self.places.values()), return_dtype=pl.Int32)

    @cached_property
    def held(self) -> list[list[float]]:
        """For each run, the mean amount of `resource` that each lane's jobs hold over the run's window."""
        found = []
        for window, changes in zip(self.windows, self._moves, strict=True):
            span = max(1, window.end - window.start)
            sums = series.used(changes, window)
            found.append([sum(sums.get(holder, 0) for holder in lane.holders) / span for lane in self.lanes])
        return found

    @property
    def run_keys(self) -> list[Key]:
        """The legend of charts that have a colour for each run."""
        tones, dashes = palette.RUNS, palette.DASHES
        return [
            Key(name, tones[place % len(tones)].light, dashes[place % len(dashes)], line=True)
            for place, name in enumerate(self.names)
        ]

    @property
    def lane_keys(self) -> list[Key]:
        """The legend of charts that have a colour for each lane."""
        return [Key(lane.name, lane.colour) for lane in self.lanes]

    def per_pixel(self, level: str, pixels: int, *, together: bool = False) -> list[pl.DataFrame]:
        """Returns the lowest, mean and highest level of each lane and pixel, for each run.

        A run's levels cover its own window. The results of all runs have the same time axis. See
        `reduction.per_pixel`.

        Args:
            level: one of `harness.analysis.report.series.LEVELS`.
            pixels: the number of pixels for `window`.
            together: whether to combine all lanes into a single series, whose number is 0. Otherwise, each
                lane is a series.
        """
        return self.reduced(
            [
                levels.select("series", "time", level=level)
                for levels in (self._together if together else self._apart)
            ],
            pixels,
        )

    def reduced(self, steps: Iterable[pl.DataFrame], pixels: int) -> list[pl.DataFrame]:
        """Applies `reduction.per_pixel` to each run's frame, on the common axis and within its window."""
        return [
            per_pixel(frame, self.window, pixels).filter(pl.col("time").is_between(window.start, window.end))
            for frame, window in zip(steps, self.windows, strict=True)
        ]

    def over_all(self, level: str, *, together: bool = False) -> list[pl.DataFrame]:
        """Returns the lowest, mean and highest level of each series over a run's whole window, for each run.

        Each frame has a row for every series that ever had a level.
        """
        several = self._together if together else self._apart
        return [
            per_pixel(levels.select("series", "time", level=level), window, 1)
            for window, levels in zip(self.windows, several, strict=True)
        ]

    @cached_property
    def _apart(self) -> list[pl.DataFrame]:
        return [series.levels(changes, self.places) for changes in self._moves]

    @cached_property
    def _together(self) -> list[pl.DataFrame]:
        return [series.levels(changes, dict.fromkeys(self.places, 0)) for changes in self._moves]

    @cached_property
    def _moves(self) -> list[pl.DataFrame]:
        return self.on_axis(self.of_runs(lambda run: series.moves(run, self.resource)))

    def on_axis(self, frames: Iterable[pl.DataFrame], *columns: str) -> list[pl.DataFrame]:
        """Converts the times in the frames of all runs to the time axis.

        The times are relative to each run's own origin.
        """
        times = pl.col(columns or ("time",))
        return [frame.with_columns(times + shift) for frame, shift in zip(frames, self.shifts, strict=True)]


def moved(window: Window, shift: int) -> Window:
    """Shifts the times of a window."""
    return Window(window.start + shift, window.end + shift)


def distinct(names: Iterable[str]) -> list[str]:
    """Prepares names for display: removes control characters, shortens the names, and makes them distinct."""
    return told_apart(names, _LONGEST_NAME)


def total(amounts: Iterable[int | None]) -> int | None:
    """Returns the sum of the known amounts, or None if no amount is known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
