"""Traces for Perfetto: read with its own schema, and held against the run."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
from policies import scripted
from small_clusters import queues, quota_tree

import harness
from harness.analysis.export.perfetto import write_perfetto
from harness.analysis.export.window import part_of
from harness.base.errors import InputError
from harness.base.units import SECOND
from harness.plugins.measurement import Window
from harness.trace.bundled import BUNDLED
from harness.trace.calibration import Calibration

TRACES = Path(__file__).parents[2] / "traces"
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@pytest.fixture(
    scope="module", params=["default-preemption", pytest.param("kueue-classic", marks=pytest.mark.nightly)]
)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A day of a bundled trace in which jobs preempt each other."""
    assert "mix" in BUNDLED
    results = tmp_path_factory.mktemp("runs")
    return harness.replay(TRACES / "mix.parquet", plugin=request.param, until="1d", output=results)


def exported(run: harness.Run, window: Window | None = None) -> Any:
    """What is written, read by Perfetto's schema."""
    file = io.BytesIO()
    write_perfetto(run, window or run.window, file)
    trace = schema.Trace()
    trace.ParseFromString(file.getvalue())
    return trace


def tracks(trace: Any) -> dict[int, Any]:
    """Descriptors by number; no two have the same."""
    found = [packet.track_descriptor for packet in trace.packet if packet.HasField("track_descriptor")]
    assert len({each.uuid for each in found}) == len(found)
    return {each.uuid: each for each in found}


