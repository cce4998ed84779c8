"""How jobs fare against their quota alone, worked by hand on tiny replays, and what is replayed for that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from oracle import agrees
from small_clusters import local_queue, queues, quota_tree

import harness
from harness.base.errors import OptionError, RunError
from harness.runs.request import Request

HALVES = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}
JOBS = (
    {"queue": "b", "request.cpu": 2000, "duration": 10},
    {"queue": "b", "request.cpu": 2000, "duration": 10, "submit_time": 1},
    {"queue": "a", "request.cpu": 2000, "duration": 40, "submit_time": 5},
)
"""Of 4 cores b holds all from 1 to 10 s, half of them borrowed; a asks for its own 2 from 5 s on."""

Replayed = Callable[..., harness.Run]


@pytest.fixture
def replayed(write_trace: Callable[..., Path], tmp_path: Path) -> Replayed:
    """Replays jobs on a cluster."""

    def replay(*rows: Mapping[str, Any], cluster: str, plugin: str = "none", **choices: Any) -> harness.Run:
        path = tmp_path / "cluster.yaml"
        path.write_text(cluster)
        return harness.replay(
            write_trace(*rows), plugin=plugin, cluster=path, output=tmp_path / "results", **choices
        )

    return replay


def values_of(run: harness.Run) -> dict[tuple[str, str], float | None]:
    """What is measured of quotas that are alone."""
    names = ("fairness.finish_time", "fairness.sharing_violations")
    found = run.metrics.filter(pl.col("metric").is_in(names))
    return {(row["metric"].partition(".")[2], row["scope"]): row["value"] for row in found.to_dicts()}


def test_who_lends_ends_later_than_alone(replayed: Replayed) -> None:
    """Without preemption a waits until 10 s for what is its own.

    Alone on 2 cores b's jobs end after 10 and 19 s, together after 10 and 10: rho is (1 + 10/19) / 2.
    Alone a's job takes 40 s, together 5 + 40: rho is 9/8, above 1.05, so one quota of two is worse off.
    """
    (run,) = harness.isolated([replayed(*JOBS, cluster=queues(HALVES))])
    assert values_of(run) == {
        ("sharing_violations", "all"): 1 / 2,
        ("finish_time", "quota=a"): 45 / 40,
        ("finish_time", "quota=b"): pytest.approx((1 + 10 / 19) / 2, rel=1e-15),
    }
    assert run.remarks == ()
    better = run.metrics.filter(pl.col("metric").str.starts_with("fairness.finish"))["better"]
    assert better.to_list() == ["lower"] * 5


@pytest.mark.parametrize("plugin", ["kueue-classic", pytest.param("fairsharing", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("nodes", [0, 1])
def test_what_reclaims_its_quota_is_as_if_it_were_alone(replayed: Replayed, plugin: str, nodes: int) -> None:
    """On quotas alone, or on one node of 4 cores: a takes its half back at 5 s, where b's second job had it.

    That one begins anew when the first has ended, at 10 s, and ends at 20 s as it does alone. An eviction
    takes Kueue a second, so that a has its half at 6 s: rho is 41/40.
    """
    cluster = queues(HALVES, nodes=nodes)
    (run,) = harness.isolated([replayed(*JOBS, cluster=cluster, plugin=plugin, grace_period=0)])
    assert values_of(run) == {
        ("sharing_violations", "all"): 0,
        ("finish_time", "quota=a"): 41 / 40,
        ("finish_time", "quota=b"): 1,
    }


def elastic(*names: str) -> str:
    """A node of 4 cores, and for each namespace an elastic quota with 2 cores of its own and at most 4."""
    cores = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    quotas = [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": name},
            "spec": {"min": {"cpu": "2"}, "max": {"cpu": "4", "memory": "8Gi"}},
        }
        for name in names
    ]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}, "status": {"allocatable": cores}}
    return str(yaml.safe_dump_all([node, *quotas]))


def test_elastic_quotas_are_alone_on_their_min(replayed: Replayed) -> None:
    """On the node b borrows a's half until 5 s; alone it has no more than its 2 cores."""
    jobs = [{**job, "namespace": job["queue"]} for job in JOBS]
    run = replayed(*jobs, cluster=elastic("a", "b"), plugin="elasticquota", grace_period=0)
    (run,) = harness.isolated([run])
    values = values_of(run)
    assert values["finish_time", "quota=a"] == pytest.approx(1, abs=0.05)
    alone = harness.Run.open(next(path for path in folders(run) if '"alone": "b"' in path.read_text()).parent)
    ends = (alone.jobs["finish_time"] - alone.jobs["submit_time"]).dt.total_seconds().to_list()
    assert ends == [10, 19]
    assert values["sharing_violations", "all"] == 0
    assert run.remarks == ()


