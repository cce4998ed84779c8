"""Which LocalQueue a job means where its trace does not name it with its namespace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import harness
from harness.base.errors import TraceError
from harness.cluster.load import cluster_from
from harness.cluster.manifests import cluster_queue_manifest, flavor_manifest
from harness.cluster.model import Cluster
from harness.trace.calibration import Calibration
from harness.trace.homes import homed
from harness.trace.trace import Trace
from harness.trace.validate import checked


def cluster(*local: tuple[str, str, str]) -> Cluster:
    """ClusterQueues `a` and `b`, and LocalQueues by namespace, name and ClusterQueue."""
    queues = [cluster_queue_manifest(name, "f", {"cpu": 9000}, preemption={}) for name in "ab"]
    doors = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": queue},
        }
        for namespace, name, queue in local
    ]
    return cluster_from([flavor_manifest("f"), *queues, *doors], "test")


def places(where: Cluster, *rows: dict[str, Any]) -> list[tuple[str | None, str]]:
    """Namespace and queue of each job of a trace afterwards."""
    frame = homed(trace_of(*rows), where).frame
    return frame.select("namespace", "queue").rows()


def trace_of(*rows: dict[str, Any]) -> Trace:
    """A trace of these rows; a namespace is stated where it is given."""
    plain = {"submit_time": 0, "duration": 1, "request.cpu": 1, "namespace": None}
    full = [{**plain, "job_id": f"j{number}", **row} for number, row in enumerate(rows)]
    types = {"submit_time": pl.Duration("us"), "duration": pl.Duration("us"), "namespace": pl.String}
    frame, faults = checked(pl.DataFrame(full, infer_schema_length=None).cast(types))
    assert faults == []
    return Trace(Path("t.parquet"), frame, "duration", None, 0, "")


def test_a_queue_of_one_namespace_is_found_there() -> None:
    """Where the trace does not say the namespace; a note says what was found."""
    where = cluster(("team", "lq", "a"), ("other", "x", "b"))
    assert places(where, {"queue": "lq"}, {"queue": "x"}) == [("team", "lq"), ("other", "x")]
    (note,) = homed(trace_of({"queue": "lq"}), where).notes
    assert note == "queues are replaced by the only LocalQueues that they can mean: lq by team/lq"


def test_nothing_is_found_where_there_is_a_doubt() -> None:
    """Several of one name, a namespace that the trace states, a queue that leads somewhere by itself."""
    where = cluster(("one", "lq", "a"), ("two", "lq", "a"), ("one", "b", "a"), ("default", "own", "b"))
    rows = [{"queue": "lq"}, {"queue": "b"}, {"queue": "own"}, {"queue": "lq", "namespace": "three"}]
    trace = trace_of(*rows, {"queue": "nothing"}, {"queue": "b", "namespace": "two"})
    assert homed(trace, where) is trace
    gone = cluster(("team", "lq", "nowhere"))
    assert places(gone, {"queue": "lq"}) == [(None, "lq")]


def test_a_namespace_as_the_queue_means_its_only_local_queue() -> None:
    """As Jobs without Kueue's label are read, and traces whose tenants are called like namespaces."""
    where = cluster(("team", "main", "a"), ("crowd", "x", "a"), ("crowd", "y", "b"))
    rows = [{"queue": "team", "namespace": "team"}, {"queue": "team"}, {"queue": "crowd"}]
    assert places(where, *rows) == [("team", "main"), ("team", "main"), (None, "crowd")]


def test_jobs_are_replayed_in_the_namespace_that_was_found(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """So that the queue's namespace selector sees it; the run says so."""
    trace = write_trace({"queue": "lq"}, {"queue": "a"})
    where = cluster(("team", "lq", "b"))
    run = harness.replay(trace, plugin="kueue-classic", cluster=where, output=tmp_path / "results")
    assert run.jobs.select("namespace", "queue", "state").rows() == [
        ("team", "lq", "finished"),
        ("default", "a", "finished"),
    ]
    assert run.info["trace"]["notes"] == [
        "queues are replaced by the only LocalQueues that they can mean: lq by team/lq"
    ]


def test_the_hint_says_how_to_map_what_is_not_plain(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """And following it, the replay begins: queues become LocalQueues of their namespaces."""
    trace = write_trace({"queue": "lq"}, {"queue": "boss"}, {"queue": "a"})
    where = cluster(("one", "lq", "a"), ("two", "lq", "b"))
    with pytest.raises(TraceError) as caught:
        harness.replay(trace, plugin="kueue-classic", cluster=where, output=tmp_path / "results")
    neither = "is neither a LocalQueue of namespace 'default' nor a ClusterQueue"
    assert caught.value.hint is not None
    assert "--tenants map:FILE" in caught.value.hint
    assert [fault.what for fault in caught.value.faults] == [
        f"'lq' {neither}; namespaces one, two have a LocalQueue of that name (1 row)",
        f"'boss' {neither} (1 row)",
    ]
    (tmp_path / "map.csv").write_text("queue,namespace,local_queue\nlq,two,\n\nboss,one,lq\n")
    mapped = Calibration.parse(tenants=f"map:{tmp_path / 'map.csv'}")
    run = harness.replay(
        trace, plugin="kueue-classic", cluster=where, calibration=mapped, output=tmp_path / "results"
    )
    assert run.jobs.select("namespace", "queue").rows() == [("two", "lq"), ("one", "lq"), ("default", "a")]
