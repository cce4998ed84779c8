"""Runs whose cluster changes: what they keep of it, what tells them apart, and what is told of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from policies import Greedy
from small_clusters import queues

import harness
from harness.analysis.comparison import Comparison
from harness.analysis.export.openmetrics import write_openmetrics
from harness.analysis.export.perfetto import write_perfetto
from harness.analysis.report import Figure
from harness.analysis.report.material import Material
from harness.analysis.report.sections.allocation import blocks
from harness.base.errors import PolicyError
from harness.cluster.load import cluster_from, load_cluster
from harness.cluster.model import Cluster
from harness.runs.request import Request
from harness.trace.calibration import Calibration
from harness.trace.window import Window

Trace = Callable[..., Path]

JOBS = (
    {"job_id": "x", "queue": "a", "request.cpu": 4000, "duration": 20},
    {"job_id": "z", "queue": "a", "request.cpu": 2000, "duration": 10, "submit_time": 6},
)


@pytest.fixture
def base(tmp_path: Path) -> Cluster:
    """Two queues of one cohort."""
    path = tmp_path / "base.yaml"
    path.write_text(queues({"a": {"cpu": "4"}, "b": {"cpu": "2"}}))
    return load_cluster(path)


def patch(begin: str, end: str | None = None, **spec: Any) -> dict[str, Any]:
    """A patch of queue `a` that holds for a while."""
    annotations = {"harness/from": begin, **({"harness/until": end} if end else {})}
    return {"kind": "ClusterQueue", "metadata": {"name": "a", "annotations": annotations}, "spec": spec}


def cpu(amount: int) -> list[dict[str, Any]]:
    return [{"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": amount}]}]}]


CHANGES = [patch("10s", "15s", resourceGroups=cpu(2)), patch("8s", "9s", stopPolicy="Hold")]


def replay(trace: Path, cluster: Cluster, folder: Path, **given: Any) -> harness.Run:
    return harness.replay(trace, cluster=cluster, output=folder, **{"plugin": "kueue-classic", **given})


def test_a_run_keeps_its_events_with_the_fields_that_change(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """Each instant has its edits, and what of capacity, queues and cohorts is another from then on."""
    run = replay(write_trace(*JOBS), base.patched(CHANGES), tmp_path)
    held, free, less, more = run.info["cluster"]["events"]
    assert held["edits"] == [
        {"kind": "ClusterQueue", "name": "a", "how": "changed", "fields": {"stopPolicy": [None, "Hold"]}}
    ]
    assert free["at_us"] == 9_000_000
    assert less["edits"][0]["fields"] == {"nominalQuota f/cpu": ["4", "2"]}
    assert (less["capacity"], more["capacity"]) == ({"cpu": 4000}, {"cpu": 6000})
    assert less["queues"]["a"]["nominal"] == {"cpu": 2000}


def test_events_are_part_of_what_a_run_is(base: Cluster, write_trace: Trace, tmp_path: Path) -> None:
    """Another time is another run; a patch from the origin on is the run of the patch without a time."""
    trace = write_trace(*JOBS)

    def name(*patches: dict[str, Any]) -> str:
        request = Request(trace, plugin="kueue-classic", cluster=base.patched(patches) if patches else base)
        return request.plan(harness.plugins.load()).run_name

    assert len({name(), name(CHANGES[0]), name(patch("11s", "15s", resourceGroups=cpu(2)))}) == 3
    plain = patch("0s", resourceGroups=cpu(2))
    plain["metadata"] = {"name": "a"}
    assert name(patch("0s", resourceGroups=cpu(2))) == name(plain)


def test_a_change_before_the_first_arrival_decides_as_the_patch_does(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """Jobs arrive 5 s after the origin, and the quota is another after 2 s."""
    jobs = [job | {"submit_time": job.get("submit_time", 0) + 0.5} for job in JOBS]
    trace = write_trace(*jobs)
    plain = patch("0s", resourceGroups=cpu(2))
    plain["metadata"] = {"name": "a"}
    timed = base.patched(patch("100ms", resourceGroups=cpu(2)))
    one, two = (replay(trace, cluster, tmp_path) for cluster in (base.patched(plain), timed))
    assert one.decisions.drop("cycle").equals(two.decisions.drop("cycle"))
    assert one.metrics.equals(two.metrics)


def test_a_comparison_says_how_many_objects_change_and_how(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """In its head, beside what else differs; changes are not called manifests that differ in nothing."""
    trace = write_trace(*JOBS)
    runs = [replay(trace, cluster, tmp_path) for cluster in (base, base.patched(CHANGES))]
    table = str(Comparison(runs).table(width=200))
    assert "events: 4 (2 quotas, 2 stops)" in table
    assert "no modelled part of them differs" not in table


def test_a_comparison_lists_the_events_that_runs_share(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """Those at the same instant to the same effect, the first three of them; also where they share none."""
    trace = write_trace(*JOBS)
    worlds = [base, base.patched(CHANGES), base.patched([CHANGES[0], patch("9s", stopPolicy="Hold")])]
    runs = [replay(trace, cluster, tmp_path, label=f"run{at}") for at, cluster in enumerate(worlds)]
    table = str(Comparison(runs).table(width=300))
    quota = "ClusterQueue a: nominalQuota"
    assert "run1, run2\n  events that they share: 2 (2 quotas): " + quota in table
    assert "cpu 4 -> 2, after 10s; " in table
    assert "cpu 2 -> 4, after 15s" in table
    assert "share" not in str(Comparison(runs[:2]).table(width=300)).split("metric")[0]
    other = replay(trace, base.patched(patch("3s", stopPolicy="Hold")), tmp_path, label="other")
    assert "they share no event" in str(Comparison([runs[1], other]).table(width=300))


def test_a_run_says_since_when_there_is_how_much(base: Cluster, write_trace: Trace, tmp_path: Path) -> None:
    """Change points of capacity and of quotas, the first one before anything changes."""
    trace = write_trace(*JOBS)
    run = replay(trace, base.patched(CHANGES), tmp_path)
    seconds = [(each.time // 1_000_000, each.amount) for each in run.nominal_steps("a", "cpu")[1:]]
    assert (run.nominal_steps("a", "cpu")[0].amount, seconds) == (4000, [(10, 2000), (15, 4000)])
    assert [each.amount for each in run.capacity_steps("cpu")] == [6000, 4000, 6000]
    assert [each.amount for each in run.nominal_steps("b", "cpu")] == [2000]
    assert [each.amount for each in run.nominal_steps("c", "cpu")] == [None]


def test_exports_and_reports_have_quotas_and_capacity_over_time(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """As samples, as counters where they change, and as lines beside what is held."""
    other = {"job_id": "y", "queue": "b", "request.cpu": 1000, "duration": 5}
    trace = write_trace(*JOBS, other)
    plain, run = (replay(trace, cluster, tmp_path) for cluster in (base, base.patched(CHANGES)))
    samples = io.BytesIO()
    write_openmetrics(run, run.window, 5_000_000, samples)
    text = samples.getvalue().decode()
    for name, wanted in (
        ('harness_quota_nominal{run="kueue-classic",quota="a"', ["4", "4", "2", "4"]),
        ('harness_cluster_capacity{run="kueue-classic"', ["6", "6", "4", "6"]),
    ):
        assert [line.split()[-2] for line in text.split("\n") if line.startswith(name)][:4] == wanted
    traces = []
    for each in (plain, run):
        made = io.BytesIO()
        write_perfetto(each, each.window, made)
        traces.append(made.getvalue())
    assert [(b"nominal cpu" in made, b"capacity cpu" in made) for made in traces] == [
        (False, False),
        (True, True),
    ]
    figures = [block for block in blocks(Material(Comparison([run]))) if isinstance(block, Figure)]
    assert "a (own quota 4, then 2, then 4)" in figures[1].words
    assert all('"step-after"' in json.dumps(figure.draw(600).to_dict()) for figure in figures)
    steady = [block for block in blocks(Material(Comparison([plain]))) if isinstance(block, Figure)]
    assert not any('"step-after"' in json.dumps(figure.draw(600).to_dict()) for figure in steady)


def test_explain_tells_what_changed(base: Cluster, write_trace: Trace, tmp_path: Path) -> None:
    """Of a run all changes, of an instant the last one, in the words of manifests."""
    run = replay(write_trace(*JOBS), base.patched(CHANGES), tmp_path)
    whole, then = (harness.explain(run, **asked).text() for asked in ({"queue": "a"}, {"at": "12s"}))
    assert "ClusterQueue a: stopPolicy None -> Hold" in whole
    assert "last change of the cluster" in then
    assert "ClusterQueue a: nominalQuota f/cpu 4 -> 2" in then


@pytest.mark.parametrize(("at", "quota"), [("9s", "4"), ("12s", "2"), ("16s", "4")])
def test_an_instant_is_explained_with_the_quota_of_then(
    at: str, quota: str, base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """What is held stands beside what was nominal at that instant."""
    run = replay(write_trace(*JOBS), base.patched(CHANGES), tmp_path)
    (row,) = (each for each in harness.explain(run, at=at).text().splitlines() if each.startswith("a "))
    assert row.split()[3] == quota


class Deaf(Greedy):
    """Hears of no change, and starts whatever fits."""


def test_a_plugin_that_hears_of_no_change_is_an_error_unless_events_are_ignored(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """Then nothing changes for it; one that listens is replayed with its events all the same."""
    trace, changing = write_trace(*JOBS), base.patched(CHANGES)
    with pytest.raises(PolicyError, match="is not notified of changes, but ClusterQueue a changes 8s after"):
        replay(trace, changing, tmp_path, plugin=Deaf)
    run = replay(trace, changing, tmp_path, plugin=Deaf, ignore_events=True)
    assert run.info["settings"]["ignore_events"]
    assert "events" not in run.info["cluster"]
    assert "events" in replay(trace, changing, tmp_path, ignore_events=True).info["cluster"]


def test_what_a_plugin_does_not_follow_is_told_before_anything_is_replayed(
    base: Cluster, write_trace: Trace
) -> None:
    """When the replay is planned."""
    with pytest.raises(PolicyError, match="is not notified of changes"):
        Request(write_trace(*JOBS), plugin=Deaf, cluster=base.patched(CHANGES)).plan(harness.plugins.load())


def test_no_plugin_needs_to_hear_of_priority_classes(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """They count when a job arrives."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7, "globalDefault": True}
    later = {**high, "metadata": {"name": "high", "annotations": {"harness/from": "3s"}}}
    run = replay(write_trace(*JOBS), cluster_from([*base.manifests, later], ""), tmp_path, plugin=Deaf)
    assert dict(run.jobs.select("job_id", "priority").iter_rows()) == {"x": 0, "z": 7}


