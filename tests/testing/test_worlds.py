"""Random worlds: the same from a seed, loadable, and what they are said to hold."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called

from harness.cluster.changes.edits import Edit
from harness.cluster.changes.over_time import unrolled
from harness.testing.worlds import PLUGINS, World, random_world
from harness.testing.worlds.chance import Chance
from harness.trace.generate.uniform import key_of, splitmix64
from harness.trace.validate import cluster_faults

MEMORY = "request.memory"


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    """Sixty of them."""
    return [random_world(seed) for seed in range(60)]


def test_choices_are_the_numbers_of_the_package_s_own_streams() -> None:
    """One number a choice, scaled; also after the first block."""
    numbers = splitmix64(key_of(5, "x"), pl.int_range(0, 600, eager=True)).to_pylist()
    chance = Chance(5, "x")
    assert [chance.below(2**64) for _ in range(600)] == numbers


def test_a_seed_is_one_world_everywhere(worlds: list[World]) -> None:
    """Jobs, manifests and settings, whatever the version of Python and its hashes."""
    text = "".join(
        f"{world.frame.rows()}{json.dumps(world.manifests)}{world.describe()}" for world in worlds[:20]
    )
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        == "0c017f60995776266ae11070c3ea4bf43b83980058714bc53c1ff82acd02c7b1"
    )


def test_every_world_fits_its_cluster_with_nodes_and_without(worlds: list[World]) -> None:
    """So every policy can replay every world."""
    for world in worlds:
        for cluster in (world.cluster, world.pool):
            assert cluster_faults(world.trace, cluster) == [], world


@pytest.mark.parametrize(
    "holds",
    [
        lambda world: world.pooled,
        lambda world: not world.grace_period,
        lambda world: world.until is not None,
        lambda world: world.frame["submit_time"].value_counts()["count"].max() >= 10,
        lambda world: world.frame["duration"].min().total_seconds() == 0,
        lambda world: (world.frame["pods"] > 1).any(),
        lambda world: "labels" in world.frame.columns,
        lambda world: "Never" in world.frame.to_dict(as_series=False).get("preemption_policy", ()),
        lambda world: not world.frame["job_id"].is_unique().all(),
        lambda world: any(cohort.parent for cohort in world.cluster.cohorts.values()),
        lambda world: any(node.taints for node in world.cluster.nodes.values()),
        lambda world: len(world.cluster.pod_groups) > 1,
        lambda world: any(edit.kind == "ClusterQueue" for edit in edits(world)),
        lambda world: any(edit.kind == "ElasticQuota" and edit.after is None for edit in edits(world)),
        lambda world: any(quota.is_parent for quota in world.cluster.elastic_quotas.values()),
        lambda world: all(not quota.parent for quota in world.cluster.elastic_quotas.values()),
        lambda world: int((world.frame["pods"] * world.frame.to_dict().get(MEMORY, 0)).sum()) > 2**62,
    ],
)  # fmt: skip
def test_among_sixty_worlds_there_are_some_of_each_kind(
    holds: Callable[[World], bool], worlds: list[World]
) -> None:
    """Bursts, jobs without length, gangs, trees of cohorts, taints, two pod sets, sums near 2^63, ..."""
    assert any(holds(world) for world in worlds)


def edits(world: World) -> list[Edit]:
    """What changes in it."""
    return [edit for instant in unrolled(world.cluster, None).changes for edit in instant.edits]


def test_in_a_third_of_the_worlds_something_changes(worlds: list[World]) -> None:
    """Of the others all manifests are there all the time."""
    assert 15 <= sum(bool(world.cluster.timed) for world in worlds) <= 25


def test_a_world_says_what_makes_it_again() -> None:
    """The first line of its description is a call."""
    said = random_world(7).describe()
    assert said.startswith("random_world(7): ")
    assert eval(said.partition(":")[0]).describe() == said


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_written_world_is_replayed_by_its_command(
    plugin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line makes the very run that `World.replay` then finds there."""
    world = random_world(11)
    world.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert called(shlex.split(world.command(plugin, on_preemption="resume"))[1:]) == 0
    assert world.replay(plugin, tmp_path / "results", on_preemption="resume").stored
