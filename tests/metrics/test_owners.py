"""What is told by queue and user adds up to all; what is borrowed is lent by somebody."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples
from small_clusters import queues

import harness
from harness.analysis.metrics import owners
from harness.analysis.metrics.lending import Cell, pools
from harness.analysis.metrics.resource_time import resource_times
from harness.runs.older import as_now

QUOTAS = {
    "a": {"cpu": "4", "memory": "4Gi"},
    "b": {"cpu": "3", "memory": "6Gi"},
    "c": {"cpu": "0", "memory": "0"},
}
FLAVORS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: fixed}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec: {cohortName: all, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [
  {name: spot, resources: [{name: cpu, nominalQuota: 2}]},
  {name: fixed, resources: [{name: cpu, nominalQuota: 2}]}]}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec: {cohortName: all, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [
  {name: spot, resources: [{name: cpu, nominalQuota: 1, lendingLimit: 1}]},
  {name: fixed, resources: [{name: cpu, nominalQuota: 3, lendingLimit: 0}]}]}]}
"""


def rows(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "job_id": f"j{number}",
            "submit_time": draw.randrange(300),
            "duration": draw.randrange(200),
            "queue": draw.choice("abc"),
            "user": draw.choice(["", "u", "v", "w"]),
            "priority": draw.randrange(3),
            "pods": draw.choice([1, 1, 2]),
            "gang": draw.random() < 0.5,
            "request.cpu": draw.choice([500, 1000, 3000]),
            "request.memory": draw.choice([0, 2**30, 3 * 2**29]),
        }
        for number in range(draw.randrange(1, 40))
    ]


def world(seed: int, folder: Path, plugin: str, nodes: int, until: str | None) -> harness.Run:
    """A run of random jobs of three queues and four users, one of whom has no name."""
    times = (pl.col("submit_time", "duration") * 1_000_000).cast(pl.Duration("us"))
    frame = pl.DataFrame(rows(seed)).with_columns(times).cast({"pods": pl.Int32, "priority": pl.Int32})
    frame.write_parquet(folder / "t.parquet")
    (folder / "c.yaml").write_text(queues(QUOTAS, nodes=nodes))
    return harness.replay(
        folder / "t.parquet", plugin=plugin, cluster=folder / "c.yaml", output=folder, until=until
    )


@examples(12)
@given(
    st.integers(0, 10_000),
    st.sampled_from([("none", 0), ("kueue-classic", 0), ("kueue-classic", 2), ("default-preemption", 2)]),
    st.sampled_from([None, "200s"]),
)
def test_owners_add_up_and_what_is_borrowed_is_lent(
    seed: int, plugin: tuple[str, int], until: str | None
) -> None:
    """Of queues and users, to the resource-microsecond; and of each of them what it held became something."""
    with tempfile.TemporaryDirectory() as name:
        run = world(seed, Path(name), *plugin, until)
        times = resource_times(run, run.window)
        for place, _ in enumerate(run.resources):
            whole = times["all"][place]
            for kind in ("queue=", "user="):
                parts = [each[place] for scope, each in times.items() if scope.startswith(kind)]
                for field in ("allocated", "useful", "lost", "idle_held", "unfinished", "pending", "needed"):
                    assert sum(getattr(part, field) for part in parts) == getattr(whole, field)
            for each in times.values():
                became = each[place]
                parts_of_it = became.useful + became.lost + became.idle_held + became.unfinished
                assert became.allocated == parts_of_it
        value = {
            (row["metric"], row["scope"], row["resource"]): row["value"] for row in run.metrics.to_dicts()
        }
        for resource in run.resources:
            borrowed, lent = (value[f"quota.{kind}", "all", resource] for kind in ("borrowed", "lent"))
            if borrowed is None:
                assert lent is None
                continue
            assert lent <= borrowed * (1 + 1e-9), "nobody lends what nobody borrows"
            if plugin == ("none", 0):
                assert lent == pytest.approx(borrowed), "without victims that are leaving all of it is lent"


def test_of_more_users_those_who_ask_for_most_are_told_apart(
    write_trace: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the dominant resource; the others have no rows, and all is of all."""
    monkeypatch.setattr(owners, "MOST_USERS", 2)
    jobs = [
        {"user": "least", "request.cpu": 1000, "request.memory": 1},
        {"user": "cpu", "request.cpu": 9000, "request.memory": 1},
        {"user": "memory", "request.cpu": 1000, "request.memory": 2**30},
    ]
    run = harness.replay(write_trace(*({"duration": 10, **each} for each in jobs)), output=tmp_path / "out")
    found = run.metrics.filter(pl.col("scope").str.starts_with("user="))
    assert set(found["scope"]) == {"user=cpu", "user=memory"}


def test_what_is_borrowed_is_told_apart_by_flavors(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """A job of 3 cores of queue a borrows 1 of spot from b, which lends none of fixed."""
    (tmp_path / "flavors.yaml").write_text(FLAVORS)
    trace = write_trace({"queue": "a", "request.cpu": 3000, "duration": 3600})
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=tmp_path / "flavors.yaml", output=tmp_path / "out"
    )
    value = {(row["metric"], row["scope"]): row["value"] for row in run.metrics.to_dicts()}
    assert value["quota.borrowed", "quota=a"] == 1, "its nominal quota is of both flavors 4"
    assert value["quota.lent", "quota=b"] == 1
    (pool,) = pools(run.info["cluster"], Cell("cpu", "fixed"))
    assert pool.lendable == {"a": 2000, "b": 0}


def test_runs_of_older_schemas_have_the_units_of_now() -> None:
    """What was in bytes is in GiB; only shares are called so, and indices stay ratios."""
    older = [
        ("disruption.lost", "memory", 2.0**31, "resource-hours"),
        ("disruption.lost", "cpu", 3.0, "core-hours"),
        ("backlog", "nvidia.com/gpu", 4.0, "resources"),
        ("goodput.of_demand", "cpu", 0.5, "ratio"),
        ("fairness.jain_share", "", 0.5, "ratio"),
        ("disruption.cascade_depth.mean", "", 0.5, "count"),
        ("disruption.preemptions_per_1000_hours", "", 0.5, "count"),
    ]
    names = ("metric", "resource", "value", "unit")
    frame = pl.DataFrame(older, schema=names, orient="row").with_columns(
        scope=pl.lit("all"), better=pl.lit("")
    )
    found = as_now(frame, {"queues": {}}).select("value", "unit").rows()
    assert found == [
        *((2.0, "GiB·h"), (3.0, "core·h"), (4.0, "devices"), (0.5, "share"), (0.5, "ratio")),
        *((0.5, "mean"), (0.5, "per 1000 h")),
    ]
