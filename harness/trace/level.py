"""Computes the demand for a resource over time, if every job starts when it is submitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil

import polars as pl

from harness.base.values import Fixed, fixed
from harness.trace.job_rows import job_rows
from harness.trace.recorded import END, START
from harness.trace.schema import REQUEST
from harness.trace.trace import Trace

SUBMIT = "harness.submit"
"""The column with a job's submission time, in microseconds since the origin."""

_ROWS = 1 << 19  # the number of jobs that are processed together
_PIECE = 1 << 20  # the number of level changes that are sorted together
_SAMPLE = 10_000
_RANGES = 1 << 20
_SPANS = {"level": pl.Int64, "span": pl.Int64}
_NO_CHANGE = pl.DataFrame(schema={"time": pl.Int64, "amount": pl.Int64})


@fixed(slots=False)
class Steps(Fixed):
    """The used quantity of a resource over time.

    It is computed in pieces, because the whole would be larger than the trace.

    Attributes:
        amount: the column with the quantity that each job uses.
        start, end: the columns with the start and the end of each job's usage. A job without a start or an
            end uses nothing.
    """

    jobs: pl.DataFrame
    amount: str
    start: pl.Expr
    end: pl.Expr

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yields frames with ascending `time` and the `level` from that time on.

        If one job ends when another starts, they don't overlap.
        """
        level = 0
        for since, until in pairwise((None, *self._bounds(), None)):
            changes = pl.concat([_NO_CHANGE, *self._changes(since, until)]).sort("time")
            # The sum of all amounts fits into 64 bits, because `open_trace` has checked this.
            steps = changes.select("time", pl.col("amount").cum_sum().alias("level") + level)
            steps = steps.filter((pl.col("time") != pl.col("time").shift(-1)).fill_null(value=True))
            level = steps["level"][-1] if steps.height else level
            yield steps

    def _held(self, rows: pl.DataFrame) -> pl.DataFrame:
        columns = (self.start.alias("start"), self.end.alias("end"), pl.col(self.amount).alias("amount"))
        return rows.select(columns).filter(pl.col("end") > pl.col("start"))

    @cached_property
    def _slices(self) -> list[tuple[pl.DataFrame, int, int]]:
        """Slices of the jobs, each with the first and the last time at which its jobs use the resource."""
        found = []
        for rows in self.jobs.iter_slices(_ROWS):
            first, last = self._held(rows).select(pl.col("start").min(), pl.col("end").max()).row(0)
            if first is not None:
                found.append((rows, first, last))
        return found

    def _bounds(self) -> list[int]:
        """Returns times that divide the changes into pieces of about the same size."""
        pieces = -(-2 * self.jobs.height // _PIECE)
        some = self.jobs.gather_every(-(-self.jobs.height // _SAMPLE))
        times = pl.concat([some.select(each.alias("time")) for each in (self.start, self.end)])["time"]
        times = times.drop_nulls().sort()
        places = [len(times) * piece // pieces for piece in range(1, pieces)] if len(times) else []
        return times.gather(places).unique().sort().to_list()

    def _changes(self, since: int | None, until: int | None) -> Iterator[pl.DataFrame]:
        """Yields the times and quantities of the changes from `since` (inclusive) to `until` (exclusive)."""
        for rows, first, last in self._slices:
            if (until is not None and first >= until) or (since is not None and last < since):
                continue
            held = self._held(rows)
            for name, sign in (("start", 1), ("end", -1)):
                time = pl.col(name)
                here = [time >= since] if since is not None else []
                here += [time < until] if until is not None else []
                yield held.filter(*here).select(time.alias("time"), pl.col("amount") * sign)


@fixed(slots=False)
class Level(Fixed):
    """The offered load of a resource, which is a step function of time.

    Attributes:
        steps: the level over time, in microseconds since the origin.
        first, last: the times of the first and the last submission.
        work: the resource-microseconds of all jobs.
    """

    steps: Steps
    first: int
    last: int
    work: int

    @property
    def exact_mean(self) -> Fraction:
        """The resource-time of all jobs divided by the time between the first and the last submission.

        If all jobs are submitted at the same time, this is the sum of their requests.
        """
        span = self.last - self.first
        return Fraction(self.work, span) if span else Fraction(self.peak)

    @property
    def mean(self) -> float:
        """The mean as a float, for display."""
        return float(self.exact_mean)

    @property
    def peak(self) -> int:
        """The highest demand at any time. If one job ends when another starts, they don't overlap."""
        return self._levels[0]

    def quantile(self, share: Fraction) -> int:
        """Returns the smallest level that the demand doesn't exceed during `share` of the time.

        The time is that from the first to the last submission.
        """
        peak, known = self._levels
        if self.first == self.last:
            return peak
        wanted = ceil(share * (self.last - self.first))
        least, most = 0, peak
        while True:
            # There can be too many levels to count each of them. In this case, ranges of levels are counted
            # first, and then the levels within the range that contains the result.
            width = 1 if known is not None else -(-(most - least + 1) // _RANGES)
            total = _total(
                spans.filter(pl.col("level").is_between(least, most)).with_columns(
                    (pl.col("level") - least) // width
                )
                for spans in ([known] if known is not None else self._spans())
            ).sort("level")
            until = total["span"].cum_sum()
            place = int(until.search_sorted(wanted))
            wanted -= int(until[place]) - int(total["span"][place])
            least += int(total["level"][place]) * width
            if width == 1:
                return least
            most = min(most, least + width - 1)

    @cached_property
    def _levels(self) -> tuple[int, pl.DataFrame | None]:
        """The peak, and how long each level lasts.

        If there are too many levels, None replaces the durations.
        """
        peak, total = 0, pl.DataFrame(schema=_SPANS)
        few = True
        for spans in self._spans():
            peak = max(peak, int(spans["level"].max() or 0))  # type: ignore[arg-type]
            if few:
                total = _total([total, spans])
                few = total.height <= _RANGES
        return peak, total if few else None

    def _spans(self) -> Iterator[pl.DataFrame]:
        """Yields each `level` in order and how long it lasts, between the first and the last submission."""
        time, level = self.first, 0
        for steps in self.steps.pieces():
            before = pl.DataFrame({"time": [time], "level": [level]}, schema=steps.schema)
            steps = pl.concat([before, steps])
            at = pl.col("time").clip(self.first, self.last)
            yield steps.select("level", (at.shift(-1) - at).alias("span")).head(-1)
            time, level = steps.row(-1)
        rest = max(0, self.last - max(self.first, time))
        yield pl.DataFrame({"level": [level], "span": [rest]}, schema=_SPANS)


def _total(spans: Iterable[pl.DataFrame]) -> pl.DataFrame:
    total = pl.DataFrame(schema=_SPANS)
    for each in spans:
        total = pl.concat([total, each.filter(pl.col("span") > 0)])
        total = total.group_by("level").agg(pl.col("span").sum())
    return total


def timed_jobs(trace: Trace) -> pl.DataFrame:
    """Returns the rows of `job_rows` with `SUBMIT`, and with `duration` in microseconds."""
    return job_rows(trace.frame).with_columns(
        (pl.col("submit_time").to_physical() - trace.origin).alias(SUBMIT), pl.col("duration").to_physical()
    )


def level_of(jobs: pl.DataFrame, resource: str) -> Level:
    """Returns the offered load of a resource. `jobs` is the result of `timed_jobs`."""
    amount = f"{REQUEST}{resource}"
    steps = Steps(jobs, amount, pl.col(SUBMIT), pl.col(SUBMIT) + pl.col("duration"))
    work = 0
    for rows in jobs.iter_slices(_ROWS):
        work += int(rows.select((pl.col(amount).cast(pl.Int128) * pl.col("duration")).sum()).item())
    first, last = jobs.select(pl.col(SUBMIT).min(), last=pl.col(SUBMIT).max()).row(0)
    return Level(steps, first, last, work)


def held_at_once(runs: pl.DataFrame, resource: str) -> int | None:
    """Returns the peak usage in the record, or None if the trace has no record.

    `runs` is the result of `harness.trace.recorded.runs_of`.
    """
    if not {START, END} <= set(runs.columns):
        return None
    steps = Steps(runs, f"{REQUEST}{resource}", *(pl.col(name).to_physical() for name in (START, END)))
    peaks = [int(each["level"].max()) for each in steps.pieces() if each.height]  # type: ignore[arg-type]
    return max(peaks, default=None)
