"""What sections of a report are made from: the runs, and what several sections need of them, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import polars as pl

from harness.analysis.comparison import Comparison
from harness.analysis.comparison.headlines import SHOWN
from harness.analysis.comparison.table import Line, lines, says_something_new
from harness.analysis.export.window import part_of
from harness.analysis.metrics.levels import holders
from harness.analysis.report import palette, series
from harness.analysis.report.blocks import Key
from harness.analysis.report.reduction import per_pixel
from harness.base.errors import OptionError
from harness.base.text import told_apart
from harness.plugins.measurement import Window
from harness.plugins.scopes import QUEUE, QUOTA
from harness.runs.epochs import Step, steps
from harness.runs.folder import reading
from harness.runs.run import Run

T = TypeVar("T")

_LONGEST_NAME = 100
_FURTHER = (
    "disruption.lost_of_allocated",
    "fairness.jain_share",
    "fairness.jain_slowdown",
)


class Lane(NamedTuple):
    """What a chart shows as one: a holder, or all those that are too small to be shown by themselves.

    Attributes:
        name: for people, printable and short; no two lanes have the same.
        holders: by name.
        colour: the same in every chart.
        nominal: for each run how much of the charts' resource is their own; None without quotas.
    """

    name: str
    holders: Sequence[str]
    colour: str
    nominal: Sequence[int | None]


class Material:
    """Several runs of the same jobs, ready to be drawn.

    Args:
        comparison: the runs.
        command: the command line that makes the report, if there was one.
        part: the time that shows jobs one by one, as `FROM..TO`.

    Raises:
        InputError: a time of the part is none of the run.
        OptionError: the part is not understood, or nothing lies in it.

    Attributes:
        comparison: the runs, the baseline first.
        command: as given.
        runs: those of the comparison.
        names: what each run is called, printable.
        shifts: for each run what makes a time since its origin one on the axis of time, which begins at the
            baseline's origin.
        windows: for each run its own window, on the axis of time.
        window: from the first submission to the end of the run that ends last: the axis of time.
        resource: what charts of amounts show: the resource that the baseline uses most of.
        part: the time that shows jobs one by one; None if nobody asked.
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
            hint = "write FROM..TO, such as 1d..1d6h; either may be left out"
            raise OptionError(f"part {text!r} is not understood", hint=hint)
        asked = f"within {text}"
        return part_of(self.runs[0], since or None, until or None, whole=self.window, asked=asked)

    @property
    def capacities(self) -> list[float | None]:
        """For each run how much of `resource` there is, if that is known: the mean over its own window."""
        found: list[float | None] = []
        for run in self.runs:
            window, first = run.window, run.capacity.get(self.resource)
            whole = run.capacity_time(self.resource, window)
            span = window.end - window.start
            found.append(first if len(run.epochs) == 1 or not span else whole and whole / span)
        return found

    @property
    def capacity_steps(self) -> list[list[Step]]:
        """For each run since when there is how much of `resource`, on the axis of time; see `_drawn`."""
        return [
            self._drawn(run.capacity_steps(self.resource), window, shift)
            for run, window, shift in zip(self.runs, self.windows, self.shifts, strict=True)
        ]

    def nominal_steps(self, lanes: Iterable[Lane]) -> list[list[Step]]:
        """For each run since when how much of `resource` is the lanes' own together, on the axis of time."""
        names = [name for lane in lanes for name in lane.holders]

        def own(cluster: Mapping[str, Any]) -> int | None:
            quotas = [cluster["queues"].get(name, {}).get("nominal", {}) for name in names]
            return total(each.get(self.resource) for each in quotas)

        found = []
        for run, window, shift in zip(self.runs, self.windows, self.shifts, strict=True):
            levels = steps(run.epochs, own)
            if any(
                each.amount is not None for each in levels
            ):  # whoever has none for a while has 0 of its own
                levels = [Step(each.time, each.amount or 0) for each in levels]
            found.append(self._drawn(levels, window, shift))
        return found

    def _drawn(self, levels: Sequence[Step], window: Window, shift: int) -> list[Step]:
        """Steps within a window on the axis of time, the first at its beginning, without those of None."""
        on_axis = [Step(max(each.time + shift, self.window.start), each.amount) for each in levels]
        found = [each for each in on_axis if each.time < window.end] or on_axis[:1]
        return [
            each
            for each, after in zip(found, [*found[1:], None], strict=True)
            if each.amount is not None and (after is None or after.time > each.time)
        ]

    @cached_property
    def table(self) -> list[Line]:
        """What a comparison shows and some further metrics over all jobs, judged as one table."""
        measured = {row.metric for row, _ in self.comparison.select()}
        wanted = [metric for metric in (*SHOWN, *_FURTHER) if metric in measured]
        every = lines(self.comparison, wanted, "all") if wanted else []
        found = [line for line in every if says_something_new(self.comparison, line.measured)]
        return sorted(found, key=lambda line: wanted.index(line.measured.metric))

    def lines(self, metric: str, scope: str = "all") -> list[Line]:
        """A metric as comparisons show it, a line a scope and resource; nothing where it was not measured."""
        return lines(self.comparison, [metric], scope) if (metric, scope) in self._measured else []

    @cached_property
    def _measured(self) -> set[tuple[str, str]]:
        """Metrics with the scopes, and kinds of scopes, that have values."""
        known = {(row.metric, row.scope) for row, _ in self.comparison.select(scope=None)}
        return known | {(metric, scope.partition("=")[0]) for metric, scope in known}

    def of_runs(self, ask: Callable[[Run], T]) -> list[T]:
        """What is asked of every run.

        Raises:
            RunError: a table of a run is damaged; names the run.
        """
        answers = []
        for run in self.runs:
            with reading(run.path):
                answers.append(ask(run))
        return answers

    @property
    def own_jobs(self) -> str:
        """A sentence, after a space, that says of what is shown of each run that it is of all its own jobs.

        Nothing where all runs have the same jobs.
        """
        pairs = self.comparison.pairs
        if pairs.whole:
            return ""
        jobs = ", ".join(f"{name} {count:,}" for name, count in zip(self.names, pairs.jobs, strict=True))
        return f" Of all jobs of each run ({jobs}); {pairs.count:,} of them are in all runs."

    @property
    def common_jobs(self) -> str:
        """The jobs that waits, slowdowns and lost work are compared by, in words; see `own_jobs`."""
        pairs = self.comparison.pairs
        return "" if pairs.whole else f"the {pairs.count:,} jobs that all runs have"

    @cached_property
    def jobs_of_queues(self) -> Sequence[Mapping[str, int]]:
        """For each run queue -> how many of its jobs waits are of: those that all runs have and take."""
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
        """The holders that held most of `resource`, over all runs, and the rest as one."""
        sums: dict[str, int] = {holder.name: 0 for run in self.runs for holder in holders(run)}
        for window, changes in zip(self.windows, self._moves, strict=True):
            for holder, amount in series.used(changes, window).items():
                sums[holder] += amount
        ranked = sorted(sums, key=lambda name: (-sums[name], name))
        most = len(palette.QUEUES)
        alone, rest = ranked[:most], sorted(ranked[most:])
        names = [*alone, others(len(rest))] if rest else alone
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
        """What lanes are, in a word: quotas, or queues where no run has any quota."""
        known = any(holder.nominal is not None for run in self.runs for holder in holders(run))
        return QUOTA if known else QUEUE

    @property
    def places(self) -> Mapping[str, int]:
        """Holder -> the number of its lane."""
        return {holder: number for number, lane in enumerate(self.lanes) for holder in lane.holders}

    @cached_property
    def held(self) -> list[list[float]]:
        """For each run how much of `resource` each lane held, on average over the run's own window."""
        found = []
        for window, changes in zip(self.windows, self._moves, strict=True):
            span = max(1, window.end - window.start)
            sums = series.used(changes, window)
            found.append([sum(sums.get(holder, 0) for holder in lane.holders) / span for lane in self.lanes])
        return found

    @property
    def run_keys(self) -> list[Key]:
        """The legend of charts that tell runs apart."""
        tones, dashes = palette.RUNS, palette.DASHES
        return [
            Key(name, tones[place % len(tones)].light, dashes[place % len(dashes)], line=True)
            for place, name in enumerate(self.names)
        ]

    @property
    def lane_keys(self) -> list[Key]:
        """The legend of charts that tell lanes apart."""
        return [Key(lane.name, lane.colour) for lane in self.lanes]

    def per_pixel(self, level: str, pixels: int, *, together: bool = False) -> list[pl.DataFrame]:
        """For each run what `reduction.per_pixel` says, on one axis, within its own window.

        Args:
            level: one of `harness.analysis.report.series.LEVELS`.
            pixels: how many there are for `window`.
            together: all lanes as one series, number 0; else one series a lane.
        """
        return self.reduced(
            [
                levels.select("series", "time", level=level)
                for levels in (self._together if together else self._apart)
            ],
            pixels,
        )

    def reduced(self, steps: Iterable[pl.DataFrame], pixels: int) -> list[pl.DataFrame]:
        """What `per_pixel` makes of a frame of each run, times on the axis, within the run's own window."""
        return [
            per_pixel(frame, self.window, pixels).filter(pl.col("time").is_between(window.start, window.end))
            for frame, window in zip(steps, self.windows, strict=True)
        ]

    def over_all(self, level: str, *, together: bool = False) -> list[pl.DataFrame]:
        """For each run the same over its own window as a whole: a row a series that ever had a level."""
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
        """A frame of each run with times on the axis of time.

        Args:
            frames: with times since each run's own origin.
            columns: which are times; `time` by default.
        """
        times = pl.col(columns or ("time",))
        return [frame.with_columns(times + shift) for frame, shift in zip(frames, self.shifts, strict=True)]


def moved(window: Window, shift: int) -> Window:
    """A window with its times so much later."""
    return Window(window.start + shift, window.end + shift)


def distinct(names: Iterable[str]) -> list[str]:
    """Names for people: without control characters, not too long for a page, and no two the same."""
    return told_apart(names, _LONGEST_NAME)


def others(count: int) -> str:
    """What so many that are shown as one are called."""
    return "1 other" if count == 1 else f"{count:,} others"


def total(amounts: Iterable[int | None]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None
