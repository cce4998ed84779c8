"""Every metric agrees with what plain Python makes of the decisions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import AtRandom, Eager, Greedy, PodByPod, Priority
from slow_metrics import agrees
from small_clusters import local_queue, queues

import harness

PHILLY = Path(__file__).parents[2] / "traces" / "philly.parquet"
QUOTAS = {"a": {"cpu": "4", "memory": "4Gi"}, "b": {"cpu": "3", "memory": "6Gi"}, "idle": {"cpu": "1"}}
POOL = queues(QUOTAS, weights={"a": "2"})
NODES = queues(QUOTAS, weights={"b": "3"}, nodes=2)
DOORS = queues({"x": QUOTAS["a"], "b": QUOTAS["b"]}) + local_queue("default", "a", "x")
SHARED = queues({"x": {"cpu": "7", "memory": "10Gi"}}) + "".join(
    local_queue("default", name, "x") for name in "ab"
)


class Randomly(AtRandom):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


class Early(Eager):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


class Podwise(PodByPod):
    def __init__(self, cluster: Any, view: Any, options: Any) -> None:
        super().__init__(cluster, view, {"preemptions": 12, "seed": 5})


def job(number: int, draw: Callable[..., Any]) -> dict[str, Any]:
    return {
        "job_id": f"j{number}",
        "submit_time": draw(st.integers(0, 60)),
        "duration": draw(st.integers(0, 40)),
        "grace_period": draw(st.sampled_from([0, 0, 3])),
        "queue": draw(st.sampled_from("ab")),
        "user": draw(st.sampled_from(["", "u", "v", "w"])),
        "priority": draw(st.integers(0, 2)),
        "pods": draw(st.sampled_from([1, 1, 2, 3])),
        "gang": draw(st.booleans()),
        "request.cpu": draw(st.sampled_from([0, 500, 1000, 2000])),
        "request.memory": draw(st.sampled_from([0, 2**30, 3 * 2**29])),
    }


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    times = (pl.col("submit_time", "duration", "grace_period") * 1_000_000).cast(pl.Duration("us"))
    return pl.DataFrame(rows).with_columns(times).cast({"pods": pl.Int32, "priority": pl.Int32})


def replayed(rows: pl.DataFrame, cluster: str, plugin: Any, **settings: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows.write_parquet(folder / "t.parquet")
        (folder / "c.yaml").write_text(cluster)
        run = harness.replay(
            folder / "t.parquet", plugin=plugin, cluster=folder / "c.yaml", output=folder, **settings
        )
        agrees(run, rows)


@pytest.mark.early
@settings(max_examples=15)
@given(st.data())
def test_metrics_of_random_runs_are_what_their_decisions_say(data: st.DataObject) -> None:
    """Whole jobs and pods, gangs and not, with and without preemption, graces, ends and losses.

    However tables are read in pieces.
    """
    rows = frame([job(number, data.draw) for number in range(data.draw(st.integers(1, 14)))])
    plugin, cluster = data.draw(
        st.sampled_from(
            [
                *((Greedy, POOL), (Priority, POOL), (Randomly, POOL), (Early, POOL), (Podwise, NODES)),
                *((Randomly, DOORS), (Randomly, SHARED)),
            ]
        )
    )
    rows_of_a_piece = data.draw(st.sampled_from([3, 1000]))
    choices: Mapping[str, Any] = {
        "on_preemption": data.draw(st.sampled_from(["restart", "resume"])),
        "until": data.draw(st.sampled_from([None, None, "70s"])),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.runs.run._BATCH", rows_of_a_piece)
        patch.setattr("harness.metrics.waiting._MANY", rows_of_a_piece)
        day = data.draw(st.sampled_from([17, 86_400])) * 1_000_000
        patch.setattr("harness.metrics.daily.DAY", day)
        patch.setattr("slow_metrics.DAY", day)
        replayed(rows, cluster, plugin, **choices)


@pytest.mark.parametrize(
    ("plugin", "cluster"),
    [
        ("none", POOL),
        ("kueue-classic", POOL),
        ("fairsharing", POOL),
        ("kueue-classic", DOORS),
        ("fairsharing", SHARED),
        ("kueue-classic", NODES),
        ("fairsharing", NODES),
        ("default-preemption", NODES),
    ],
)
def test_metrics_of_built_in_plugins_are_what_their_decisions_say(plugin: str, cluster: str) -> None:
    """Sixty contended jobs of two queues and three priorities."""
    rows = [
        {
            "job_id": f"j{number}",
            "submit_time": number * number % 61,
            "duration": 5 + number % 7 * 4,
            "grace_period": number % 3,
            "queue": "ab"[number * number % 5 % 2],
            "priority": number % 3,
            "pods": 1 + number % 2,
            "gang": True,
            "request.cpu": 500 * (1 + number % 3),
            "request.memory": 2**29,
        }
        for number in range(60)
    ]
    replayed(frame(rows), cluster, plugin)


def test_metrics_of_the_philly_trace_are_what_its_decisions_say(tmp_path: Path) -> None:
    """Its first four hundred jobs under Kueue, of which some are preempted."""
    rows = pl.read_parquet(PHILLY).head(400)
    rows.write_parquet(tmp_path / "philly.parquet")
    run = harness.replay(
        tmp_path / "philly.parquet",
        plugin="kueue-classic",
        cluster=PHILLY.with_name("philly.cluster.yaml"),
        output=tmp_path,
    )
    agrees(run, rows)
