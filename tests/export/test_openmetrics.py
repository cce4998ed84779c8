"""Time series for Prometheus: read by a parser of the format, and held against the timeline."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from small_clusters import local_queue, queues

import harness
from harness.analysis.export.openmetrics import write_openmetrics
from harness.analysis.export.window import part_of
from harness.base.errors import OptionError
from harness.base.units import HOUR, SECOND

TRACES = Path(__file__).parents[2] / "traces"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """Two days of a bundled trace in which jobs preempt each other."""
    results = tmp_path_factory.mktemp("runs")
    return harness.replay(TRACES / "mix.parquet", plugin="kueue-classic", until="2d", output=results)


def read(run: harness.Run, since: str | None, until: str | None, step: int) -> dict[str, list]:
    """Metric -> its samples."""
    file = io.BytesIO()
    write_openmetrics(run, part_of(run, since, until), step, file)
    text = file.getvalue().decode()
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_samples_are_the_levels_at_their_times(run: harness.Run) -> None:
    """The last change until then; cpu in cores, memory in bytes."""
    families = read(run, "1d", "2d", 6 * HOUR)
    for column in ("allocated", "pending", "held", "running_jobs", "pending_jobs"):
        for sample in families[f"harness_queue_{column}"]:
            at = timedelta(seconds=float(sample.timestamp))
            resource = sample.labels.get("resource", "cpu")
            before = run.timeline.filter(
                (pl.col("time") <= at)
                & (pl.col("queue") == sample.labels["queue"])
                & (pl.col("resource") == resource)
            )
            scale = 1000 if sample.labels.get("unit") == "core" else 1
            assert sample.value == before[column][-1] / scale
            assert sample.labels["run"] == "kueue-classic"
    times = {float(sample.timestamp) for sample in families["harness_queue_held"]}
    assert times == {24 * 3600, 30 * 3600, 36 * 3600, 42 * 3600, 48 * 3600}
    units = {s.labels["resource"]: s.labels["unit"] for s in families["harness_cluster_capacity"]}
    assert (units["cpu"], units["memory"]) == ("core", "byte")


def test_what_stands_fast_and_what_is_counted_is_there(run: harness.Run) -> None:
    """Quotas, capacity, and preemptions by queue and reason, which add up."""
    families = read(run, None, None, 1 * HOUR)
    quotas = {(s.labels["quota"], s.labels["resource"]): s.value for s in families["harness_quota_nominal"]}
    assert quotas["training", "nvidia.com/gpu"] == 30
    assert quotas["training", "cpu"] == 240
    capacity = {s.labels["resource"]: s.value for s in families["harness_cluster_capacity"]}
    assert capacity["cpu"] == 960
    latest: dict[tuple[str, str], float] = {}
    for sample in families["harness_preemptions"]:
        latest[sample.labels["queue"], sample.labels["reason"]] = sample.value
    last = max(float(sample.timestamp) for sample in families["harness_preemptions"])
    until = pl.col("time") <= timedelta(seconds=float(last))
    assert sum(latest.values()) == run.decisions.filter(until, pl.col("action") == "preempt").height > 0


def test_preemptions_are_of_the_queues_that_the_levels_are_of(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """LocalQueues of two namespaces have one name."""
    text = queues({"cqa": {"cpu": "1"}, "cqb": {"cpu": "1"}})
    text += local_queue("a", "lq", "cqa") + local_queue("b", "lq", "cqb")
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    jobs = [
        {"queue": "lq", "namespace": name, "submit_time": number, "priority": number, "duration": 9}
        for name, count in (("a", 2), ("b", 3))
        for number in range(count)
    ]
    run = harness.replay(write_trace(*jobs), cluster=path, plugin="kueue-classic", output=tmp_path / "runs")
    families = read(run, None, None, SECOND)
    levels = {sample.labels["queue"] for sample in families["harness_queue_held"]}
    last = {sample.labels["queue"]: sample.value for sample in families["harness_preemptions"]}
    assert last == dict(zip(sorted(levels), (1, 2), strict=True))


def test_names_are_escaped(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """A queue may be called anything."""
    name = 'a"\\\n{}#'
    run = harness.replay(write_trace({"queue": name}), output=tmp_path / "runs")
    families = read(run, None, None, HOUR)
    assert {sample.labels["queue"] for sample in families["harness_queue_pending_jobs"]} == {name}


def test_too_many_samples_are_refused_with_their_number(run: harness.Run) -> None:
    """Before anything is written."""
    file = io.BytesIO()
    with pytest.raises(OptionError, match=r"every 1ms would result in .* samples, but at most") as caught:
        write_openmetrics(run, run.window, 1000, file)
    assert "--step" in str(caught.value.hint)
    assert not file.getvalue()
