"""Forecasts of the past, judged by what came."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
import yaml
from cli_environment import called
from live_worlds import MONDAY, Manifest, manifests, queue

import harness
from harness.base.errors import InputError, OptionError, TraceError
from harness.base.units import HOUR, SECOND
from harness.cluster.load import cluster_from
from harness.plugins import load
from harness.studies.forecasting.from_files import Asked
from harness.studies.forecasting.judged import Judged
from harness.studies.forecasting.scores import coverage

DAYS = 28


def record(folder: Path, *, late: float = 0, queue_name: str = "q-jobs") -> Path:
    """Each day at 06:00 a job that takes all 4 cores for 4 h, an hour later one that waits for its end.

    Args:
        folder: where the trace is written.
        late: how many hours later than the first one's end the second one started.
        queue_name: the queue that the jobs name.
    """
    rows = []
    for day in range(DAYS):
        first = MONDAY + timedelta(days=day, hours=6)
        start = first + timedelta(hours=4 + late)
        rows.append((f"long-{day}", first, 4, first, first + timedelta(hours=4)))
        rows.append((f"next-{day}", first + timedelta(hours=1), 1, start, start + timedelta(hours=1)))
    frame = pl.DataFrame(
        {
            "job_id": [row[0] for row in rows],
            "submit_time": [row[1] for row in rows],
            "duration": [timedelta(hours=row[2]) for row in rows],
            "queue": queue_name,
            "request.cpu": 4000,
            "recorded_start": [row[3] for row in rows],
            "recorded_end": [row[4] for row in rows],
        }
    )
    frame.write_parquet(folder / "record.parquet")
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(manifests(queue("q", 4))))
    return folder / "record.parquet"


@pytest.mark.parametrize("name", ["q-jobs", "q"])
def test_a_record_that_repeats_itself_is_forecast_exactly(name: str, tmp_path: Path) -> None:
    """What runs has a group of its own by its name, so the end and the next start are known to the second.

    Jobs of a trace may name a ClusterQueue, although a Workload names only a LocalQueue.
    """
    asked = Asked(tmp_path / "cluster.yaml", record(tmp_path, queue_name=name), futures=3)
    held = asked.judged(5, load(), workers=1)
    assert (held.covered, held.by_moment, held.before, held.after) == (1.0, 1.0, 0.0, 0.0)
    assert (held.starts, held.moments, held.error) == (5, 5, 0)


def test_only_moments_whose_horizon_the_record_covers_are_judged(tmp_path: Path) -> None:
    """Of thirty jobs that waited when it ended nobody knows when they started; they counted as missed."""
    path = record(tmp_path)
    began = MONDAY + timedelta(days=DAYS - 1, hours=6)
    waits = {
        "duration": timedelta(hours=1),
        "queue": "q-jobs",
        "request.cpu": 4000,
        "recorded_state": "pending",
    }
    rows = [
        {"job_id": f"waits-{minute}", "submit_time": began + timedelta(minutes=minute), **waits}
        for minute in range(30)
    ]
    known = pl.read_parquet(path).filter(pl.col("submit_time") <= began)
    pl.concat([known, pl.DataFrame(rows, schema_overrides=known.schema)], how="diagonal").write_parquet(path)
    asked = Asked(tmp_path / "cluster.yaml", path, futures=3, horizon="12h")
    held = asked.judged(90, load(), workers=1)
    assert (held.covered, held.starts, held.moments) == (1.0, 90, 90)
    with pytest.raises(InputError, match=r"14d00h is too long for this record\. The record ended"):
        replace(asked, horizon="14d").judged(40, load(), workers=1)


def test_nothing_ends_a_job_that_runs_longer_than_it_asked(tmp_path: Path) -> None:
    """All ask for half an hour; the starts are known to the second all the same."""
    path = record(tmp_path)
    frame = pl.read_parquet(path).with_columns(requested_time=timedelta(minutes=30))
    frame.write_parquet(path)
    held = Asked(tmp_path / "cluster.yaml", path, futures=3).judged(5, load(), workers=1)
    assert (held.covered, held.error) == (1.0, 0)


def test_moments_before_the_first_end_are_left_out(tmp_path: Path) -> None:
    """No run time was known then. Forecasts at later moments are made."""
    path = record(tmp_path)
    frame = pl.read_parquet(path)
    begin = MONDAY - timedelta(days=60)
    early = frame.head(2).with_columns(
        job_id=pl.format("early-{}", pl.int_range(2)),
        submit_time=pl.lit(begin),
        duration=pl.lit(timedelta(days=30)),
        recorded_start=pl.lit(begin) + pl.duration(days=30 * pl.int_range(2)),
        recorded_end=pl.lit(begin) + pl.duration(days=30 + 30 * pl.int_range(2)),
    )
    pl.concat([early.cast(dict(frame.schema)), frame]).write_parquet(path)
    asked = Asked(tmp_path / "cluster.yaml", path, futures=3)
    assert asked.backtest(load()).world(round((begin + timedelta(days=15)).timestamp()) * SECOND) is None
    assert asked.judged(5, load(), workers=1).starts


def test_a_cluster_that_does_otherwise_shows(tmp_path: Path) -> None:
    """There all starts come 2 h after the quota was free; the model does not know why."""
    asked = Asked(tmp_path / "cluster.yaml", record(tmp_path, late=2), futures=3)
    held = asked.judged(5, load(), workers=1)
    assert held.after > 0.3
    assert held.covered + held.before + held.after == pytest.approx(1)


def test_coverage_counts_starts_and_moments() -> None:
    """One of three starts at one moment lies within, and the one at the other; never is late."""
    futures = tuple(hour * HOUR for hour in range(1, 10))
    judged = [
        Judged(0, "early", futures, HOUR // 2),
        Judged(0, "within", futures, 5 * HOUR),
        Judged(0, "never", futures, None),
        Judged(HOUR, "alone", futures, 3 * HOUR),
    ]
    held = coverage(judged, 24 * HOUR)
    assert (held.starts, held.moments) == (4, 2)
    assert (held.covered, held.before, held.after) == (0.5, 0.25, 0.25)
    assert held.by_moment == pytest.approx((1 / 3 + 1) / 2)
    assert held.width == 8 * HOUR
    with pytest.raises(InputError, match="no workload waited at any moment"):
        coverage([], HOUR)


def test_what_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    """A history without a record, and a cluster whose nodes or flavors a record does not name."""
    path = record(tmp_path)
    plain = tmp_path / "plain.parquet"
    pl.read_parquet(path).drop("recorded_start", "recorded_end").write_parquet(plain)
    with pytest.raises(TraceError, match="recorded_start"):
        Asked(tmp_path / "cluster.yaml", plain).judged(1, load())
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all(manifests(queue("q", 4), node)))
    with pytest.raises(OptionError, match="it has nodes"):
        Asked(tmp_path / "nodes.yaml", path).judged(1, load())
    with pytest.raises(OptionError, match="a backtest judges forecasts of a history"):
        Asked(tmp_path / "cluster.yaml").judged(1, load())


def test_the_command_tells_the_coverage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words."""
    args = ["--cluster", tmp_path / "cluster.yaml", "--history", record(tmp_path), "--workers", "1"]
    assert called(["forecast", *map(str, args), "--futures", "3", "--backtest", "3"]) == 0
    out = capsys.readouterr().out
    assert "100.0% of 3 starts lie between their p10 and their p90, as 80 % should" in out


