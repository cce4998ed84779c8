"""Exports a run as a trace for Perfetto's viewer and trace processor.

The trace consists of protocol buffers. The cluster and every queue have tracks with counters. Further tracks
show when the jobs of each queue have quota or resources, and which pods each node has. A preemption is a flow
from an event on a track of the preemptor's queue to the victim's slice. The field numbers come from
`perfetto/trace/perfetto_trace.proto`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

import polars as pl

from harness.analysis.export.holding import Preemption, Stay, holding
from harness.analysis.export.protobuf import double, fixed64, integer, message, text
from harness.analysis.metrics.levels import quotas_named
from harness.base.grouping import grouped
from harness.base.units import format_amount, format_duration
from harness.plugins.measurement import Window
from harness.runs.epochs import Step
from harness.runs.folder import reading
from harness.runs.run import Run
from harness.runs.tenants import timeline_queues

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_PACKET, _TIMESTAMP, _SEQUENCE, _SEQUENCE_FLAGS, _CLOCKS, _EVENT, _DESCRIPTOR = 1, 8, 10, 13, 6, 11, 60
_TYPE, _TRACK, _NAME, _ARGUMENT, _COUNT, _AMOUNT, _FLOW, _FLOW_END = 9, 11, 23, 4, 30, 44, 47, 48
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_REALTIME, _BOOTTIME = 1, 6
_EXPLICIT = 3
"""The value that makes the viewer sort the children of a track by their ranks."""

_ONE_SEQUENCE = integer(_SEQUENCE, 1)


def write_perfetto(run: Run, window: Window, file: SupportsWrite[bytes]) -> None:
    """Writes what happened within a window of a run.

    Spans that extend beyond the window are cut off at its ends. Times in the trace are in nanoseconds. If
    jobs have timestamps, times are relative to the run's origin, and the viewer can show the timestamps.
    Otherwise, times are durations as in the run's tables.

    Raises:
        RunError: a table is damaged, or the run is so old that it does not record when jobs hold resources.
    """
    file.write(_packet(_ONE_SEQUENCE + integer(_SEQUENCE_FLAGS, 1) + _clocks(run)))
    for packet in _Trace(run, window).packets():
        file.write(packet)


def _packet(content: bytes) -> bytes:
    return message(_PACKET, content)


def _clocks(run: Run) -> bytes:
    """Returns a snapshot that relates 0 on the trace's clock to a date, if the trace has timestamps."""
    origin = run.info["trace"]["origin_us"] * 1000
    if run.info["trace"].get("times") != "timestamp" or origin < 0:
        return b""
    clocks = [(_BOOTTIME, 0), (_REALTIME, origin)]
    snapshot = b"".join(message(1, integer(1, clock) + integer(2, time)) for clock, time in clocks)
    return integer(_TIMESTAMP, 0) + message(_CLOCKS, snapshot)


