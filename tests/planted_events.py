"""A small cluster whose record has outages and lower quotas at random times, to be found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import polars as pl
from planted_faults import PLUGINS, cluster_of, write

import harness
from harness.analysis.validation import Validation
from harness.analysis.validation.capacity_events import Explained, explained
from harness.base.units import MINUTE, SECOND, parse_duration
from harness.cluster.model import Cluster
from harness.runs.outcome import outcome_of
from harness.runs.request import Request
from harness.trace.schema import STARTUP
from harness.trace.trace import open_trace
from harness.trace.write import write_trace

Row = dict[str, str]

QUEUES = {"a": 34, "b": 28, "c": 18}
NODES, CPU = 20, 4
DAYS = 7
JOBS = 400
LOAD = 1.1
EARLY = 0.2
"""This part of the jobs waits from the beginning."""
PLUGIN = "kueue-classic"


def small_cluster() -> Cluster:
    """Three ClusterQueues of one cohort with 80 cpu, on 20 nodes of 4 cpu."""
    return cluster_of(QUEUES, {"n": NODES}, node_cpu=CPU)


def busy_jobs(seed: int) -> list[dict[str, Any]]:
    """400 jobs of 1 or 2 cpu in a week, which need 110 % of the quota on average."""
    random = Random(seed)
    mean = LOAD * sum(QUEUES.values()) * DAYS * 86_400 / JOBS / 1.5
    return [
        {
            "job_id": f"j{number:05}",
            "submit_time": max(0, int(random.uniform(-EARLY, 1 - EARLY) * DAYS * 86_400)) * SECOND,
            "duration": int(random.expovariate(1 / mean)) * SECOND + 10 * MINUTE,
            "queue": random.choices(list(QUEUES), weights=list(QUEUES.values()))[0],
            "request.cpu": 1000 * random.choice([1, 1, 2, 2]),
            "priority": 0,
            "pool": None,
        }
        for number in range(JOBS)
    ]


def random_events(seed: int) -> list[list[Row]]:
    """Three outages of 5 to 25 % of the nodes for 6 to 14 hours, and two cuts of 25 to 60 % of a quota.

    A cut lasts for 24 to 36 hours. Outages do not overlap, nor do cuts of one queue.
    """
    random = Random(1000 + seed)
    used: list[tuple[str, float, float]] = []

    def period(least: float, most: float, key: str) -> dict[str, str]:
        while True:
            start = random.uniform(1, DAYS - 2)
            end = start + random.uniform(least, most)
            if all(
                key != other or start > ends + 0.25 or end < begins - 0.25 for other, begins, ends in used
            ):
                used.append((key, start, end))
                return {"time": f"{int(start * 1440)}m", "until": f"{int(end * 1440)}m"}

    events: list[list[Row]] = []
    for _ in range(3):
        time = period(0.25, 0.6, "")
        names = sorted(random.sample([f"n-{number:02}" for number in range(NODES)], random.randint(1, 5)))
        events.append(
            [{**time, "kind": "Node", "name": name, "field": "remove", "value": ""} for name in names]
        )
    for _ in range(2):
        queue = random.choice(list(QUEUES))
        time = period(1, 1.5, queue)
        value = str(int(QUEUES[queue] * (1 - random.uniform(0.25, 0.6))))
        row = {**time, "kind": "ClusterQueue", "name": queue, "field": "quota[cpu]", "value": value}
        events.append([row])
    return events


class Found(NamedTuple):
    """What a search found of planted events.

    Attributes:
        hits: how many events have their objects, and their times within a fifth of their length.
        extra: how many rows are of no event.
        explained: the result of the search.
    """

    hits: int
    extra: int
    explained: Explained


def search(folder: Path, seed: int, events: Sequence[Sequence[Row]], *, noisy: bool = False) -> Found:
    """Makes the record of jobs with events, and searches them.

    In a noisy record, each pod takes 30 s to 10 minutes to start, which the simulation does not know.
    """
    cluster = small_cluster()
    rows = [row for event in events for row in event]
    trace = write(folder / "real.parquet", busy_jobs(seed))
    if noisy:
        random, frame = Random(seed), pl.read_parquet(trace)
        seconds = [random.randint(30, 600) for _ in range(frame.height)]
        frame.with_columns(pl.duration(seconds=pl.lit(pl.Series(seconds))).alias(STARTUP)).write_parquet(
            trace
        )
    real = harness.replay(
        trace, plugin=PLUGIN, cluster=cluster.patched(rows) if rows else cluster, output=folder
    )
    record = folder / "record.parquet"
    outcome = outcome_of(real, PLUGINS)
    write_trace(replace(outcome, frame=outcome.frame.drop(STARTUP, strict=False)), record)
    requests = [Request(record, plugin=each, cluster=cluster, output=folder) for each in ("recorded", PLUGIN)]
    runs = [each.run(plugins=PLUGINS) for each in requests]
    found = explained(Validation(open_trace(record, PLUGINS), cluster, *runs), requests[1], PLUGINS)
    hits = sum(all(any(is_same(each, row) for each in found.rows) for row in event) for event in events)
    extra = sum(not any(is_same(each, row) for row in rows) for each in found.rows)
    return Found(hits, extra, found)


def is_same(found: Any, row: Row) -> bool:
    """Whether a found row has the object of a planted one, and its time within a fifth of its length."""
    if any(found[name] != row[name] for name in ("kind", "name", "field")):
        return False
    begins, ends, start, end = (
        parse_duration(each[name]) for each in (row, found) for name in ("time", "until")
    )
    return max(abs(begins - start), abs(ends - end)) <= 0.2 * (ends - begins)


def main() -> None:
    """`python tests/planted_events.py FIRST LAST [none] [noisy] [-v]` says how well events are found.

    FIRST and LAST are seeds; the last one is not tried. `none` plants no events in noisy records.
    """
    import sys
    from tempfile import TemporaryDirectory

    first, last, *options = sys.argv[1:]
    for seed in range(int(first), int(last)):
        with TemporaryDirectory() as folder:
            events = [] if "none" in options else random_events(seed)
            hits, extra, found = search(Path(folder), seed, events, noisy=not events or "noisy" in options)
        share = found.share(found.after)
        told = "no error" if share is None else f"{share:.0%} of {found.before / SECOND / 3600:.2f} h"
        for row in found.rows if "-v" in options else ():
            print(*row.values())
        for note in found.notes if "-v" in options else ():
            print("note:", note)
        print(f"{seed}: {hits} of {len(events)} events, {extra} other rows, explained: {told}", flush=True)


if __name__ == "__main__":
    main()
