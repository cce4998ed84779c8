"""Google's ClusterData 2019: events of collections and instances become jobs, evictions are counted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import OptionError
from harness.trace.trace import Trace

SUBMIT, SCHEDULE, EVICT, FINISH, KILL = 0, 3, 4, 6, 7


def event(seconds: int, kind: int, identity: int = 1, **fields: Any) -> dict[str, Any]:
    """An event as BigQuery exports it: whole numbers of 64 bits are texts."""
    return {
        "time": str(seconds * 1_000_000),
        "type": str(kind),
        "collection_id": str(identity),
        "priority": "200",
        "scheduling_class": "1",
        "collection_type": "0",
        **fields,
    }


def collection(*events: tuple[int, int], identity: int = 1, **fields: Any) -> list[dict[str, Any]]:
    """The events of one collection."""
    return [event(time, kind, identity, user="ann", **fields) for time, kind in events]


def instance(time: int, kind: int, index: int, cpus: float = 0.5, identity: int = 1) -> dict[str, Any]:
    """An event of an instance."""
    asked = {"cpus": cpus, "memory": 0.25}
    return event(time, kind, identity, instance_index=str(index), resource_request=asked, constraint=[])


def lines(events: list[dict[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(item) + "\n" for item in events)


@pytest.fixture
def read(read_text: Callable, tmp_path: Path) -> Callable[..., Trace]:
    """The trace of two tables, the second one gzipped."""

    def trace(collections: list[dict], instances: list[dict], **options: Any) -> Trace:
        beside = tmp_path / "instance_events-000000000000.json.gz"
        beside.write_bytes(gzip.compress(lines(instances).encode()))
        text = gzip.compress(lines(collections).encode())
        return read_text(text, name="collection_events-000000000000.json.gz", **options)

    return trace


RAN = collection((700, SUBMIT), (705, SCHEDULE), (1000, FINISH))


def test_a_collection_is_a_job_of_its_instances(read: Callable[..., Trace]) -> None:
    """Instances that ask for the same are one pod set; they need not run together."""
    instances = [instance(700, SUBMIT, index, cpus) for index, cpus in enumerate((0.5, 0.125, 0.5))]
    trace = read(RAN, instances)
    assert trace.reader == "google-2019"
    names = ("job_id", "queue", "priority", "pod_set", "pods", "gang", "request.cpu", "request.memory")
    assert trace.frame.select(names).rows() == [
        ("1", "ann", 200, "part-1", 2, False, 50_000, 25 * 2**30),
        ("1", "ann", 200, "part-2", 1, False, 12_500, 25 * 2**30),
    ]
    assert trace.frame["submit_time"][0] == timedelta(seconds=700)
    assert trace.frame["duration"][0] == timedelta(seconds=295)
    assert trace.frame["how_it_ended"][0] == "finish"
    scaled = read(RAN, instances, cores="64", memory="256Gi").frame
    assert scaled["request.cpu"].to_list() == [32_000, 8_000]
    assert scaled["request.memory"].to_list() == [64 * 2**30] * 2


def test_evictions_are_counted_and_the_last_request_holds(read: Callable[..., Trace]) -> None:
    """The disruption of the recorded cluster, to compare with."""
    instances = [instance(700, SUBMIT, 0), instance(800, EVICT, 0), instance(900, SCHEDULE, 0, 1.0)]
    for order in permutations(instances):
        (job,) = read(RAN, list(order)).frame.to_dicts()
        assert (job["evictions"], job["request.cpu"]) == (1, 100_000)


def test_the_order_of_events_in_the_file_does_not_matter(read: Callable[..., Trace]) -> None:
    """The exported tables are in none: the first submission and the last end count."""
    events = collection((700, SUBMIT), (705, SCHEDULE), (800, KILL), (900, SCHEDULE), (1000, FINISH))
    events[-1]["priority"] = "300"
    whole = read(events, [instance(700, SUBMIT, 0)]).frame
    assert whole["duration"][0] == timedelta(seconds=295)
    assert (whole["how_it_ended"][0], whole["priority"][0]) == ("finish", 300)
    assert read(events[::-1], [instance(700, SUBMIT, 0)]).frame.equals(whole)


def test_the_tier_of_a_priority_can_be_the_queue(read: Callable[..., Trace]) -> None:
    """From free to monitoring."""
    collections = [
        item
        for identity, priority in enumerate((25, 115, 119, 359, 360), start=1)
        for item in collection(
            (700, SUBMIT), (701, SCHEDULE), (702, KILL), identity=identity, priority=priority
        )
    ]
    instances = [instance(700, SUBMIT, 0, identity=identity) for identity in range(1, 6)]
    tiers = read(collections, instances, tenant="tier").frame["queue"].to_list()
    assert tiers == ["free", "best-effort-batch", "mid", "production", "monitoring"]


def test_collections_that_are_no_jobs_are_left_out_and_counted(read: Callable[..., Trace]) -> None:
    """Reservations, and what did not begin and end within the trace."""
    never = 2**63 - 1
    collections = [
        *RAN,
        *collection((700, SUBMIT), (705, SCHEDULE), (900, KILL), identity=2, collection_type=1),
        *collection((0, SUBMIT), (0, SCHEDULE), (900, KILL), identity=3),
        *collection((700, SUBMIT), (900, KILL), identity=4),
        *collection((700, SUBMIT), (705, SCHEDULE), identity=5),
        *collection((700, SUBMIT), (705, SCHEDULE), (900, FINISH), identity=6),
        *collection((700, SUBMIT), (705, SCHEDULE), identity=7),
        {**event(0, FINISH, 7), "time": str(never)},
    ]
    trace = read(collections, [instance(700, SUBMIT, 0), instance(700, SUBMIT, 0, identity=99)])
    assert trace.left_out == {
        "alloc sets, which are reservations, not jobs": 1,
        "submitted before the trace, or submission not recorded": 1,
        "never scheduled": 1,
        "not ended within the trace": 2,
        "the trace records no request of its instances": 1,
    }
    assert trace.rows_read == 7
    assert "1 instance event belongs to collections that are not in the file" in trace.notes


def test_faults_name_the_lines(faults_of_text: Callable) -> None:
    """Lines that are no objects, fields that are no numbers or are missing."""
    wrong = {**event(1, 0), "priority": "high", "time": None}
    text = lines(RAN[:1]) + "{\n" + lines([wrong]) + "\xff\n"
    text += lines([{**event(1, 0), "resource_request": {"cpus": "0.5"}}])
    assert faults_of_text(text, name="collection_events.json", reader="google-2019") == [
        "line 2: is not a JSON object",
        "line 3: time: is missing",
        "line 3: priority: 'high' is not a whole number",
        "line 4: is not a JSON object",
        "line 5: resource_request: {'cpus': '0.5'} must have 'cpus' and 'memory' from 0 to 1,000,000",
    ]


def test_the_instance_events_are_named_or_beside(read_text: Callable) -> None:
    """Else nobody would know what a job asks for."""
    with pytest.raises(OptionError, match=r"c\.json does not show where the instance events are"):
        read_text(lines(RAN), name="c.json")
