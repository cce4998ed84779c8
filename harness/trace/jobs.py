"""Creates the jobs of a trace in order of arrival, in chunks that are created when a replay needs them.

Only the columns stay in memory. A `Job` exists from the time when its chunk is created until nothing refers
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, final

import polars as pl

from harness.base.errors import ClusterError, Fault
from harness.base.tables import schemas
from harness.base.tables.pod_set_texts import Part, text_of
from harness.base.units import INT64_MAX, format_amount
from harness.cluster.kinds.elastic import QUOTA_NAME_LABEL
from harness.cluster.kinds.pod_reading import manifest_of
from harness.policy import ENDLESS, Arrival
from harness.trace.job_columns import JobColumns
from harness.trace.quota_names import QUOTA_NAME
from harness.trace.recorded import Record
from harness.trace.schema import REQUEST, resources_of

_CHUNK = 1024
"""The number of jobs in a chunk. Small chunks fit into the cache and reduce the work of the garbage
collector.
"""

_FIXED = 8  # the number of columns in `Jobs.frame` before the requests

_MOST_PODS = 2**31 - 1


@final
class Jobs:
    """The jobs of a trace in one replay.

    Args:
        source: the origin of jobs that are not from the trace, for messages.
        clairvoyant: whether policies can see the jobs' run times.
        running: a function that returns the jobs that are already running, given the time of the first
            arrival. These jobs come first.
        later: jobs that are not from the trace and arrive during it, in order. Their `submit` is the time
            before scaling. At equal times, they come before jobs of the trace.

    Attributes:
        frame: one row per job in order of arrival. See `JobColumns`. Jobs that are not from the trace are
            included.
        resources: the resources that jobs request, sorted.
        record: the trace's recorded events, if they are repeated.

    Raises:
        ClusterError: the requests of running jobs and of the trace together do not fit into 64 bits.
    """

    def __init__(
        self,
        columns: JobColumns,
        *,
        clairvoyant: bool = False,
        running: Callable[[int], Sequence[Arrival]] | None = None,
        later: Sequence[Arrival] = (),
        source: str = "",
    ) -> None:
        self._columns = columns
        self._clairvoyant = clairvoyant
        self.frame: pl.DataFrame = columns.frame
        self.resources: list[str] = list(columns.resources)
        self.extra: tuple[str, ...] = columns.extra
        self.record: Record | None = columns.record
        submit = self.frame["submit"]
        self._running = list(running(int(submit[0]))) if running is not None else []
        self._later = _placed(later, submit, columns.first, columns.scale)
        others = [*self._running, *(arrival for _, arrival in self._later)]
        if others:
            _check_sums(others, self.frame, source)
            rows = _other_rows(others)
            if self._running:
                rows = rows.with_columns(_ran_before(self._running, len(others)))
                self.extra = (schemas.RAN_BEFORE, *self.extra)
            if schemas.POD_SETS in rows.columns and schemas.POD_SETS not in self.extra:
                self.extra = (schemas.POD_SETS, *self.extra)
            self.resources = sorted({*self.resources, *resources_of(rows.columns)})
            named = [name for name in (QUOTA_NAME,) if name in (*rows.columns, *self.frame.columns)]
            self.frame = pl.concat([rows, self.frame], how="diagonal_relaxed").select(
                *self.frame.columns[:_FIXED],
                *(pl.col(f"{REQUEST}{resource}").fill_null(0) for resource in self.resources),
                *self.extra,
                *(pl.col(name).fill_null("") for name in named),
            )[_order(self.frame.height, len(self._running), [place for place, _ in self._later])]

    def __len__(self) -> int:
        return self.frame.height

    @property
    def only_of_trace(self) -> bool:
        """True if all jobs are from the trace."""
        return self.frame is self._columns.frame

    @property
    def mean_duration(self) -> int:
        """The mean of the known durations. It includes jobs that arrive after the end of the replay."""
        durations = self.frame["duration"]
        known = len(durations) - durations.null_count()
        longest: Any = durations.max() or 0
        # The sum of a hundred years for each of many millions of jobs does not fit into 64 bits.
        wide = longest * known > INT64_MAX
        return int((durations.cast(pl.Int128) if wide else durations).sum()) // max(1, known)

    def chunks(self, size: int = _CHUNK) -> Iterator[list[Arrival]]:
        """Yields the jobs in order of arrival, in chunks of `size` jobs that are created on demand."""
        if self._running:
            yield self._running
        index, start = len(self._running), 0
        for place, (job, *runs) in self._later:
            yield from self._slices(start, place, index, size)
            index += place - start
            yield [(replace(job, index=index), *runs)]
            index, start = index + 1, place
        yield from self._slices(start, len(self) - len(self._running) - len(self._later), index, size)

    def _slices(self, start: int, end: int, index: int, size: int) -> Iterator[list[Arrival]]:
        """Yields the jobs of some rows of the trace.

        `index` is the index of the first of these jobs among all jobs.
        """
        for begin in range(start, end, size):
            yield self._columns.chunk(
                begin, min(size, end - begin), index + begin - start, clairvoyant=self._clairvoyant
            )


def _placed(
    later: Sequence[Arrival], submit: pl.Series, first: int, scale: Fraction
) -> list[tuple[int, Arrival]]:
    """Returns jobs that arrive during the trace, with their scaled times and the rows that follow them."""
    found: list[tuple[int, Arrival]] = []
    for job, *runs in later:
        since = first + (job.submit - first) * scale.denominator // scale.numerator
        place = int(submit.search_sorted(since, side="left"))
        found.append((place, (replace(job, submit=since), *runs)))
    return found


def _order(rows: int, running: int, places: Sequence[int]) -> pl.Series:
    """Returns the row numbers of all jobs in order of arrival.

    In the table, the jobs that are not from the trace come first: those that exist before the trace, and then
    those that arrive before the rows in `places`.
    """
    others = running + len(places)
    parts = [range(running)]
    start = 0
    for number, place in enumerate(places, running):
        parts += [range(others + start, others + place), range(number, number + 1)]
        start = place
    parts.append(range(others + start, others + rows))
    return pl.concat([pl.Series(part, dtype=pl.UInt32) for part in parts])


def _check_sums(running: Sequence[Arrival], frame: pl.DataFrame, source: str) -> None:
    """Raises an error if the requests of running workloads and of the trace don't fit into 64 bits."""
    total = {
        name: int(frame[f"{REQUEST}{name}"].sum())  # `open_trace` has checked that this sum fits
        for name in resources_of(frame.columns)
    }
    for job, *_ in running:
        where = f"{job.id}, of the manifests"
        if job.pods > _MOST_PODS:
            what = f"has {job.pods:,} pods; at most {_MOST_PODS:,} can be counted"
            raise ClusterError(source, [Fault(where, what)])
        for name, amount in job.requests_of(range(job.pods)).items():
            total[name] = total.get(name, 0) + amount
            if total[name] > INT64_MAX:
                what = (
                    f"{format_amount(name, amount)} of {name} and the requests of all other jobs are "
                    "together more "
                )
                raise ClusterError(source, [Fault(where, f"{what}than 64 bits can count")])


