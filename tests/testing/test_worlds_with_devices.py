"""Random worlds whose GPUs are devices: whoever binds pods, no device is given beyond one whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import harness
from harness.cluster.devices import GPU
from harness.cluster.mig import SLICES
from harness.plugins import load
from harness.runs.run import Run
from harness.testing.checks import check_run
from harness.testing.worlds import PLUGINS as POLICIES
from harness.testing.worlds import World, random_world
from harness.trace.schema import REQUEST

PLUGINS = load(block=["metrics"])
SEEDS = (11, 12, 16, 31, 36, 44)
MORE = [pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[3:]]
"""Worlds in which many pods ask for GPUs."""
SLICE = "nvidia.com/mig-3g.20gb"


def bound_to_devices(run: Run) -> int:
    """How many bindings name devices."""
    rows = run.micros("decisions").collect().to_dicts()
    return sum("devices" in json.loads(row["detail"] or "{}") for row in rows if row["action"] == "bind")


def decided(run: Run) -> list[str]:
    """The rows of its decisions as texts."""
    return [json.dumps(row) for row in run.micros("decisions").collect().to_dicts()]


def backfilled(world: World, folder: Path, algorithm: str) -> Run:
    """A world with backfilling, while its nodes change."""
    options = {"algorithm": algorithm, "estimate": "actual"}
    settings = {
        "on_preemption": world.on_preemption,
        "grace_period": world.grace_period,
        "until": world.until,
    }
    return harness.replay(
        world.trace, plugin="backfill", cluster=world.cluster, options=options, output=folder,
        plugins=PLUGINS, **settings,
    )  # fmt: skip


@pytest.mark.parametrize(
    "seed", [*SEEDS[:3], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[3:])]
)
def test_no_device_is_given_beyond_one_whole(seed: int, tmp_path: Path) -> None:
    """By every plugin that binds pods, with preemptions, gangs and nodes that lose devices."""
    world = random_world(seed, node_events=seed % 2 == 1, devices=True)
    wrong, bound = [], 0
    for number, plugin in enumerate((*POLICIES, "easy", "conservative")):
        folder = tmp_path / str(number)
        run = (
            world.replay(plugin, folder, plugins=PLUGINS)
            if plugin in POLICIES
            else backfilled(world, folder, plugin)
        )
        wrong += [f"{plugin}: {each}" for each in check_run(run, cluster_of(world, run), world.trace)]
        bound += bound_to_devices(run)
    assert not wrong, "\n".join(wrong)
    assert bound


def cluster_of(world: World, run: Run) -> harness.Cluster:
    """What a run of a world was made on."""
    return world.cluster if run.info["cluster"]["nodes"] else world.pool


class Changed(Run):
    """A run of which what bindings say is something else."""

    def __init__(self, run: Run, detail: pl.Expr) -> None:
        super().__init__(run.path, run.info)
        is_bound = (pl.col("action") == "bind") & pl.col("detail").is_not_null()
        self._decisions = run.scan("decisions").with_columns(
            detail=pl.when(is_bound).then(detail).otherwise("detail")
        )

    def scan(self, table: str) -> pl.LazyFrame:
        return self._decisions if table == "decisions" else super().scan(table)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ('{"devices": [0]}', "devices.beyond"),
        ('{"devices": [0, 0]}', "devices.number"),
        ('{"devices": [7]}', "devices.unknown"),
        ("{}", "devices.number"),
    ],
)
def test_the_checker_finds_pods_on_the_wrong_devices(said: str, rule: str, tmp_path: Path) -> None:
    """All on the first one, on one that is not there, on none."""
    world = random_world(SEEDS[1], devices=True)
    run = world.replay("none", tmp_path, plugins=PLUGINS)
    found = check_run(Changed(run, pl.lit(said)), world.cluster, world.trace)
    assert rule in {each.rule for each in found}


@pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.nightly) for seed in SEEDS[1:3])]
)
def test_slices_are_given_exactly_as_any_counted_resource(seed: int, tmp_path: Path) -> None:
    """A world whose GPUs are slices by their name has the same decisions, and sums of slices in metrics."""
    world = random_world(seed, node_events=seed % 2 == 1)
    text = json.dumps(world.manifests)
    sliced = replace(
        world,
        frame=world.frame.rename({f"{REQUEST}{GPU}": f"{REQUEST}{SLICE}"}),
        manifests=json.loads(text.replace(f'"{GPU}"', f'"{SLICE}"')),
    )
    for number, plugin in enumerate(POLICIES):
        plain = world.replay(plugin, tmp_path / f"{number}", plugins=PLUGINS)
        run = sliced.replay(plugin, tmp_path / f"{number}s")
        assert check_run(run, cluster_of(sliced, run), sliced.trace) == []
        assert decided(run) == [row.replace(GPU, SLICE) for row in decided(plain)]
        values = {
            row["resource"]: row["value"]
            for row in run.metrics.iter_rows(named=True)
            if row["metric"] == "utilization.allocated.hours" and row["scope"] == "all"
        }
        assert values[SLICES] == pytest.approx(3 * values[SLICE])
