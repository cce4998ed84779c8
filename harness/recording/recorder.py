"""Keeps what the engine reports, in columns, and writes it to Parquet chunk by chunk.

Memory follows the chunk, not the length of the replay.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import polars as pl

from harness.engine.events import ACTIONS, NEVER, STINTS, Amounts, Fact
from harness.job import Job
from harness.memo import Memo
from harness.recording import schemas
from harness.recording.job_results import JobResults
from harness.recording.parquet import TableWriter, TimeKind, as_series
from harness.recording.timeline import Change, Timeline
from harness.tenants import Tenants, coded

if TYPE_CHECKING:
    from harness.trace.jobs import Jobs

_CHUNK = 1 << 17  # rows; large enough that the cost of a chunk is nothing, small enough that its memory is

_FACTS = 1 << 15
"""Facts that wait to be written: as objects they take ten times the memory of their row."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict, check_circular=False)


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
        self._texts = _Texts()
        self._seq = 0
        self._facts: list[Fact] = []
        self._flavors: list[str | None] = []
        self._details: list[str | None] = []
        self._stints = _Stints()
        self._results = JobResults(folder / "jobs.parquet", jobs, kind, _CHUNK)

    def record(self, fact: Fact) -> None:
        """See `harness.engine.events.Recorder`."""
        self._facts.append(fact)
        # At once: what cannot be written is the fault of the policy that has just said it.
        self._flavors.append(self._texts.of(fact.flavors))
        self._details.append(self._texts.of(fact.detail))
        if len(self._facts) == _FACTS:
            self._flush_facts()

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
        self._flush_facts()
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

    def _flush_facts(self) -> None:
        facts, self._facts = self._facts, []
        flavors, self._flavors = self._flavors, []
        details, self._details = self._details, []
        rows = len(facts)
        if rows == 0:
            return
        job = _numbers("i", [fact.job.index for fact in facts])
        time = _numbers("q", [fact.time for fact in facts])
        action = _numbers("b", [fact.action for fact in facts])
        pods = _numbers("i", [fact.pods for fact in facts])
        pod = _numbers("i", [fact.pod for fact in facts])
        by = _numbers("i", [NEVER if fact.by is None else fact.by.index for fact in facts])
        successor = _numbers("i", [fact.successor for fact in facts])
        change = Change(
            quota=_numbers("b", [fact.quota for fact in facts]),
            alive=_numbers("b", [fact.alive for fact in facts]),
            holding=_numbers("b", [fact.holding for fact in facts]),
        )
        pod, by = pod.set(pod == NEVER, None), by.set(by == NEVER, None)
        self._decisions_file.write(
            {
                "seq": pl.int_range(self._seq, self._seq + rows, eager=True),
                "time": time,
                "cycle": _numbers("q", [fact.cycle for fact in facts]),
                "action": pl.Series(ACTIONS, dtype=pl.String).gather(action),
                "job": job,
                "job_id": self._job_ids.gather(job),
                "pod": pl.Series([fact.pod_name for fact in facts], dtype=pl.String),
                "pod_number": pod,
                "successor": successor.set(pod.is_null(), None),
                "pods": pods,
                "holding": change.holding,
                "queue": self._queues.gather(job),
                "by": self._job_ids.gather(by),
                "by_job": by,
                "reason": pl.Series([fact.reason for fact in facts], dtype=pl.String),
                "node": pl.Series([fact.node for fact in facts], dtype=pl.String),
                "flavors": pl.Series(flavors, dtype=pl.String),
                "detail": pl.Series(details, dtype=pl.String),
            }
        )
        self._timeline.feed(
            time,
            action,
            self._tenant_codes.gather(job),
            change,
            self._held(job, pods, _few([fact.amounts for fact in facts])),
            self._few_amounts([fact.dropped for fact in facts]),
            self._few_amounts([fact.unused for fact in facts]),
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

    def _few_amounts(self, amounts: Sequence[Amounts | None]) -> dict[str, pl.Series]:
        """Resource -> amounts that few rows have, 0 elsewhere; empty where no row has any."""
        few = _few(amounts)
        return {
            resource: pl.zeros(len(amounts), pl.Int64, eager=True).scatter(
                list(few), [each.get(resource, 0) for each in few.values()]
            )
            for resource in (self._totals if few else ())
        }


def as_json(value: Mapping[str, Any]) -> str:
    """Canonical JSON: equal values give equal text."""
    return _JSON.encode(value)


class _Texts:
    """Objects as canonical JSON; one that was seen before is not turned into text again."""

    def __init__(self) -> None:
        self._seen: Memo[int, tuple[object, str]] = Memo()

    def of(self, value: Mapping[str, Any] | None) -> str | None:
        if value is None:
            return None
        seen = self._seen.get(id(value))
        if seen is not None and seen[0] is value:
            return seen[1]
        text = as_json(value)
        self._seen[id(value)] = (value, text)
        return text


def _numbers(typecode: str, values: list[int]) -> pl.Series:
    return as_series(array(typecode, values))


def _few(amounts: Sequence[Amounts | None]) -> dict[int, Amounts]:
    """Row -> amounts, for the few rows that have any."""
    return {row: each for row, each in enumerate(amounts) if each is not None}
