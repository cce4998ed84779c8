"""Metrics of a cluster that changes, worked by hand: capacity and quotas are functions of time."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_clusters import queues

import harness
from harness.analysis.export.holding import FINISHED, holding
from harness.analysis.metrics.fairness import measure_shares
from harness.analysis.metrics.levels import holders_then, nominals_then, pieces
from harness.analysis.metrics.pieces import Piece, cut
from harness.analysis.metrics.pod_moves import COLUMNS, PodMoves
from harness.analysis.metrics.shares import Sharing
from harness.cluster.load import load_cluster

Measured = Callable[..., Callable[..., float | None]]

BEFORE = queues({"a": {"cpu": "4"}, "b": {"cpu": "2"}})
JOBS = (
    {"job_id": "x", "queue": "a", "request.cpu": 4000, "duration": 20},
    {"job_id": "y", "queue": "b", "request.cpu": 2000, "duration": 10, "submit_time": 5},
    {"job_id": "z", "queue": "a", "request.cpu": 2000, "duration": 10, "submit_time": 6},
)
"""`x` holds 4 from 0 to 20 s, `y` 2 from 5 to 15 s, `z` waits from 6 s on."""


def changing(before: str, seconds: int, **quotas: str) -> str:
    """Manifests whose nominal quotas of cpu are others from some second on."""
    patches = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": name, "annotations": {"harness/from": f"{seconds}s"}},
            "spec": {
                "resourceGroups": [
                    {"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}]}
                ]
            },
        }
        for name, quota in quotas.items()
    ]
    return "---\n".join([before, *(yaml.safe_dump(each) for each in patches)])


def test_utilization_is_a_share_of_what_there_is_over_time(measured: Measured) -> None:
    """6 cores for 10 s and 4 for 20 s; held are 80 of `x`, 20 of `y` and 20 of `z`, from 20 to 30 s."""
    value = measured(*JOBS, cluster=changing(BEFORE, 10, a="2"), plugin="kueue-classic")
    assert value("utilization.capacity.hours", resource="cpu") == 140 / 3600
    assert value("utilization.allocated", resource="cpu") == 120 / 140


def test_what_could_have_been_used_is_bounded_by_what_there_is_then(measured: Measured) -> None:
    """Asked for are 4 to 5 s, 6 to 6 s, 8 to 15 s, 6 to 20 s, 2 to 30 s; of it at most 6, from 10 s on 4."""
    value = measured(*JOBS, cluster=changing(BEFORE, 10, a="2"), plugin="kueue-classic")
    could = 4 * 5 + 6 * 1 + 6 * 4 + 4 * 5 + 4 * 5 + 2 * 10
    assert value("utilization.of_demand", resource="cpu") == pytest.approx(120 / could)


def test_what_a_quota_holds_beyond_a_nominal_quota_that_fell_is_borrowed(measured: Measured) -> None:
    """`x` holds 4 until 20 s of what is 2 from 10 s on: 2 for 10 s."""
    value = measured(*JOBS, cluster=changing(BEFORE, 10, a="2"), plugin="kueue-classic")
    assert value("quota.borrowed", "quota=a", resource="cpu") == pytest.approx(20 / 3600)
    assert value("quota.borrowed", "quota=b", resource="cpu") == 0


def test_a_claim_begins_when_a_quota_rises(measured: Measured) -> None:
    """`b` has nothing until 8 s and 2 from then on, which `x` holds until 20 s."""
    cluster = queues({"a": {"cpu": "4"}, "b": {"cpu": "0"}})
    jobs = [JOBS[0], {"job_id": "y", "queue": "b", "request.cpu": 2000, "duration": 10, "submit_time": 5}]
    value = measured(*jobs, cluster=changing(cluster, 8, a="2", b="2"), plugin="none")
    assert value("reclaim_latency.max", "quota=b") == 12
    assert value("fairness.guarantee_deficit", "quota=b", resource="cpu") == pytest.approx(24 / 3600)


Replayed = Callable[..., harness.Run]


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Replayed:
    """Replays one job of `pods` pods of 2 cpu and 20 s on two such nodes; `n1` is gone from 5 s until 9 s."""

    def replayed(pods: int, plugin: str, *absent: str) -> harness.Run:
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "2", "pods": "10"}},
            }
            for name in ("n0", "n1")
        ]
        path = tmp_path / "cluster.yaml"
        path.write_text("---\n".join([queues({"a": {"cpu": "4"}}), *map(yaml.safe_dump, nodes)]))
        annotations = {"harness/from": "5s", "harness/until": "9s"}
        gone = [
            {"kind": "Node", "metadata": {"name": name, "annotations": annotations}, "$patch": "delete"}
            for name in absent
        ]
        trace = write_trace({"job_id": "x", "queue": "a", "pods": pods, "request.cpu": 2000, "duration": 20})
        cluster = load_cluster(path).patched(gone)
        return harness.replay(trace, plugin=plugin, cluster=cluster, output=tmp_path / "runs")

    return replayed


@pytest.mark.parametrize("plugin", ["kueue-classic", "none"])
def test_a_pod_that_lost_its_node_waits_until_it_is_bound_again(plugin: str, replayed: Replayed) -> None:
    """Both nodes run one pod of a gang until 5 s, then one node does until 9 s; the job keeps its quota."""
    run = replayed(2, plugin, "n1")
    rows = run.micros("timeline").select("time", "allocated", "pending").collect().rows()
    assert rows[:3] == [(0, 4000, 0), (5_000_000, 2000, 2000), (9_000_000, 4000, 0)]
    moves = PodMoves(run).of(run.columns("decisions", *COLUMNS))
    assert (moves.waiting.sum(), moves.holding.sum()) == (0, 0)


def test_a_job_keeps_its_quota_while_none_of_its_pods_has_a_node(replayed: Replayed) -> None:
    """Its Workload is admitted all the time; its only pod backs off a second, since no node was there."""
    run = replayed(1, "kueue-classic", "n0", "n1")
    found = holding(run, run.window)
    assert [(stay.start, stay.end, stay.how) for stay in found.jobs] == [(0, 30_000_000, FINISHED)]
    assert [(stay.start, stay.end) for stay in found.pods] == [(0, 5_000_000), (10_000_000, 30_000_000)]


def node(name: str, cpu: int, *times: str, **patch: object) -> str:
    """A node of so many cores, or a patch of one, with the times from and until which it holds."""
    annotations = dict(zip(("harness/from", "harness/until"), times, strict=False))
    has = patch or {"status": {"allocatable": {"cpu": cpu}}}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}, **has}
    )


def test_what_is_free_in_vain_is_of_the_nodes_that_there_are_then(measured: Measured) -> None:
    """`z` asks for 5 cores and waits until 40 s, when a node of 8 comes; x has 3 of n0 all the time.

    Of 4 cores n0 has 1 free until 30 s, and then has only 2, which is less than x holds. n1 has 4, but from
    10 to 20 s, when it is gone: 1 * 30 + 4 * 30 in vain.
    """
    there = [
        node("n0", 4),
        node("n1", 4),
        node("n2", 8, "40s"),
        node("n0", 0, "30s", status={"allocatable": {"cpu": 2}}),
        node("n1", 0, "10s", "20s", **{"$patch": "delete"}),
    ]
    jobs = (
        {"job_id": "x", "queue": "a", "request.cpu": 3000, "duration": 140},
        {"job_id": "z", "queue": "a", "request.cpu": 5000, "duration": 100},
    )
    value = measured(*jobs, cluster="---\n".join(there), plugin="default-preemption")
    capacity = 4 * 30 + 2 * 110 + 4 * 130 + 8 * 100
    assert value("utilization.capacity.hours", resource="cpu") == capacity / 3600
    assert value("fragmentation", resource="cpu") == 150 / capacity


@pytest.fixture
def contended(write_trace: Callable[..., Path], tmp_path: Path) -> harness.Run:
    """Replays jobs that wait; the only GPUs are gone from 5 to 9 s, and 6 cores of 8 from 12 to 15 s.

    The queue `b` asks for nothing before 1 s, and `c` only from 20 s on.
    """
    gpus = {"status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": "4", "pods": "10"}}}
    gone = {"$patch": "delete"}
    nodes = [node("n0", 8), node("g0", 4, **gpus)]
    later = [node("g0", 4, "5s", "9s", **gone), node("n0", 2, "12s", "15s")]
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "---\n".join([queues({"a": {"cpu": "8"}, "b": {"cpu": "4"}, "c": {"cpu": "2"}}), *nodes, *later])
    )
    jobs = [
        {
            "job_id": f"{queue}{number}",
            "queue": queue,
            "submit_time": number + later,
            "request.cpu": 3000,
            "duration": 8,
        }
        | ({"request.nvidia.com/gpu": 3} if number % 2 else {})
        for number in range(6)
        for queue, later in (("a", 0), ("b", 1), ("c", 20))
    ]
    cluster = load_cluster(path)
    return harness.replay(write_trace(*jobs), plugin="none", cluster=cluster, output=tmp_path / "runs")


def test_ideal_shares_do_not_depend_on_the_epochs_beside(
    contended: harness.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shares are the same to the last digit, whether epochs make pieces of their own or parts of one."""
    found = []
    for cut_otherwise in (cut, _cut_at_turns):
        monkeypatch.setattr("harness.analysis.metrics.levels.cut", cut_otherwise)
        some = list(Sharing(contended).of(pieces(contended, contended.window, changes=1000)))
        off = [each.askers.total(abs(each.share - each.ideal), slice(None)) for _, each in some if each]
        found.append((len(some), np.concatenate(off)))
    assert found[0][0] == 1
    assert found[1][0] == len(contended.epochs) > 3
    assert np.array_equal(found[0][1], found[1][1])
    assert (found[0][1] > 0.1).any()


