"""A replay that begins with pods which run already."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import harness
from harness.analysis.metrics.resource_time import resource_time
from harness.base.units import SECOND

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers: [{name: c, resources: {requests: {cpu: 3, memory: 1Gi}}}]
status: {phase: Running, startTime: "2026-01-01T00:00:00Z"}
"""


def replay(write_trace: Callable[..., Path], folder: Path, plugin: str) -> harness.Run:
    (folder / "cluster.yaml").write_text(CLUSTER)
    trace = write_trace({"submit_time": 5, "request.cpu": 2000, "priority": 10, "duration": 7})
    return harness.replay(
        trace,
        plugin=plugin,
        cluster=folder / "cluster.yaml",
        output=folder / "results",
        unfinished="limit",  # the pod has none
    )


def test_running_pods_hold_their_nodes_and_count_as_jobs_without_a_duration(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Without preemption the trace's job waits for ever; the pod runs, and is in no waiting metric."""
    run = replay(write_trace, tmp_path, "none")
    assert run.jobs.select("job_id", "state", "queue").rows() == [
        ("shop/web", "running", "shop"),
        ("j0", "pending", "default"),
    ]
    assert run.jobs["duration"].is_null().to_list() == [True, False]
    counted = run.metrics.filter((pl.col("metric") == "jobs.unfinished") & (pl.col("scope") == "all"))
    assert counted["value"].to_list() == [1]
    parts = resource_time(run, run.window, "cpu")
    assert parts.allocated == parts.useful + parts.lost + parts.idle_held + parts.unfinished


def test_running_pods_can_be_preempted(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """A job of higher priority preempts at 5 s and runs from 6 to 13 s; then the pod is back."""
    run = replay(write_trace, tmp_path, "default-preemption")
    happened = run.micros("decisions").select("time", "action", "job_id").collect().rows()
    assert [
        (time // SECOND, action, job) for time, action, job in happened if action not in ("submit", "refuse")
    ] == [
        (5, "bind", "shop/web"),
        (5, "preempt", "shop/web"),
        (5, "gone", "shop/web"),
        (5, "requeue", "shop/web"),
        (5, "nominate", "j0"),
        (6, "bind", "j0"),
        (13, "finish", "j0"),
        (13, "bind", "shop/web"),
    ]


BUDGETS = (
    CLUSTER
    + """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: nobody, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: absent}}}
"""
)


def test_what_reaches_nothing_is_a_named_warning(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """A budget without pods, and running pods that a plugin does not take over."""
    (tmp_path / "cluster.yaml").write_text(BUDGETS)

    class Idle:
        def __init__(self, *_: object) -> None: ...

        def submit(self, *_: object) -> None: ...

        def release(self, *_: object) -> None: ...

        def cycle(self, now: int) -> object:
            return iter(())

    run = harness.replay(
        write_trace({}), plugin=Idle, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results"
    )
    budget, pods = run.info["cluster"]["warnings"]
    assert budget == (
        "PodDisruptionBudget shop/nobody: spec.selector matches no pod of the trace or the manifests"
    )
    assert pods.startswith(
        "Pods of the manifests that already run: 1 (shop/web); Idle does not take them over"
    )


QUOTAS = """
---
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root:
    name: root
    min: {cpu: 4, memory: 8Gi}
    max: {cpu: 4, memory: 8Gi}
    children:
    - {name: shop, min: {cpu: 1}, max: {cpu: 4, memory: 8Gi}, namespaces: [shop]}
    - {name: default, min: {cpu: 3, memory: 1Gi}, max: {cpu: 4, memory: 8Gi}, namespaces: [default]}
"""


@pytest.mark.parametrize("plugin", ["elasticquota", "auto"])
@pytest.mark.parametrize(("least", "preempted"), [(1, ["shop/web"]), (3, [])])
def test_running_pods_count_against_their_quota(
    plugin: str, least: int, preempted: list[str], write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """What they use beyond its min is taken back for another quota's guarantee; what is within it is not."""
    quotas = QUOTAS.replace("name: shop, min: {cpu: 1}", f"name: shop, min: {{cpu: {least}, memory: 1Gi}}")
    quotas = quotas.replace("min: {cpu: 3, memory: 1Gi}", f"min: {{cpu: {4 - least}, memory: 1Gi}}")
    (tmp_path / "cluster.yaml").write_text(CLUSTER + quotas)
    trace = write_trace({"submit_time": 5, "request.cpu": 2000, "duration": 7})
    run = harness.replay(trace, plugin=plugin, cluster=tmp_path / "cluster.yaml", output=tmp_path / "results")
    assert run.decisions.filter(pl.col("action") == "preempt")["job_id"].to_list() == preempted
    assert run.decisions.filter(pl.col("action") == "bind")["job_id"].to_list()[0] == "shop/web"
    assert not any("already run" in warning for warning in run.info["cluster"]["warnings"])


def test_a_rejected_pod_of_the_manifests_is_no_job_that_could_finish(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """It is more than its quota may have: no metric counts it; how long it would have run nobody knows."""
    large = CLUSTER.replace("  nodeName: n1\n", "").replace("cpu: 3", "cpu: 5").split("\nstatus: {phase")[0]
    (tmp_path / "cluster.yaml").write_text(large + QUOTAS)
    trace = write_trace({"request.cpu": 1000, "duration": 7})
    run = harness.replay(
        trace,
        plugin="elasticquota",
        cluster=tmp_path / "cluster.yaml",
        output=tmp_path / "results",
        unfinished="limit",
    )
    assert run.jobs.select("job_id", "state").rows() == [("shop/web", "rejected"), ("j0", "finished")]
    counted = run.metrics.filter(pl.col("metric").str.starts_with("jobs.") & (pl.col("scope") == "all"))
    assert dict(counted.select("metric", "value").rows()) == {
        "jobs.finished": 1,
        "jobs.unfinished": 0,
        "jobs.rejected": 0,
        "jobs.at_start": 1,
    }
    told = harness.explain(run, "shop/web").text()
    assert "rejected; it comes from the manifests, and its run time is unknown" in told


def test_running_pods_of_a_group_have_their_place(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """One of two is evicted, and comes back by itself while its mate runs on."""
    label = "scheduling.x-k8s.io/pod-group"
    web = CLUSTER.split("---")[1].replace("name: web,", f"name: web, labels: {{{label}: g}},")
    mate = web.replace("name: web,", "name: mate,").replace("cpu: 3", "cpu: 1")
    group = "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"
    group += "metadata: {name: g, namespace: shop}\nspec: {minMember: 2}\n"
    manifests = (CLUSTER.split("---")[0], web, mate, group)
    (tmp_path / "cluster.yaml").write_text("\n---\n".join(manifests))
    trace = write_trace({"submit_time": 5, "request.cpu": 2000, "priority": 10, "duration": 7})
    run = harness.replay(
        trace,
        plugin="default-preemption",
        options={"gang": "all-or-nothing"},
        cluster=tmp_path / "cluster.yaml",
        output=tmp_path / "results",
    )
    bound = run.micros("decisions").select("time", "action", "job_id").collect().rows()
    assert [(time // SECOND, job) for time, action, job in bound if action == "bind"] == [
        (5, "shop/web"),
        (5, "shop/mate"),
        (6, "j0"),
        (13, "shop/web"),
    ]


@pytest.mark.parametrize(("plugin", "lost", "delay"), [("none", 0, 14), ("default-preemption", 30 * 3, 47)])
def test_what_ran_before_is_needed_again_only_where_it_is_thrown_away(
    plugin: str, lost: int, delay: int, tmp_path: Path
) -> None:
    """Of 40 s the pod has run 30 as the job arrives; whether it goes on or begins anew, all becomes useful.

    Else the policy that throws 30 s away would serve more of the demand. A new job has 4 s of start-up.
    The pod has none, also after its eviction.
    """
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    job = {"job_id": "j", "queue": "q", "request.cpu": 2000, "priority": 10}
    times = {"submit_time": datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC), "duration": timedelta(seconds=7)}
    pl.DataFrame([job | times]).write_parquet(tmp_path / "t.parquet")
    run = harness.replay(
        tmp_path / "t.parquet",
        plugin=plugin,
        cluster=tmp_path / "cluster.yaml",
        output=tmp_path / "results",
        unfinished="40s",
        startup="4s",
    )

    def value(metric: str) -> float:
        rows = run.metrics.filter(metric=metric, scope="all").sort("resource")
        return float(rows["value"][0])

    assert value("goodput.of_demand") == 1
    assert value("disruption.lost_before") == lost / 3600
    assert value("delay.mean") == delay / 2
    assert run.stints.filter(state="starting")["job_id"].to_list() == ["j"]
