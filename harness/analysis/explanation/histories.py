"""Reads the histories of jobs from the tables of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from harness.analysis.explanation.history import (
    EVICTIONS,
    PREEMPTS,
    STARTS,
    Behind,
    Event,
    History,
    Other,
    Stretch,
    filled_in,
)
from harness.analysis.explanation.holders import Holders, with_holders
from harness.analysis.explanation.standing import standings
from harness.analysis.explanation.vocabulary import Figures, Units, read, share_of
from harness.base.grouping import summed
from harness.base.tables.schemas import LOST_BEFORE, RAN_BEFORE
from harness.base.units import SECOND
from harness.models.kube.refusal import UNSCHEDULABLE
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.runs.tenants import timeline_queues

_ATTEMPTS = ("refuse", "reject", "preempt")
_SOON = SECOND
"""By default, Kueue tries a job this long after the job's pods are gone."""

_REASONS = ("refuse", "reject", "nominate", PREEMPTS)

_BACKS_OFF = "PodsReadyTimeout"
"""The reason of evictions after which a job stays out of its queue for a time that the eviction names."""

_TOGETHER = 500  # jobs, whose holders one scan of the timeline finds; a scan costs as much for one job


class Histories:
    """Reads the histories of jobs from the tables of a run.

    Attributes:
        jobs: the table `jobs.parquet`, with a column `row` that numbers the rows. Times are in microseconds
            since the run's origin.
    """

    def __init__(self, run: Run, units: Units) -> None:
        self._run = run
        self._units = units
        self._attempts: dict[str, pl.DataFrame] = {}
        self._beside: dict[int, tuple[str, Event]] = {}
        self._holders = Holders(run, units)
        self._on_nodes = run.info["cluster"]["nodes"] > 0
        with reading(run.path):
            self.jobs = run.micros("jobs").with_row_index("row").collect()
        self._rows = {name: row for row, name in enumerate(self.jobs["job_id"])}
        quota_of = run.info["cluster"]["quota_of"]
        with_quota = {name: quota for name, quota in quota_of.items() if quota is not None}
        self._lines = timeline_queues(self.jobs, quota_of).cast(pl.String).replace(with_quota)

    def __contains__(self, name: object) -> bool:
        """Returns True if the run has a job with this name."""
        return name in self._rows

    @property
    def names(self) -> Sequence[str]:
        """The names of the run's jobs, in order of arrival."""
        return list(self._rows)

    def row(self, name: str) -> Mapping[str, Any]:
        """Returns the row of a job in `jobs.parquet`."""
        return self.jobs.row(self._rows[name], named=True)

    def line(self, name: str) -> str:
        """Returns the quota that a job counts against, or its queue if it has no quota.

        Jobs of several queues wait in one line if they count against one quota. Jobs of equally named queues
        in different namespaces can wait in different lines.
        """
        return str(self._lines[self._rows[name]])

    def of(self, names: Sequence[str], at: int | None = None) -> Iterator[History]:
        """Yields the histories of the given jobs, in this order. The tables are read only once.

        With `at`, what other jobs explain about the wait at that time is from that time or earlier.
        """
        rows = [self._rows[name] for name in names]
        with reading(self._run.path):
            own = pl.col("job").is_in(rows)
            made = pl.col("by").is_in(list(names))
            decisions = self._run.micros("decisions").filter(own | made).collect()
            stints = self._run.micros("stints").filter(own & (pl.col("state") == "progress")).collect()
        about: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for row in decisions.iter_rows(named=True):
            if row["job_id"] in about:
                about[row["job_id"]].append(row)
            if row["by"] in about:
                about[row["by"]].append({**row, "action": PREEMPTS})
        progress: dict[str, dict[int, list[dict[str, Any]]]] = {}
        for row in stints.iter_rows(named=True):
            progress.setdefault(row["job_id"], {}).setdefault(row["end"], []).append(row)
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            events = {name: self._told(name, about[name], progress.get(name, {})) for name in some}
            held = self._holders.of(each for name in some for each in events[name])
            for name in some:
                yield self._life(name, about[name], with_holders(events[name], self._units, held), at)

    def _told(
        self, name: str, rows: list[dict[str, Any]], progress: Mapping[int, list[dict[str, Any]]]
    ) -> list[Event]:
        before = self.row(name).get(RAN_BEFORE) or 0
        return filled_in(self._events(rows, progress, before))

    def _life(self, name: str, rows: list[dict[str, Any]], events: list[Event], at: int | None) -> History:
        stretches = tuple(_stretches(events))
        waits = [*stretches, Stretch((), stretches[-1].returned, None, None)]
        endings = ["", *(each.ending[0] for each in stretches)]
        behind = {
            wait.since: None if ending == _BACKS_OFF else self._behind(name, wait, wait.since, at)
            for wait, ending in zip(waits, endings, strict=True)
            if wait.since is not None
        }
        own = [row for row in rows if row["action"] != PREEMPTS]
        stood = standings(own, on_nodes=self._on_nodes)
        return History(self.row(name), stretches, behind, self._run.window.end, stood)

    def events(self, rows: list[dict[str, Any]]) -> list[Event]:
        """Converts decisions about one job into events, without the costs of evictions."""
        events = self._with_figures(rows, self._events(rows, None))
        return with_holders(events, self._units, self._holders.of(events))

    def _with_figures(self, rows: list[dict[str, Any]], events: list[Event]) -> list[Event]:
        """Adds figures to a job's events from the earlier decisions that recorded these figures."""
        if not any(each.figures.again for each in events):
            return events
        with reading(self._run.path):
            which = (pl.col("job") == rows[0]["job"]) & (pl.col("seq") < rows[0]["seq"])
            before = self._run.micros("decisions").filter(which).collect()
        told = [*self._events(before.to_dicts(), None), *events]
        return filled_in(told)[-len(events) :]

    def _events(
        self, rows: list[dict[str, Any]], progress: Mapping[int, list[dict[str, Any]]] | None, before: int = 0
    ) -> list[Event]:
        """Converts decisions about one job into events.

        `progress` has the job's spans of progress by the time at which they end, or is None if they were not
        read. `before` is how long the job had run before the replay, which counts for its first eviction.
        """
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            other = row["queue"] if row["action"] == PREEMPTS else row["by"]
            groups.setdefault((row["time"], row["action"], row["reason"], other), []).append(row)
        told: set[int] = set()
        events = []
        for (time, what, reason, _), group in groups.items():
            first = group[0]
            nodes = summed((row["node"], row["pods"]) for row in group if row["node"] is not None)
            spans, ran = None, None
            if what in EVICTIONS and time not in told and progress is not None:
                told.add(time)
                spans = progress.get(time, [])
                ran = before + max((span["end"] - span["start"] for span in spans), default=0)
                before = 0
            lost = [(span, span["lost"] + span.get(LOST_BEFORE, 0)) for span in spans or ()]
            events.append(
                Event(
                    time,
                    what,
                    sum(row["pods"] for row in group),
                    reason or "",
                    _figures(group) if what in (PREEMPTS, "nominate") else read(first["detail"]),
                    self._others(what, group),
                    dict(sorted(nodes.items())),
                    first["flavors"] or "",
                    what == "admit" and not self._on_nodes and first.get("holding") == 0,
                    ran,
                    sum(gone * span["pods"] for span, gone in lost),
                    sum(span["pods"] for span, gone in lost if gone),
                    _lost_amounts(lost),
                    decisions=len(group),
                )
            )
        return events

    def _others(self, what: str, group: list[dict[str, Any]]) -> tuple[Other, ...]:
        if what == PREEMPTS:
            pods = summed((row["job_id"], row["pods"]) for row in group)
        elif group[0]["by"] is not None:
            pods = {group[0]["by"]: 0}
        else:
            return ()
        rows = {name: self.row(name) for name in sorted(pods)}
        shares = {}
        if what == PREEMPTS and len(rows) > 1:
            shares = {row["job_id"]: read(row["detail"]).shares for row in reversed(group)}
        return tuple(
            Other(name, row["queue"], row["priority"], pods[name], shares.get(name, {}))
            for name, row in rows.items()
        )

    def _behind(self, name: str, stretch: Stretch, since: int, at: int | None) -> Behind | None:
        """Returns the last attempt for another job that waited in the same line at the same time.

        The attempt led to a refusal or to preemptions. If there is no such attempt, the function returns the
        first rejected job of the line, because Kueue keeps rejected jobs at the head of a StrictFIFO queue.
        The result is None if the wait, or the time until the job's own first reason, lasts a second or less.

        `since` is when the wait began, which is the beginning of `stretch`.
        """
        own = next(
            (each.time for each in stretch.events if each.what in _REASONS and each.time >= since), None
        )
        ends = stretch.start if own is None else own
        if ends is not None and ends <= since + _SOON:
            return None
        until = self._run.window.end if ends is None else ends - 1
        if at is not None and since <= at:
            until = min(until, at)
        rows = self._in_line(self.line(name)).filter((pl.col("time") <= until) & (pl.col("job_id") != name))
        started = pl.col("action").is_in(STARTS) & (pl.col("time") <= since)
        gone = rows.filter(started).group_by("job_id").agg(since=pl.col("seq").max())
        found = (
            rows.filter(pl.col("action").is_in(_ATTEMPTS))
            .join(gone, on="job_id", how="left", maintain_order="left")
            .filter((pl.col("time") >= since) | (pl.col("seq") > pl.col("since").fill_null(-1)))
        )
        if found.is_empty():
            return None
        tried = found.filter(pl.col("action") != "reject").tail(1)
        among = (tried if len(tried) else found).select("seq", "job_id").iter_rows()
        other, event = self._attempt(*max(among, key=lambda row: self.row(row[1])["priority"]))
        return Behind(other, self.row(other)["queue"], event, own)

    def _attempt(self, seq: int, name: str) -> tuple[str, Event]:
        if seq not in self._beside:
            decisions = self._run.micros("decisions")
            with reading(self._run.path):
                rows = decisions.filter(pl.col("seq") == seq).collect().to_dicts()
                if rows[0]["job_id"] != name:
                    same = (pl.col("by") == name) & (pl.col("time") == rows[0]["time"])
                    made = decisions.filter(same & (pl.col("action") == "preempt")).collect()
                    rows = [{**row, "action": PREEMPTS} for row in made.iter_rows(named=True)]
            event = self.events(rows)[-1]
            self._beside[seq] = name, event
        return self._beside[seq]

    def _in_line(self, line: str) -> pl.DataFrame:
        """Returns the attempts, rejections and starts of jobs in a line. Each line is read only once.

        A preemption counts as an attempt for the job that benefits from it. If jobs get quota before nodes,
        the refusal of a node is no attempt, because its job has left the queue.
        """
        if line not in self._attempts:
            jobs = self.jobs.filter(self._lines == line)
            there = pl.col("job").is_in(jobs["row"].cast(pl.Int32).implode())
            own = there & pl.col("action").is_in(["refuse", "reject", *STARTS])
            made = pl.col("by").is_in(jobs["job_id"].implode()) & (pl.col("action") == "preempt")
            with reading(self._run.path):
                rows = (
                    self._run.micros("decisions")
                    .filter(own | made)
                    .select(
                        "seq", "time", "action", "reason",
                        job_id=pl.when(made).then("by").otherwise("job_id"),
                    )
                    .collect()
                )  # fmt: skip
            no_node = (pl.col("reason") == UNSCHEDULABLE) & (pl.col("action") == "admit").any()
            self._attempts[line] = rows.filter(~no_node.fill_null(value=False)).sort("seq")
        return self._attempts[line]


