"""What a run's decisions say of a moment is what an API server showed at that moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dumps.loop import Loop
from dumps.worlds import BY_POD, NOWHERE, ORIGIN, DumpWorld, dump_world

import harness
from harness import Job, PodSet, Run
from harness.plugins import load
from harness.runs.outcome import outcome_of
from harness.studies.forecasting.api_objects import Manifest, objects_of
from harness.studies.forecasting.job_at_moment import Standing, Told
from harness.studies.forecasting.record_of_run import record_of_run

PLUGINS = load()
LOOP = Loop()
_STATUS = ("admission", "requeueState", "phase", "nominatedNodeName")


def replayed(world: DumpWorld, folder: Path) -> Run:
    """The replay of a world, without the job by which its scheduler is restarted."""
    trace = folder / f"{world.plugin}-{world.seed}.parquet"
    world.frame.filter(pl.col("queue") != NOWHERE).write_parquet(trace)
    return harness.replay(
        trace,
        plugin=world.plugin,
        cluster=world.cluster,
        options=dict(world.options),
        on_preemption=world.losses,
        output=folder,
    )


def told(manifests: Sequence[Manifest], out: set[str], *, pods: bool) -> Mapping[tuple[str, str], Any]:
    """What decisions depend on, by kind and name, without some jobs; Pods only where there are nodes.

    The writer of the closed loop says when the quota of an earlier admission was free, and that pods of a
    gang are ready that waits for others of it; nobody reads either.
    """
    found = {}
    for each in manifests:
        kind, metadata, status = each["kind"], each["metadata"], each["status"]
        name = metadata["name"]
        if name in out or kind == "Job" or (kind == "Pod" and not pods):
            continue
        conditions = {
            item["type"]: (item["status"], item["reason"], item["lastTransitionTime"])
            if item["status"] == "True"
            else item["reason"]
            for item in status.get("conditions", ())
            if item["type"] != "Ready"
        }
        parts = {part: status[part] for part in _STATUS if part in status}
        found[kind, name] = (each["spec"], metadata.get("deletionTimestamp"), conditions, parts)
    return found


def compared(plugin: str, seeds: range, folder: Path) -> Iterator[tuple[Any, Any]]:
    """Both, of worlds that a run can tell of."""
    for seed in seeds:
        world = dump_world(seed, plugin)
        _, shown = LOOP.restarted(world)
        run = replayed(world, folder)
        frame = run.micros("decisions").filter(pl.col("action") == "reject").select("job_id").collect()
        out = {name.partition("/")[2] for name in frame["job_id"]} | {NOWHERE}
        trace = outcome_of(run, PLUGINS)
        record = record_of_run(run, trace, world.cluster, queued=plugin not in BY_POD)
        mine = objects_of(each.shown for each in record.there(ORIGIN + world.at))
        pods = bool(world.cluster.nodes)
        yield told(shown, out, pods=pods), told(mine, out, pods=pods)


@pytest.mark.parametrize(
    "plugin",
    [
        *("kueue-classic", "default-preemption"),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ("fairsharing", "none")),
    ],
)
def test_a_run_shows_what_an_api_server_did(plugin: str, tmp_path: Path) -> None:
    """Who holds which quota and flavors, who was told to go, and which pod is where.

    The other side is written from the engine and the scheduler as they are at that moment. Jobs that can
    never start are over in a run.
    """
    for theirs, mine in compared(plugin, range(2), tmp_path):
        assert mine == theirs


@pytest.mark.parametrize(
    ("reason", "active"), [("PodsReadyTimeout", True), ("DeactivatedDueToRequeuingLimitExceeded", False)]
)
def test_a_job_that_was_deactivated_is_not_active_while_its_pods_end(reason: str, active: bool) -> None:
    """A forecast from that moment does not queue it again."""
    job = Job(0, "j", 0, "q", "n", "", 0, "", True, False, 30, "u", (PodSet("main", 1, 1, {"cpu": 1}),), 1)
    state = Standing(job, queued=True, on_nodes=False)
    steps = ((0, "submit", 0, None), (0, "admit", 1, None), (9, "evict", 0, reason))
    for time, action, holding, why in steps:
        state.take(Told(time, action, None, 0, 1, holding, why, None, None, None, None))
    (workload,) = (each for each in objects_of([state.shown(10, "q")]) if each["kind"] == "Workload")
    assert workload["spec"]["active"] is active
    assert "admission" in workload["status"]