@pytest.mark.parametrize("plugin", ["elasticquota", pytest.param("auto", marks=pytest.mark.nightly)])
def test_where_queues_and_elastic_quotas_share_names_both_are_alone(replayed: Replayed, plugin: str) -> None:
    """What goes by elastic quotas is measured as without ClusterQueues: b has no more than 2 cores.

    A `min` that is less than the nominal quota is what counts: alone on one core no job of b can run.
    """
    tree, whole = quota_tree(HALVES, {"cpu": "4"}), queues({}, nodes=1)
    (bare,) = harness.isolated([replayed(*JOBS, cluster=whole + tree, plugin=plugin, grace_period=0)])
    both = replayed(*JOBS, cluster=queues(HALVES, nodes=1) + tree, plugin=plugin, grace_period=0)
    (run,) = harness.isolated([both])
    assert values_of(run) == values_of(bare)
    assert values_of(run)["finish_time", "quota=b"] is not None
    assert run.remarks == ()
    alone = alone_in(run)["b"]
    assert (alone.jobs["finish_time"] - alone.jobs["submit_time"]).dt.total_seconds().to_list() == [10, 19]
    less = quota_tree({**HALVES, "b": {"cpu": "1"}}, {"cpu": "4"})
    other = replayed(*JOBS, cluster=queues(HALVES, nodes=1) + less, plugin=plugin, grace_period=0)
    (run,) = harness.isolated([other])
    assert run.remarks[0].endswith("in the replay of their quota alone: 2 of b")


@pytest.mark.parametrize("plugin", ["kueue-classic", pytest.param("fairsharing", marks=pytest.mark.nightly)])
def test_what_goes_by_cluster_queues_is_measured_as_without_elastic_quotas(
    replayed: Replayed, plugin: str
) -> None:
    """Whatever these say."""
    measured = []
    for tree in ("", quota_tree({"a": {"cpu": "0"}, "b": {"cpu": "1"}}, {"cpu": "4"})):
        run = replayed(*JOBS, cluster=queues(HALVES, nodes=1) + tree, plugin=plugin, grace_period=0)
        measured.append(values_of(harness.isolated([run])[0]))
    assert measured[0] == measured[1]
    assert None not in measured[0].values()


@pytest.mark.parametrize("plugin", ["elasticquota", pytest.param("auto", marks=pytest.mark.nightly)])
def test_elastic_quotas_of_namespaces_are_alone_with_the_queue_of_their_jobs(
    replayed: Replayed, plugin: str
) -> None:
    """They are called otherwise than the ClusterQueues, are what is measured, and each keeps its `min`."""
    jobs = [{**job, "namespace": f"team-{job['queue']}"} for job in JOBS]
    cluster = f"{queues(HALVES)}---\n{elastic('team-a', 'team-b')}"
    (run,) = harness.isolated([replayed(*jobs, cluster=cluster, plugin=plugin, grace_period=0)])
    assert values_of(run) == {
        ("sharing_violations", "all"): 0,
        ("finish_time", "quota=team-a"): pytest.approx(1, abs=0.05),
        ("finish_time", "quota=team-b"): 1,
    }
    assert run.remarks == ()
    alone = alone_in(run)["team-b"]
    assert list(alone.info["cluster"]["content"]["objects"]["ElasticQuota"]) == ["team-b"]
    assert (alone.jobs["finish_time"] - alone.jobs["submit_time"]).dt.total_seconds().to_list() == [10, 19]