def events(trace: Any, kind: int) -> list[tuple[int, Any]]:
    """Events of a kind with their times in microseconds."""
    found = [packet for packet in trace.packet if packet.HasField("track_event")]
    assert all(packet.trusted_packet_sequence_id == 1 for packet in found)
    return [
        (packet.timestamp // 1000, packet.track_event) for packet in found if packet.track_event.type == kind
    ]


def test_slices_and_flows_are_those_of_the_run(run: harness.Run) -> None:
    """A slice for each time a job got something, and each pod on a node; a flow for each preemption."""
    decisions, trace = run.decisions, exported(run)
    names = tracks(trace)
    begun = Counter(names[event.track_uuid].name for _, event in events(trace, BEGIN))
    actions = Counter(decisions["action"])
    admits = actions["admit"]
    assert begun["jobs"] == (admits or decisions.filter(holding=1).height)
    assert begun["pods"] == actions["bind"]
    assert len(events(trace, BEGIN)) == len(events(trace, END)) == begun["jobs"] + begun["pods"]
    starts = [flow for _, event in events(trace, INSTANT) for flow in event.flow_ids]
    ends = [flow for _, event in events(trace, INSTANT) for flow in event.terminating_flow_ids]
    assert len(starts) == len(set(starts)) == actions["preempt"] > 0
    assert sorted(starts) == sorted(ends)


def test_slices_of_a_track_follow_each_other(run: harness.Run) -> None:
    """One ends before the next one begins, and what happens to a job lies within its slice."""
    open_, last = dict.fromkeys(tracks(trace := exported(run)), False), Counter[int]()
    for packet in trace.packet:
        event = packet.track_event
        if packet.HasField("track_event") and event.type != COUNTER:
            assert packet.timestamp >= last[event.track_uuid]
            last[event.track_uuid] = packet.timestamp
            if event.type == INSTANT and event.terminating_flow_ids:
                assert open_[event.track_uuid]
            elif event.type in (BEGIN, END):
                assert open_[event.track_uuid] is (event.type == END)
                open_[event.track_uuid] = event.type == BEGIN


def test_a_flow_goes_from_the_preemptor_to_the_victim(run: harness.Run) -> None:
    """Its beginning stands first in the file, at the same time; both say who it was."""
    trace = exported(run)
    begun: dict[int, tuple[int, str]] = {}
    pairs = Counter()
    victims: dict[int, str] = {}
    for packet in trace.packet:
        event = packet.track_event
        if event.type == BEGIN:
            victims[event.track_uuid] = event.name
        told = {each.name: each.string_value for each in event.debug_annotations}
        for flow in event.flow_ids:
            begun[flow] = packet.timestamp, told["preemptor"]
        for flow in event.terminating_flow_ids:
            time, by = begun.pop(flow)
            assert (time, event.name) == (packet.timestamp, f"preempted by {by}")
            pairs[time // 1000, by, victims[event.track_uuid]] += 1
    rows = run.micros("decisions").filter(pl.col("action") == "preempt").select("time", "by", "job_id")
    assert pairs == Counter(rows.collect().iter_rows())


def test_counters_are_the_levels_of_the_timeline(run: harness.Run) -> None:
    """Each change once, in cores, bytes and whole amounts; the cluster's is the sum of its queues'."""
    trace = exported(run)
    names = tracks(trace)
    last: dict[tuple[str, str], float] = {}
    for _, event in events(trace, COUNTER):
        track = names[event.track_uuid]
        value = event.double_counter_value if event.HasField("double_counter_value") else event.counter_value
        assert last.get((names[track.parent_uuid].name, track.name)) != value
        last[names[track.parent_uuid].name, track.name] = value
    sums: Counter[str] = Counter()
    for row in run.timeline.group_by("queue", "resource").last().iter_rows(named=True):
        scale = 1000 if row["resource"] == "cpu" else 1
        for what in ("allocated", "pending"):
            assert last[row["queue"], f"{what} {row['resource']}"] == row[what] / scale
            sums[f"{what} {row['resource']}"] += row[what]
    for name, total in sums.items():
        assert last["cluster", name] == total / (1000 if name.endswith("cpu") else 1)
    units = {names[event.track_uuid].counter.unit_name for _, event in events(trace, COUNTER)}
    assert units == {"", "cores", "bytes"}


def test_a_window_is_cut_at_its_ends(run: harness.Run) -> None:
    """All times are within it, and levels stand at its beginning; the slices are those that overlap it."""
    window = part_of(run, "12h", "20h")
    trace = exported(run, window)
    times = [time for kind in (BEGIN, END, INSTANT, COUNTER) for time, _ in events(trace, kind)]
    assert min(times) == window.start
    assert max(times) <= window.end
    flows = [flow for _, event in events(trace, INSTANT) for flow in event.flow_ids]
    ends = [flow for _, event in events(trace, INSTANT) for flow in event.terminating_flow_ids]
    within = pl.col("time").is_between(window.start, window.end) & (pl.col("action") == "preempt")
    assert len(flows) == run.micros("decisions").filter(within).collect().height
    assert sorted(flows) == sorted(ends)
    whole = exported(run)
    names = tracks(whole)
    spans: dict[int, int] = {}
    overlap = 0
    for packet in whole.packet:
        event = packet.track_event
        if event.type == BEGIN:
            spans[event.track_uuid] = packet.timestamp // 1000
        elif event.type == END:
            overlap += spans[event.track_uuid] <= window.end and packet.timestamp // 1000 >= window.start
    assert len(events(trace, BEGIN)) == overlap
    assert names


def test_the_same_run_gives_the_same_bytes(run: harness.Run) -> None:
    """Nothing in it is of this machine or moment."""
    one, other = io.BytesIO(), io.BytesIO()
    write_perfetto(run, run.window, one)
    write_perfetto(harness.Run.open(run.path), run.window, other)
    assert one.getvalue() == other.getvalue()


def test_timestamps_are_on_the_clock(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """Where the trace has them, else the viewer counts from its origin."""
    frame = pl.read_parquet(write_trace({"submit_time": 60}))
    moment = pl.datetime(2024, 5, 1, time_unit="us")
    frame.with_columns(submit_time=moment + pl.col("submit_time")).write_parquet(tmp_path / "dated.parquet")
    dated = harness.replay(tmp_path / "dated.parquet", output=tmp_path / "runs")
    clocks = exported(dated).packet[0].clock_snapshot.clocks
    assert {clock.clock_id: clock.timestamp for clock in clocks} == {6: 0, 1: 1_714_521_660 * 10**9}
    plain = harness.replay(tmp_path / "trace.parquet", output=tmp_path / "runs")
    assert not exported(plain).packet[0].HasField("clock_snapshot")


def test_durations_of_a_window_are_those_of_the_tables(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """They count as the trace's do, on the viewer's clock and in words."""
    trace = write_trace({"submit_time": 60}, {"submit_time": 7200, "duration": 600})
    run = harness.replay(trace, output=tmp_path / "runs", calibration=Calibration.parse(window="1h.."))
    assert run.stints["start"].dt.total_seconds().to_list() == [7200]
    ((time, event),) = events(exported(run), BEGIN)
    assert time == 7200_000_000
    told = {each.name: each.string_value for each in event.debug_annotations}
    assert (told["submitted after"], told["ended after"]) == ("2h00m", "2h10m")


def told_of(run: harness.Run) -> dict[tuple[str, int], dict[str, str]]:
    """What is said of each slice, by its name and when it begins, in seconds."""
    return {
        (event.name, time // SECOND): {each.name: each.string_value for each in event.debug_annotations}
        for time, event in events(exported(run), BEGIN)
    }


def test_work_lost_is_told_of_the_slice_that_lost_it(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Also where the job still holds its resources for a grace period, in which it makes no progress."""
    victim = {"job_id": "victim", "grace_period": 30, "duration": 100}
    trace = write_trace(victim, {"job_id": "by", "submit_time": 1})
    steps = {0: [("admit", "victim")], 60: [("preempt", "victim", "by")], 95: [("admit", "victim")]}
    run = harness.replay(trace, plugin=scripted(steps), output=tmp_path / "runs", until="5m")
    told = told_of(run)
    assert told["victim", 0]["lost work"] == "1m00s"
    assert told["victim", 0]["ended after"] == "1m30s"
    assert "lost work" not in told["victim", 95]


def test_a_pod_waits_since_it_came_back_and_a_job_since_it_had_nothing(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Not since another of its pods came back."""
    x = {"job_id": "x", "pods": 3, "gang": False, "duration": 20, "grace_period": 0}
    trace = write_trace(x, {"job_id": "y", "duration": 200})
    steps = {
        0: [("bind", "x", 0, "n0"), ("bind", "x", 1, "n0"), ("bind", "y", 0, "n0")],
        10: [("preempt", "x", "y", "Rule", 0)],
        15: [("preempt", "x", "y", "Rule", 1)],
        16: [("bind", "x", 2, "n0")],
        40: [("bind", "x", 0, "n0"), ("bind", "x", 1, "n0")],
    }
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(queues({"default": {"cpu": "4"}}, nodes=1))
    run = harness.replay(trace, cluster=cluster, plugin=scripted(steps), output=tmp_path / "runs")
    waited = {(name, time): told["waited for it"] for (name, time), told in told_of(run).items() if time > 0}
    assert waited == {
        ("x-2", 16): "16s",
        ("x", 16): "1s",
        ("x-0-r1", 40): "30s",
        ("x-1-r1", 40): "25s",
        ("x", 40): "4s",
    }


def test_jobs_of_a_queue_stand_with_the_quotas_that_their_labels_name(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Their tracks are called as in the timeline, whose levels they show."""
    label = "quota.scheduling.koordinator.sh/name"
    rows = [{"job_id": name, "queue": "q", "labels": [{"key": label, "value": name}]} for name in "ab"]
    manifests = queues({}, nodes=1) + quota_tree({name: {"cpu": "2"} for name in "ab"}, {"cpu": "4"})
    (tmp_path / "cluster.yaml").write_text(manifests)
    run = harness.replay(
        write_trace(*rows), plugin="auto", cluster=tmp_path / "cluster.yaml", output=tmp_path / "runs"
    )
    trace = exported(run)
    called = tracks(trace)
    shown = {
        (called[called[event.track_uuid].parent_uuid].name, event.name)
        for _, event in events(trace, BEGIN)
        if called[event.track_uuid].name == "jobs"
    }
    assert shown == {("default/q/a", "a"), ("default/q/b", "b")}
    assert set(run.timeline["queue"]) == {"default/q/a", "default/q/b"}


def test_hostile_names_stay_text(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """They are bytes with a length, so nothing of them can be anything else."""
    name = 'a"\n\x1b[31m\u202e</x>\N{SNOWMAN}'
    run = harness.replay(write_trace({"queue": name, "job_id": name}), output=tmp_path / "runs")
    trace = exported(run)
    assert name in {track.name for track in tracks(trace).values()}
    assert {event.name for _, event in events(trace, BEGIN)} == {name}


@pytest.mark.parametrize(("since", "until"), [("3d", None), ("1d", "1d"), ("1d", "12h")])
def test_a_window_without_anything_is_an_error(run: harness.Run, since: str, until: str | None) -> None:
    """It says from when until when the run goes."""
    with pytest.raises(InputError, match="no part of the run is between --from and --to") as caught:
        part_of(run, since, until)
    assert "the run lasts from 0d 00:01:14" in str(caught.value.hint)


def test_the_trace_processor_counts_the_same(run: harness.Run, tmp_path: Path) -> None:
    """Perfetto's own reader, where it is installed."""
    shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if shell is None:
        pytest.skip("there is no trace_processor on the PATH; the trace was read with its schema only")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    file = tmp_path / "run.pftrace"
    with file.open("wb") as to:
        write_perfetto(run, run.window, to)
    trace = exported(run)
    with TraceProcessor(trace=str(file), config=TraceProcessorConfig(bin_path=shell)) as processor:

        def count(query: str) -> int:
            return int(next(iter(processor.query(query))).n)

        slices = len(events(trace, BEGIN)) + len(events(trace, INSTANT))
        assert count("select count(*) as n from slice") == slices
        assert count("select count(*) as n from flow") == run.decisions.filter(action="preempt").height
        assert count("select count(*) as n from counter") == len(events(trace, COUNTER))
        assert count("select count(*) as n from slice where dur < 0") == 0
        faults = "select count(*) as n from stats where severity in ('error', 'data_loss') and value > 0"
        assert count(faults) == 0


POOL = {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": "p"}}


def test_a_job_of_which_a_pod_waits_for_a_node_has_its_quota_meanwhile(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """One pod of `y` ends at 10 s, and the other one waits until `z` has ended; its quota is held."""
    path = tmp_path / "cluster.yaml"
    pool = POOL | {"spec": {"count": 1, "template": {"allocatable": {"cpu": 4}}}}
    path.write_text(queues({"q": {"cpu": "12"}}) + "---\n" + yaml.safe_dump(pool))
    job = {"queue": "q", "request.cpu": 2000}
    trace = write_trace(
        {**job, "job_id": "x", "duration": 100},
        {**job, "job_id": "y", "duration": 10, "pods": 2, "gang": False},
        {**job, "job_id": "z", "duration": 20, "submit_time": 5, "priority": 10},
    )
    run = harness.replay(trace, cluster=path, plugin="kueue-classic", output=tmp_path / "runs")
    assert slices(run) == [("x", 0, 100, "finished"), ("y", 0, 40, "finished"), ("z", 5, 30, "finished")]
    bound = harness.replay(trace, cluster=path, plugin="none", output=tmp_path / "runs")
    in_part = "all its bound pods finished; its other pods waited"
    assert slices(bound) == [
        ("x", 0, 100, "finished"),
        ("y", 0, 10, in_part),
        ("y", 30, 40, "finished"),
        ("z", 10, 30, "finished"),
    ]


def slices(run: harness.Run) -> list[tuple[str, int, int, str]]:
    """The slices of jobs: whose, from when to when, in seconds, and how they ended."""
    trace = exported(run)
    names = tracks(trace)
    begun: dict[int, tuple[int, Any]] = {}
    found = []
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event") or names[event.track_uuid].name != "jobs":
            continue
        if event.type == BEGIN:
            begun[event.track_uuid] = packet.timestamp, event
        elif event.type == END:
            since, first = begun.pop(event.track_uuid)
            said = {each.name: each.string_value for each in first.debug_annotations}
            found.append((first.name, since // 10**9, packet.timestamp // 10**9, said["ended"]))
    return sorted(found)
