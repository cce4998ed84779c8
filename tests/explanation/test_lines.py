"""Who waits in line with whom: equally named LocalQueues, and several LocalQueues of one ClusterQueue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from older_runs import as_schema_2
from small_clusters import local_queue, queues

import harness
from harness.base.errors import RunError
from harness.runs.run import Run


def lines(run: Run, *args: Any, **options: Any) -> list[str]:
    return harness.explain(run, *args, **options).text().split("\n")


@pytest.fixture
def teams(write_trace: Callable[..., Path], tmp_path: Path) -> Run:
    """Namespaces a and b have a LocalQueue `default` each, for a ClusterQueue each; a has one more."""
    hour = {"request.cpu": 4000, "duration": 3600}
    trace = write_trace(
        {"job_id": "a1", "queue": "default", "namespace": "a", **hour},
        {"job_id": "b1", "queue": "default", "namespace": "b", **hour},
        {"job_id": "a2", "queue": "default", "namespace": "a", "submit_time": 10, "request.cpu": 3000},
        {"job_id": "a3", "queue": "default", "namespace": "a", "submit_time": 20, "request.cpu": 1000},
        {"job_id": "s1", "queue": "second", "namespace": "a", "submit_time": 25, "request.cpu": 1000},
        {"job_id": "b2", "queue": "default", "namespace": "b", "submit_time": 30, "request.cpu": 2000},
    )
    manifests = [*yaml.safe_load_all(queues({"team-a": {"cpu": "5"}, "team-b": {"cpu": "4"}}))]
    for each in manifests:
        if each["kind"] == "ClusterQueue":
            each["spec"] |= {"queueingStrategy": "StrictFIFO", "cohortName": "", "preemption": {}}
    doors = [("a", "default", "team-a"), ("b", "default", "team-b"), ("a", "second", "team-a")]
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("".join([yaml.safe_dump_all(manifests), *(local_queue(*door) for door in doors)]))
    return harness.replay(trace, cluster=cluster, plugin="kueue-classic", output=tmp_path / "results")


def test_a_job_waits_behind_jobs_of_its_cluster_queue_alone(teams: Run) -> None:
    """Not behind those of an equally named LocalQueue of another team, whose job was tried later."""
    (line,) = (line for line in lines(teams, "a3") if "recorded no reason" in line)
    assert "own wait; job a2 of the same queue waits (PreemptionNoCandidates); short of 2 cpu" in line


def test_a_job_waits_behind_jobs_of_another_queue_with_the_same_quota(teams: Run) -> None:
    """Kueue's queue is the ClusterQueue, whichever LocalQueues its jobs come from."""
    (line,) = (line for line in lines(teams, "s1") if "recorded no reason" in line)
    assert "own wait; job a2 of queue default, which has the same quota, waits (Preempt" in line


def test_a_moment_names_the_last_job_tried_in_the_line(teams: Run) -> None:
    """For a job of another LocalQueue, too, and if only one queue is asked for."""
    for queue in (None, "second"):
        told = lines(teams, queue=queue, at="50s")
        (line,) = (line for line in told if " s1 since " in line)
        assert line.endswith("(25s): not tried yet; the last job tried in its queue is a2")
    assert not any("tried in its queue is b2" in line for line in lines(teams, at="50s"))


@pytest.mark.parametrize("older", [False, True])
def test_only_queues_that_share_quota_hold_what_a_job_lacks(teams: Run, older: bool) -> None:
    """Team b holds as much, but in no common cohort. Runs of schema 2 have no table of cohorts."""
    if older:
        as_schema_2(teams.path)
    told = lines(Run.open(teams.path), "a2")
    assert any(line.endswith("most cpu is held by a/default 4") for line in told)


def test_a_queue_may_have_the_name_that_tables_give_it(teams: Run) -> None:
    """Its bare name stands for all equally named queues, and `namespace/name` for one of them."""
    assert lines(teams, queue="default")[0] == "queue default: 5 jobs (5 finished)"
    assert lines(teams, queue="b/default")[0] == "queue b/default: 2 jobs (2 finished)"
    told = lines(teams, queue="b/default", at="50s")
    assert any(" b2 since " in line for line in told)
    assert not any(" a2 since " in line for line in told)
    with pytest.raises(RunError, match="no jobs of queue 'c/default'"):
        harness.explain(teams, queue="c/default")


def test_a_refusal_at_the_time_of_a_start_explains_no_wait(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Job a4 is refused after the start of a3, which waited behind a2."""
    trace = write_trace(
        *(
            {"job_id": name, "queue": "a", "submit_time": at, "duration": 100, "request.cpu": cpu}
            for name, at, cpu in (("a1", 0, 4000), ("a2", 10, 2000), ("a3", 20, 2000), ("a4", 30, 3000))
        )
    )
    manifests = [*yaml.safe_load_all(queues({"a": {"cpu": "4"}}))]
    manifests[-1]["spec"]["queueingStrategy"] = "StrictFIFO"
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(manifests))
    run = harness.replay(trace, cluster=cluster, plugin="kueue-classic", output=tmp_path / "results")
    (line,) = (line for line in lines(run, "a3") if "recorded no reason" in line)
    assert "own wait; job a2 of the same queue waits" in line
