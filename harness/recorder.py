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

from harness import tables
from harness.engine.events import ACTIONS, STINTS, Amounts
from harness.job import Job
from harness.job_results import JobResults
from harness.parquet import TableWriter, TimeKind, as_series
from harness.tenants import Tenants, coded
from harness.timeline import Timeline

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs

_CHUNK = 1 << 17  # rows; large enough that the cost of a chunk is nothing, small enough that its memory is

_REMEMBERED = 4096  # objects whose text is known, so that it is made once

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict)


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
class ParquetRecorder:
    """Writes the tables of one replay into a folder.

    Args:
        folder: where to; it exists.
        jobs: the jobs of the replay, for what their rows say about them.
        kind: how times are written.
        capacity: resource -> amount, for the shares of the timeline.
        tenants: the queues of the timeline, see `harness.tenants`.
        on_nodes: whether pods hold resources when they are bound (else when their job is admitted).
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
        self._decisions = TableWriter(folder / "decisions.parquet", tables.DECISIONS, kind)
        self._stints = TableWriter(folder / "stints.parquet", tables.stints(jobs.resources), kind)
        timeline = TableWriter(folder / "timeline.parquet", tables.TIMELINE, kind)
        self._timeline = Timeline(timeline, names, jobs.resources, capacity, on_nodes=on_nodes)
        self._behind: dict[str, list[int]] = {}
        for code, name in enumerate(names):
            self._behind.setdefault(tenants.quotas[name] or "", []).append(code)
        self._shares: list[tuple[int, int, float, int]] = []
        self._flavors, self._reasons, self._nodes = _Codes(), _Codes(), _Codes()
        self._flavors_seen: dict[int, tuple[object, int]] = {}
        self._details_seen: dict[int, tuple[object, str]] = {}
        self._seq = 0
        self._clear_decisions()
        self._clear_stints()
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
        dropped: Amounts | None = None,
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        row = len(self._time)
        if row == _CHUNK:
            self._flush_decisions()
            row = 0
        self._time.append(time)
        self._cycle.append(cycle)
        self._action.append(action)
        self._job.append(job.index)
        self._count.append(pods)
        self._change.append(3 * alive + holding)
        if amounts is not None:
            self._amounts[row] = amounts
        if dropped is not None:
            self._dropped[row] = dropped
        if pod is not None:
            self._pod[row] = pod
        if by is not None:
            self._by[row] = by.id
        if reason is not None:
            self._reason[row] = self._reasons.of(reason)
        if node is not None:
            self._node[row] = self._nodes.of(node)
        if flavors is not None:
            self._flavor[row] = self._flavor_code(flavors)
        if detail is not None:
            self._detail[row] = self._detail_text(detail)

    def stint(
        self, job: Job, pods: int, amounts: Amounts | None, start: int, end: int, state: int, lost: int
    ) -> None:
        """See `harness.engine.events.Recorder`."""
        row = len(self._stint_job)
        if row == _CHUNK:
            self._flush_stints()
            row = 0
        self._stint_job.append(job.index)
        self._stint_pods.append(pods)
        self._stint_start.append(start)
        self._stint_end.append(end)
        self._stint_state.append(state)
        self._stint_lost.append(lost)
        if amounts is not None:
            self._stint_amounts[row] = amounts

    def share(self, time: int, queue: str, share: float, weighted: int) -> None:
        """See `harness.engine.events.Recorder`."""
        self._shares += ((time, code, share, weighted) for code in self._behind.get(queue, ()))

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
        self._decisions.close()
        self._stints.close()
        self._results.close(arrived)

    def abandon(self) -> None:
        """Close the files of a replay that failed; its folder is to be removed."""
        for writer in (self._decisions, self._stints):
            writer.close()
        self._timeline.abandon()
        self._results.abandon()

    # --- chunks -------------------------------------------------------------------------------------------

    def _clear_decisions(self) -> None:
        self._time, self._cycle = array("q"), array("q")
        self._action, self._change = array("b"), array("b")
        self._job, self._count = array("i"), array("i")
        self._amounts: dict[int, Amounts] = {}
        self._dropped: dict[int, Amounts] = {}
        self._pod: dict[int, str] = {}
        self._by: dict[int, str] = {}
        self._reason: dict[int, int] = {}
        self._node: dict[int, int] = {}
        self._flavor: dict[int, int] = {}
        self._detail: dict[int, str] = {}

    def _clear_stints(self) -> None:
        self._stint_job, self._stint_pods = array("i"), array("i")
        self._stint_start, self._stint_end, self._stint_lost = array("q"), array("q"), array("q")
        self._stint_state = array("b")
        self._stint_amounts: dict[int, Amounts] = {}

    def _flush_decisions(self) -> None:
        rows = len(self._time)
        if rows == 0:
            return
        job, time, action = as_series(self._job), as_series(self._time), as_series(self._action)
        count, change = as_series(self._count), as_series(self._change)
        self._decisions.write(
            {
                "seq": pl.int_range(self._seq, self._seq + rows, eager=True),
                "time": time,
                "cycle": as_series(self._cycle),
                "action": pl.Series(ACTIONS, dtype=pl.String).gather(action),
                "job": job,
                "job_id": self._job_ids.gather(job),
                "pod": _sparse(self._pod, rows, pl.String()),
                "pods": count,
                "queue": self._queues.gather(job),
                "by": _sparse(self._by, rows, pl.String()),
                "reason": self._reasons.texts(_sparse(self._reason, rows, pl.Int32())),
                "node": self._nodes.texts(_sparse(self._node, rows, pl.Int32())),
                "flavors": self._flavors.texts(_sparse(self._flavor, rows, pl.Int32())),
                "detail": _sparse(self._detail, rows, pl.String()),
            }
        )
        self._timeline.feed(
            time,
            action,
            self._tenant_codes.gather(job),
            change,
            self._held(job, count, self._amounts),
            {
                resource: _sparse(
                    {row: amounts.get(resource, 0) for row, amounts in self._dropped.items()},
                    rows,
                    pl.Int64(),
                ).fill_null(0)
                for resource in (self._totals if self._dropped else ())
            },
            self._shares,
        )
        self._shares.clear()
        self._seq += rows
        self._clear_decisions()

    def _flush_stints(self) -> None:
        if not self._stint_job:
            return
        job, pods = as_series(self._stint_job), as_series(self._stint_pods)
        held = self._held(job, pods, self._stint_amounts)
        self._stints.write(
            {
                "job": job,
                "job_id": self._job_ids.gather(job),
                "queue": self._queues.gather(job),
                "pods": pods,
                "start": as_series(self._stint_start),
                "end": as_series(self._stint_end),
                "state": pl.Series(STINTS, dtype=pl.String).gather(as_series(self._stint_state)),
                "lost": as_series(self._stint_lost),
                **{f"request.{resource}": amounts for resource, amounts in held.items()},
            }
        )
        self._clear_stints()

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

    def _detail_text(self, detail: Mapping[str, Any]) -> str:
        """A detail as text; an object that was seen before is not turned into text again."""
        seen = self._details_seen.get(id(detail))
        if seen is not None and seen[0] is detail:
            return seen[1]
        if len(self._details_seen) > _REMEMBERED:
            self._details_seen.clear()
        text = as_json(detail)
        self._details_seen[id(detail)] = (detail, text)
        return text

    def _flavor_code(self, flavors: Mapping[str, Mapping[str, str]]) -> int:
        """The code of a choice of flavors; an object that was seen before is not turned into text again."""
        seen = self._flavors_seen.get(id(flavors))
        if seen is not None and seen[0] is flavors:
            return seen[1]
        if len(self._flavors_seen) > _REMEMBERED:
            self._flavors_seen.clear()
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
