"""A model of failing nodes: seeded, as often as it says, other failures in each twin."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called

import harness
from harness.base.errors import InputError, OptionError
from harness.base.units import DAY, HOUR, SECOND
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.runs.run import Run
from harness.trace.calibration import Calibration
from harness.trace.failures import Failures
from harness.trace.trace import Trace, open_trace

PLUGINS = load()


def cluster_of(**pools: int) -> Cluster:
    """Pools of nodes of 4 cpu; each two nodes of a pool are in one rack."""
    manifests = []
    for pool, count in pools.items():
        for number in range(0, count, 2):
            template = {
                "metadata": {"labels": {"rack": f"{pool}{number}"}},
                "allocatable": {"cpu": "4", "pods": "10"},
            }
            spec = {"count": min(2, count - number), "template": template}
            name = pool if count <= 2 else f"{pool}{number}"
            manifests.append(
                {"apiVersion": "harness/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
            )
    return cluster_from(manifests, "world")


def trace_of(folder: Path, days: int = 10, jobs: int = 20) -> Trace:
    frame = pl.DataFrame(
        {
            "job_id": [f"j{number}" for number in range(jobs)],
            "queue": ["q"] * jobs,
            "submit_time": [number * days * DAY // jobs for number in range(jobs)],
            "duration": [DAY] * jobs,
            "request.cpu": [4000] * jobs,
        }
    )
    path = folder / "t.parquet"
    frame.with_columns(pl.col("submit_time", "duration").cast(pl.Duration("us"))).write_parquet(path)
    return open_trace(path, PLUGINS)


def gone(cluster: Cluster) -> dict[str, list[tuple[object, object]]]:
    """Node -> when it is gone, as the documents with a time say."""
    found: dict[str, list[tuple[object, object]]] = {}
    for content in cluster.timed:
        told = content["metadata"]["annotations"]
        found.setdefault(content["metadata"]["name"], []).append(
            (told["harness/from"], told["harness/until"])
        )
    return found


@pytest.mark.parametrize(
    "text",
    [
        "mtbf:30d00h mttr:4h00m",
        "mtbf:gpu=30d00h,90d00h mttr:1h00m shape:0.7 together:rack seed:7",
        "mtbf:1s mttr:1s",
    ],
)
def test_a_text_stands_for_a_model(text: str) -> None:
    assert str(Failures.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mttr:4h", "the failure rate of nodes is not given"),
        ("mtbf:soon", "--mtbf: 'soon' is not a duration"),
        ("mtbf:500ms", "--mtbf 500ms must be at least 1 s"),
        ("mtbf:a=1d,a=2d", "names a pool twice"),
        ("mtbf:1d shape:0", "--failure-shape '0' is not a number from 0.1 to 10"),
        ("mtbf:1d shape:nan", "is not a number from 0.1 to 10"),
        ("mtbf:1d seed:-1", "--failure-seed '-1' is not a whole number"),
        ("mtbf:1d often", "'often' is none of mtbf, mttr"),
    ],
)
def test_a_faulty_model_is_refused(text: str, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        Failures.parse(text)


@pytest.mark.parametrize("shape", [1.0, 0.5, 2.0])
def test_nodes_fail_as_often_and_as_long_as_the_model_says(shape: float) -> None:
    """Means over 20,000 failures, within 3 %; the distribution's shape does not change them."""
    model = Failures((("*", 30 * DAY),), 4 * HOUR, shape)
    spans = list(model._spans("node", 30 * DAY, 20_000 * 30 * DAY))
    up = [start - end for (_, end), (start, _) in zip([(0, 0), *spans], spans, strict=False)]
    down = [end - start for start, end in spans]
    assert sum(up) / len(up) == pytest.approx(30 * DAY, rel=0.03)
    assert sum(down) / len(down) == pytest.approx(4 * HOUR, rel=0.03)
    assert all(time % SECOND == 0 and time > 0 for time in (*up, *down))


