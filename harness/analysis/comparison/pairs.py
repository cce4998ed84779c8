"""Finds the jobs that several runs have in common, by id, number of pods, requests and duration.

A job may arrive at different times in the runs, for example because arrivals are scaled. Comparisons by job
ignore all jobs that a run lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from operator import or_

import polars as pl

from harness.analysis.metrics.shared_window import Shared, shared_by
from harness.base.errors import RunError
from harness.runs.folder import reading
from harness.runs.refused import rejected_at_arrival
from harness.runs.run import Run

_REQUEST = "request."
_SAME = ("pods", "duration")


class Pairs:
    """The jobs that several runs have in common.

    Attributes:
        count: how many jobs are in all runs.
        jobs: the number of jobs in each run.
        rows: for each run, the rows of the common jobs in `jobs.parquet`, in the baseline's order of arrival.
        same_arrivals: whether the same jobs arrive at the same times in all runs. A run that was stopped
            early may lack the last jobs.
        shifts: for each run, the time from the baseline's origin to the run's origin, in microseconds. Add it
            to a time of the run to compare this time with a time of the baseline. It differs from 0 if the
            runs replay different windows of a trace. The shift is 0 if all common jobs arrive equally long
            after the two origins, or if only one of the two traces has timestamps.
        know_requests: whether all runs record the requests of their jobs, so that requests were compared.

    Raises:
        RunError: fewer than half of the jobs in the smaller run are also in the other run. The message says
            what differs.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        if len(runs) == 1:
            self._alone(runs[0])
            return
        tables = [_jobs(run) for run in runs]
        base = tables[0]
        self.jobs = [table.height for table in tables]
        self.know_requests = all(any(name.startswith(_REQUEST) for name in each.columns) for each in tables)
        found = [_Pair(base, table, requests=self.know_requests) for table in tables[1:]]
        _check(runs, self.jobs, found)
        self.rows = _common(base.height, found)
        self.count = len(self.rows[0])
        if 2 * self.count < min(self.jobs):
            raise RunError(
                f"these {len(runs)} runs have only {self.count:,} jobs in common; "
                f"the smallest run has {min(self.jobs):,}",
                hint=f"compare each of them with {runs[0].path} alone",
            )
        times = [table["submit_time"].gather(rows) for table, rows in zip(tables, self.rows, strict=True)]
        first = pl.int_range(self.count, dtype=pl.UInt32, eager=True)
        self.shifts = [_shift(runs[0], run, times[0], time) for run, time in zip(runs, times, strict=True)]
        stopped = [run.cut_at is not None for run in runs]
        self.same_arrivals = all(
            (rows == first).all() and (time == times[0]).all() and (jobs == max(self.jobs) or early)
            for rows, time, jobs, early in zip(self.rows, times, self.jobs, stopped, strict=True)
        )

    def _alone(self, run: Run) -> None:
        """Sets the attributes of a single run without reading its files, because all jobs are common."""
        self.count = int(run.info["outcome"]["jobs"])
        self.jobs = [self.count]
        self.rows = [pl.int_range(self.count, dtype=pl.UInt32, eager=True)]
        self.shifts = [0]
        self.same_arrivals = self.know_requests = True

    @cached_property
    def refused(self) -> list[list[int]]:
        """For each run, the rows of the jobs that at least one of the runs rejected on arrival."""
        of_runs = [rejected_at_arrival(run) for run in self._runs]
        if all(refused.is_empty() for refused in of_runs):
            return [[] for _ in of_runs]
        common = [rows.is_in(refused.implode()) for rows, refused in zip(self.rows, of_runs, strict=True)]
        anywhere = reduce(or_, common)
        return [
            [*refused.to_list(), *rows.filter(anywhere).to_list()]
            for rows, refused in zip(self.rows, of_runs, strict=True)
        ]

    @property
    def whole(self) -> bool:
        """True if all runs have the same jobs."""
        return all(jobs == self.count for jobs in self.jobs)

    def require_whole(self) -> None:
        """Raises an error unless the twins of the runs can be compared.

        Raises:
            RunError: the jobs of a run differ from the baseline's jobs.
        """
        if not self.whole:
            raise RunError(
                "twins can be compared only if all runs have the same jobs, and these runs do not",
                hint="leave out --shake, or replay all runs on the same trace, with the same --until",
            )


def why_not_shaken(runs: Sequence[Run], pairs: Pairs) -> str:
    """Returns a clause that explains why runs cannot be compared over twins; "" if no reason is known."""
    if not pairs.whole:
        return "twins can be compared only if all runs have the same jobs"
    if any(run.is_record for run in runs):
        return "a record of what happened has no twins"
    if any(run.info["settings"].get("alone") is not None for run in runs):
        return "a run that replays only one quota has no twins"
    return ""


def _shift(base: Run, other: Run, ours: pl.Series, theirs: pl.Series) -> int:
    """Computes a shift as in `Pairs.shifts`, from the arrivals of the common jobs in two runs."""
    first, second = base.info["trace"], other.info["trace"]
    if first["times"] != second["times"] or ours.equals(theirs):
        return 0
    return int(second["origin_us"] - first["origin_us"])


