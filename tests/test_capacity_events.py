"""Outages and lower quotas that a record shows become events, and a replay with them explains the error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_environment import called
from hypothesis import given
from hypothesis import strategies as st
from planted_events import PLUGIN, busy_jobs, random_events, search, small_cluster
from planted_faults import PLUGINS, POOLS, QUEUES, cluster_of, jobs_of, validated, write

import harness
from harness.analysis.validation import Validation, capacity_events
from harness.analysis.validation.agreement import Record
from harness.analysis.validation.branches import Branches
from harness.analysis.validation.capacity_events import Explained, explained
from harness.analysis.validation.findings import LATE, LESS
from harness.analysis.validation.history import History, history_of
from harness.analysis.validation.load import Held, above
from harness.analysis.validation.pieces import Pieces
from harness.analysis.validation.supposed import Event, quotas_of, removal, rows_of
from harness.base.units import DAY, HOUR, parse_duration
from harness.cluster.manifests import dump_yaml
from harness.runs.outcome import outcome_of
from harness.runs.request import Request
from harness.trace.trace import open_trace
from harness.trace.write import write_trace

Rows = Sequence[dict[str, str]]

OUTAGES: Rows = [
    {"time": time, "until": until, "kind": "Node", "name": name, "field": "remove", "value": ""}
    for time, until, names in (
        ("3d00h", "3d12h", ("x-0", "x-1")),
        ("6d00h", "7d00h", ("y-0", "y-1")),
        ("9d00h", "9d08h", ("x-3", "x-4")),
    )
    for name in names
]
CUTS: Rows = [
    {"time": time, "until": until, "kind": "ClusterQueue", "name": name, "field": "quota[cpu]", "value": cpu}
    for time, until, name, cpu in (("4d12h", "5d12h", "a", "24"), ("11d00h", "13d00h", "b", "18"))
]


def planted(folder: Path, seed: int, events: Rows, jobs: int = 1500) -> tuple[Validation, Explained]:
    """Two weeks of jobs on pools of nodes, or on queues; the record had events, the simulation none."""
    nodes = events[0]["kind"] == "Node"
    cluster = cluster_of({} if nodes else QUEUES, POOLS if nodes else {})
    plugin = "default-preemption" if nodes else "kueue-classic"
    trace = write(folder / "real.parquet", jobs_of(jobs, seed, 14, 0.9, list(POOLS) if nodes else ()))
    real = harness.replay(trace, plugin=plugin, cluster=cluster.patched(events), output=folder)
    record = folder / "record.parquet"
    write_trace(outcome_of(real, PLUGINS), record)
    requests = [
        Request(record, plugin=each, cluster=cluster, output=folder, keep="all")
        for each in ("recorded", plugin)
    ]
    runs = [each.run(plugins=PLUGINS) for each in requests]
    validation = Validation(open_trace(record, PLUGINS), cluster, *runs)
    return validation, explained(validation, requests[1], PLUGINS)


def period(row: Any) -> tuple[int, int]:
    return parse_duration(row["time"]), parse_duration(row["until"])


def agrees(found: Explained, events: Rows) -> bool:
    """Whether each event is found with its object and its period within 20 %, and no other."""

    def one_agrees(row: Any, event: dict[str, str]) -> bool:
        if any(row[name] != event[name] for name in ("kind", "name", "field", "value")):
            return False
        (start, end), (begin, until) = period(row), period(event)
        return max(abs(start - begin), abs(end - until)) <= 0.2 * (until - begin)

    return len(found.rows) == len(events) and all(
        any(one_agrees(row, event) for row in found.rows) for event in events
    )


@pytest.mark.early
@pytest.mark.parametrize(
    "events", [pytest.param(OUTAGES, id="outages"), pytest.param(CUTS, id="quotas", marks=pytest.mark.slow)]
)
def test_planted_events_are_found_and_explain_the_error(tmp_path: Path, events: Rows) -> None:
    """Objects, amounts, nodes and periods are those of the plan; the error falls by at least 80 %."""
    _, found = planted(tmp_path, 1, events, jobs=800)
    assert agrees(found, events)
    assert len(found.parts) == 2
    assert (found.share(found.after) or 0) >= 0.8
    assert found.after < min(part.error for part in found.parts) < found.before
    lines = found.table.splitlines()
    assert lines[0].endswith("mean error of waits  explained")
    assert lines[-1].startswith("all")


@pytest.mark.slow
@pytest.mark.parametrize("events", [OUTAGES, CUTS], ids=["outages", "quotas"])
def test_most_plans_are_found(tmp_path: Path, events: Rows) -> None:
    """Of twelve records nine at least give all events back, or 80 % of the error with those that matter."""
    shares = []
    for seed in range(12):
        (tmp_path / str(seed)).mkdir()
        _, found = planted(tmp_path / str(seed), seed, events)
        shares.append(found.share(found.after) or 0)
    assert sum(each >= 0.8 for each in shares) >= 9, shares


@pytest.mark.slow
def test_of_twenty_records_without_an_outage_at_most_one_names_any(tmp_path: Path) -> None:
    """Their pods take 90 s until they are ready, which the simulation does not know."""
    alarms = 0
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        nodes = bool(seed % 2)
        rows = jobs_of(1500, seed, 14, 0.9, list(POOLS) if nodes else ())
        cluster = cluster_of({} if nodes else QUEUES, POOLS if nodes else {})
        plugin = "default-preemption" if nodes else "kueue-classic"
        validation = validated(tmp_path / str(seed), rows, cluster, plugin, startup="90s")
        alarms += any(each.kind != LATE for each in validation.findings)
    assert alarms <= 1


def test_a_replay_that_continues_another_one_is_the_same_as_from_the_beginning(tmp_path: Path) -> None:
    """Also if it parts from the other one earlier or later, or several events change something at once."""
    cluster, end = small_cluster(), 8 * DAY
    trace = write(tmp_path / "trace.parquet", busy_jobs(1)[::3])
    request = Request(trace, plugin=PLUGIN, cluster=cluster, output=tmp_path)
    quota = next(each for each in quotas_of(cluster.knobs(), "cpu") if each.name == "a")
    outage = removal(["n-00", "n-07"], 2 * DAY)
    later = removal(["n-03"], 3 * DAY)._replace(end=4 * DAY)
    branches = Branches(request, PLUGINS, cluster, [outage, quota.lowered(0, 0)], end)
    tried: list[tuple[list[Event], int]] = [
        ([], DAY),
        ([outage], 3 * DAY),
        ([outage._replace(end=2 * DAY + HOUR)], 3 * DAY),
        ([outage._replace(end=3 * DAY), later], 5 * DAY),
        *(([outage, later, quota.lowered(cpu * 1000, 3 * DAY + HOUR)], 5 * DAY) for cpu in (10, 20, 30)),
        ([quota.lowered(20_000, DAY)._replace(end=5 * DAY), later], 6 * DAY),
    ]
    for events, until in tried:
        rows = [dict(row) for row in rows_of(events, end)]
        other = replace(request, cluster=cluster.patched(rows) if rows else cluster, until=until)
        assert branches.history(events, until) == history_of(other.plan(PLUGINS))


def test_an_event_may_begin_or_end_after_each_submission_begin_or_end_of_a_job() -> None:
    """A job that is submitted in vain notes so; what changes afterwards has another effect than before."""
    record = Record(History({"a": [(10, 40)]}, {}, ()), {"a": 1}, {"a": "q"}, submits=[5, 20], end=50)
    assert record.instants == [5, 10, 20, 40]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [65, 92])
def test_three_outages_and_two_lower_quotas_in_one_record_are_found(tmp_path: Path, seed: int) -> None:
    """They overlap, and explain the whole error; docs/validate.md says on which other seeds they do not."""
    events = random_events(seed)
    found = search(tmp_path, seed, events)
    assert (found.explained.share(found.explained.after) or 0) >= 0.8
    assert found.hits == len(events)
    assert not found.extra


@pytest.mark.slow
def test_of_twenty_records_without_events_at_most_one_search_names_any(tmp_path: Path) -> None:
    """Their pods take up to ten minutes until they are ready, which the simulation does not know."""
    named = []
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        named.append(bool(search(tmp_path / str(seed), seed, [], noisy=True).explained.rows))
    assert sum(named) <= 1


def test_the_command_writes_a_table_that_a_replay_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints how much is explained; a replay with the table is the one that it was judged by."""
    cut = [{**CUTS[0], "time": "12h", "until": "36h", "value": "16"}]
    cluster = cluster_of(QUEUES, {})
    trace = write(tmp_path / "real.parquet", jobs_of(120, 1, 3, 0.95))
    real = harness.replay(trace, plugin="kueue-classic", cluster=cluster.patched(cut), output=tmp_path)
    record, world = tmp_path / "record.parquet", tmp_path / "cluster.yaml"
    write_trace(outcome_of(real, PLUGINS), record)
    world.write_text(dump_yaml(cluster.manifests))
    table = tmp_path / "found.csv"
    line = [
        "validate",
        str(record),
        "--cluster",
        str(world),
        "-p",
        "kueue-classic",
        "-o",
        str(tmp_path / "r"),
    ]
    assert called([*line, "--write-events", str(table)]) == 0
    told = capsys.readouterr()
    assert "ClusterQueue a" in told.out
    assert f"1 event: {table}; replay with --events {table}" in told.err
    assert table.read_text().splitlines()[0] == "time,until,kind,name,field,value"
    assert called([*line, "--write-events", str(table), "--json", "-q"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert [row["name"] for row in events["rows"]] == ["a"]
    assert events["explained"] > 0.8
    again = ["replay", str(record), "--cluster", str(world), "-p", "kueue-classic", "--events", str(table)]
    assert called([*again, "-o", str(tmp_path / "again"), "-q"]) == 0
    capsys.readouterr()
    assert called([*line, "--write-events", str(tmp_path / "found.txt")]) == 2
    assert "is not the name of a table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "most"),
    [
        pytest.param((120, 3), 5, id="small", marks=pytest.mark.nightly),
        pytest.param((500, 7), 120, id="large", marks=pytest.mark.slow),
    ],
)
def test_events_that_bring_waits_no_nearer_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], most: int
) -> None:
    """A load that the trace lacks looks like less capacity; a note says that no event stands for it.

    The search of the small one gives up after as long as `most` replays take.
    """
    monkeypatch.setattr(capacity_events, "_MOST", most)
    jobs, days = size
    rows = jobs_of(jobs, 1, days, 0.95)
    gone = [row["job_id"] for row in rows[::12]]
    validation = validated(tmp_path, rows, cluster_of(QUEUES, {}), without=gone)
    assert {each.kind for each in validation.findings} == {LESS}
    request = Request(
        tmp_path / "record.parquet",
        plugin="kueue-classic",
        cluster=validation.cluster,
        output=tmp_path,
        keep="all",
    )
    found = explained(validation, request, PLUGINS)
    assert found.after <= found.before
    assert found.notes