def test_jobs_that_no_elastic_quota_counts_cannot_be_alone_on_one(replayed: Replayed) -> None:
    """The plugin has nothing to go by then: it is said, and other runs are measured."""
    jobs = [{**job, "namespace": "x" if job["queue"] == "a" else "y"} for job in JOBS]
    cluster = f"{queues(HALVES)}---\n{elastic('x')}"
    runs = [replayed(*jobs, cluster=cluster, plugin=plugin) for plugin in ("elasticquota", "kueue-classic")]
    refused, measured = harness.isolated(runs)
    assert set(values_of(refused).values()) == {None}
    (remark,) = refused.remarks
    assert remark.endswith(
        "not measured: 'b' alone: elasticquota preempts by quotas, but the cluster has none"
    )
    assert None not in values_of(measured).values()


def alone_in(run: harness.Run) -> dict[str, harness.Run]:
    """Quota -> the run in which it is alone; of a single plugin on a single cluster it is the latest."""
    found = sorted(folders(run), key=lambda path: path.stat().st_mtime_ns)
    opened = [harness.Run.open(path.parent) for path in found]
    return {str(each.info["settings"]["alone"]): each for each in opened}


def folders(run: harness.Run) -> list[Path]:
    """What is kept of runs with one quota alone."""
    return sorted((run.path.parent / ".alone").glob("*/run.json"))


def test_what_cannot_run_alone_is_left_out_and_counted(replayed: Replayed) -> None:
    """A job that borrows has no time alone, and one that never ended has none together."""
    jobs = [*JOBS, {"queue": "a", "request.cpu": 3000, "submit_time": 60}]
    jobs += [{"queue": "a", "request.cpu": 1000, "submit_time": 60, "duration": 100}]
    (run,) = harness.isolated([replayed(*jobs, cluster=queues(HALVES), until="80s")])
    assert values_of(run)["finish_time", "quota=a"] == 45 / 40
    (remark,) = run.remarks
    assert remark.endswith("in the replay of their quota alone: 1 of a")
    assert remark in harness.compare([run]).table()


def test_where_it_cannot_be_done_is_said(replayed: Replayed) -> None:
    """On nodes kube-scheduler keeps to no quotas; and without any there is nothing to be alone on."""
    (on_nodes,) = harness.isolated([replayed(*JOBS, cluster=queues(HALVES, nodes=1))])
    assert set(values_of(on_nodes).values()) == {None}
    (remark,) = on_nodes.remarks
    assert remark == (
        "fairness.finish_time: not measured: replayed alone, jobs of 'b' used 4 cpu, above their nominal "
        "quota of 2: none ignores quotas on this cluster"
    )
    (bare,) = harness.isolated([replayed(*JOBS, cluster=queues({}, nodes=1))])
    assert set(values_of(bare).values()) == {None}
    assert "no quota can be replayed alone" in bare.remarks[0]


