"""What was found out about a trace on a cluster lasts as long as both do, and no longer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import read_cluster, read_trace
from harness.base.errors import TraceError
from harness.cluster.load import load_cluster
from harness.cluster.model import Cluster
from harness.plugins import load
from harness.policy import Job, Never
from harness.runs import job_columns
from harness.runs.impossible import impossible
from harness.runs.inputs import check_fit
from harness.trace import validate
from harness.trace.job_columns import JobColumns

Writes = Callable[..., Path]


def test_a_second_replay_of_one_trace_on_one_cluster_asks_no_more(
    write_trace: Writes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they fit, and which jobs can never start; the same cluster made anew is asked about."""
    asked: list[Mapping[str, Any]] = []
    fits: list[Cluster] = []
    whether = validate.cluster_faults

    def never(_: Cluster, options: Mapping[str, Any]) -> Callable[[Job], Never | None]:
        asked.append(options)
        return lambda job: Never("nodes", "too large") if job.id == "j1" else None

    plugins = load()
    trace = read_trace(write_trace({}, {"request.cpu": 4000}), plugins)
    cluster = read_cluster(None, trace)
    policy = replace(plugins.policy("none"), never=never)
    monkeypatch.setattr(
        validate, "cluster_faults", lambda *of, **how: fits.append(of[1]) or whether(*of, **how)
    )
    for _ in range(2):
        check_fit(trace, cluster)
        (found,) = impossible(trace, cluster, policy, {"scores": "a"}) or ()
        assert found.jobs == ("j1",)
    assert not fits  # `read_cluster` had asked
    assert len(asked) == 1
    impossible(trace, cluster, policy, {"scores": "b"})
    impossible(trace, cluster, replace(policy, never=lambda *of: never(*of)), {"scores": "a"})
    assert len(asked) == 3
    again = replace(cluster)
    check_fit(trace, again)
    impossible(trace, again, policy, {"scores": "a"})
    assert (len(fits), len(asked)) == (1, 4)


def test_columns_of_jobs_are_made_once_for_replays_that_choose_the_same(
    write_trace: Writes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the policy; the second replay finds what one in another process would."""
    made: list[Mapping[str, Any]] = []

    def counted(*of: Any, **choices: Any) -> JobColumns:
        made.append(choices)
        return JobColumns(*of, **choices)

    monkeypatch.setattr(job_columns, "JobColumns", counted)
    trace = read_trace(write_trace({}, {"request.cpu": 4000}, {"submit_time": 5}), load())
    cluster = read_cluster(None, trace)

    def replay(plugin: str, grace_period: str = "30s") -> dict[str, bytes]:
        run = harness.replay(
            trace, plugin=plugin, cluster=cluster, grace_period=grace_period, output=tmp_path, force=True
        )
        return {path.name: path.read_bytes() for path in run.path.glob("*.parquet")}

    first = replay("none")
    assert replay("none") == first
    replay("kueue-classic")
    assert len(made) == 1
    replay("none", grace_period="1m")
    assert len(made) == 2
    monkeypatch.setattr(job_columns, "LONG", 1)
    assert replay("none") == first
    assert len(made) == 3


def test_that_they_do_not_fit_is_said_each_time(write_trace: Writes, tmp_path: Path) -> None:
    """All faults, and not only once."""
    trace = read_trace(write_trace({"request.cpu": 64000}), load())
    manifest = tmp_path / "cluster.yaml"
    manifest.write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 1}}}")
    cluster = load_cluster(manifest)
    for _ in range(2):
        with pytest.raises(TraceError, match="is more than the cluster's"):
            check_fit(trace, cluster)


def test_neither_is_kept_for_what_is_known_of_it(write_trace: Writes, tmp_path: Path) -> None:
    """A trace that nobody has any more is gone, and so is what was known."""
    plugins = load()
    trace = read_trace(write_trace({}), plugins)
    cluster = read_cluster(None, trace)
    impossible(trace, cluster, plugins.policy("none"), {"borrow": True})
    harness.replay(trace, plugin="none", cluster=cluster, output=tmp_path)
    gone = weakref.ref(trace), weakref.ref(cluster)
    del trace
    gc.collect()
    assert gone[0]() is None
    del cluster
    gc.collect()
    assert gone[1]() is None