def _figures(group: Sequence[Mapping[str, Any]]) -> Figures:
    """Merges the details of a preemption's victims or of a job's nominations.

    The merged figures have the shares before and after all removals.
    """
    details = [read(text) for text in dict.fromkeys(row["detail"] for row in group)]
    first = details[0]
    if len(details) == 1:
        return first
    shares: dict[str, tuple[str, str]] = {}
    taken: dict[str, dict[str, int]] = {}
    for detail in details:
        for name, (before, after) in detail.shares.items():
            most, least = shares.get(name, (before, after))
            shares[name] = max(most, before, key=share_of), min(least, after, key=share_of)
        for name, amounts in detail.taken.items():
            total = taken.setdefault(name, {})
            for label, amount in amounts.items():
                total[label] = total.get(label, 0) + amount
    usage = {name: each for detail in details for name, each in detail.usage.items()}
    quota = {name: each for detail in details for name, each in detail.quota.items()}
    alike = all((each.node, each.criterion) == (first.node, first.criterion) for each in details)
    if not alike:
        first = replace(first, node="", criterion="", candidates=0)
    victims = {name: each for detail in details for name, each in detail.victims.items()}
    return replace(first, shares=shares, taken=taken, usage=usage, quota=quota, victims=victims)


def _lost_amounts(spans: Sequence[tuple[Mapping[str, Any], int]]) -> dict[str, int]:
    """Sums up the resource-microseconds lost, by resource. Each span comes with its lost time."""
    return summed(
        (column.removeprefix("request."), amount * time)
        for span, time in spans
        for column, amount in span.items()
        if column.startswith("request.") and amount and time
    )


def _stretches(events: Sequence[Event]) -> Iterator[Stretch]:
    stretch: list[Event] = []
    since: int | None = None
    for place, event in enumerate(events):
        stretch.append(event)
        over = any(each.what in EVICTIONS and each.time == event.time for each in stretch)
        last = place + 1 == len(events)
        if last or (over and events[place + 1].time != event.time):
            cut = next((at for at, each in enumerate(stretch) if each.what in EVICTIONS), len(stretch))
            since = _return(stretch[:cut]) if since is None else since
            start = next((each.time for each in stretch if each.what in STARTS), None)
            returned = _return(stretch[cut:])
            yield Stretch(tuple(stretch), since, start, returned)
            stretch, since = [], returned


def _return(events: Sequence[Event]) -> int | None:
    return next((each.time for each in events if each.what in ("submit", "requeue")), None)
