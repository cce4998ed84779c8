"""What a live dump has running goes on where it runs, since when it runs, whoever schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cli_environment import called
from live_dumps import GPU, ago, history, job, node, owner, pod, queue, running, trace, workload, written

import harness
from harness.base.units import HOUR, SECOND
from harness.runs.run import Run

KUEUES = ("kueue-classic", "fairsharing")
WITHIN = {"preemption": {"withinClusterQueue": "LowerPriority"}}


def replayed(folder: Path, dump: str, *more: str, plugin: str = "kueue-classic", **job: Any) -> Run:
    """The run of one job on top of a dump, whose work keeps what it holds."""
    out = folder / "runs"
    asked = ["replay", trace(folder, **job), "--cluster", dump, "--at-start", "dump", "-p", plugin]
    asked += ["--unfinished", "limit"]
    assert called([*asked, "-o", str(out), "--until", "12h", *more]) == 0
    (found,) = [each for each in (out / "trace").iterdir() if not each.name.startswith(".")]
    return Run.open(found)


def bound(run: Run) -> dict[str, str]:
    """Job, or pod of a job of several, -> the node that it is bound to at the first instant."""
    rows = run.micros("decisions").filter((pl.col("action") == "bind") & (pl.col("time") == 0)).collect()
    return dict(rows.select("pod", "node").rows())


def warnings(run: Run) -> list[str]:
    """What a run says of the Pods and Workloads of the manifests."""
    return [each for each in run.info["cluster"]["warnings"] if " of the manifests" in each]


def value(run: Run, metric: str, resource: str = "", scope: str = "all") -> float | None:
    """A measured value."""
    is_it = (pl.col("metric") == metric) & (pl.col("resource") == resource) & (pl.col("scope") == scope)
    found: float | None = run.metrics.filter(is_it)["value"].item()
    return found


def forecast(capsys: pytest.CaptureFixture[str], *asked: str) -> Mapping[str, Any]:
    """What `harness forecast --json` says."""
    capsys.readouterr()
    assert called(["forecast", *asked, "--futures", "5", "--workers", "1", "--json"]) == 0
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("plugin", KUEUES)
def test_a_job_of_a_whole_node_waits_until_a_node_is_empty(
    plugin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two nodes hold a pod of 4 of 8 GPUs each; their jobs have run 9 of 10 h: the job of 8 waits 1 h."""
    dump = written(
        tmp_path, node("n0"), node("n1"), queue(),
        running("a", 4, "n0"), running("b", 4, "n1"), workload("big", 8, created=0),
    )  # fmt: skip
    found = forecast(capsys, "--cluster", dump, "--history", history(tmp_path, 10), "-p", plugin)
    (waits,) = found["waiting"]
    assert [waits[f"{p}_seconds"] for p in ("p10", "p50", "p90")] == [3600.0] * 3


@pytest.mark.parametrize("plugin", KUEUES)
def test_the_pods_of_workloads_stay_on_their_nodes(plugin: str, tmp_path: Path) -> None:
    """Where the scheduler would have put them elsewhere, too."""
    dump = written(
        tmp_path, node("n0"), node("n1"), node("n2"), queue(gpus=24),
        running("a", 4, "n2", "n2"), running("b", 2, "n1"),
    )  # fmt: skip
    run = replayed(tmp_path, dump, plugin=plugin)
    assert bound(run) == {
        "d/job-a-1a2b3-0": "n2",
        "d/job-a-1a2b3-1": "n2",
        "d/job-b-1a2b3": "n1",
        "late": "n0",
    }
    assert warnings(run) == []


def test_what_is_left_of_a_node_is_all_that_others_get(tmp_path: Path) -> None:
    """A job of 8 GPUs has quota at once, and no node before one is empty; nobody moves for it."""
    dump = written(tmp_path, node("n0"), node("n1"), queue(), running("a", 4, "n0"), running("b", 4, "n1"))
    run = replayed(tmp_path, dump, **{f"request.{GPU}": 8})
    assert sorted(bound(run)) == ["d/job-a-1a2b3", "d/job-b-1a2b3"]
    assert run.jobs.filter(pl.col("job_id") == "late")["start_time"].to_list() == [None]