class _Pair:
    """The jobs of a run that are also in the baseline.

    Attributes:
        named: how many jobs have the same id as a job in the baseline.
        differing: for each field, how many of these jobs differ in it.
        rows: the rows `base` and `other` of the equal jobs, in the order of the baseline.
    """

    def __init__(self, base: pl.DataFrame, other: pl.DataFrame, *, requests: bool) -> None:
        rows = _of_one_id(base["job_id"], other["job_id"])
        self.named = rows.height
        names = [*_SAME, *(sorted(_requests(base) | _requests(other)) if requests else ())]
        same = {name: _equal(name, base, other, rows) for name in names}
        self.differing = {
            name.removeprefix(_REQUEST): int((~equal).sum())
            for name, equal in same.items()
            if not equal.all()
        }
        self.rows = rows.filter(pl.all_horizontal(same.values())) if self.differing else rows


def _jobs(run: Run) -> pl.DataFrame:
    with reading(run.path):
        frame = run.micros("jobs")
        names = frame.collect_schema().names()
        wanted = ["job_id", *_SAME, "submit_time", *(name for name in names if name.startswith(_REQUEST))]
        return frame.select(wanted).collect()


def _of_one_id(base: pl.Series, other: pl.Series) -> pl.DataFrame:
    """Returns the rows of jobs with the same id. If an id occurs several times, its first job is used."""
    shorter = min(len(base), len(other))
    if (base.head(shorter) == other.head(shorter)).all():
        rows = pl.int_range(shorter, dtype=pl.UInt32, eager=True)
        return pl.DataFrame({"base": rows, "other": rows})
    known = [
        pl.DataFrame({"id": ids}).with_row_index(name).filter(ids.is_first_distinct())
        for ids, name in ((base, "base"), (other, "other"))
    ]
    return known[0].join(known[1], on="id", maintain_order="left").select("base", "other")


def _requests(jobs: pl.DataFrame) -> set[str]:
    return {name for name in jobs.columns if name.startswith(_REQUEST)}


def _equal(name: str, base: pl.DataFrame, other: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Returns, for each row, whether the two jobs have the same value. A missing resource counts as 0."""
    mine, theirs = (
        jobs[name].gather(rows[place])
        if name in jobs.columns
        else pl.zeros(rows.height, pl.Int64, eager=True)
        for jobs, place in ((base, "base"), (other, "other"))
    )
    return mine.eq_missing(theirs)


def _common(jobs: int, found: Sequence[_Pair]) -> list[pl.Series]:
    first = pl.int_range(jobs, dtype=pl.UInt32, eager=True)
    base = reduce(lambda rows, pair: rows.filter(rows.is_in(pair.rows["base"].implode())), found, first)
    both = [pair.rows.filter(pl.col("base").is_in(base.implode())) for pair in found]
    return [base, *(rows["other"] for rows in both)]


def _check(runs: Sequence[Run], jobs: Sequence[int], found: Sequence[_Pair]) -> None:
    """Raises an error that explains the differences if runs have too little in common with the baseline."""
    if empty := [str(run.path) for run, count in zip(runs, jobs, strict=True) if not count]:
        raise RunError(
            f"no job arrived in {', '.join(empty)}, so these runs cannot be compared",
            hint="choose a later --until, or another --window",
        )
    lines = [
        f"  {run.path}: {_shortfall(count, pair)}{_traces(runs[0], run)}"
        for run, count, pair in zip(runs[1:], jobs[1:], found, strict=True)
        if not pair.rows.height or 2 * pair.rows.height < min(jobs[0], count)
    ]
    if lines:
        raise RunError(
            "\n".join([f"these runs cannot be compared with {runs[0].path} ({jobs[0]:,} jobs):", *lines]),
            hint="runs can be compared if at least half of the smaller run's jobs are also in the other run, "
            "with the same id, pods, requests and duration",
        )


def _shortfall(jobs: int, pair: _Pair) -> str:
    text = f"{pair.rows.height:,} of its {jobs:,} jobs are the same"
    if not pair.named:
        return f"{text}: none has the id of a job in the baseline"
    others = ", ".join(f"{name} ({count:,})" for name, count in pair.differing.items())
    of_id = f"{pair.named:,} have the id of a job in the baseline"
    return f"{text}: {of_id}" + (f", but differ in {others}" if others else "")


def _traces(first: Run, run: Run) -> str:
    return "".join(f"; {each}" for each in _sources(first, run))


def _sources(first: Run, run: Run) -> Iterator[str]:
    ours, theirs = first.info, run.info
    if ours["trace"]["sha256"] != theirs["trace"]["sha256"]:
        yield f"another trace: {trace_text(run)}, not {trace_text(first)}"
    changes = [info["settings"].get("calibration", {}) for info in (ours, theirs)]
    for name in ("window", "sample"):
        mine, other = (each.get(name, "none") for each in changes)
        if mine != other:
            yield f"--{name} {other}, not {mine}"


def trace_text(run: Run) -> str:
    """Describes the trace of a run."""
    trace = run.info["trace"]
    return f"{trace['name']} ({trace['jobs']:,} jobs, sha256 {trace['sha256'][:8]}…)"


def shares_of(runs: Sequence[Run], pairs: Pairs) -> list[Shared]:
    """Returns the window and the jobs over which each run is measured.

    If arrivals differ between the runs, each run is measured over its own window.
    """
    ends = [run.window.end for run in runs]
    if len(runs) == 1:  # A single run requires no files to be read.
        return [Shared(end, end) for end in ends]
    shares = shared_by(runs, pairs.refused)
    if pairs.same_arrivals:
        return shares
    return [Shared(end, end, each.refused) for end, each in zip(ends, shares, strict=True)]