def _ran_before(running: Sequence[Arrival], rows: int) -> pl.Series:
    """Returns how long each job had already run when it was taken over from the manifests.

    The value is null for jobs that arrive during the trace, and for pods without an end, such as a
    DaemonSet's pods.
    """
    done = [_done(arrival) for arrival in running]
    return pl.Series(schemas.RAN_BEFORE, [*done, *[None] * (rows - len(done))], dtype=pl.Duration("us"))


def _done(arrival: Arrival) -> int | None:
    if len(arrival) == 5:
        return arrival[4]
    pod = manifest_of(arrival[0].pod_sets[0])
    return None if pod is not None and pod.lasting else 0


def _other_rows(others: Sequence[Arrival]) -> pl.DataFrame:
    """Returns rows for jobs that are not from the trace, whose run times may be unknown."""
    rows = [
        {
            "job_id": job.id,
            "queue": job.queue,
            "namespace": job.namespace,
            "user": job.user,
            "priority": job.priority,
            "pods": job.pods,
            "submit": job.submit,
            "duration": None if duration == ENDLESS else duration,
            **{f"{REQUEST}{name}": amount for name, amount in job.requests_of(range(job.pods)).items()},
        }
        for job, duration, *_ in others
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    texts = [
        text_of([Part(each.name, each.count, each.requests) for each in job.pod_sets]) for job, *_ in others
    ]
    if any(text is not None for text in texts):
        frame = frame.with_columns(pl.Series(schemas.POD_SETS, texts, dtype=pl.String))
    frame = frame.cast({"priority": pl.Int32, "pods": pl.Int32, "duration": pl.Int64})
    names = [job.pod_sets[0].labels.get(QUOTA_NAME_LABEL, "") for job, *_ in others]
    return frame.with_columns(pl.Series(QUOTA_NAME, names, pl.Categorical)) if any(names) else frame