def test_a_quota_alone_changes_as_it_does_among_others(
    base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """What others have, and how they change, is not there."""
    other = patch("11s", stopPolicy="Hold")
    other["metadata"]["name"] = "b"
    request = Request(
        write_trace(*JOBS), plugin="kueue-classic", cluster=base.patched([*CHANGES, other]), alone="a"
    )
    cluster = request.plan(harness.plugins.load()).cluster
    assert [(at // 1_000_000, [str(each) for each in edits]) for at, edits in cluster.changes] == [
        *((8, ["ClusterQueue a"]), (9, ["ClusterQueue a"]), (10, ["ClusterQueue a"]), (11, [])),
        (15, ["ClusterQueue a"]),
    ]
    assert all(edit.after.cohort == "" for _, edits in cluster.changes for edit in edits)
    run = replay(write_trace(*JOBS), base.patched([*CHANGES, other]), tmp_path)
    (measured,) = harness.isolated([run])
    rho = measured.metrics.filter(metric="fairness.finish_time", scope="quota=a")["value"]
    assert rho.to_list() == [pytest.approx((1 + 10 / 24) / 2)]  # z has nobody to borrow from, and waits for x


@pytest.mark.parametrize(
    ("window", "begun", "later"), [("0s..30s", 4000, [8, 9, 10, 15]), ("9s..", 4000, [1, 6])]
)
def test_in_a_window_of_a_trace_without_dates_times_are_those_of_the_trace(
    window: str, begun: int, later: list[int], base: Cluster, write_trace: Trace, tmp_path: Path
) -> None:
    """What was over when the window begins holds no more; the run counts from its first job, at 9 s."""
    late = {"job_id": "w", "queue": "a", "request.cpu": 1000, "duration": 20, "submit_time": 9}
    run = replay(
        write_trace(*JOBS, late),
        base.patched(CHANGES),
        tmp_path,
        calibration=Calibration(window=Window.parse(window)),
    )
    assert run.info["cluster"]["queues"]["a"]["nominal"] == {"cpu": begun}
    assert [event["at_us"] // 1_000_000 for event in run.info["cluster"]["events"]] == later