class _Trace:
    """Generates the packets of a trace. The packets of each track are in order of time."""

    def __init__(self, run: Run, window: Window) -> None:
        self._run = run
        self._window = window
        trace = run.info["trace"]
        self._origin: int = 0 if trace.get("times") == "timestamp" else trace["origin_us"]
        self._uuids = count(1)
        self._holding = holding(run, window)
        self._shown = {each.number: each for each in self._holding.preemptions}
        with reading(run.path):
            jobs = run.micros("jobs").collect()
        shown = timeline_queues(jobs, run.info["cluster"]["quota_of"])
        self._jobs = jobs.with_columns(shown.alias("shown queue")).to_dicts()
        self._lost = _lost_work(run)

    def packets(self) -> Iterator[bytes]:
        """Yields all packets. The event at which a flow begins comes before the event at which it ends."""
        queues = sorted({job["shown queue"] for job in self._jobs})
        of_queues: dict[str, list[Stay]] = {queue: [] for queue in queues}
        for stay in self._holding.jobs:
            of_queues[self._jobs[stay.job]["shown queue"]].append(stay)
        cluster = self._track("cluster", rank=0)
        yield from self._counters("cluster", cluster, None)
        yield from self._limits(cluster)
        top = self._track("queues", rank=1)
        yield top.packet
        tracks = {}
        for rank, queue in enumerate(queues):
            tracks[queue] = track = self._track(queue, top, rank)
            yield from self._counters(queue, track, queue)
        yield from self._preemptors(tracks)
        for queue in queues:
            yield from self._stays(of_queues[queue], "jobs", tracks[queue])
        nodes = grouped((stay.node or "", stay) for stay in self._holding.pods)
        if nodes:
            top = self._track("nodes", rank=2)
            yield top.packet
            for rank, node in enumerate(sorted(nodes)):
                track = self._track(node, top, rank)
                yield track.packet
                yield from self._stays(nodes[node], "pods", track)

    # --- tracks ---------------------------------------------------------------------------------------------

    def _track(self, name: str, parent: _Track | None = None, rank: int = 0, more: bytes = b"") -> _Track:
        uuid = next(self._uuids)
        described = integer(1, uuid) + text(2, name) + more
        if parent is not None:
            described += integer(5, parent.uuid)
        described += integer(11, _EXPLICIT) + integer(12, rank)
        return _Track(uuid, _packet(_ONE_SEQUENCE + message(_DESCRIPTOR, described)))

    def _counters(self, name: str, track: _Track, queue: str | None) -> Iterator[bytes]:
        yield track.packet
        rank = count(10)
        levels = _levels(self._run, self._window, queue)
        for resource in self._run.resources:
            of_resource = levels.filter(pl.col("resource") == resource)
            for what in ("allocated", "pending"):
                yield from self._counter(
                    f"{what} {resource}", _unit(resource), track, next(rank), of_resource.select("time", what)
                )
        jobs = levels.filter(pl.col("resource") == self._run.resources[0])
        for what, column in (("jobs waiting", "pending_jobs"), ("jobs holding resources", "running_jobs")):
            yield from self._counter(what, "", track, next(rank), jobs.select("time", column))

    def _limits(self, cluster: _Track) -> Iterator[bytes]:
        run, quotas = self._run, self._track("quotas", rank=3)
        changing = [(each, run.capacity_steps(each)) for each in run.resources]
        for rank, (resource, levels) in enumerate(changing, 100):
            if len(levels) > 1:
                yield from self._counter(
                    f"capacity {resource}", _unit(resource), cluster, rank, self._limit(levels)
                )
        for place, (quota, named) in enumerate(sorted(quotas_named(run).items())):
            of_quota = [(each, run.nominal_steps(quota, each)) for each in run.resources if each in named]
            of_quota = [(each, levels) for each, levels in of_quota if len(levels) > 1]
            if not of_quota:
                continue
            if quotas.packet:
                yield quotas.packet
                quotas.packet = b""
            track = self._track(quota, quotas, place)
            yield track.packet
            for rank, (resource, levels) in enumerate(of_quota, 10):
                yield from self._counter(
                    f"nominal {resource}", _unit(resource), track, rank, self._limit(levels)
                )

    def _limit(self, levels: Sequence[Step]) -> pl.DataFrame:
        """A missing limit counts as 0."""
        window = self._window
        before = [each for each in levels if each.time <= window.start][-1:]
        within = [each for each in levels if window.start < each.time <= window.end]
        rows = [(max(each.time, window.start), each.amount or 0) for each in (*before, *within)]
        return pl.DataFrame(rows, schema={"time": pl.Int64, "level": pl.Int64}, orient="row")

    def _counter(
        self, name: str, unit: str, parent: _Track, rank: int, levels: pl.DataFrame
    ) -> Iterator[bytes]:
        track = self._track(name, parent, rank, message(8, text(6, unit) if unit else b""))
        yield track.packet
        head = integer(_TYPE, _COUNTER) + integer(_TRACK, track.uuid)
        last = None
        for time, value in levels.iter_rows():
            if value != last:
                shown = double(_AMOUNT, value / 1000) if unit == "cores" else integer(_COUNT, value)
                yield self._event(time, head + shown)
                last = value

    # --- slices and flows -----------------------------------------------------------------------------------

    def _stays(self, stays: Sequence[Stay], name: str, parent: _Track) -> Iterator[bytes]:
        """Yields slices. Stays without overlaps share a track. The viewer joins tracks with equal names."""
        for lane in _lanes(stays):
            track = self._track(name, parent, rank=1)
            yield track.packet
            for stay in lane:
                yield from self._slice(stay, track)

    def _slice(self, stay: Stay, track: _Track) -> Iterator[bytes]:
        window, job = self._window, self._jobs[stay.job]
        of_track = integer(_TRACK, track.uuid)
        name = job["job_id"] if stay.pod is None else _pod_name(job, stay.pod)
        arguments = b"".join(_argument(key, value) for key, value in self._told(stay, job).items())
        yield self._event(
            max(stay.start, window.start), integer(_TYPE, _BEGIN) + of_track + text(_NAME, name) + arguments
        )
        for number in stay.hits:
            yield from self._hit(number, of_track)
        yield self._event(min(stay.end, window.end), integer(_TYPE, _END) + of_track)

    def _told(self, stay: Stay, job: Mapping[str, object]) -> dict[str, str | int]:
        lost = 0 if stay.pod is not None else self._lost_in(stay)
        told: dict[str, str | int | None] = {
            "job": str(job["job_id"]),
            "queue": str(job["queue"]),
            "namespace": _word(job["namespace"]),
            "user": _word(job["user"]),
            "priority": _number(job["priority"]),
            "pods": _number(job["pods"]) if stay.pod is None else 1,
            "submitted after": format_duration(self._origin + _number(job["submit_time"])),
            "began after": format_duration(self._origin + stay.start),
            "waited for it": format_duration(stay.waited),
            "with quota only for": _quota_only(stay),
            "ended": stay.how,
            "ended after": format_duration(self._origin + stay.end),
            "lost work": format_duration(lost) if lost else None,
        }
        for resource in self._run.resources:
            asked = _number(job[f"request.{resource}"])
            if asked and stay.pod is None:
                told[f"request {resource}"] = format_amount(resource, asked)
        return {key: value for key, value in told.items() if value is not None}

    def _lost_in(self, stay: Stay) -> int:
        """Adds up the progress that evictions discarded during a stay, which includes any grace period."""
        return sum(lost for end, lost in self._lost.get(stay.job, ()) if stay.start < end <= stay.end)

    def _hit(self, number: int, of_track: bytes) -> Iterator[bytes]:
        found = self._shown.get(number)
        if found is None:
            return
        by = f"preempted by {found.by}" if found.by else "preempted"
        event = integer(_TYPE, _INSTANT) + of_track + text(_NAME, by) + _argument("reason", found.reason)
        yield self._event(found.time, event + fixed64(_FLOW_END, number + 1))

    def _preemptors(self, tracks: Mapping[str, _Track]) -> Iterator[bytes]:
        """Yields preemptions as events on the tracks of their preemptors' queues, where the flows start."""
        groups: dict[tuple[str, str], dict[tuple[int, str], list[Preemption]]] = {}
        for each in self._holding.preemptions:
            where = "" if each.by_job is None else self._jobs[each.by_job]["shown queue"]
            made = groups.setdefault((where, "preemptions"), {})
            made.setdefault((each.time, each.by), []).append(each)
        for (queue, name), of_queue in sorted(groups.items()):
            track = self._track(name, tracks.get(queue), rank=0)
            yield track.packet
            of_track = integer(_TYPE, _INSTANT) + integer(_TRACK, track.uuid)
            for (time, by), preemptions in of_queue.items():
                victims = list(dict.fromkeys(self._jobs[each.victim]["job_id"] for each in preemptions))
                what = victims[0] if len(victims) == 1 else f"{len(victims)} jobs"
                event = of_track + text(_NAME, f"{by or 'the scheduler'} preempts {what}")
                event += _argument("preemptor", by) + _argument("victims", ", ".join(victims))
                event += _argument("pods", sum(each.pods for each in preemptions))
                event += _argument("reason", ", ".join(dict.fromkeys(each.reason for each in preemptions)))
                yield self._event(time, event + b"".join(fixed64(_FLOW, p.number + 1) for p in preemptions))

    def _event(self, time: int, event: bytes) -> bytes:
        stamp = integer(_TIMESTAMP, (self._origin + time) * 1000)
        return _packet(stamp + _ONE_SEQUENCE + message(_EVENT, event))