@pytest.mark.parametrize("plugin", ["default-preemption", "none", "backfill", "auto", "elasticquota"])
def test_pods_stay_where_they_run_with_every_plugin_that_binds_pods(plugin: str, tmp_path: Path) -> None:
    """Pods of a Workload, and one of nobody, each a job of its own."""
    quotas = {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "tree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": {GPU: 24}, "max": {GPU: 24}, "children": [
            {"name": "d", "min": {GPU: 24}, "max": {GPU: 24}, "namespaces": ["d"]}]}},
    }  # fmt: skip
    dump = written(
        tmp_path, node("n0"), node("n1"), node("n2"), [quotas] if plugin == "elasticquota" else [],
        running("a", 4, "n2", "n2"), pod("own", "n1", 8, started=3, owners=[]),
    )  # fmt: skip
    run = replayed(tmp_path, dump, plugin=plugin)
    assert bound(run) == {"d/a-0": "n2", "d/a-1": "n2", "d/own": "n1", "late": "n0"}
    ran = dict(run.micros("jobs").select("job_id", "ran_before").collect().rows())
    assert ran == {"d/a-0": 9 * HOUR, "d/a-1": 9 * HOUR, "d/own": 3 * HOUR, "late": None}
    assert value(run, "jobs.at_start") == 3


def test_a_pod_without_a_workload_takes_room_and_is_named(tmp_path: Path) -> None:
    """It holds 6 of 8 GPUs of a node and no quota, so the job of 4 waits though all quota is free."""
    dump = written(tmp_path, node("n0"), queue(), pod("notebook", "n0", 6, started=2, owners=[]))
    run = replayed(tmp_path, dump, **{f"request.{GPU}": 4})
    assert bound(run) == {"d/notebook": "n0"}
    assert run.jobs.filter(pl.col("job_id") == "late")["start_time"].to_list() == [None]
    (said,) = warnings(run)
    assert said == (
        "Pods of the manifests that belong to no Workload: 1 (d/notebook); "
        "they use capacity of nodes, but no quota"
    )


def test_a_forecast_counts_a_gang_that_came_back_from_the_time_out_of_its_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One pod of two binds, and both are told to go after 30 min; after 40 min there is room for both."""
    keeps, ends = pod("keeps", "n0", 4, started=1, owners=[]), pod("ends", "n1", 8, started=1, owners=[])
    keeps["spec"]["activeDeadlineSeconds"] = 100 * 3600
    ends["spec"]["activeDeadlineSeconds"] = 100 * 60
    gang = workload("gang", 4, pods=2, created=0)
    gang["spec"]["maximumExecutionTimeSeconds"] = 3600
    dump = written(tmp_path, node("n0"), node("n1"), queue(gpus=24), keeps, ends, gang)
    (waits,) = forecast(capsys, "--cluster", dump)["waiting"]
    assert [waits[f"{p}_seconds"] for p in ("p10", "p50", "p90")] == [2400.0] * 3


def test_in_a_forecast_pods_that_terminate_hold_their_nodes_until_they_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stray pod and one of an evicted workload have 6 min left on their nodes."""
    stray = pod("stray", "n0", 8, started=1, owners=[], deletionTimestamp=ago(-0.1))
    evicted, its_job, its_pod = running("evicted", 8, "n1", priority=-1)
    since = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": ago(0)}
    evicted["status"]["conditions"].append(since)
    its_pod["metadata"]["deletionTimestamp"] = ago(-0.1)
    first, second = workload("first", 8, created=2), workload("second", 8, created=1)
    dump = written(
        tmp_path, node("n0"), node("n1"), queue(gpus=16), stray, evicted, its_job, its_pod, first, second
    )
    found = forecast(capsys, "--cluster", dump, "--history", history(tmp_path, 10))
    starts = {each["name"]: each["p50_seconds"] for each in found["waiting"]}
    assert 360 <= starts["d/job-first-1a2b3"] <= starts["d/job-second-1a2b3"] < 400


