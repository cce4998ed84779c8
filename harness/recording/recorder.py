"""Keeps what the engine reports, in columns, and writes it to Parquet chunk by chunk.

Memory follows the chunk, not the length of the replay.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import polars as pl

from harness.engine.events import ACTIONS, STINTS, Amounts
from harness.job import Job
from harness.memo import Memo
from harness.recording import schemas
from harness.recording.job_results import JobResults
from harness.recording.parquet import TableWriter, TimeKind, as_series
from harness.recording.timeline import Change, Timeline, as_change
from harness.tenants import Tenants, coded

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs

_CHUNK = 1 << 17  # rows; large enough that the cost of a chunk is nothing, small enough that its memory is

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict, check_circular=False)


class _Codes:
    """Texts as small integers, for columns in which few texts recur; -1 stands for none."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def of(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self._codes)
        return code

    def texts(self, codes: pl.Series) -> pl.Series:
        return pl.Series(list(self._codes), dtype=pl.String).gather(codes)


@final
class _Decisions:
    """Decisions that are not written yet, in columns; what few of them have, by number of the row."""

    __slots__ = (
        "action", "amounts", "by", "change", "count", "cycle", "detail", "dropped", "flavors", "job", "node",
        "pod", "reason", "time", "unused",
    )  # fmt: skip

    def __init__(self) -> None:
        self.time, self.cycle = array("q"), array("q")
        self.action, self.change = array("b"), array("b")
        self.job, self.count = array("i"), array("i")
        self.amounts: dict[int, Amounts] = {}
        self.dropped: dict[int, Amounts] = {}
        self.unused: dict[int, Amounts] = {}
        self.pod: dict[int, str] = {}
        self.by: dict[int, str] = {}
        self.reason: dict[int, int] = {}
        self.node: dict[int, int] = {}
        self.flavors: dict[int, int] = {}
        self.detail: dict[int, str] = {}