class _Track:
    def __init__(self, uuid: int, packet: bytes) -> None:
        self.uuid = uuid
        self.packet = packet


def _unit(resource: str) -> str:
    return {"cpu": "cores", "memory": "bytes", "ephemeral-storage": "bytes"}.get(resource, "")


def _argument(name: str, value: str | int) -> bytes:
    shown = text(6, value) if isinstance(value, str) else integer(4, value)
    return message(_ARGUMENT, _key(name) + shown)


@cache
def _key(name: str) -> bytes:
    return text(10, name)


def _quota_only(stay: Stay) -> str | None:
    until = stay.end if stay.held is None else stay.held
    return format_duration(until - stay.start) if stay.pod is None and until > stay.start else None


def _word(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _pod_name(job: Mapping[str, object], pod: tuple[int, int]) -> str:
    """Returns a pod's name as in decisions: the job's name, with a number if the job has several pods."""
    number, successor = pod
    name = str(job["job_id"]) if job["pods"] == 1 else f"{job['job_id']}-{number}"
    return f"{name}-r{successor}" if successor else name


def _lanes(stays: Iterable[Stay]) -> list[list[Stay]]:
    """Arranges stays in as few rows as possible without overlaps, in order of their starts."""
    lanes: list[list[Stay]] = []
    free: list[tuple[int, int]] = []
    for stay in stays:
        if free and free[0][0] <= stay.start:
            _, number = heapq.heappop(free)
            lanes[number].append(stay)
        else:
            number = len(lanes)
            lanes.append([stay])
        heapq.heappush(free, (stay.end, number))
    return lanes


def _levels(run: Run, window: Window, queue: str | None) -> pl.DataFrame:
    columns = ("allocated", "pending", "pending_jobs", "running_jobs")
    with reading(run.path):
        rows = run.micros("timeline").filter(pl.col("time") <= window.end)
        if queue is not None:
            rows = rows.filter(pl.col("queue") == queue)
        found = rows.select("time", "queue", "resource", *columns).collect()
    if queue is None:
        moved = found.with_columns(
            pl.col(name) - pl.col(name).shift(1, fill_value=0).over("queue", "resource") for name in columns
        )
        summed = moved.group_by("time", "resource").agg(pl.col(columns).sum()).sort("time", "resource")
        found = summed.with_columns(pl.col(name).cum_sum().over("resource") for name in columns)
    before = (pl.col("time") < window.start).alias("before")
    last = found.filter(before).group_by("resource", maintain_order=True).last()
    last = last.with_columns(time=pl.lit(window.start, pl.Int64))
    return pl.concat([last.select("time", "resource", *columns),
                      found.filter(~before).select("time", "resource", *columns)])  # fmt: skip


def _lost_work(run: Run) -> Mapping[int, Sequence[tuple[int, int]]]:
    """Returns each job's losses: when they happened, and how many pod-microseconds were lost."""
    with reading(run.path):
        rows = (
            run.micros("stints")
            .filter(pl.col("lost") > 0)
            .group_by("job", "end")
            .agg((pl.col("lost") * pl.col("pods")).sum().alias("lost"))
            .collect()
        )
    return grouped((job, (end, lost)) for job, end, lost in rows.iter_rows())
