"""Keeps what the engine reports, in columns, and writes it to Parquet chunk by chunk.

Memory follows the chunk, not the length of the replay.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, final

import polars as pl

from harness.engine.events import ACTIONS, NEVER, STINTS, Amounts, Fact
from harness.policy import Job
from harness.recording import schemas
from harness.recording.fact_columns import FactColumns, Texts
from harness.recording.job_results import JobResults
from harness.recording.parquet import TableWriter, TimeKind, as_series
from harness.recording.timeline import Change, Timeline
from harness.tenants import Tenants, coded

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs

_CHUNK = 1 << 17  # rows; large enough that the cost of a chunk is nothing, small enough that its memory is
_AT_ONCE = 1 << 12  # rows that are packed into columns together, a part of a chunk: their objects live on


@final
class _Stints:
    """Stints that are not written yet, in columns."""

    __slots__ = ("amounts", "end", "job", "lost", "pods", "recent", "rows", "start", "state")

    def __init__(self) -> None:
        self.job, self.pods = array("i"), array("i")
        self.start, self.end, self.lost = array("q"), array("q"), array("q")
        self.state = array("b")
        self.amounts: dict[int, Amounts] = {}
        self.rows = 0
        self.recent: list[tuple[int, ...]] = []  # not in the columns yet

    def pack(self) -> int:
        """Move what is recent into the columns; answers how many rows these have."""
        if self.recent:
            columns = self.job, self.pods, self.start, self.end, self.state, self.lost
            for column, values in zip(columns, zip(*self.recent, strict=True), strict=True):
                column.extend(values)
            self.rows += len(self.recent)
            self.recent.clear()
        return self.rows


@final
class ParquetRecorder:
    """Writes the tables of one replay into a folder.

    Args:
        folder: where to; it exists.
        jobs: the jobs of the replay, for what their rows say about them.
        kind: how times are written.
        capacity: resource -> amount, for the shares of the timeline.
        tenants: the queues of the timeline, see `harness.tenants`.
        on_nodes: whether pods hold resources when they are bound (else when their job starts).
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
    ) -> None:
        frame = jobs.frame
        self._job_ids = frame["job_id"]
        self._pods = frame["pods"]
        self._totals = {resource: frame[f"request.{resource}"] for resource in jobs.resources}
        self._queues = frame["queue"]
        names, self._tenant_codes = coded(tenants.names)
        self._decisions_file = TableWriter(folder / "decisions.parquet", schemas.DECISIONS, kind)
        self._stints_file = TableWriter(folder / "stints.parquet", schemas.stints(jobs.resources), kind)
        timeline = TableWriter(folder / "timeline.parquet", schemas.TIMELINE, kind)
        self._timeline = Timeline(timeline, names, jobs.resources, capacity, on_nodes=on_nodes)
        self._behind: dict[str, list[int]] = {}
        for code, name in enumerate(names):
            self._behind.setdefault(tenants.quotas[name] or "", []).append(code)
        self._shares: list[tuple[int, int, float, int]] = []
        self._texts = Texts()
        self._seq = 0
        self._recent: list[Fact] = []  # not in columns yet
        self._facts = FactColumns()
        self._stints = _Stints()
        self._results = JobResults(folder / "jobs.parquet", jobs, kind, _CHUNK)

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        recent = self._recent
        if fact.flavors is not None or fact.detail is not None:
            self._facts.tell(fact, self._facts.rows + len(recent), self._texts)
        recent.append(fact)
        if len(recent) == _AT_ONCE:
            self._pack()

    def stint(
        self, job: Job, pods: int, amounts: Amounts | None, start: int, end: int, state: int, lost: int
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        kept = self._stints
        if amounts is not None:
            kept.amounts[kept.rows + len(kept.recent)] = amounts
        kept.recent.append((job.index, pods, start, end, state, lost))
        if len(kept.recent) == _AT_ONCE and kept.pack() == _CHUNK:
            self._flush_stints()

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """See `harness.engine.events.Recorder`."""
        for code in self._behind.get(queue, ()):
            self._shares.append((time, code, share, weighted))

    def job(
        self,
        job: Job,
        state: int,
        admitted: int,
        start: int,
        finish: int,
        preemptions: int,
        lost: int,
        idle: int,
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        self._results.add(job.index, state, admitted, start, finish, preemptions, lost, idle)

    def close(self, arrived: int) -> None:
        """Write what is left; `jobs.parquet` gets the first `arrived` jobs, those that the replay saw."""
        self._pack()
        self._flush_facts()
        self._stints.pack()
        self._flush_stints()
        self._timeline.close()
        self._decisions_file.close()
        self._stints_file.close()
        self._results.close(arrived)

    def abandon(self) -> None:
        """Close the files of a replay that failed; its folder is to be removed."""
        for writer in (self._decisions_file, self._stints_file):
            writer.close()
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
        job, time, action = as_series(facts.job), as_series(facts.time), as_series(facts.action)
        pods, pod = as_series(facts.pods), as_series(facts.pod)
        by = pl.Series(facts.whole(facts.by), dtype=pl.Int32)
        change = _changes(as_series(facts.change))
        pod = pod.set(pod == NEVER, None)
        successor = pl.zeros(rows, pl.Int32, eager=True)
        successor = successor.scatter(list(facts.successor), list(facts.successor.values()))
        self._decisions_file.write(
            {
                "seq": pl.int_range(self._seq, self._seq + rows, eager=True),
                "time": time,
                "cycle": as_series(facts.cycle),
                "action": pl.Series(ACTIONS, dtype=pl.String).gather(action),
                "job": job,
                "job_id": self._job_ids.gather(job),
                "pod": pl.Series(facts.pod_name, dtype=pl.String),
                "pod_number": pod,
                "successor": successor.set(pod.is_null(), None),
                "pods": pods,
                "holding": change.holding,
                "queue": self._queues.gather(job),
                "by": self._job_ids.gather(by),
                "by_job": by,
                "reason": pl.Series(facts.whole(facts.reason), dtype=pl.String),
                "node": pl.Series(facts.node, dtype=pl.String),
                "flavors": pl.Series(facts.whole(facts.flavors), dtype=pl.String),
                "detail": pl.Series(facts.whole(facts.detail), dtype=pl.String),
            }
        )
        self._timeline.feed(
            time,
            action,
            self._tenant_codes.gather(job),
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
        job, pods = as_series(kept.job), as_series(kept.pods)
        held = self._held(job, pods, kept.amounts)
        self._stints_file.write(
            {
                "job": job,
                "job_id": self._job_ids.gather(job),
                "queue": self._queues.gather(job),
                "pods": pods,
                "start": as_series(kept.start),
                "end": as_series(kept.end),
                "state": pl.Series(STINTS, dtype=pl.String).gather(as_series(kept.state)),
                "lost": as_series(kept.lost),
                **{f"request.{resource}": amounts for resource, amounts in held.items()},
            }
        )

    def _held(
        self, job: pl.Series, pods: pl.Series, exceptions: Mapping[int, Amounts]
    ) -> dict[str, pl.Series]:
        """What the pods of each row hold of each resource."""
        of_job = self._pods.gather(job)
        held = {}
        for resource, totals in self._totals.items():
            total = totals.gather(job)
            # Divide first: a job's total fits 64 bits, the product of a total and a count may not.
            amounts = pl.select(
                pl.when(pods == of_job).then(total).otherwise(total // of_job * pods).cast(pl.Int64)
            ).to_series()
            if exceptions:
                own = [each.get(resource, 0) for each in exceptions.values()]
                amounts = amounts.scatter(list(exceptions), own)
            held[resource] = amounts
        return held

    def _few_amounts(self, rows: int, few: Mapping[int, Amounts]) -> dict[str, pl.Series]:
        """Resource -> amounts that few rows have, 0 elsewhere; empty where no row has any."""
        return {
            resource: pl.zeros(rows, pl.Int64, eager=True).scatter(
                list(few), [each.get(resource, 0) for each in few.values()]
            )
            for resource in (self._totals if few else ())
        }


def _changes(codes: pl.Series) -> Change:
    """What `FactColumns.change` says, apart."""
    codes = codes.cast(pl.Int16) + 13
    return Change(codes % 3 - 1, codes // 9 - 1, codes // 3 % 3 - 1)
