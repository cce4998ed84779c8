"""Runs to report on: small ones with preemption."""

from __future__ import annotations

import pytest
import small_clusters
from policies import Greedy, Priority
from report_runs import HOSTILE, cut, write

import harness
from harness.analysis.report.report import Report


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> list[harness.Run]:
    """Two runs of jobs in queues with hostile names, with room for two of them; the second run preempts."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [
        {"submit_time": 2 * number, "queue": queue, "priority": number, "job_id": f"{queue} {number}"}
        for number, queue in enumerate(HOSTILE * 3)
    ]
    rows.append({"submit_time": 120, "queue": HOSTILE[0]})  # so that little is demanded on average
    trace = write(folder / "trace.parquet", rows)
    return [
        harness.replay(trace, plugin=policy, label=label, output=folder / "results", grace_period="1s")
        for policy, label in ((Greedy, "calm"), (Priority, "rough"))
    ]


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[harness.Run]:
    """Two runs of 300 jobs of three queues with quotas, on nodes; the second one preempts."""
    folder = tmp_path_factory.mktemp("plain")
    cluster = folder / "cluster.yaml"
    quotas = {queue: {"cpu": "4", "memory": "8Gi"} for queue in ("blue", "green", "red")}
    cluster.write_text(small_clusters.queues(quotas))
    rows = [
        {
            "submit_time": number * number % 997,
            "duration": 20 + number % 7 * 10,
            "queue": ("blue", "green", "red")[number % 3],
            "priority": number // 3 % 3,
            "request.cpu": 1000 + number % 4 * 1000,
            "request.memory": 2**30,
        }
        for number in range(300)
    ]
    trace = write(folder / "trace.parquet", rows)
    return [
        harness.replay(
            trace, plugin=policy, label=label, output=folder / "results", cluster=cluster, grace_period="2s"
        )
        for policy, label in ((Greedy, "calm"), (Priority, "rough"))
    ]


@pytest.fixture(scope="package")
def charts() -> None:
    """Skips where charts cannot be drawn."""
    pytest.importorskip("altair", reason="charts need altair: pip install 'harness-replay[report]'")
    pytest.importorskip("vl_convert", reason="charts need vl-convert: pip install 'harness-replay[report]'")


@pytest.fixture(scope="package")
def report(runs: list[harness.Run]) -> Report:
    """The report of two plain runs."""
    return harness.make_report(runs)


@pytest.fixture(scope="package")
def page(charts: None, report: Report) -> str:
    """The page of two plain runs."""
    return report.html()


@pytest.fixture(scope="package")
def hostile_page(charts: None, hostile: list[harness.Run]) -> str:
    """The page of two runs with hostile names, of some chapters."""
    report = harness.make_report(hostile, command="harness report <b>")
    return cut(report, "headlines", "frontier", "allocation", "metrics").html()


@pytest.fixture(scope="package")
def live_page(charts: None, hostile: list[harness.Run]) -> str:
    """An interactive page of a run with hostile names."""
    return harness.make_report(hostile[1:]).html(interactive=True)
