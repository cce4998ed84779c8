"""Compares two runs of the same jobs: the first decision that differs, and the jobs that gain or lose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import polars as pl

from harness.analysis.comparison import Comparison
from harness.analysis.comparison.head import head_lines, head_markdown
from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.explain import units_of
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.sentences import Sentences
from harness.base.markdown import pipe_table
from harness.base.text import aligned, printable
from harness.base.units import format_duration
from harness.runs.folder import reading
from harness.runs.run import Run

MOST = 10
"""The default number of jobs and decisions to show."""

_FOR_THE_RECORD = ("refuse", "nominate", "unnominate")
"""Actions without effect. Policies describe them in different words even if their decisions are equal."""

_SAME = ["time", "action", "job_id", "pods", "pod", "by", "node"]
"""Two decisions are equal if these columns have equal values."""

_CHANGES = ("first_start", "finish", "lost")


class Parting(NamedTuple):
    """The point at which two runs diverge.

    Attributes:
        time: the first time at which the decisions differ, in microseconds since the first run's origin.
        alike: how many decisions of the first run came before that time.
        first, second: the decisions at that time that only one of the runs has, as sentences.
    """

    time: int
    alike: int
    first: list[str]
    second: list[str]


class Difference:
    """The differences between two runs.

    The runs must have the same jobs, but their clusters may differ.

    Attributes:
        head: the differences between the runs' plugins, settings, traces and clusters.
        pairs: the jobs that both runs have; all other jobs are left out.

    Raises:
        RunError: the runs have too few jobs in common, or are the same run.
    """

    def __init__(self, first: Run, second: Run) -> None:
        comparison = Comparison([first, second])
        self.names, self.head, self.pairs = comparison.names, comparison.head, comparison.pairs
        self._runs = (first, second)
        self._clock = Clock(first)

    @cached_property
    def parting(self) -> Parting | None:
        """The point at which the runs diverge, or None if all their decisions are equal.

        Decisions without effect (refusals, nominations) are ignored. Admissions are compared only if both
        runs have some, because a policy that only binds pods admits no jobs.
        """
        with reading(self._runs[1].path):
            several = [
                run.micros("decisions")
                .drop("detail", "flavors")
                .with_columns(pl.col("time") + self.pairs.shifts[place])
                .filter(self._is_common(place, pl.col("job")))
                .collect()
                for place, run in enumerate(self._runs)
            ]
        admits = all((rows["action"] == "admit").any() for rows in several)
        passed = [*_FOR_THE_RECORD, *(() if admits else ("admit", "start"))]
        several = [
            rows.filter(~pl.col("action").is_in(passed)).with_columns(
                again=pl.int_range(pl.len()).over(_SAME)  # numbers equal decisions at the same time
            )
            for rows in several
        ]
        key = [*_SAME, "again"]
        alone = [
            mine.join(theirs, on=key, how="anti", nulls_equal=True)
            for mine, theirs in (several, reversed(several))
        ]
        time = pl.concat([rows["time"] for rows in alone]).min()
        if time is None:
            return None
        assert isinstance(time, int)
        alike = several[0].filter(pl.col("time") < time).height
        said = [
            self._sentences(run, rows.filter(pl.col("time") == time)["seq"].sort().to_list())
            for run, rows in zip(self._runs, alone, strict=True)
        ]
        return Parting(time, alike, *said)

    @cached_property
    def _arrivals(self) -> tuple[pl.Series, pl.Series]:
        """The submission time of each common job in each run, in microseconds since that run's origin."""
        with reading(self._runs[1].path):
            first, second = (
                run.micros("jobs").select("submit_time").collect().to_series().gather(rows)
                for run, rows in zip(self._runs, self.pairs.rows, strict=True)
            )
        return first, second

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """The changes of each job, in order of arrival.

        The columns are:

        - `job_id` and `queue`.
        - `first_start` and `finish`: how much later the job starts or finishes in the second run, relative to
          its submission. The values are in microseconds. They are null if the job does not start or finish in
          one of the runs.
        - `lost`: how much more work the job loses to preemptions in the second run.
        - `preemptions`: how many more preemptions the job has in the second run.
        - `finished`: 1 if only the second run finishes the job, -1 if only the first run does.
        """
        columns = [
            "job_id", "queue", "submit_time", "start_time", "finish_time", "progress_lost", "preemptions",
        ]  # fmt: skip
        with reading(self._runs[1].path):
            first, second = (
                run.micros("jobs").select(columns).collect()[rows]
                for run, rows in zip(self._runs, self.pairs.rows, strict=True)
            )
        both = pl.concat([first, second.select(pl.all().name.suffix("_second"))], how="horizontal")

        def change(column: str) -> pl.Expr:
            return pl.col(f"{column}_second") - pl.col(column)

        def finished(column: str) -> pl.Expr:
            return pl.col(column).is_not_null().cast(pl.Int64)

        return both.select(
            "job_id",
            "queue",
            first_start=change("start_time") - change("submit_time"),
            finish=change("finish_time") - change("submit_time"),
            lost=change("progress_lost"),
            preemptions=change("preemptions").cast(pl.Int64),
            finished=finished("finish_time_second") - finished("finish_time"),
        )

    @cached_property
    def queues(self) -> pl.DataFrame:
        """The changes of each queue, sorted by name.

        The columns are:

        - `queue` and `jobs`.
        - `first_start` and `finish`: the mean change, rounded to microseconds.
        - `lost`, `preemptions` and `finished`: the sum of the changes.
        - `earlier` and `later`: how many jobs finish earlier or later.
        """
        return (
            self.jobs.group_by("queue")
            .agg(
                pl.len().alias("jobs"),
                pl.col("first_start", "finish").mean().round().cast(pl.Int64),
                pl.col("lost").cast(pl.Int128).sum(),
                pl.col("preemptions", "finished").sum(),
                earlier=(pl.col("finish") < 0).sum(),
                later=(pl.col("finish") > 0).sum(),
            )
            .sort("queue")
        )

    def extremes(self, most: int = MOST) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Returns two tables: the jobs that finish earlier by the most, and those that finish later."""
        moved = self.jobs.with_row_index("row").filter(pl.col("finish") != 0)
        most = min(most, moved.height)  # polars accepts only 64-bit numbers
        gained = moved.filter(pl.col("finish") < 0).sort("finish", "row").head(most)
        lost = moved.filter(pl.col("finish") > 0).sort("finish", "row", descending=[True, False]).head(most)
        return gained.drop("row"), lost.drop("row")

    def __str__(self) -> str:
        """Returns the text that `harness diff` prints."""
        return self.text()

    def text(self, most: int = MOST, *, markdown: bool = False, width: int | None = None) -> str:
        """Describes the difference: where the runs diverge, and which jobs gain or lose.

        The text lists at most `most` jobs and decisions. A `width` of None means no limit.
        """
        first, second = self.names
        table = partial(_table, markdown=markdown, width=width)
        head = list((head_markdown if markdown else head_lines)(self.head))
        parts = ["\n".join([*head, *(printable(line) for line in self._parted(most))])]
        if self.parting is not None:
            rows = []
            for row in self.queues.iter_rows(named=True):
                moved = [f"{row['earlier']:,}", f"{row['later']:,}"]
                rows.append([row["queue"], f"{row['jobs']:,}", *_cells(row), *moved])
            titles = [
                "queue", "jobs", "first start", "finish", "lost work", "preemptions", "earlier", "later",
            ]  # fmt: skip
            parts.append(table([titles, *rows]))
            gained, lost = self.extremes(most)
            for title, jobs in (("gain most", gained), ("lose most", lost)):
                if not jobs.is_empty():
                    rows = [[row["job_id"], row["queue"], *_cells(row)] for row in jobs.iter_rows(named=True)]
                    titles = [title, "queue", "first start", "finish", "lost work", "preemptions"]
                    parts.append(table([titles, *rows]))
            remarks = [
                f"changes from {first} to {second}: + means later or more; queues show means over their jobs"
            ]
            only = {1: second, -1: first}
            for sign, name in only.items():
                count = (self.jobs["finished"] == sign).sum()
                if count:
                    remarks.append(f"{count:,} jobs finish only in {name}")
            remarks += self._left_out()
            parts.append("\n".join(printable(remark) for remark in remarks))
        elif left_out := list(self._left_out()):
            parts.append("\n".join(printable(remark) for remark in left_out))
        return "\n\n".join(parts)

    def to_json(self, most: int = MOST) -> dict[str, Any]:
        """Returns the difference as plain values; times and changes are in microseconds."""
        gained, lost = self.extremes(most)
        return {
            "schema": "1",
            "runs": [
                {
                    "name": name,
                    "path": str(run.path),
                    "differences": [each.to_json() for each in found],
                    "jobs_left_out": jobs - self.pairs.count,
                }
                for name, run, found, jobs in zip(
                    self.names, self._runs, self.head.distinctions, self.pairs.jobs, strict=True
                )
            ],
            "jobs": self.pairs.count,
            "parting": None if self.parting is None else self.parting._asdict(),
            "queues": self.queues.to_dicts(),
            "gained": gained.to_dicts(),
            "lost": lost.to_dicts(),
        }

    def _is_common(self, place: int, job: pl.Expr) -> pl.Expr:
        return pl.lit(value=True) if self.pairs.whole else job.is_in(self.pairs.rows[place].implode())

    def _left_out(self) -> Iterator[str]:
        for name, jobs in zip(self.names, self.pairs.jobs, strict=True):
            if jobs > self.pairs.count:
                yield f"left out: jobs that only {name} has, {jobs - self.pairs.count:,}"
        first, second = self._arrivals
        if not first.equals(second + self.pairs.shifts[1]):
            yield "arrivals differ, so starts and ends are measured from each job's submission"

    def _parted(self, most: int) -> Iterator[str]:
        parting = self.parting
        if parting is None:
            yield f"{self.names[0]} and {self.names[1]} make the same decisions to the end"
            return
        yield (
            f"{self.names[0]} and {self.names[1]} diverge at {self._clock.text(parting.time)}, "
            f"after {parting.alike:,} equal decisions"
        )
        for name, said in zip(self.names, (parting.first, parting.second), strict=True):
            if not said:
                yield f"  {name} makes no other decision at that time"
            for sentence in said[:most]:
                yield f"  {name} alone: {sentence}"
            if len(said) > most:
                yield f"  {name} alone: … and {len(said) - most:,} more"

    def _sentences(self, run: Run, numbers: Sequence[int]) -> list[str]:
        with reading(run.path):
            rows = run.micros("decisions").filter(pl.col("seq").is_in(list(numbers))).collect()
        units, clock = units_of(run), Clock(run)
        histories = Histories(run, units)
        said = []
        for row in rows.iter_rows(named=True):
            job = histories.row(row["job_id"])
            (event,) = histories.events([row])
            about = Sentences(units, job["queue"], job["priority"], job["pods"], clock.text).about(event)
            said.append(f"job {row['job_id']} of queue {row['queue']}: {about}")
        return said


def _cells(row: dict[str, Any]) -> list[str]:
    changes = [_change(row[name]) for name in _CHANGES]
    return [*changes, f"{row['preemptions']:+,}" if row["preemptions"] else "0"]


def _change(microseconds: int | None) -> str:
    if microseconds is None:
        return "-"
    return f"{'+' if microseconds > 0 else ''}{format_duration(microseconds)}"


def _table(rows: Sequence[Sequence[str]], *, markdown: bool, width: int | None) -> str:
    left = (0, 1) if rows[0][1] == "queue" else (0,)
    return "\n".join(pipe_table(rows, left=left)) if markdown else aligned(rows, left=left, width=width)
