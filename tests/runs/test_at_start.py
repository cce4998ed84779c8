"""Which work of the manifests takes part in a replay, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness import Decision
from harness.base.errors import OptionError
from harness.base.units import HOUR
from harness.cluster.dates import created_of_pods, latest_of
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.runs.at_start import as_it_stands
from harness.runs.run import Run

OUT = "left out: 1 Workload of the manifests:"
DAY = datetime(2026, 1, 1, tzinfo=UTC)
Manifest = dict[str, Any]


def at(hour: float) -> str:
    """A time as manifests have it."""
    return (DAY + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(name: str, created: float, since: float | None = None, cpu: int = 1) -> Manifest:
    """A Workload of the queue `q`; with `since` it holds quota from then on."""
    requests = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    status: Manifest = {}
    if since is not None:
        used = [{"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}}]
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": at(since)}
        status = {"admission": {"clusterQueue": "q", "podSetAssignments": used}, "conditions": [reserved]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": at(created)},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {"spec": requests}}]},
        "status": status,
    }


def pod(name: str, created: float, start: float | None = None, cpu: int = 1) -> Manifest:
    """A Pod that waits; with `start` it runs on the node from then on."""
    where: Manifest = {} if start is None else {"nodeName": "n"}
    status: Manifest = {} if start is None else {"startTime": at(start), "phase": "Running"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": at(created)},
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}], **where},
        "status": status,
    }


def cluster(*work: Manifest, cpu: int = 8, nodes: bool = False) -> Cluster:
    """One queue `q`, or one node `n`, of so many cores, and work."""
    quotas = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    group = {"coveredResources": ["cpu"], "flavors": quotas}
    kueue = "kueue.x-k8s.io/v1beta2"
    queue = {"namespaceSelector": {}, "resourceGroups": [group]}
    queues: list[Manifest] = [
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": queue},
    ]
    amounts = {"allocatable": {"cpu": cpu, "pods": 99}}
    node: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": amounts}
    return cluster_from([*([node] if nodes else queues), *work], "dump.yaml")


@pytest.fixture
def replay(tmp_path: Path) -> Callable[..., Run]:
    """Replays jobs of one core and half an hour, submitted at these hours of the day or since the origin.

    Unfinished work has no limit, so that it keeps what it holds, unless something else is said.
    """

    def run(
        where: Cluster, *hours: float, dated: bool = True, plugin: str = "kueue-classic", **how: Any
    ) -> Run:
        submit = [(DAY if dated else timedelta()) + timedelta(hours=hour) for hour in hours]
        frame = pl.DataFrame(
            {
                "job_id": [f"j{number}" for number in range(len(hours))],
                "submit_time": submit,
                "duration": [timedelta(minutes=30)] * len(hours),
                "queue": ["q"] * len(hours),
                "request.cpu": [1000] * len(hours),
                **how.pop("columns", {}),
            }
        )
        frame.write_parquet(tmp_path / "trace.parquet")
        how = {"unfinished": "limit", **how}
        return harness.replay(
            tmp_path / "trace.parquet", plugin=plugin, cluster=where, output=tmp_path / "results", **how
        )

    return run


def began(run: Run) -> dict[str, tuple[float, float | None]]:
    """Job -> when it was submitted and when it started, in hours since the origin."""
    table = run.micros("jobs").collect()
    times = table.select("job_id", "submit_time", "start_time").rows()
    return {name: (submit / HOUR, None if start is None else start / HOUR) for name, submit, start in times}


def left_out(run: Run) -> list[str]:
    """What the run says takes no part."""
    return [each for each in run.info["cluster"]["warnings"] if "left out" in each]


def test_a_dump_after_the_trace_does_not_begin_on_its_first_day(replay: Callable[..., Run]) -> None:
    """Its Workloads arrive when they were created, and wait like any job; older ones are left out."""
    where = cluster(workload("old", -5, -4, cpu=7), workload("new", 3, 6, cpu=7), workload("last", 20))
    run = replay(where, 0, 2, 9)
    assert began(run) == {"j0": (0, 0), "j1": (2, 2), "default/new": (3, 3), "j2": (9, 9)}
    assert run.info["settings"]["at_start"] == "empty"
    assert left_out(run) == [
        f"{OUT} they were created after the last time in the trace",
        f"{OUT} the replay begins with an empty cluster (--at-start dump includes them)",
    ]
    assert run.jobs["state"].to_list() == ["finished", "finished", "running", "finished"]


def test_a_trace_goes_on_until_its_last_recorded_end(replay: Callable[..., Run]) -> None:
    """What came after the last submission may have held up what still waited."""
    columns = {"recorded_end": [DAY + timedelta(hours=hour) for hour in (1, 4)]}
    run = replay(cluster(workload("new", 3), workload("last", 5)), 0, 2, columns=columns)
    assert list(began(run)) == ["j0", "j1", "default/new"]


def test_an_object_without_dates_was_there_before(replay: Callable[..., Run]) -> None:
    """Nobody knows better, so a state without any dates is where a replay begins."""
    undated = workload("undated", 1)
    del undated["metadata"]["creationTimestamp"]
    assert began(replay(cluster(undated), 0, 2))["default/undated"] == (0, 0)
    assert list(began(replay(cluster(undated, workload("new", 1)), 0, 2))) == ["j0", "default/new", "j1"]


def test_the_world_of_the_dump_is_that_of_the_first_submission(replay: Callable[..., Run]) -> None:
    """What held quota by then runs, what got it later waits, what came later comes later."""
    held, waits = workload("held", -5, -4, cpu=5), workload("waits", -1, 4, cpu=4)
    run = replay(cluster(held, waits, workload("new", 3, 6, cpu=3)), 0, 2, 9, at_start="dump")
    assert began(run) == {
        "default/held": (0, 0),
        "default/waits": (0, None),
        "j0": (0, 0),
        "j1": (2, 2),
        "default/new": (3, 3),
        "j2": (9, None),
    }
    assert left_out(run) == []


def test_a_state_from_before_the_trace_is_where_it_begins(replay: Callable[..., Run]) -> None:
    """So it is by default where all was there before, and in a trace that has no dates."""
    where = cluster(workload("held", -5, -4, cpu=7), workload("next", -3, cpu=2))
    for dated in (True, False):
        run = replay(where, 0, 2, dated=dated)
        assert run.info["settings"]["at_start"] == "dump"
        assert began(run) == {"default/held": (0, 0), "default/next": (0, None), "j0": (0, 0), "j1": (2, 2)}
        empty = replay(where, 0, 2, dated=dated, at_start="empty")
        assert began(empty) == {"j0": (0, 0), "j1": (2, 2)}
        assert left_out(empty)[0].startswith("left out: 2 Workloads of the manifests: the replay begins")
        assert empty.path != run.path


def test_a_dump_of_another_time_is_a_state_if_it_is_asked_for(replay: Callable[..., Run]) -> None:
    """All of it is from after the trace: by default it takes no part, and else it is there as it stands."""
    where = cluster(workload("held", 100, 101, cpu=7), workload("next", 102))
    assert list(began(replay(where, 0, 2))) == ["j0", "j1"]
    run = replay(where, 0, 2, at_start="dump")
    assert began(run)["default/held"] == (0, 0)
    assert began(run)["default/next"] == (0, 0)


def test_what_the_trace_has_is_not_there_twice(replay: Callable[..., Run]) -> None:
    """A Workload that has ended since the manifests were printed is a job of the trace."""
    where = cluster(workload("a", -1, 0), workload("b", 1))
    run = replay(where, 0, 2, columns={"job_id": ["default/a", "default/b"]})
    assert began(run) == {"default/a": (0, 0), "default/b": (2, 2)}
    assert left_out(run) == ["left out: 2 Workloads of the manifests: the trace has them as jobs"]


def test_arrivals_are_scaled_with_those_of_the_trace(replay: Callable[..., Run]) -> None:
    """Twice as fast: they keep their place among its jobs."""
    run = replay(cluster(workload("new", 5)), 1, 3, 5, 9, scale_arrivals=2)
    assert began(run) == {"j0": (0, 0), "j1": (1, 1), "default/new": (2, 2), "j2": (2, 2), "j3": (4, 4)}


def test_pods_come_and_wait_as_workloads_do(replay: Callable[..., Run]) -> None:
    """One that started later is bound anew; one that waits for a node is there, and waits."""
    work = [pod("old", -3, -2, cpu=3), pod("asked", -2, 5, cpu=2), pod("waits", -1, cpu=2), pod("new", 1, 2)]
    where = cluster(*work, nodes=True, cpu=9)
    run = replay(where, 0, 2, plugin="default-preemption", at_start="dump")
    assert began(run) == {
        "default/old": (0, 0),
        "default/asked": (0, 0),
        "default/waits": (0, 0),
        "j0": (0, 0),
        "default/new": (1, 1),
        "j1": (2, 2),
    }
    bound = run.decisions.filter(pl.col("action") == "bind")
    assert bound["job_id"].to_list()[0] == "default/old"
    assert list(began(replay(where, 0, 2, plugin="default-preemption"))) == ["j0", "default/new", "j1"]


def test_a_kind_of_another_group_with_the_name_of_a_pod_is_none(replay: Callable[..., Run]) -> None:
    """It may have no metadata, or the name of a Pod."""
    group = {"apiVersion": "example.com/v1", "kind": "Pod"}
    foreign = [group, {**pod("old", 4), **group}]
    where = cluster(pod("old", -3, -2, cpu=3), *foreign, nodes=True)
    assert created_of_pods(where) == {"default/old": (int(DAY.timestamp()) - 3 * 3600) * 1_000_000}
    run = replay(where, 0, plugin="default-preemption", at_start="dump")
    assert began(run) == {"default/old": (0, 0), "j0": (0, 0)}


def test_a_pod_that_has_the_name_of_a_workload_keeps_its_creation_time() -> None:
    where = cluster(workload("a", -2), pod("a", -3, -2, cpu=8), nodes=True)
    assert list(created_of_pods(where)) == ["pod default/a"]


def test_manifests_without_work_leave_the_run_as_it_is(replay: Callable[..., Run]) -> None:
    """Which world was asked for is part of a run only where it changes it."""
    run = replay(cluster(), 0)
    assert "at_start" not in run.info["settings"]
    assert replay(cluster(), 0, at_start="empty").path == run.path
    done = workload("done", -5)
    done["status"] = {"conditions": [{"type": "Finished", "status": "True", "lastTransitionTime": at(1)}]}
    assert "at_start" not in replay(cluster(done), 0).info["settings"]


def test_a_workload_whose_deletion_has_begun_has_ended(replay: Callable[..., Run]) -> None:
    """Kueue stops its job and removes it, so it neither holds quota nor waits for it."""
    holds, waits = workload("holds", -5, -4, cpu=8), workload("waits", -3)
    for each in (holds, waits):
        each["metadata"]["deletionTimestamp"] = at(-1)
    run = replay(cluster(holds, waits), 0, at_start="dump")
    assert began(run) == {"j0": (0, 0)}
    assert any("harness treats the workload as ended" in each for each in run.info["cluster"]["warnings"])


def test_a_plugin_that_does_not_take_them_over_is_told_of(replay: Callable[..., Run]) -> None:
    """Also of those that would come later."""
    run = replay(cluster(workload("new", 1)), 0, 2, plugin="none")
    assert list(began(run)) == ["j0", "j1"]
    assert any(
        each.startswith("Workloads of the manifests that wait for quota: 1 (")
        for each in run.info["cluster"]["warnings"]
    )


@pytest.mark.parametrize(
    ("grace", "of_deletion", "starts"),
    [(0.5, None, None), (3, None, 2), (0.5, 3, 2), (3, 0.5, None), (None, 3, 2), (None, None, None)],
)
def test_a_pod_that_is_terminating_holds_its_node_until_it_is_gone(
    grace: float | None, of_deletion: float | None, starts: float | None, replay: Callable[..., Run]
) -> None:
    """Gone at 2 h: told to go before the first submission it is over then; told later it runs on.

    The deletion says how long it had; else its spec does, and without that it is half a minute.
    """
    going = pod("going", -3, -2, cpu=8)
    going["metadata"]["deletionTimestamp"] = at(2)
    if grace is not None:
        going["spec"]["terminationGracePeriodSeconds"] = int(grace * 3600)
    if of_deletion is not None:
        going["metadata"]["deletionGracePeriodSeconds"] = int(of_deletion * 3600)
    run = replay(cluster(going, nodes=True), 0, plugin="default-preemption", at_start="dump")
    assert left_out(run) == []
    assert not [each for each in run.info["cluster"]["warnings"] if "terminating" in each]
    assert began(run) == {"default/going": (0, 0), "j0": (0, starts)}
    assert not [each for each in run.info["cluster"]["warnings"] if "terminating" in each]


class Idle:
    """Takes over nothing, and does nothing."""

    def __init__(self, *_: object) -> None: ...

    def submit(self, *_: object) -> None: ...

    def release(self, *_: object) -> None: ...

    def cycle(self, now: int) -> Iterator[Decision]:
        return iter(())


def test_pods_that_go_or_that_nobody_takes_over_are_told_of(replay: Callable[..., Run]) -> None:
    """One that is terminating is taken to be gone."""
    going = pod("going", -3, -2)
    going["metadata"]["deletionTimestamp"] = at(-1)
    run = replay(cluster(going, nodes=True), 0, plugin="default-preemption")
    assert left_out(run) == ["left out: 1 Pod of the manifests: they are terminating, so they count as gone"]
    where = cluster(pod("runs", -3, -2), pod("waits", -2), pod("new", 1, 2), nodes=True)
    for world, count in (("dump", 2), ("empty", 1)):
        said = replay(where, 0, 2, at_start=world, plugin=Idle).info["cluster"]["warnings"]
        (waits,) = [each for each in said if each.startswith("Pods of the manifests that wait for a node")]
        assert f": {count} (" in waits
        assert waits.endswith("; Idle does not take them over")
        runs = [each for each in said if each.startswith("Pods of the manifests that already run: 1 (")]
        assert len(runs) == (world == "dump")


@pytest.mark.parametrize("known", [False, True])
def test_a_pod_that_has_the_name_of_a_workload_takes_part_beside_it(
    known: bool, replay: Callable[..., Run]
) -> None:
    """Also where the trace has the Workload as a job."""
    work = cluster(workload("a", -2), pod("a", -3, -2, cpu=8), nodes=True).manifests
    where = cluster_from([*cluster().manifests, *work], "dump.yaml")
    run = replay(where, 0, at_start="dump", columns={"job_id": ["default/a"]} if known else {})
    there = began(run)
    assert there.pop("pod default/a") == (0, 0)
    assert there == ({"default/a": (0, None)} if known else {"default/a": (0, None), "j0": (0, None)})


@pytest.mark.parametrize(("world", "there"), [("dump", ["runs", "waits"]), ("empty", [])])
def test_pods_without_a_workload_take_part_beside_those_of_kueue(
    world: str, there: list[str], replay: Callable[..., Run]
) -> None:
    """Those that run hold their room, those that wait get some; each comes when it was created."""
    queues = cluster().manifests
    pods = [pod("runs", -3, -2), pod("waits", -2), pod("new", 1, 2)]
    where = cluster_from([*queues, *cluster(*pods, nodes=True).manifests], "dump.yaml")
    run = replay(where, 0, 2, at_start=world)
    expected: dict[str, tuple[float, float | None]] = {f"default/{name}": (0, 0) for name in there}
    assert began(run) == {**expected, "j0": (0, 0), "default/new": (1, 1), "j1": (2, 2)}


def test_a_world_that_there_is_not_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(OptionError, match="'now' is not one of empty, dump"):
        harness.Request("trace.parquet", at_start="now")


def test_requests_keep_the_world_in_json() -> None:
    """As all choices."""
    request = harness.Request("trace.parquet", at_start="empty")
    assert harness.Request.from_json(request.to_json()) == request


def status(kind: str, **fields: Any) -> Manifest:
    """An object that harness doesn't replay, or a condition of one."""
    return {"kind": kind, "metadata": {"name": "x", "creationTimestamp": at(0)}, "status": fields}


