"""Reads the record of a trace, which contains the starts, the ends and the states of its jobs' runs.

The column `recorded_start` is the start of a job's first run, and `recorded_end` is the end of its last run.
If a job has several runs, `recorded_runs` lists all of them as a JSON list of objects with `start`, `end`
and, if known, `state`. If the trace has timestamps, these times are ISO 8601 texts, in UTC if they have no
offset. Otherwise, they are microseconds that count from the same time as `submit_time` and `recorded_start`
in the file, even if only a window of the trace is replayed.

A run was preempted if its state is `Preempted`, in any letter case, or if it has `preempted: true` in
addition to another state. Any other run that ended before the last run was evicted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import repeat, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from harness.base.errors import Fault, TraceError
from harness.base.text import counted
from harness.base.units import since_1970
from harness.policy.job import ENDLESS, RecordedRun
from harness.trace.job_rows import ROW

if TYPE_CHECKING:
    from harness.trace.trace import Trace

START, END, RUNS, STATE = "recorded_start", "recorded_end", "recorded_runs", "recorded_state"

_WRONG = (ValueError, TypeError, KeyError, OverflowError)  # if a cell is not a list of runs
_PREEMPTED = "preempted"  # the state, in lower case, that Slurm and Kueue use for a preempted run

_UNSTARTED = "never started, or the record does not say when, so they wait until the end"
_UNENDED = "had not ended when the record was made, so they run until the end"
_EARLY = "started before they were submitted, so they start when they are submitted"
_BACKWARDS = "ended before they started, so their run time is 0"
_OVERLAP = "had runs that overlap, so the later run starts when the earlier run has ended"
_ORDER = (_UNSTARTED, _UNENDED, _EARLY, _BACKWARDS, _OVERLAP)


class Record(NamedTuple):
    """The record of a trace's jobs.

    Attributes:
        runs: the runs of each job, in the order of the rows.
        notes: sentences about contradictions and gaps. Each contains the number of jobs.
    """

    runs: list[tuple[RecordedRun, ...]]
    notes: tuple[str, ...]

    def work(self, duration: pl.Series) -> pl.Series:
        """Returns the trace's durations. A job that had not ended has an endless duration."""
        endless = pl.Series([not runs or runs[-1].end == ENDLESS for runs in self.runs], dtype=pl.Boolean)
        return duration.to_frame().select(pl.when(endless).then(ENDLESS).otherwise(pl.first())).to_series()


def check_recorded(trace: Trace) -> None:
    """Check that a trace records when jobs started and ended.

    Raises:
        TraceError: the trace does not record these times.
    """
    frame = trace.frame
    if START not in frame.columns or frame[START].null_count() == frame.height or END not in frame.columns:
        raise TraceError(
            str(trace.path),
            [
                Fault(
                    f"columns {START} and {END}", "are missing, but a replay of the recorded runs needs them"
                )
            ],
            hint="readers fill these columns if the source has these times; `harness trace from-run` writes "
            "them for a run",
        )


def record_of(trace: Trace, jobs: pl.DataFrame, submit: pl.Series) -> Record:
    """Returns the record of a trace.

    `jobs` has one row for each job of the trace; see `harness.trace.job_rows`. `submit` has their arrival
    times, in microseconds since the origin.

    Raises:
        TraceError: the trace does not record when jobs started and ended, or a cell of `recorded_runs` is not
            a list of runs.
    """
    check_recorded(trace)
    if faults := faults_of_runs(trace, jobs):
        raise TraceError(str(trace.path), faults)
    said: Counter[str] = Counter()
    runs: list[tuple[RecordedRun, ...]] = []
    rows = zip(
        submit.to_list(),
        (jobs[START].to_physical() - trace.origin).to_list(),
        (jobs[END].to_physical() - trace.origin).to_list(),
        jobs[RUNS].to_list() if RUNS in jobs.columns else repeat(None),
        jobs[STATE].to_list() if STATE in jobs.columns else repeat(None),
        strict=False,
    )
    for arrival, start, end, texts, state in rows:
        if texts is not None:
            spans = list(_read(texts, trace))
        else:
            spans = [] if start is None else [_Span(start, end, str(state or ""), preempted=False)]
        played, changed = _played(spans, arrival)
        runs.append(tuple(played))
        said.update(changed)
    return Record(runs, tuple(f"{counted(said[each], 'job')} {each}" for each in _ORDER if said[each]))