def node(name: str, cpu: int) -> Manifest:
    """A node of so many cores."""
    status = {"allocatable": {"cpu": str(cpu), "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def fragmented(folder: Path) -> tuple[Path, Path]:
    """Each day two jobs leave a core on each of two nodes; an hour later one of two cores has quota alone.

    Returns:
        The manifests, and the trace.
    """
    rows = []
    for day in range(DAYS):
        first = MONDAY + timedelta(days=day, hours=6)
        rows += [(f"{name}-{day}", first, 4, 3000) for name in ("left", "right")]
        rows.append((f"next-{day}", first + timedelta(hours=1), 1, 2000))
    frame = pl.DataFrame(
        {
            "job_id": [row[0] for row in rows],
            "submit_time": [row[1] for row in rows],
            "duration": [timedelta(hours=row[2]) for row in rows],
            "queue": "q-jobs",
            "request.cpu": [row[3] for row in rows],
        }
    )
    trace, cluster = folder / "trace.parquet", folder / "nodes.yaml"
    frame.write_parquet(trace)
    cluster.write_text(yaml.safe_dump_all(manifests(queue("q", 8), node("n1", 4), node("n2", 4))))
    return cluster, trace


def test_what_waits_for_a_node_is_forecast_by_the_nodes_of_a_run(tmp_path: Path) -> None:
    """It has had quota for hours, and starts when the first node is free: known to the second on these nodes.

    A forecast that did not know where the others run would have it start at once.
    """
    cluster, trace = fragmented(tmp_path)
    options = {"featureGates": "DisableWaitForPodsReady=true"}
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=cluster, options=options, output=tmp_path / "runs"
    )
    asked = Asked(cluster, run.path, plugin="kueue-classic", options=options, futures=3)
    held = asked.judged(5, load(), workers=1)
    assert (held.covered, held.starts, held.moments, held.error) == (1.0, 5, 5, 0)


def test_single_pods_are_judged_on_nodes_too(tmp_path: Path) -> None:
    """Without Kueue each pod is a job of its own, and waits for a node as well."""
    _, trace = fragmented(tmp_path)
    pods = tmp_path / "pods.yaml"
    pods.write_text(yaml.safe_dump_all([node("n1", 4), node("n2", 4)]))
    run = harness.replay(trace, plugin="default-preemption", cluster=pods, output=tmp_path / "runs")
    held = Asked(pods, run.path, futures=3).judged(5, load(), workers=1)
    assert (held.covered, held.starts, held.moments, held.error) == (1.0, 5, 5, 0)
    with pytest.raises(OptionError, match="bound pods to nodes that the cluster does not have, such as n1"):
        Asked(cluster_from([node("n3", 4)], "other"), run.path).judged(1, load())


def test_a_run_that_does_not_fit_the_cluster_is_refused(tmp_path: Path) -> None:
    """It was on other nodes or on none, or Pods do not say what its jobs are."""
    cluster, trace = fragmented(tmp_path)
    without = tmp_path / "without.yaml"
    without.write_text(yaml.safe_dump_all(manifests(queue("q", 8))))
    output = tmp_path / "runs"
    on_nodes = harness.replay(trace, plugin="kueue-classic", cluster=cluster, output=output)
    with pytest.raises(OptionError, match="nodes that the cluster does not have, such as n1") as told:
        Asked(without, on_nodes.path).judged(1, load())
    assert "--cluster FILE" in str(told.value.hint)
    on_none = harness.replay(trace, plugin="kueue-classic", cluster=without, output=output)
    with pytest.raises(OptionError, match="was on a cluster without nodes, but this cluster has nodes"):
        Asked(cluster, on_none.path).judged(1, load())
    gangs = tmp_path / "gangs.parquet"
    pl.read_parquet(trace).with_columns(
        pods=2, **{"request.cpu": pl.col("request.cpu") // 2}, gang=True
    ).write_parquet(gangs)
    pods = tmp_path / "pods.yaml"
    pods.write_text(yaml.safe_dump_all([node("n1", 4), node("n2", 4)]))
    run = harness.replay(gangs, plugin="default-preemption", cluster=pods, output=output)
    with pytest.raises(OptionError, match="job left-0 is a gang, but Pods cannot show that"):
        Asked(pods, run.path).judged(1, load())
