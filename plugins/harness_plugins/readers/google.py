"""Reads Google's ClusterData 2019 (Borg) as downloaded, in JSON lines of collection and instance events.

Requests are fractions of the largest machine. Google did not publish the size of this machine, so options
specify it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from harness import Reading
from harness.base.errors import Fault, OptionError
from harness.base.units import INT64_MAX
from harness.models.manifests import shown
from harness.readers.counts import agreeing, counted
from harness.readers.source import also_read, json_lines, stop_at_many, trace_error

METADATA = {
    "harness.source": "Google ClusterData 2019 (github.com/google/cluster-data)",
    "harness.license": "CC-BY; Tirmazi et al., Borg: the Next Generation, EuroSys 2020",
}
_SUBMIT, _SCHEDULE, _EVICT, _FINISH = 0, 3, 4, 6
_ENDS = {_FINISH: "finish", 5: "fail", 7: "kill", 8: "lost"}
_ALLOC_SET = 1
_MOST_CORES = 10**6
_MOST_MEMORY = 2**50
_TIERS = ((99, "free"), (115, "best-effort-batch"), (119, "mid"), (359, "production"))
"""The highest priority of each tier, according to the authors' paper. Monitoring has higher priorities."""


@dataclass
class _Collection:
    """The known facts about one collection.

    Times are in microseconds since the start of the trace, and None if unknown. `latest` is the time of the
    last event. For each instance, `requests` has the time of its last request, and the requested fractions of
    cpu and memory.
    """

    identity: int
    kind: int = 0
    priority: int = 0
    user: str = ""
    scheduling_class: int = 0
    submit: int | None = None
    start: int | None = None
    end: int | None = None
    how: str = ""
    evictions: int = 0
    in_alloc_set: bool = False
    latest: int = -1
    requests: dict[int, tuple[int, float, float]] = field(default_factory=dict)


def read(path: Path, options: Mapping[str, Any]) -> Reading:
    """Reads collection events and instance events. The instances of a job become its pods.

    Raises:
        TraceError: some lines are not events. The error lists all of them.
        OptionError: there is no file of instance events, or the size of the machine is out of range.
    """
    for name, most in (("cores", _MOST_CORES), ("memory", _MOST_MEMORY)):
        if not 0 < options[name] <= most:
            raise OptionError(f"option {name}: must be more than 0 and at most {most:,}")
    collections: dict[int, _Collection] = {}
    for identity, event in _events(path):
        found = collections.get(identity)
        if found is None:
            found = collections[identity] = _Collection(identity)
        _collect(found, event)
    strangers = 0
    beside = _instances(path, options)
    for identity, event in _events(beside):
        found = collections.get(identity)
        if found is None:
            strangers += 1
        else:
            _instance(found, event)
    left_out = Counter(reason for found in collections.values() if (reason := _without(found)))
    jobs = [found for found in collections.values() if not _without(found)]
    notes = _notes(jobs, options, strangers)
    return Reading(
        _frame(jobs, options), len(collections), dict(left_out), notes, {**METADATA, **also_read(beside)}
    )


def _instances(path: Path, options: Mapping[str, Any]) -> Path:
    if options["instances"]:
        return Path(options["instances"])
    if "collection_events" not in path.name:
        raise OptionError(
            f"option instances: {path.name} does not show where the instance events are; give their file"
        )
    return path.with_name(path.name.replace("collection_events", "instance_events"))


# --- events -----------------------------------------------------------------------------------------------

_NEEDED = ("time", "type", "collection_id")
_WHOLE = (
    *_NEEDED,
    "collection_type",
    "priority",
    "scheduling_class",
    "instance_index",
    "alloc_collection_id",
)


def _events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields each event with the ID of its collection. Exports from BigQuery have integers as texts."""
    faults: list[Fault] = []
    for number, event in json_lines(path, faults):
        for name in _WHOLE:
            value = event.get(name)
            event[name] = _integer(value)
            if event[name] is None and (value is not None or name in _NEEDED):
                what = "is missing" if value is None else f"{shown(value)} is not a whole number"
                faults.append(Fault(f"line {number:,}", f"{name}: {what}"))
        if (event["time"] or 0) < 0:
            faults.append(Fault(f"line {number:,}", f"time: {event['time']} is negative"))
        asked = event.get("resource_request")
        if asked is not None:
            event["resource_request"] = _request(asked)
            if event["resource_request"] is None:
                what = f"{shown(asked)} must have 'cpus' and 'memory' from 0 to {_LARGEST:,.0f}"
                faults.append(Fault(f"line {number:,}", f"resource_request: {what}"))
        if not faults:
            yield event["collection_id"], event
        stop_at_many(path, faults)
    if faults:
        raise trace_error(path, faults, "")


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and len(value) <= _DIGITS and value.removeprefix("-").isdecimal():
        value = int(value)
    return value if type(value) is int and abs(value) <= INT64_MAX else None


_DIGITS = 20


def _request(asked: Any) -> tuple[float, float] | None:
    """Returns the fractions of the largest machine's cpu and memory. A missing value is 0."""
    if not isinstance(asked, Mapping):
        return None
    cpu, memory = (asked.get(name) or 0 for name in ("cpus", "memory"))
    if all(type(value) in (int, float) and 0 <= value <= _LARGEST for value in (cpu, memory)):
        return float(cpu), float(memory)
    return None


_LARGEST = 1e6