def test_work_of_the_manifests_is_of_all_quotas(replayed: Replayed) -> None:
    """Where it takes part no quota is alone."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "x"},
        "spec": {"nodeName": "n0", "containers": [{"name": "c"}]},
    }
    cluster = f"{queues(HALVES, nodes=1)}---\n{yaml.safe_dump(pod)}"
    (run,) = harness.isolated([replayed(*JOBS, cluster=cluster, plugin="kueue-classic")])
    assert "the replay includes work from the manifests" in run.remarks[0]
    empty = replayed(*JOBS, cluster=cluster, plugin="kueue-classic", at_start="empty", grace_period=0)
    (run,) = harness.isolated([empty])
    assert values_of(run)["sharing_violations", "all"] == 0


def test_runs_with_one_quota_alone_are_kept_and_not_made_again(replayed: Replayed, tmp_path: Path) -> None:
    """Beside the runs, in a hidden folder; an opened run finds them, and what it said stays with it."""
    (run,) = harness.isolated([replayed(*JOBS, cluster=queues(HALVES))])
    made = {path: path.stat().st_mtime_ns for path in folders(run)}
    assert len(made) == 2
    assert [path.name for path in tmp_path.glob("results/trace/[!.]*")] == [run.path.name]
    (again,) = harness.isolated([run.path])
    assert {path: path.stat().st_mtime_ns for path in folders(run)} == made
    assert values_of(again) == values_of(run)
    assert (again.path / "metrics.parquet").read_bytes() == (run.path / "metrics.parquet").read_bytes()
    stored = replayed(*JOBS, cluster=queues(HALVES))
    assert stored.stored
    assert values_of(stored) == values_of(run)


def test_one_quota_alone_is_a_request(replayed: Replayed, tmp_path: Path) -> None:
    """It has a JSON, arrives as in the whole trace and its twins, and says which quotas there are."""
    replayed(*JOBS, cluster=queues(HALVES))
    asked = Request(
        tmp_path / "trace.parquet", plugin="none", cluster=tmp_path / "cluster.yaml", alone="a", twin="1",
        output=tmp_path / "results",
    )  # fmt: skip
    assert Request.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    whole = Request.from_json({**asked.to_json(), "alone": None}).run()
    assert asked.run().jobs["submit_time"].to_list() == whole.jobs.filter(queue="a")["submit_time"].to_list()
    with pytest.raises(OptionError, match="no ClusterQueue or ElasticQuota 'x'") as refused:
        Request.from_json({**asked.to_json(), "alone": "x"}).run()
    assert refused.value.hint == "there is: a, b"


@pytest.mark.parametrize("measure", [harness.isolated, harness.idle_causes])
def test_a_run_whose_cluster_file_has_changed_is_refused(
    replayed: Replayed, tmp_path: Path, measure: Callable[[list[Any]], list[harness.Run]]
) -> None:
    """Quotas alone would be those of another cluster; also of a run that was made by the same process."""
    run = replayed(*JOBS, cluster=queues(HALVES))
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": 3}, "b": {"cpu": 5}}))
    for each in (run, run.path):
        with pytest.raises(RunError, match="the manifests or their patches have changed"):
            measure([each])


def test_what_is_alone_already_is_not_isolated_nor_shaken(replayed: Replayed) -> None:
    """It is part of what is said of another run."""
    (run,) = harness.isolated([replayed(*JOBS, cluster=queues(HALVES))])
    with pytest.raises(RunError, match="replays only quota 'a'") as refused:
        harness.isolated([next(each.parent for each in folders(run) if '"alone": "a"' in each.read_text())])
    assert refused.value.hint == "give the run that replays all quotas"


@pytest.mark.parametrize("doors", [False, True])
def test_a_slow_recomputation_agrees(replayed: Replayed, tmp_path: Path, *, doors: bool) -> None:
    """Forty contended jobs; also where two queues of one name count against two quotas."""
    rows = [
        {
            "submit_time": number * number % 61,
            "duration": number % 7 * 4,
            "queue": "q" if doors else "ab"[number * number % 5 % 2],
            "namespace": "ab"[number * number % 5 % 2],
            "priority": number % 3,
            "request.cpu": 500 * (1 + number % 4),
        }
        for number in range(40)
    ]
    several = "".join(local_queue(name, "q", name) for name in "ab") if doors else ""
    run = replayed(*rows, cluster=queues(HALVES) + several, plugin="kueue-classic")
    (run,) = harness.isolated([run])
    found = {
        each.info["settings"]["alone"]: each
        for each in (harness.Run.open(path.parent) for path in folders(run))
    }
    assert found.keys() == {"a", "b"}
    agrees(run, pl.read_parquet(tmp_path / "trace.parquet"), found)


# --- over twins -------------------------------------------------------------------------------------------


def test_twins_are_measured_as_each_would_be_by_itself(replayed: Replayed) -> None:
    """A twin's rho is that of the same twin replayed by itself, and so is the mean over twins."""
    runs = [replayed(*JOBS, cluster=queues(HALVES), plugin="kueue-classic")]
    comparison = harness.compare(runs, shake="2,arrivals=4s", isolated=True)
    (row,) = comparison.rows("fairness.finish_time", scope="quota=a")
    for place, of_run in enumerate(comparison.twins):
        values = []
        for number, twin in enumerate(of_run, start=1):
            by_itself = replayed(
                *JOBS,
                cluster=queues(HALVES),
                plugin=runs[place].info["policy"]["name"],
                twin=f"{number},arrivals=4s",
            )
            (by_itself,) = harness.isolated([by_itself])
            assert values_of(twin) == values_of(by_itself)
            values.append(values_of(twin)["finish_time", "quota=a"])
        assert len(set(values)) == 2
        assert row.values[place] == pytest.approx((values[0] * values[1]) ** 0.5)