def test_pods_of_a_daemon_set_never_end_in_a_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The node has 7 GPUs for others for ever, and none of these pods counts as one that runs."""
    agent = pod("agent", "n0", 1, started=500, owners=owner("DaemonSet", "agent"))
    dump = written(
        tmp_path, node("n0"), queue(), agent, running("a", 4, "n0"), workload("seven", 7, created=0)
    )
    found = forecast(capsys, "--cluster", dump, "--history", history(tmp_path, 10))
    assert found["running"] == 1
    (waits,) = found["waiting"]
    assert waits["p50_seconds"] == 3600.0
    assert any("belong to no Workload: 1 (d/agent)" in note for note in found["notes"])
    run = replayed(tmp_path, dump)
    assert value(run, "jobs.at_start") == 2


def test_who_cannot_stay_is_named_and_the_scheduler_finds_nodes(tmp_path: Path) -> None:
    """A node that is not there, one that is too small, Pods that are missing, and one too many."""
    dump = written(
        tmp_path, *(node(f"n{number}") for number in range(4)), queue(gpus=99),
        running("lost", 1, "elsewhere"), pod("astray", "elsewhere", 1, started=9, owners=[]),
        running("large", 8, "n0"), running("second", 4, "n0", hours=8),
        workload("unseen", 1, held=9), job("unseen", 9),
        workload("partly", 1, pods=2, held=9), job("partly", 9), pod("partly", "n1", 1, started=9),
        running("many", 1, "n1"), pod("extra", "n1", 1, started=9, owners=owner("Job", "many")),
        workload("stopped", 1), job("stopped", None), pod("stopped", "n1", 1, started=9),
    )  # fmt: skip
    run = replayed(tmp_path, dump)
    finds = "the scheduler finds nodes for them"
    said = [each.split("manifests that ", 1)[1].removesuffix(f"; {finds}") for each in warnings(run)]
    assert said == [
        "hold quota while none of their Pods is in the manifests: 1 (d/job-unseen-1a2b3)",
        "hold quota while not all of their Pods are in the manifests: 1 (d/job-partly-1a2b3)",
        "run on nodes that are not in the manifests: 1 (d/lost-0)",
        "run on nodes that are not in the manifests: 1 (d/astray); they are left out",
        "run on nodes that do not have enough capacity for all of their Pods: 1 (d/second-0)",
        "run while their Workloads hold no quota: 1 (d/stopped); harness treats them as gone",
        (
            "exceed the count in their Workloads: 1 (d/many-0); running Pods use capacity of nodes, but no "
            "quota"
        ),
    ]
    assert sum(each.endswith(finds) for each in warnings(run)) == 4
    where = bound(run)
    assert where["d/job-large-1a2b3"] == "n0"
    assert where["d/job-partly-1a2b3-0"] == "n1"
    assert where["d/job-second-1a2b3"] != "n0"
    assert "d/astray" not in run.jobs["job_id"].to_list()
    assert {"d/job-lost-1a2b3", "d/job-unseen-1a2b3", "d/job-partly-1a2b3-1"} <= where.keys()


def test_pods_that_request_other_amounts_than_their_workloads_are_named(tmp_path: Path) -> None:
    """A webhook that adds a sidecar changes the Pod, but not the Workload, whose amounts harness counts."""
    sidecar, plain = running("sidecar", 1, "n0"), running("plain", 1, "n0")
    for item in sidecar:
        if item["kind"] == "Pod":
            item["spec"]["containers"].append({"name": "proxy", "resources": {"requests": {"cpu": "100m"}}})
    run = replayed(tmp_path, written(tmp_path, node("n0"), queue(), sidecar, plain))
    (said,) = warnings(run)
    assert "have other requests than their Workloads: 1 (d/sidecar-0); on the nodes, harness counts" in said


def test_who_is_preempted_at_the_first_instant_had_run_and_has_its_grace_period(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """9 h of 4 GPUs are lost, all of before the replay; its successor starts 30 s and the latency later."""
    dump = written(tmp_path, node("n0"), queue(gpus=4, **WITHIN), running("low", 4, "n0"))
    more = {"priority": 9, f"request.{GPU}": 4}
    run = replayed(tmp_path, dump, "--set", "evictionLatency=2s", **more)
    times = dict(run.micros("jobs").select("job_id", "start_time").collect().rows())
    assert times["late"] == 32 * SECOND
    assert value(run, "disruption.lost_before", GPU) == 36
    assert value(run, "disruption.lost_before", GPU, "queue=q") == 36
    assert value(run, "disruption.lost", GPU) == 0
    assert value(run, "utilization.lost", GPU) == 0
    capsys.readouterr()
    assert called(["explain", str(run.path), "d/job-low-1a2b3"]) == 0
    told = capsys.readouterr().out
    assert "had run for 9h00m when the replay began" in told
    assert "it had run for 9h00m and lost 9h00m of work (36.00 nvidia.com/gpu-hours)" in told


@pytest.mark.parametrize(
    ("losses", "lost", "said"),
    [
        ("resume", 0, "it had run for 9h00m and lost no work"),
        ("checkpoint=2h", 4, "it had run for 9h00m and lost 1h00m of work"),
    ],
)
def test_what_ran_before_is_lost_by_the_loss_model(
    losses: str, lost: float, said: str, tmp_path: Path
) -> None:
    """Of 9 h nothing, or what came after the last checkpoint."""
    dump = written(tmp_path, node("n0"), queue(gpus=4, **WITHIN), running("low", 4, "n0"))
    run = replayed(tmp_path, dump, "--on-preemption", losses, priority=9, **{f"request.{GPU}": 4})
    assert value(run, "disruption.lost_before", GPU) == lost
    assert said in harness.explain(run, "d/job-low-1a2b3").text()


def test_who_has_no_pods_in_the_dump_has_run_all_the_same(tmp_path: Path) -> None:
    """Since it was admitted; its pods are bound before it is preempted, and have 30 s and 1 s of latency."""
    low = workload("low", 4, held=9)
    run = replayed(tmp_path, written(tmp_path, node("n0"), queue(gpus=4, **WITHIN), low), priority=9)
    told = harness.explain(run, "d/job-low-1a2b3").text()
    assert "it had run for 9h00m and lost 9h00m of work" in told
    times = dict(run.micros("jobs").select("job_id", "start_time").collect().rows())
    assert times["late"] == 31 * SECOND


def test_a_run_that_begins_with_nothing_has_neither_metric(tmp_path: Path) -> None:
    """Nor the columns behind them."""
    run = replayed(tmp_path, written(tmp_path, node("n0"), queue()))
    assert not {"jobs.at_start", "disruption.lost_before"} & set(run.metrics["metric"])
    assert "ran_before" not in run.jobs.columns
    assert "lost_before" not in run.stints.columns


WAITS = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta1",
    "kind": "Configuration",
    "waitForPodsReady": {"enable": True, "timeout": "10m", "requeuingStrategy": {"backoffLimitCount": 0}},
}


def test_pods_that_ran_before_are_ready_and_those_that_wait_have_waited(tmp_path: Path) -> None:
    """Of three that were admitted 9 h, 6 min and 6 min ago, one lacks a pod: its 10 min are over in 4."""
    dump = written(
        tmp_path, node("n0"), queue(gpus=99), [WAITS],
        running("old", 4, "n0"), running("new", 2, "n0", hours=0.1),
        workload("half", 2, pods=2, held=0.1), job("half", 0.1), pod("own", "n0", 0, started=9, owners=[]),
        pod("half-0", "n0", 2, started=0.1, owners=owner("Job", "half")),
    )  # fmt: skip
    run = replayed(tmp_path, dump)
    evicted = run.micros("decisions").filter(pl.col("action") == "evict").collect()
    assert evicted.select("job_id", "time").rows() == [("d/job-half-1a2b3", 240 * SECOND)]


@pytest.mark.parametrize(("quota", "starts"), [(16, None), (24, 0)])
def test_pods_that_have_succeeded_do_not_run_again_and_hold_their_quota(
    quota: int, starts: int | None, tmp_path: Path
) -> None:
    """Two of four pods have left n0, which is free for a job that has quota."""
    pods = [pod(f"w-{n}", f"n{n // 2}", 4, started=9, owners=owner("Job", "w")) for n in range(4)]
    for each in pods[:2]:
        each["status"]["phase"] = "Succeeded"
    dump = written(
        tmp_path, node("n0"), node("n1"), queue(gpus=quota), [WAITS],
        workload("w", 4, pods=4, held=9), job("w", 9), pods,
    )  # fmt: skip
    run = replayed(tmp_path, dump, **{f"request.{GPU}": 8})
    assert dict(run.micros("jobs").select("job_id", "start_time").collect().rows())["late"] == starts
    assert bound(run).get("late") == (None if starts is None else "n0")
    assert run.decisions.filter(pl.col("action") == "evict").is_empty()
    assert warnings(run) == []


def test_who_was_evicted_holds_its_node_until_its_pod_is_gone_and_nobody_says_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told to go 30 s ago, and gone in 9 min 30 s: then the next one starts, in replays and forecasts."""
    going = pod("w", "n0", 8, started=1, deletionTimestamp=ago(-570 / 3600), deletionGracePeriodSeconds=600)
    told = workload("w", 8, held=1, created=1)
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted"}
    told["status"]["conditions"].append({**evicted, "lastTransitionTime": ago(30 / 3600)})
    dump = written(
        tmp_path, node("n0"), queue(gpus=8), told, going, workload("next", 8, created=2, priority=10)
    )
    run = replayed(tmp_path, dump)
    starts = dict(run.micros("jobs").select("job_id", "start_time").collect().rows())
    assert starts["d/job-next-1a2b3"] == 571 * SECOND
    assert warnings(run) == []
    found = forecast(capsys, "--cluster", dump, "--history", history(tmp_path, 10))
    assert not [each for each in found["notes"] if " of the manifests: " in each]


def test_a_plugin_that_takes_nothing_over_is_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the line that says what is there at the start: without queues nobody looks at Workloads."""
    dump = written(tmp_path, node("n0"), queue(), running("a", 4, "gone"))
    for plugin, end in (("none", "; the plugin none takes over none of them\n"), ("kueue-classic", "\n")):
        asked = ["replay", trace(tmp_path), "--cluster", dump, "--at-start", "dump", "-p", plugin]
        assert called([*asked, "--unfinished", "limit", "-o", str(tmp_path / plugin)]) == 0
        note = f"note: --at-start dump: 1 Workload and 1 Pod from the manifests{end}"
        assert note in capsys.readouterr().err