def faults_of_runs(trace: Trace, jobs: pl.DataFrame) -> list[Fault]:
    """Returns a fault for each cell of `recorded_runs` that is not a list of runs with the trace's times."""
    faults: list[Fault] = []
    cells = jobs.select(ROW, "job_id", RUNS).drop_nulls(RUNS) if RUNS in jobs.columns else jobs.head(0)
    for row, job, text in cells.iter_rows():
        try:
            list(_read(text, trace))
        except _WRONG:
            wanted = "dates" if trace.kind == "timestamp" else "whole numbers of microseconds"
            what = f"{str(text)[:60]!r} is not a list of runs whose start and end are {wanted}"
            faults.append(Fault(f"column {RUNS}, row {row + 1}, job {job}", what))
    return faults


def runs_of(trace: Trace, jobs: pl.DataFrame) -> pl.DataFrame:
    """Returns the jobs of a trace with a row for each run in `recorded_runs`. An invalid list is ignored."""
    if RUNS not in jobs.columns or jobs[RUNS].null_count() == jobs.height:
        return jobs
    several = jobs.filter(pl.col(RUNS).is_not_null())
    places: list[int] = []
    times: list[tuple[int, int | None]] = []
    for place, text in enumerate(several[RUNS]):
        try:
            spans = [(span.start + trace.origin, span.end) for span in _read(text, trace)]
        except _WRONG:
            continue
        places += [place] * len(spans)
        times += [(start, None if end is None else end + trace.origin) for start, end in spans]
    of_runs = several[places].with_columns(
        pl.Series(name, [each[number] for each in times], pl.Int64).cast(jobs.schema[name])
        for number, name in enumerate((START, END))
    )
    return pl.concat([jobs.filter(pl.col(RUNS).is_null()), of_runs])


class _Span(NamedTuple):
    """A recorded run. `end` is None if it is unknown."""

    start: int
    end: int | None
    why: str
    preempted: bool


def _played(spans: Iterable[_Span], arrival: int) -> tuple[list[RecordedRun], set[str]]:
    """Returns the runs of one job, changed so that a replay can repeat them, and the kinds of changes.

    No run starts before the arrival or before the end of the previous run. A run without an end ends when the
    next run starts.
    """
    changed: set[str] = set()
    runs: list[RecordedRun] = []
    free = arrival
    ordered = sorted(spans, key=lambda span: span.start)
    following = [span.start for span in ordered[1:]]
    for (begun, ended, why, preempted), after in zip_longest(ordered, following):
        start = max(begun, free)
        end = after if ended is None else ended
        if start > begun:
            changed.add(_OVERLAP if runs else _EARLY)
        if end is None:
            changed.add(_UNENDED)
            end = ENDLESS
        elif end < begun:
            changed.add(_BACKWARDS)
        free = max(start, end)
        runs.append(RecordedRun(start, free, why, preempted))
    return runs, changed if runs else {_UNSTARTED}


def _read(text: str, trace: Trace) -> Iterator[_Span]:
    """Yields the runs of a cell.

    Raises:
        ValueError, TypeError, KeyError, OverflowError: the cell has another form.
    """
    runs = json.loads(text)
    if not isinstance(runs, list) or not runs:
        raise TypeError
    for run in runs:
        start = _time(run["start"], trace)
        if start is None:
            raise ValueError
        why = str(run.get("state") or "")
        preempted = run.get("preempted") is True or why.casefold() == _PREEMPTED
        yield _Span(start, _time(run.get("end"), trace), why, preempted)


def _time(value: object, trace: Trace) -> int | None:
    if value is None:
        return None
    if trace.kind == "duration" and type(value) is int:
        return value - trace.origin
    if trace.kind == "timestamp" and isinstance(value, str):
        return since_1970(datetime.fromisoformat(value)) - trace.origin
    raise TypeError


def runs_text(runs: Iterable[Mapping[str, Any]]) -> str:
    """Returns the text of a cell of `recorded_runs`."""
    return json.dumps(list(runs), separators=(", ", ": "))