def test_a_comparison_says_what_its_twins_lack(replayed: Replayed) -> None:
    """Runs that were measured so, and twins that were not: the metrics are named that no line is of."""
    runs = [replayed(*JOBS, cluster=queues(HALVES))]
    runs = harness.isolated(runs)
    said = (
        "measured for runs, but not for their twins: fairness.sharing_violations, fairness.finish_time, "
        "fairness.finish_time_above_1; "
        "to measure the twins, add --isolated to --shake"
    )
    assert said in " ".join(harness.compare(runs, shake=2).table().split())
    assert said not in " ".join(harness.compare(runs, shake=2, isolated=True).table().split())


def test_of_twins_only_metrics_are_kept(replayed: Replayed) -> None:
    """Runs with one quota alone go with the tables of the twin; asked again nothing is replayed."""
    run = replayed(*JOBS, cluster=queues(HALVES))
    (measured,) = harness.compare([run], shake=2, isolated=True).runs
    assert len(folders(measured)) == 2, "of the run itself, and not of twins"
    twins = sorted((run.path.parent / ".twins" / run.path.name).glob("*/run.json"))
    made = {path: path.stat().st_mtime_ns for path in twins}
    assert {harness.Run.open(path.parent).kept for path in twins} == {"metrics"}
    harness.compare([run], shake=2, isolated=True)
    harness.compare([run], shake=2)
    assert {path: path.stat().st_mtime_ns for path in twins} == made


def test_twins_that_were_there_are_replayed_once_more_for_it(replayed: Replayed) -> None:
    """Their tables are gone; what else was measured of them stays as it was."""
    runs = [replayed(*JOBS, cluster=queues(HALVES))]
    before = harness.compare(runs, shake=2)
    after = harness.compare(runs, shake=2, isolated=True)
    names = {row.measured.metric for row in before.rows()}
    assert [row for row in after.rows() if row.measured.metric in names] == before.rows()
    assert {row.measured.metric for row in after.rows()} - names == {
        "fairness.sharing_violations",
        "fairness.finish_time_above_1",
    }


@pytest.mark.nightly
def test_another_comparison_does_not_take_it_from_twins(replayed: Replayed) -> None:
    """Where a run that ends earlier comes in, twins are replayed again for the window they share with it."""
    late = [
        replayed(*JOBS, cluster=queues(HALVES), plugin="kueue-classic", grace_period=time, label=label)
        for label, time in (("late", "90s"), ("later", "150s"))
    ]
    first = harness.compare(late, shake=2, isolated=True)
    harness.compare([replayed(*JOBS, cluster=queues(HALVES)), *late], shake=2)
    again = harness.compare(late, shake=2)
    assert again.rows("fairness.finish_time", scope=None) == first.rows("fairness.finish_time", scope=None)


def test_what_cannot_be_told_of_a_run_is_not_tried_in_its_twins(replayed: Replayed) -> None:
    """On nodes kube-scheduler keeps to no quotas."""
    (measured,) = harness.compare(
        [replayed(*JOBS, cluster=queues(HALVES, nodes=1))], shake=2, isolated=True
    ).twins
    assert all(values_of(twin) == {} for twin in measured)
