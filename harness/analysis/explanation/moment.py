"""Explains a queue over a whole run, or the state of one or all queues after a given time."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import polars as pl

from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.names import close_to
from harness.analysis.explanation.sentences import Sentences
from harness.analysis.explanation.standing import waiting
from harness.analysis.explanation.vocabulary import Units
from harness.base.errors import RunError
from harness.base.text import aligned, counted, printable, times
from harness.base.units import format_duration
from harness.runs.epochs import number_at, sentence
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.runs.tenants import timeline_queues

_SHOWN = 10


class Moment:
    """Explains a queue, a moment, or a queue at a moment.

    Args:
        queue: the only queue to explain; None means all queues.
        at: the moment to explain, after its decisions, in microseconds since the run's origin. None means
            the whole run.

    Raises:
        RunError: the run has no job in that queue.
    """

    def __init__(self, run: Run, clock: Clock, units: Units, queue: str | None, at: int | None) -> None:
        self._run = run
        self._clock = clock
        self._units = units
        self.queue = queue
        self.at = at
        self._lives = Histories(run, units)
        if queue is not None and self._own.is_empty():
            known = self._lives.jobs["queue"].unique().sort().to_list()
            raise RunError(f"the run has no jobs of queue {queue!r}", hint=self._meant(queue, known))

    @cached_property
    def _own(self) -> pl.DataFrame:
        """The jobs of the queue. The queue can have its name in the trace, or the one in the timeline."""
        jobs = self._lives.jobs
        found = jobs.filter(pl.col("queue") == self.queue)
        return jobs.filter(self._in_timeline(jobs) == self.queue) if found.is_empty() else found

    @property
    def _is_own(self) -> pl.Expr:
        """Selects the decisions about the jobs of the queue, or all decisions if there is no queue."""
        if self.queue is None:
            return pl.lit(value=True)
        return pl.col("job").is_in(self._own["row"].to_list())

    def _in_timeline(self, jobs: pl.DataFrame) -> pl.Series:
        return timeline_queues(jobs, self._run.info["cluster"]["quota_of"]).cast(pl.String)

    def _meant(self, name: str, known: list[str]) -> str:
        quota_of = self._run.info["cluster"]["quota_of"]
        queues = [queue for queue, quota in quota_of.items() if quota == name]
        if not queues:
            return close_to(name, known)
        return f"{name} is a quota; jobs of {', '.join(queues)} count against it"

    def __str__(self) -> str:
        """Returns the text that `harness explain` prints."""
        return self.text()

    def text(self, *, everything: bool = False) -> str:
        """Returns the answer as text that is safe for a terminal.

        With `everything`, it lists all jobs and decisions instead of only the first ones.
        """
        most = len(self._lives.jobs) + self._run.info["outcome"]["jobs"] if everything else _SHOWN
        parts = (
            [self._of_run(most), self._changed(most)]
            if self.at is None
            else [self._standing(), self._waiting(most), self._changed(most), self._decided(most)]
        )
        return "\n\n".join(part for part in (*parts, self._end()) if part)

    def to_json(self) -> dict[str, Any]:
        """Returns the answer as plain values; times and durations are in microseconds."""
        stopped = None if self._run.stopped is None else self._run.stopped.plain()
        events = [
            event
            for event in self._run.info["cluster"].get("events", ())
            if self.at is None or event["at_us"] <= self.at
        ]
        data: dict[str, Any] = {"schema": "1", "queue": self.queue, "at": self.at, "stopped": stopped}
        if events:
            data["events"] = [{"at": event["at_us"], "edits": event["edits"]} for event in events]
        if self.at is None:
            data["jobs"] = self._jobs.to_dicts()
            data["preempted"], data["preempts"] = (table.to_dicts() for table in self._preemptions)
        else:
            data["queues"] = self._levels.to_dicts()
            data["waiting"] = self._waits.to_dicts()
            data["decisions"] = self._instant.to_dicts()
        return data

    def _end(self) -> str:
        stopped = self._run.stopped
        if stopped is None or (self.at is not None and self.at < stopped.since):
            return ""
        return printable(stopped.told(self._clock.text(stopped.at)))

    # --- a queue over the whole run -----------------------------------------------------------------------

    @cached_property
    def _evictions(self) -> int:
        """How often jobs of the queue were evicted without a preemptor."""
        with reading(self._run.path):
            evicted = self._run.micros("decisions").filter((pl.col("action") == "evict") & self._is_own)
            return int(evicted.select(pl.struct("time", "job").n_unique()).collect().item())

    @cached_property
    def _jobs(self) -> pl.DataFrame:
        jobs = self._own.with_columns(
            wait=pl.col("start_time").fill_null(self._run.window.end) - pl.col("submit_time")
        )
        return jobs.sort("progress_lost", "wait", "row", descending=[True, True, False])

    @cached_property
    def _preemptions(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        with reading(self._run.path):
            rows = (
                self._run.micros("decisions")
                .filter(pl.col("action") == "preempt")
                .select("time", "job", "queue", "by", "reason", victim=self._is_own)
                .join(self._lives.jobs.lazy().select(by="job_id", beneficiary="queue"), on="by", how="left")
                .with_columns(preemptor=pl.col("by").is_in(self._own["job_id"].implode()))
                .collect()
            )

        def table(which: str, theirs: str) -> pl.DataFrame:
            groups = rows.filter(which).group_by(queue=theirs, reason="reason")
            return groups.agg(preemptions=pl.len(), jobs=pl.col("job").n_unique()).sort(
                "preemptions", "queue", "reason", descending=[True, False, False]
            )

        return table("victim", "beneficiary"), table("preemptor", "queue")

    def _of_run(self, most: int) -> str:
        jobs = self._jobs
        states = ", ".join(
            f"{count:,} {state}" for state, count in jobs["state"].value_counts().sort("state").iter_rows()
        )
        lost = format_duration(int(jobs["progress_lost"].to_physical().cast(pl.Int128).sum()))
        taken = jobs.filter(pl.col("state") != "rejected")
        waits = (taken["start_time"] - taken["submit_time"]).drop_nulls().sort().to_list()
        never = taken.height - len(waits)
        within = [
            f"{format_duration(waits[place])} for {of}"
            for of, percent in (("half of them", 50), ("95 of 100", 95), ("all", 100))
            if taken.height and (place := (taken.height - 1) * percent // 100) < len(waits)
        ]
        if within:
            starts = f"first start within {', '.join(within)}"
        else:
            starts = f"{'fewer than half' if waits else 'none'} of them started"
        starts += f"; {never:,} had not started by the end of the run" if never else ""
        several = (jobs.filter(jobs["progress_lost"].to_physical() > 0)["pods"] > 1).any()
        over = ", summed over pods" if several else ""
        preempted, preemptions = (jobs["preemptions"] > 0).sum(), jobs["preemptions"].cast(pl.Int64).sum()
        often = times(int(preemptions))
        was = "was" if preempted == 1 else "were"
        was += " evicted" if self._evictions else " preempted"
        often += f" in total ({self._evictions:,} without a preemptor)" if self._evictions else " in total"
        lines = [
            f"queue {self.queue}: {counted(jobs.height, 'job')} ({states})",
            f"  {starts}",
            f"  {preempted:,} {was}, {often}, and lost {lost} of work{over}",
        ]
        parts = ["\n".join(printable(line) for line in lines)]
        for title, table in zip(("preempted by", "preempts"), self._preemptions, strict=True):
            if not table.is_empty():
                rows = [
                    [queue or "(no job)", reason, f"{count:,}", f"{victims:,}"]
                    for queue, reason, count, victims in table.head(most).iter_rows()
                ]
                parts.append(aligned([[title, "reason", "preemptions", "victims"], *rows], left=(0, 1)))
        hit = jobs.filter(pl.col("preemptions") > 0).head(most)
        if not hit.is_empty():
            rows = [
                [
                    row["job_id"],
                    f"{row['preemptions']:,}",
                    format_duration(row["progress_lost"]),
                    format_duration(row["wait"]),
                ]
                for row in hit.iter_rows(named=True)
            ]
            parts.append(aligned([["jobs that lost most", "preempted", "lost", "first wait"], *rows]))
        return "\n\n".join(parts)

    # --- a moment -----------------------------------------------------------------------------------------

    @cached_property
    def _levels(self) -> pl.DataFrame:
        rows = self._run.micros("timeline").filter(pl.col("time") <= self.at)
        if self.queue is not None:
            rows = rows.filter(pl.col("queue").is_in(self._in_timeline(self._own).unique().to_list()))
        with reading(self._run.path):
            last = rows.group_by("queue", "resource").last().sort("queue", "resource").collect()
        return last.drop("time")

    def _standing(self) -> str:
        assert self.at is not None
        of = "" if self.queue is None else f", queue {self.queue}"
        head = printable(f"at {self._clock.text(self.at)}{of}")
        if self._levels.is_empty():
            return f"{head}: nothing had been submitted"
        epochs = self._run.epochs
        quotas = epochs[number_at(epochs, self.at)].cluster["queues"]
        quota_of = self._run.info["cluster"]["quota_of"]
        rows = []
        for row in self._levels.iter_rows(named=True):
            resource = row["resource"]
            nominal = quotas.get(quota_of.get(row["queue"]), {}).get("nominal", {}).get(resource)
            rows.append(
                [
                    row["queue"],
                    resource,
                    self._units.amount(resource, row["allocated"]),
                    "-" if nominal is None else self._units.amount(resource, nominal),
                    self._units.amount(resource, row["pending"]),
                    f"{row['running_jobs']:,}",
                    f"{row['pending_jobs']:,}",
                ]
            )
        titles = ["queue", "resource", "held", "quota", "waited for", "jobs holding", "jobs waiting"]
        return f"{head}\n\n{aligned([titles, *rows], left=(0, 1))}"

    @property
    def _waits(self) -> pl.DataFrame:
        if self.queue is None:
            return self._all_waits
        return self._all_waits.filter(pl.col("job_id").is_in(self._own["job_id"].implode()))

    @cached_property
    def _all_waits(self) -> pl.DataFrame:
        rows = self._run.micros("decisions").filter(pl.col("time") <= self.at)
        over = (pl.col("finish_time") <= self.at).fill_null(value=False)
        finished = self._lives.jobs.filter(over)["row"].cast(pl.Int32)
        with reading(self._run.path):
            last = waiting(rows).filter(~pl.col("job").is_in(finished.implode())).collect()
            why = pl.col("action").is_in(["refuse", "preempt", "nominate"])
            preempts = pl.col("action") == "preempt"
            tried = (
                self._run.micros("decisions")
                .filter((pl.col("time") <= self.at) & why)
                .with_columns(job=pl.when(preempts).then("by_job").otherwise("job"))
                .filter((pl.col("action") != "nominate") | ~preempts.any().over("job", "time"))
                .group_by("job")
                .agg(refused=pl.col("seq").last(), attempt=pl.col("time").last())
            )
            in_wait = pl.when(pl.col("attempt") >= pl.col("since"))
            return (
                last.lazy().join(tried, on="job", how="left").sort("since", "job")
                .with_columns(refused=in_wait.then("refused"), attempt=in_wait.then("attempt"))
                .select("job_id", "refused", "since", "attempt").collect()
            )  # fmt: skip

    def _waiting(self, most: int) -> str:
        waits = self._waits
        if waits.is_empty():
            return ""
        assert self.at is not None
        lines = [f"{counted(waits.height, 'job')} held nothing (longest wait first)"]
        shown = waits.head(most)
        rows = self._decisions(pl.col("seq").is_in(shown["refused"].drop_nulls().to_list()))
        tried = {row["seq"]: row for row in rows.iter_rows(named=True)}
        for job, number, since, attempt in shown.iter_rows():
            line = f"  {job} since {self._clock.text(since)} ({format_duration(self.at - since)})"
            if number is None:
                line += self._behind(job)
            else:
                row = tried[number]
                if row["action"] == "preempt":
                    said = f"it preempts job {row['job_id']} ({row['reason']})"
                else:
                    said = self._sentence(row)
                line += f": at {self._clock.text(attempt)} {said}"
            lines.append(line)
        if waits.height > most:
            lines.append(f"  … and {waits.height - most:,} more")
        return "\n".join(printable(line) for line in lines)

    def _behind(self, job: str) -> str:
        first = self._last_tried.get(self._lives.line(job))
        return "" if first is None else f": not tried yet; the last job tried in its queue is {first}"

    @cached_property
    def _last_tried(self) -> dict[str, str]:
        tried = self._all_waits.filter(pl.col("refused").is_not_null()).sort("refused")
        return {self._lives.line(job): job for job in tried["job_id"]}

    @cached_property
    def _instant(self) -> pl.DataFrame:
        rows = self._run.micros("decisions").filter((pl.col("time") <= self.at) & self._is_own)
        with reading(self._run.path):
            return rows.filter(pl.col("time") == pl.col("time").max()).collect()

    def _decided(self, most: int) -> str:
        rows = self._instant
        if rows.is_empty():
            return ""
        lines = [f"last decisions, at {self._clock.text(rows['time'][0])}"]
        lines += [
            f"  job {row['job_id']} of queue {row['queue']}: {self._sentence(row)}"
            for row in rows.head(most).iter_rows(named=True)
        ]
        if rows.height > most:
            lines.append(f"  … and {rows.height - most:,} more")
        return "\n".join(printable(line) for line in lines)

    def _changed(self, most: int) -> str:
        told = [
            (event["at_us"], f"  {self._clock.text(event['at_us'])}: {sentence(edit)}")
            for event in self._run.info["cluster"].get("events", ())
            for edit in event["edits"]
            if self.at is None or event["at_us"] <= self.at
        ]
        if self.at is not None:
            told = [each for each in told if each[0] == told[-1][0]]
        lines = [line for _, line in told]
        more = [f"  … and {len(lines) - most:,} more"] if len(lines) > most else []
        title = "changes of the cluster" if self.at is None else "last change of the cluster"
        return "\n".join(map(printable, [title, *lines[:most], *more])) if lines else ""

    def _decisions(self, which: pl.Expr) -> pl.DataFrame:
        with reading(self._run.path):
            return self._run.micros("decisions").filter(which).collect()

    def _sentence(self, row: dict[str, Any]) -> str:
        job = self._lives.row(row["job_id"])
        (event,) = self._lives.events([row])
        return Sentences(self._units, job["queue"], job["priority"], job["pods"], self._clock.text).about(
            event
        )