def _collect(found: _Collection, event: Mapping[str, Any]) -> None:
    """Adds an event to its collection. The events are in no particular order."""
    time, kind = event["time"], event["type"]
    if time >= found.latest:
        found.latest = time
        found.kind = event["collection_type"] or 0
        found.priority = event["priority"] or 0
        found.scheduling_class = event["scheduling_class"] or 0
        found.in_alloc_set = bool(event["alloc_collection_id"])
    user = event.get("user")
    found.user = user if isinstance(user, str) and user else found.user
    if kind == _SUBMIT:
        found.submit = time if found.submit is None else min(time, found.submit)
    elif kind == _SCHEDULE:
        found.start = time if found.start is None else min(time, found.start)
    elif kind in _ENDS and (found.end is None or time >= found.end):
        found.end, found.how = time, _ENDS[kind]


def _instance(found: _Collection, event: Mapping[str, Any]) -> None:
    """Adds an event of an instance. If an instance has several requests, the last one is used."""
    found.evictions += event["type"] == _EVICT
    index = event["instance_index"] or 0
    since = found.requests[index][0] if index in found.requests else -1
    if event.get("resource_request") is not None and event["time"] >= since:
        found.requests[index] = (event["time"], *event["resource_request"])


def _without(found: _Collection) -> str:
    """Returns the reason why a collection cannot be replayed as a job, or "" if it can."""
    if found.kind == _ALLOC_SET:
        return "alloc sets, which are reservations, not jobs"
    if not found.submit:
        return "submitted before the trace, or submission not recorded"
    if found.start is None:
        return "never scheduled"
    if found.end is None or found.end < found.start or found.end >= INT64_MAX:
        return "not ended within the trace"
    if not found.requests:
        return "the trace records no request of its instances"
    return ""


# --- jobs -------------------------------------------------------------------------------------------------


def _frame(jobs: list[_Collection], options: Mapping[str, Any]) -> pl.DataFrame:
    """Returns one row for each distinct request among the instances of each job."""
    rows = [
        (found, f"part-{number}", cpu, memory, count)
        for found in jobs
        for number, ((cpu, memory), count) in enumerate(_parts(found, options), start=1)
    ]
    by_tier = options["tenant"] == "tier"
    span = pl.Duration("us")
    return pl.DataFrame(
        [
            pl.Series("job_id", [str(found.identity) for found, *_ in rows], dtype=pl.String),
            pl.Series("submit_time", [found.submit for found, *_ in rows], dtype=span),
            pl.Series("duration", [_run(found) for found, *_ in rows], dtype=span),
            pl.Series(
                "queue",
                [_tier(found.priority) if by_tier else found.user or "default" for found, *_ in rows],
                dtype=pl.String,
            ),
            pl.Series("request.cpu", [cpu for _, _, cpu, _, _ in rows], dtype=pl.Int128),
            pl.Series("request.memory", [memory for _, _, _, memory, _ in rows], dtype=pl.Int128),
            pl.Series("pods", [count for *_, count in rows], dtype=pl.Int32),
            pl.Series("gang", [False] * len(rows), dtype=pl.Boolean),
            pl.Series("priority", [found.priority for found, *_ in rows], dtype=pl.Int64),
            pl.Series("user", [found.user or None for found, *_ in rows], dtype=pl.String),
            pl.Series("pod_set", [name for _, name, *_ in rows], dtype=pl.String),
            pl.Series("recorded_start", [found.start for found, *_ in rows], dtype=span),
            pl.Series("recorded_end", [found.end for found, *_ in rows], dtype=span),
            pl.Series("tier", [_tier(found.priority) for found, *_ in rows], dtype=pl.String),
            pl.Series("scheduling_class", [found.scheduling_class for found, *_ in rows], dtype=pl.Int64),
            pl.Series("how_it_ended", [found.how for found, *_ in rows], dtype=pl.String),
            pl.Series("evictions", [found.evictions for found, *_ in rows], dtype=pl.Int64),
        ]
    )


def _parts(found: _Collection, options: Mapping[str, Any]) -> list[tuple[tuple[int, int], int]]:
    """Returns the distinct requests in millicores and bytes with their counts, the most frequent first."""
    amounts = Counter(
        (round(cpu * options["cores"] * 1000), round(memory * options["memory"]))
        for _, (_, cpu, memory) in sorted(found.requests.items())
    )
    return amounts.most_common()


def _run(found: _Collection) -> int:
    assert found.start is not None
    assert found.end is not None
    return found.end - found.start


def _tier(priority: int) -> str:
    return next((name for most, name in _TIERS if priority <= most), "monitoring")


def _notes(jobs: list[_Collection], options: Mapping[str, Any], strangers: int) -> tuple[str, ...]:
    inside = sum(found.in_alloc_set for found in jobs)
    evicted = sum(found.evictions > 0 for found in jobs)
    notes = [
        "a job is a collection; it runs from its first SCHEDULE to its last FINISH, FAIL, KILL or LOST",
        "a job's instances are pods that need not run together; a pod has its instance's last request",
        f"the largest machine is assumed to have {options['cores']:g} cores and {options['memory']:,} bytes",
        f"the queue is the {options['tenant']}; priorities are Borg's",
        f"{counted(evicted, 'job')} had evicted instances; the column evictions counts them",
    ]
    if inside:
        notes.append(f"{counted(inside, 'job')} ran inside alloc sets, and request their own resources")
    if strangers:
        notes.append(
            f"{agreeing(strangers, 'instance event', 'belong')} to collections that are not in the file"
        )
    return tuple(notes)