@pytest.mark.parametrize(
    ("further", "hour"),
    [
        ([], 2),
        ([status("Job", completionTime=at(3))], 3),
        ([status("Job", conditions=[{"lastProbeTime": None, "lastTransitionTime": at(4)}])], 4),
        ([status("Node", conditions=[{"lastHeartbeatTime": at(5)}, {"lastHeartbeatTime": at(4)}])], 5),
        ([status("Pod", containerStatuses=[{"state": {"terminated": {"finishedAt": at(6)}}}])], 6),
        ([status("Job", startTime="2026-01-01T08:00:00+01:00"), status("Job", startTime=at(6.5))], 7),
        ([status("Job", startTime="2026-13-01T08:00:00Z"), status("Job", startTime=at(3))], 3),
        ([status("Job", conditions="none"), status("Job", containerStatuses=[None])], 2),
        ([{"kind": "Job", "metadata": {"name": "x", "deletionTimestamp": at(9)}}], 2),
    ],
)
def test_a_dump_is_of_the_latest_time_of_any_object(further: list[Manifest], hour: float) -> None:
    """Work that has ended, Jobs and heartbeats tell the time, too. A deletion may lie in the future."""
    dump = cluster(workload("runs", 1, 2))
    when = int((DAY + timedelta(hours=hour)).timestamp()) * 10**6
    assert latest_of(replace(dump, manifests=(*dump.manifests, *further))) == when


def test_a_replay_and_a_question_date_a_dump_alike(replay: Callable[..., Run]) -> None:
    """The last event of the dump is the end of a job, three hours after the work that is left began."""
    ended = workload("ended", 0, 1)
    ended["status"]["conditions"] += [{"type": "Finished", "status": "True", "lastTransitionTime": at(5)}]
    dump = cluster(workload("runs", 1, 2), ended)
    assert as_it_stands(dump).as_of == latest_of(dump) == int((DAY + timedelta(hours=5)).timestamp()) * 10**6
    assert replay(dump, 4).info["settings"]["at_start"] == "empty"
    assert replay(dump, 5).info["settings"]["at_start"] == "dump"