amounts = st.integers(0, 6)


@given(st.data(), st.integers(1, 3), st.integers(1, 4))
def test_room_is_only_said_where_some_node_must_have_it(
    data: st.DataObject, resources: int, count: int
) -> None:
    """However what is held is spread over the nodes, in whole units of what pods ask for."""
    nodes = tuple(tuple(data.draw(st.integers(1, 8)) for _ in range(resources)) for _ in range(count))
    unit = tuple(data.draw(st.integers(1, 2)) for _ in range(resources))
    held = [
        tuple(data.draw(st.integers(0, most // one)) * one for most, one in zip(node, unit, strict=True))
        for node in nodes
    ]
    asked = tuple(data.draw(amounts) * one for one in unit)
    pieces = Pieces(nodes, unit)
    if any(asked) and pieces.have_room(asked, tuple(map(sum, zip(*held, strict=True)))):
        assert any(
            all(ask + used <= most for ask, used, most in zip(asked, at, node, strict=True))
            for at, node in zip(held, nodes, strict=True)
        )


def test_one_unit_has_room_wherever_anything_is_free() -> None:
    """The bound is exact for the smallest jobs, and larger ones need more than what comes in pieces."""
    pieces = Pieces(((8,), (8,), (8,)), (1,))
    assert pieces.have_room((1,), (23,))
    assert not pieces.have_room((1,), (24,))
    assert pieces.have_room((4,), (14,))
    assert not pieces.have_room((4,), (15,))
    assert not pieces.have_room((9,), (0,))


def test_spans_above_a_limit() -> None:
    held = [Held(0, 10, (3,)), Held(4, 6, (2,)), Held(8, 12, (1,))]
    assert above(held, 0, 3) == [(4, 6), (8, 10)]
    assert above(held, 0, 5) == []