def test_failures_are_the_same_with_the_same_seed_whatever_other_nodes_there_are(tmp_path: Path) -> None:
    trace = trace_of(tmp_path)
    model = Failures.parse("mtbf:2d mttr:4h")
    few, many = (gone(model.over(cluster_of(a=2, b=count), trace)) for count in (1, 2))
    assert few
    assert {name: many[name] for name in few} == few
    other = gone(Failures.parse("mtbf:2d mttr:4h seed:1").over(cluster_of(a=2, b=1), trace))
    assert other != few


def test_nodes_of_one_rack_fail_together_and_pools_have_times_of_their_own(tmp_path: Path) -> None:
    trace = trace_of(tmp_path)
    cluster = cluster_of(a=4)
    racks = gone(Failures.parse("mtbf:2d together:rack").over(cluster, trace))
    assert racks["a0-0"] == racks["a0-1"] != racks["a2-0"] == racks["a2-1"]
    assert set(gone(Failures.parse("mtbf:a0=1d").over(cluster, trace))) == {"a0-0", "a0-1"}
    with pytest.raises(InputError, match="the cluster has no NodePool 'b'"):
        Failures.parse("mtbf:b=1d").over(cluster, trace)
    with pytest.raises(InputError, match="no node has the label 'zone'"):
        Failures.parse("mtbf:1d together:zone").over(cluster, trace)


def test_what_cannot_fail_is_said(tmp_path: Path) -> None:
    """A cluster without nodes, and nodes that fail so often that a table could not hold it."""
    trace = trace_of(tmp_path)
    with pytest.raises(InputError, match="has no nodes that could fail"):
        Failures.parse("mtbf:1d").over(cluster_from([], "empty"), trace)
    with pytest.raises(InputError, match="more than 100,000 times"):
        Failures.parse("mtbf:1s mttr:1s").over(cluster_of(a=2), trace)
    never = Failures.parse("mtbf:36000d").over(cluster_of(a=1), trace)
    assert not never.timed


def changes(run: Run) -> list[int]:
    return [each["at_us"] for each in run.info["cluster"]["events"]]


def test_each_twin_has_failures_of_its_own(tmp_path: Path) -> None:
    """Also those that `compare` makes later of the runs alone."""
    trace = trace_of(tmp_path)
    calibration = Calibration.parse(failures="mtbf:1d mttr:4h")
    run, *twins = (
        harness.replay(
            trace.path,
            plugin="none",
            cluster=cluster_of(a=2),
            calibration=calibration,
            twin=twin,
            output=tmp_path,
        )
        for twin in (None, "1@0,arrivals=1s", "2@0,arrivals=1s")
    )
    assert run.info["settings"]["calibration"] == {"failures": "mtbf:1d00h mttr:4h00m"}
    assert len({tuple(changes(each)) for each in (run, *twins)}) == 3
    again = harness.replay(
        trace.path, plugin="none", cluster=cluster_of(a=2), calibration=calibration, output=tmp_path / "again"
    )
    assert again.info["run"] == run.info["run"]


def test_the_command_replays_with_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The options are those of `harness replay`, with twins; the run says them."""
    from harness.cluster.manifests import dump_yaml

    trace = trace_of(tmp_path)
    (tmp_path / "t.cluster.yaml").write_text(dump_yaml(cluster_of(a=2).manifests))
    line = ["replay", str(trace.path), "-p", "none", "-o", str(tmp_path / "r"), "--mtbf", "1d"]
    assert (
        called([*line, "--mttr", "2h", "--failure-shape", "0.7", "--failure-seed", "3", "--shake", "2"]) == 0
    )
    told = capsys.readouterr()
    assert "note: the cluster changes over time: " in told.err
    (info,) = (tmp_path / "r").glob("t/none-*/run.json")
    settings = json.loads(info.read_text())["settings"]
    assert settings["calibration"]["failures"] == "mtbf:1d00h mttr:2h00m shape:0.7 seed:3"
    assert called([*line[:-2], "--mttr", "2h"]) == 2
    assert "add --mtbf SPAN" in capsys.readouterr().err
