"""Collects the engine's reports in columns, and writes the columns to Parquet in chunks.

The required memory depends on the size of a chunk rather than on the length of the replay.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
import polars as pl

from harness.base.arrays import Ints, as_series
from harness.base.tables import schemas
from harness.base.tables.parquet import ShortTable, TableWriter, TimeKind, extend
from harness.engine.events import ACTIONS, NEVER, STINTS, Amounts, Fact
from harness.engine.texts import Texts
from harness.policy import Job
from harness.runs.recording.fact_columns import FactColumns
from harness.runs.recording.job_results import JobResults
from harness.runs.recording.timeline import Change, Timeline
from harness.runs.tenants import Tenants, coded

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs

_CHUNK = 1 << 17  # rows: enough for a chunk's fixed cost to be negligible, few enough to save memory
_AT_ONCE = 1 << 12  # How many rows are packed into columns together. Their objects stay alive until then.


@final
class _Stints:
    """Stints that have not been written yet, in columns."""

    __slots__ = (
        *("amounts", "earlier", "end", "job", "lost", "pod", "pods", "recent", "rows", "start", "state"),
    )

    def __init__(self) -> None:
        self.job, self.pods = array("i"), array("i")
        self.start, self.end, self.lost = array("q"), array("q"), array("q")
        self.state = array("b")
        self.amounts: dict[int, Amounts] = {}
        self.earlier: dict[int, int] = {}
        self.pod: dict[int, int] = {}
        self.rows = 0
        self.recent: list[tuple[int, ...]] = []  # These rows are not in the columns yet.

    def pack(self) -> int:
        """Moves recent stints into the columns, and returns the number of rows in the columns."""
        if self.recent:
            columns = self.job, self.pods, self.start, self.end, self.state, self.lost
            for column, values in zip(columns, zip(*self.recent, strict=True), strict=True):
                extend(column, values)
            self.rows += len(self.recent)
            self.recent.clear()
        return self.rows


def _pod_names(job_id: pl.Expr, pods: Ints, pod: array[int], successor: npt.NDArray[np.int32]) -> pl.Expr:
    """Returns the names that `Job.pod_name` gives to pods, from columns of job names and pod numbers."""
    name = job_id
    if (pods != 1).any():
        numbered = pl.concat_str(name, pl.lit("-"), as_series(pod))
        name = pl.when(as_series(pods) != 1).then(numbered).otherwise(name)
    if successor.any():
        again = as_series(successor)
        name = pl.when(again > 0).then(pl.concat_str(name, pl.lit("-r"), again)).otherwise(name)
    return name


def _known(numbers: Ints) -> pl.Series:
    """Returns a column of numbers that most rows don't have, in which `NEVER` becomes null."""
    if (numbers == NEVER).all():
        return pl.Series([None], dtype=pl.Int32).new_from_index(0, len(numbers))
    return pl.select(pl.when(as_series(numbers) != NEVER).then(as_series(numbers)).cast(pl.Int32)).to_series()


def _column(values: list[Any], dtype: pl.DataType) -> pl.Series:
    """Returns a column of values with this type, so that polars doesn't have to infer it."""
    if values.count(None) == len(values):
        return pl.Series([None], dtype=dtype).new_from_index(0, len(values))
    return pl.Series(values, dtype=dtype)


