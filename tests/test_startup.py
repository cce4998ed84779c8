"""Replays in which pods need time until they are ready: what runs, metrics and explanations say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import harness
from harness import api
from harness.analysis.metrics.resource_time import resource_time
from harness.base.errors import OptionError
from harness.base.units import SECOND
from harness.cluster.kinds.kueue_configuration import KueueConfiguration
from harness.cluster.kinds.wait_for_pods_ready import WaitForPodsReady
from harness.plugins import load
from harness.testing.checks import check_run
from harness.testing.worlds import random_world

KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: default}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]
"""
WAITING = f"""{KUEUE}---
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady: {{timeout: 1m, requeuingStrategy: {{backoffLimitCount: 1, backoffBaseSeconds: 40}}}}
"""

Writes = Callable[..., Path]


def values(run: harness.Run, *metrics: str) -> list[float]:
    """Metrics of all jobs."""
    table = run.metrics.filter(pl.col("scope") == "all")
    return [table.filter(pl.col("metric") == name)["value"].item() for name in metrics]


@pytest.mark.parametrize("plugin", ["none", "kueue-classic", "fairsharing"])
def test_whatever_the_plugin_run_times_count_from_when_pods_are_ready(
    plugin: str, write_trace: Writes, tmp_path: Path
) -> None:
    """The second job waits for 25 s instead of 10 s; the start-ups are held idle, and all adds up."""
    (tmp_path / "c.yaml").write_text(KUEUE)
    trace = write_trace({"request.cpu": 4000}, {"request.cpu": 4000})
    run = harness.replay(
        trace, plugin=plugin, cluster=tmp_path / "c.yaml", startup="15s", output=tmp_path / "r"
    )
    jobs = run.micros("jobs").select("start_time", "finish_time").collect().rows()
    assert [(start // SECOND, finish // SECOND) for start, finish in jobs] == [(15, 25), (40, 50)]
    parts = resource_time(run, run.window, "cpu")
    assert (parts.idle_held, parts.useful) == (2 * 15 * 4000 * SECOND, 2 * 10 * 4000 * SECOND)
    assert parts.allocated == parts.useful + parts.idle_held


def test_a_trace_may_say_how_long_each_job_starts_up(write_trace: Writes, tmp_path: Path) -> None:
    """A null is never: that job runs to the end. What is chosen for all counts for nobody then."""
    trace = write_trace({"startup": 15}, {"startup": None}, {"startup": 0})
    run = harness.replay(trace, plugin="none", startup=7, output=tmp_path)
    states = run.jobs.select("job_id", "state").rows()
    assert states == [("j0", "finished"), ("j1", "running"), ("j2", "finished")]
    assert values(run, "jobs.unfinished") == [1]
    assert run.info["settings"]["startup_us"] == 7
    assert "startup" not in run.jobs.columns
    assert (
        run.info["cluster"]["warnings"][-1]
        == "setting 'startup' (7us) has no effect, because the trace has a column 'startup'"
    )


def test_a_start_up_makes_another_run_and_none_leaves_runs_as_they_were(
    write_trace: Writes, tmp_path: Path
) -> None:
    """A run without says nothing of it."""
    trace = write_trace({})
    plain = harness.replay(trace, plugin="none", output=tmp_path)
    assert "startup_us" not in plain.info["settings"]
    assert harness.replay(trace, plugin="none", startup="0s", output=tmp_path).path == plain.path
    assert harness.replay(trace, plugin="none", startup="1s", output=tmp_path).path != plain.path
    with pytest.raises(OptionError, match="startup: -1 is not a duration"):
        harness.Request(trace, startup=-1)
    request = harness.Request(trace, plugin="none", startup="1s")
    assert harness.Request.from_json(request.to_json()) == request


def test_time_outs_are_no_preemptions_and_who_has_too_many_is_rejected(
    write_trace: Writes, tmp_path: Path
) -> None:
    """`j0` never is ready: after two time-outs it is given up; `j1` finishes in between."""
    (tmp_path / "c.yaml").write_text(WAITING)
    trace = write_trace(
        {"request.cpu": 4000, "startup": None, "grace_period": 0},
        {"request.cpu": 4000, "startup": 30, "submit_time": 5, "grace_period": 0},
    )
    run = harness.replay(trace, plugin="kueue-classic", cluster=tmp_path / "c.yaml", output=tmp_path / "r")
    names = ("preemptions", "preempted_jobs", "max_preemptions_of_a_job", "lost")
    assert values(run, *(f"disruption.{name}" for name in names)) == [0, 0, 0, 0]
    assert values(run, "jobs.finished", "jobs.rejected", "jobs.unfinished") == [1, 1, 0]
    parts = resource_time(run, run.window, "cpu")
    assert parts.idle_held == (60 + 30 + 60) * 4000 * SECOND
    assert run.jobs["preemptions"].to_list() == [2, 0]
    told = harness.explain(run, "j0").text()
    assert "rejected; one undisturbed run takes 10s" in told
    assert (
        "waited 42s in total; was evicted 2 times and lost 0s of work; "
        "held its resources without progress for 2m00s"
    ) in told
    assert (
        "evicted (PodsReadyTimeout): 1 pod; time-out 1: not all pods were ready 1m00s after the admission; "
        "it stays out of its queue for 40s; it had no work to lose"
    ) in told
    why = "DeactivatedDueToRequeuingLimitExceeded: its pods missed their time limit 2 times"
    assert f"rejected for good: {why}" in told
    read = api.read_trace(trace, load())
    assert check_run(run, api.read_cluster(tmp_path / "c.yaml", read), read) == []


@pytest.mark.parametrize(
    "plugin", ["kueue-classic", pytest.param("fairsharing", marks=pytest.mark.nightly), "default-preemption"]
)
@pytest.mark.parametrize("seed", [0, 3, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_random_worlds_with_start_ups_keep_all_rules(plugin: str, seed: int, tmp_path: Path) -> None:
    """Checked from outside, with time-outs, backoffs, and with blocked admission in every other world."""
    world, plugins = random_world(seed), load()
    waits = WaitForPodsReady(
        9 * SECOND, block_admission=seed < 2, limit=2, backoff_base=5 * SECOND, backoff_max=8 * SECOND
    )
    cluster = world.cluster if world.uses_nodes(plugin) else world.pool
    cluster = replace(cluster, kueue=replace(cluster.kueue or KueueConfiguration(), pods_ready=waits))
    startups = [None, 0, 3, 8, 9, 10]
    frame = world.trace.frame.with_columns(
        startup=pl.col("job_id").replace_strict(
            {
                name: None if (length := startups[number % len(startups)]) is None else length * SECOND
                for number, name in enumerate(world.trace.frame["job_id"].unique(maintain_order=True))
            },
            return_dtype=pl.Duration("us"),
        )
    )
    frame.write_parquet(tmp_path / "t.parquet")
    trace = api.read_trace(tmp_path / "t.parquet", plugins)
    run = harness.replay(
        trace,
        plugin=plugin,
        cluster=cluster,
        options=world.options.get(plugin, {}),
        on_preemption=("restart", "resume")[seed % 2],
        until="2h",
        output=tmp_path / "r",
        plugins=plugins,
    )
    assert check_run(run, cluster, trace) == []
    timed_out = run.micros("decisions").filter(pl.col("action") == "evict").collect().height
    assert (timed_out > 0) == (plugin != "default-preemption")