@final
class _Stints:
    """Stints that are not written yet, in columns."""

    __slots__ = ("amounts", "end", "job", "lost", "pods", "start", "state")

    def __init__(self) -> None:
        self.job, self.pods = array("i"), array("i")
        self.start, self.end, self.lost = array("q"), array("q"), array("q")
        self.state = array("b")
        self.amounts: dict[int, Amounts] = {}


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
        self._flavors, self._reasons, self._nodes = _Codes(), _Codes(), _Codes()
        self._flavors_seen: Memo[int, tuple[object, int]] = Memo()
        self._details_seen: Memo[int, tuple[object, str]] = Memo()
        self._seq = 0
        self._decisions, self._stints = _Decisions(), _Stints()
        self._results = JobResults(folder / "jobs.parquet", jobs, kind, _CHUNK)

    def decision(
        self,
        time: int,
        cycle: int,
        action: int,
        job: Job,
        pods: int,
        amounts: Amounts | None = None,
        pod: str | None = None,
        by: Job | None = None,
        reason: str | None = None,
        node: str | None = None,
        flavors: Mapping[str, Mapping[str, str]] | None = None,
        detail: Mapping[str, Any] | None = None,
        alive: int = 0,
        holding: int = 0,
        quota: int = 0,
        dropped: Amounts | None = None,
        unused: Amounts | None = None,
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        if len(self._decisions.time) == _CHUNK:
            self._flush_decisions()
        kept = self._decisions
        row = len(kept.time)
        kept.time.append(time)
        kept.cycle.append(cycle)
        kept.action.append(action)
        kept.job.append(job.index)
        kept.count.append(pods)
        kept.change.append(as_change(quota, alive, holding))
        if amounts is not None:
            kept.amounts[row] = amounts
        if dropped is not None:
            kept.dropped[row] = dropped
        if unused is not None:
            kept.unused[row] = unused
        if pod is not None:
            kept.pod[row] = pod
        if by is not None:
            kept.by[row] = by.id
        if reason is not None:
            kept.reason[row] = self._reasons.of(reason)
        if node is not None:
            kept.node[row] = self._nodes.of(node)
        if flavors is not None:
            kept.flavors[row] = self._flavor_code(flavors)
        if detail is not None:
            kept.detail[row] = self._detail_text(detail)

    def stint(
        self, job: Job, pods: int, amounts: Amounts | None, start: int, end: int, state: int, lost: int
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        if len(self._stints.job) == _CHUNK:
            self._flush_stints()
        kept = self._stints
        if amounts is not None:
            kept.amounts[len(kept.job)] = amounts
        kept.job.append(job.index)
        kept.pods.append(pods)
        kept.start.append(start)
        kept.end.append(end)
        kept.state.append(state)
        kept.lost.append(lost)

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
        self._flush_decisions()
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

    # --- chunks -------------------------------------------------------------------------------------------

    def _flush_decisions(self) -> None:
        kept, self._decisions = self._decisions, _Decisions()
        rows = len(kept.time)
        if rows == 0:
            return
        job, time, action = as_series(kept.job), as_series(kept.time), as_series(kept.action)
        count, change = as_series(kept.count), Change(as_series(kept.change))
        self._decisions_file.write(
            {
                "seq": pl.int_range(self._seq, self._seq + rows, eager=True),
                "time": time,
                "cycle": as_series(kept.cycle),
                "action": pl.Series(ACTIONS, dtype=pl.String).gather(action),
                "job": job,
                "job_id": self._job_ids.gather(job),
                "pod": _sparse(kept.pod, rows, pl.String()),
                "pods": count,
                "holding": change.holding,
                "queue": self._queues.gather(job),
                "by": _sparse(kept.by, rows, pl.String()),
                "reason": self._reasons.texts(_sparse(kept.reason, rows, pl.Int32())),
                "node": self._nodes.texts(_sparse(kept.node, rows, pl.Int32())),
                "flavors": self._flavors.texts(_sparse(kept.flavors, rows, pl.Int32())),
                "detail": _sparse(kept.detail, rows, pl.String()),
            }
        )
        self._timeline.feed(
            time,
            action,
            self._tenant_codes.gather(job),
            change,
            self._held(job, count, kept.amounts),
            self._of_few(kept.dropped, rows),
            self._of_few(kept.unused, rows),
            self._shares,
        )
        self._shares.clear()
        self._seq += rows

    def _flush_stints(self) -> None:
        kept, self._stints = self._stints, _Stints()
        if not kept.job:
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

    def _of_few(self, amounts: Mapping[int, Amounts], rows: int) -> dict[str, pl.Series]:
        """Resource -> amounts that few rows have, 0 elsewhere; empty where no row has any."""
        return {
            resource: _sparse(
                {row: each.get(resource, 0) for row, each in amounts.items()}, rows, pl.Int64()
            ).fill_null(0)
            for resource in (self._totals if amounts else ())
        }

    def _detail_text(self, detail: Mapping[str, Any]) -> str:
        """A detail as text; an object that was seen before is not turned into text again."""
        seen = self._details_seen.get(id(detail))
        if seen is not None and seen[0] is detail:
            return seen[1]
        text = as_json(detail)
        self._details_seen[id(detail)] = (detail, text)
        return text

    def _flavor_code(self, flavors: Mapping[str, Mapping[str, str]]) -> int:
        """The code of a choice of flavors; an object that was seen before is not turned into text again."""
        seen = self._flavors_seen.get(id(flavors))
        if seen is not None and seen[0] is flavors:
            return seen[1]
        code = self._flavors.of(as_json({name: dict(chosen) for name, chosen in flavors.items()}))
        self._flavors_seen[id(flavors)] = (flavors, code)
        return code


def as_json(value: Mapping[str, Any]) -> str:
    """Canonical JSON: equal values give equal text."""
    return _JSON.encode(value)


def _sparse(values: Mapping[int, Any], rows: int, dtype: pl.DataType) -> pl.Series:
    """A column with values at some rows and nulls elsewhere."""
    empty = pl.Series([None], dtype=dtype).new_from_index(0, rows)
    if not values:
        return empty
    return empty.scatter(list(values), pl.Series(list(values.values()), dtype=dtype))