@final
class ParquetRecorder:
    """Writes the tables of one replay into a folder.

    Args:
        jobs: the jobs of the replay, which provide the other columns of their rows.
        kind: whether times are written as timestamps or durations.
        capacity: the capacity of each resource, for the shares in the timeline.
        tenants: the queues in the timeline, see `harness.runs.tenants`.
        on_nodes: whether pods hold resources from the time when they are bound, rather than from the start of
            their job.
        files: whether tables are written to files even if they are short. Long tables always are.
    """

    def __init__(
        self,
        folder: Path,
        jobs: Jobs,
        kind: TimeKind,
        capacity: Mapping[str, int],
        tenants: Tenants,
        *,
        on_nodes: bool,
        files: bool = True,
    ) -> None:
        frame = jobs.frame
        self._job_ids = frame["job_id"]
        self._pods = frame["pods"].to_numpy()
        self._totals = {resource: frame[f"request.{resource}"].to_numpy() for resource in jobs.resources}
        self._queues = frame["queue"]
        names, self._tenant_codes = coded(tenants)
        written = partial(TableWriter, kind=kind, files=files)
        self._decisions_file = written(folder / "decisions.parquet", schemas.DECISIONS)
        self._earlier = schemas.RAN_BEFORE in jobs.extra
        stints = schemas.stints(jobs.resources, before=self._earlier)
        self._stints_file = written(folder / "stints.parquet", stints)
        timeline = written(folder / "timeline.parquet", schemas.TIMELINE)
        self._timeline = Timeline(timeline, names, jobs.resources, capacity, on_nodes=on_nodes)
        self._behind: dict[str, list[int]] = {}
        for code, name in enumerate(names):
            self._behind.setdefault(tenants.quotas[name] or "", []).append(code)
        self._shares: list[tuple[int, int, float, int]] = []
        self._texts = Texts()
        self._seq = 0
        self._recent: list[Fact] = []  # These facts are not in the columns yet.
        self._facts = FactColumns()
        self._stints = _Stints()
        self._results = JobResults(
            folder / "jobs.parquet",
            jobs,
            kind,
            _CHUNK,
            timeline_queue=tenants.names if tenants.by_label else None,
            files=files,
        )
        self.job = self._results.add

    def record(self, fact: Fact) -> None:
        """Records a decision or an event; see `harness.engine.events.Recorder`."""
        recent = self._recent
        if fact.flavors is not None or fact.detail is not None:
            self._facts.tell(fact, self._facts.rows + len(recent), self._texts)
        recent.append(fact)
        if len(recent) == _AT_ONCE:
            self._pack()

    def stint(
        self,
        job: Job,
        pods: int,
        amounts: Amounts | None,
        start: int,
        end: int,
        state: int,
        lost: int,
        lost_before: int = 0,
        pod: int = NEVER,
    ) -> None:
        """Records that pods held resources for some time; see `harness.engine.events.Recorder`."""
        kept = self._stints
        if amounts is not None:
            kept.amounts[kept.rows + len(kept.recent)] = amounts
        if lost_before:
            kept.earlier[kept.rows + len(kept.recent)] = lost_before
        if pod != NEVER:
            kept.pod[kept.rows + len(kept.recent)] = pod
        kept.recent.append((job.index, pods, start, end, state, lost))
        if len(kept.recent) == _AT_ONCE and kept.pack() == _CHUNK:
            self._flush_stints()

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """Records the new dominant resource share of a queue; see `harness.engine.events.Recorder`."""
        for code in self._behind.get(queue, ()):
            self._shares.append((time, code, share, weighted))

    def close(self, arrived: int) -> dict[str, ShortTable]:
        """Write the remaining rows, with the first `arrived` jobs in `jobs.parquet`.

        Returns the short tables.
        """
        self._pack()
        self._flush_facts()
        self._stints.pack()
        self._flush_stints()
        found = {
            "jobs": self._results.close(arrived),
            "decisions": self._decisions_file.close(),
            "stints": self._stints_file.close(),
            "timeline": self._timeline.close(),
        }
        return {name: table for name, table in found.items() if table is not None}

    def abandon(self) -> None:
        """Close the files of a failed replay, whose folder will be deleted."""
        for writer in (self._decisions_file, self._stints_file):
            writer.abandon()
        self._timeline.abandon()
        self._results.abandon()

    def _pack(self) -> None:
        if self._recent:
            self._facts.add(self._recent)
            self._recent.clear()
        if self._facts.rows == _CHUNK:
            self._flush_facts()

    # --- chunks -------------------------------------------------------------------------------------------

    def _flush_facts(self) -> None:
        facts, self._facts = self._facts, FactColumns()
        rows = facts.rows
        if rows == 0:
            return
        job, time, action = np.asarray(facts.job), np.asarray(facts.time), np.asarray(facts.action)
        pods, pod = np.asarray(facts.pods), as_series(facts.pod)
        by = _column(facts.by, pl.Int32())
        change = Change(*(np.array(each, np.int64) for each in (facts.quota, facts.alive, facts.holding)))
        successor = np.zeros(rows, np.int32)
        successor[list(facts.successor)] = list(facts.successor.values())
        row, single = as_series(facts.job), pl.lit(pod) != NEVER
        job_id = pl.lit(self._job_ids).gather(row)
        known = pl.select(
            action=pl.lit(pl.Series(ACTIONS, dtype=pl.String)).gather(as_series(facts.action)),
            job_id=job_id,
            pod=pl.when(single).then(_pod_names(job_id, self._pods[job], facts.pod, successor)),
            pod_number=pl.when(single).then(pod),
            successor=pl.when(single).then(as_series(successor)),
            queue=pl.lit(self._queues).gather(row),
            by=pl.lit(self._job_ids).gather(by),
        )
        self._decisions_file.write(
            {
                "seq": as_series(np.arange(self._seq, self._seq + rows)),
                "time": as_series(facts.time),
                "cycle": as_series(facts.cycle),
                "job": row,
                "pods": as_series(facts.pods),
                "holding": as_series(change.holding),
                "by_job": by,
                "reason": _column(facts.reason, pl.String()),
                "node": _column(facts.node, pl.String()),
                "flavors": _column(facts.whole(facts.flavors), pl.String()),
                "detail": _column(facts.whole(facts.detail), pl.String()),
                **known.to_dict(),
            }
        )
        self._timeline.feed(
            time,
            action,
            self._tenant_codes[job],
            change,
            self._held(job, pods, facts.amounts),
            self._few_amounts(rows, facts.dropped),
            self._few_amounts(rows, facts.unused),
            self._shares,
        )
        self._shares.clear()
        self._seq += rows

    def _flush_stints(self) -> None:
        kept, self._stints = self._stints, _Stints()
        if not kept.rows:
            return
        job = as_series(kept.job)
        held = self._held(np.asarray(kept.job), np.asarray(kept.pods), kept.amounts)
        texts = pl.select(
            job_id=pl.lit(self._job_ids).gather(job),
            queue=pl.lit(self._queues).gather(job),
            state=pl.lit(pl.Series(STINTS, dtype=pl.String)).gather(as_series(kept.state)),
        )
        earlier = np.zeros(kept.rows if self._earlier else 0, np.int64)
        earlier[list(kept.earlier)] = list(kept.earlier.values())
        pod = np.full(kept.rows, NEVER, np.int64)
        pod[list(kept.pod)] = list(kept.pod.values())
        self._stints_file.write(
            {
                "job": job,
                "pod_number": _known(pod),
                "pods": as_series(kept.pods),
                "start": as_series(kept.start),
                "end": as_series(kept.end),
                "lost": as_series(kept.lost),
                **({schemas.LOST_BEFORE: as_series(earlier)} if self._earlier else {}),
                **texts.to_dict(),
                **{f"request.{resource}": as_series(amounts) for resource, amounts in held.items()},
            }
        )

    def _held(self, job: Ints, pods: Ints, exceptions: Mapping[int, Amounts]) -> dict[str, Ints]:
        of_job = self._pods[job]
        held = {}
        for resource, totals in self._totals.items():
            total = totals[job]
            # Divide first: the total of a job fits into 64 bits, but a total multiplied by a count may not.
            amounts = np.where(pods == of_job, total, total // of_job * pods)
            if exceptions:
                amounts[list(exceptions)] = [each.get(resource, 0) for each in exceptions.values()]
            held[resource] = amounts
        return held

    def _few_amounts(self, rows: int, few: Mapping[int, Amounts]) -> dict[str, Ints]:
        """Returns quantities by resource, with 0 for rows without a value, or {} if no row has a value."""
        found = {}
        for resource in self._totals if few else ():
            found[resource] = np.zeros(rows, np.int64)
            found[resource][list(few)] = [each.get(resource, 0) for each in few.values()]
        return found