def test_fairness_does_not_depend_on_how_epochs_make_up_pieces(
    contended: harness.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values are the same to the last digit."""
    together = list(measure_shares(contended, contended.window))
    monkeypatch.setattr("harness.analysis.metrics.levels.cut", _cut_at_turns)
    assert together == list(measure_shares(contended, contended.window))


def _cut_at_turns(*args: Any, alike: Container[int], **settings: Any) -> Iterator[Piece]:
    """Cuts at all changes of the cluster."""
    return cut(*args, **settings)


def test_holders_are_made_anew_only_when_quotas_change(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Nodes that come and go leave the holders as they are; a quota that falls makes others."""
    path = tmp_path / "cluster.yaml"
    later = [node("n0", 2, "5s", "9s"), node("n0", 3, "12s", "15s")]
    path.write_text("---\n".join([changing(BEFORE, 10, a="2"), node("n0", 8), *later]))
    cluster = load_cluster(path)
    run = harness.replay(write_trace(*JOBS), plugin="kueue-classic", cluster=cluster, output=tmp_path / "r")
    first, *same, fallen, lower, lowest = holders_then(run)
    assert [begin for begin, _ in run.epochs][1:] == [
        5_000_000,
        9_000_000,
        10_000_000,
        12_000_000,
        15_000_000,
    ]
    assert len(same) == 2
    assert all(each is first for each in same)
    assert fallen != first
    assert fallen is lower is lowest
    amounts = [int(nominal[0][0]) for nominal in nominals_then(run)]
    assert amounts == [4000, 4000, 4000, 2000, 2000, 2000]
