"""Which pods wait and hold resources, found out of decisions, is what the engine said when it happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from policies import scripted
from small_clusters import queues

import harness
from harness.analysis.metrics.pod_moves import COLUMNS, PodMoves
from harness.analysis.metrics.pod_sizes import pod_sizes
from harness.testing.worlds import PLUGINS, random_world


def levels(run: harness.Run, resource: str, piece: int) -> pl.DataFrame:
    """What pods hold and wait for after every instant that moves any, from decisions in pieces of so many."""
    moves, each = PodMoves(run), pod_sizes(run).each[run.resources.index(resource)]
    decisions = run.columns("decisions", "time", *COLUMNS)
    found = []
    for start in range(0, decisions.height, piece):
        some = decisions[start : start + piece]
        row, size, waiting, holding = moves.of(some)
        amounts = {"allocated": each[size] * holding, "pending": each[size] * waiting}
        found.append(pl.DataFrame({"time": some["time"].to_numpy()[row], **amounts}))
    moved = pl.concat(found).group_by("time").sum().sort("time")
    return moved.with_columns(pl.col("allocated", "pending").cum_sum())


def timeline(run: harness.Run, resource: str) -> pl.DataFrame:
    """The same of all queues by the timeline, which is made of what the engine says of each decision."""
    columns = ("allocated", "pending")
    rows = run.micros("timeline").filter(pl.col("resource") == resource).collect()
    moved = rows.with_columns(pl.col(name).diff().over("queue").fill_null(pl.col(name)) for name in columns)
    return (
        moved.group_by("time").agg(pl.col(columns).sum()).sort("time").with_columns(pl.col(columns).cum_sum())
    )


def adds_up(run: harness.Run) -> None:
    """Compares both, with decisions in pieces and as a whole."""
    for resource in run.resources:
        said = timeline(run, resource)
        for piece in (7, 1 << 20):
            found = said.select("time").join_asof(levels(run, resource, piece), on="time")
            assert found.fill_null(0).equals(said)


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize("seed", [52, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (16, 77))])
def test_what_moves_adds_up_to_the_timeline(seed: int, plugin: str, tmp_path: Path) -> None:
    """Of pod sets that differ, partial admissions, evictions and ends of single pods."""
    run = random_world(seed).replay(plugin, tmp_path)
    adds_up(run)


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_partial_admission_says_which_pods_it_gives_up(
    nodes: int, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Of two pods of one core and two of two, four cores take fewer; a job takes their place at 5 s."""
    sets = [
        {"job_id": "m", "pod_set": name, "pods": 2, "min_pods": 1, "request.cpu": cpu, "queue": "a"}
        for name, cpu in (("small", 1000), ("large", 2000))
    ]
    later = {"queue": "a", "submit_time": 5, "priority": 9, "pods": 4, "duration": 5}
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": "4"}}, nodes=nodes))
    run = harness.replay(
        write_trace(*sets, later), plugin="kueue-classic", cluster=tmp_path / "cluster.yaml", output=tmp_path
    )
    admitted = run.decisions.filter(pl.col("action") == "admit")
    assert admitted["job_id"].to_list() == ["m", "j2", "m"]
    assert admitted["pods"][0] < 4
    adds_up(run)


def test_of_a_policy_that_does_not_say_so_the_last_ones_are(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """One of two pods of two cores, the last pod set, is left out."""
    sets = [
        {"job_id": "m", "pod_set": name, "pods": 2, "min_pods": 1, "request.cpu": cpu, "queue": "a"}
        for name, cpu in (("small", 1000), ("large", 2000))
    ]
    (tmp_path / "cluster.yaml").write_text(queues({"a": {"cpu": "4"}}))
    steps = {0: [("admit", "m", {"large": 1})]}
    run = harness.replay(
        write_trace(*sets), plugin=scripted(steps), cluster=tmp_path / "cluster.yaml", output=tmp_path
    )
    adds_up(run)
