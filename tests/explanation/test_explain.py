"""What is told of jobs, queues and instants: rules on small runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from cli_environment import called
from policies import scripted
from small_clusters import local_queue, queues, quota_tree

import harness
from harness import Admit, Decision, Job, Preempt, Refuse, Why
from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.vocabulary import Units, read
from harness.analysis.export.window import part_of
from harness.base.errors import InputError, OptionError, RunError
from harness.policy import LOST_WITH_NODE
from harness.runs.run import Run
from harness.trace.calibration import Calibration

WriteTrace = Callable[..., Path]
TWO = {"a": {"cpu": "2"}, "b": {"cpu": "2"}}


@pytest.fixture
def kueue(write_trace: WriteTrace, tmp_path: Path) -> Run:
    """B borrows all of a's quota and loses it to a; another job of b waits behind."""
    trace = write_trace(
        {"job_id": "theirs", "queue": "b", "request.cpu": 4000, "duration": 100},
        {"job_id": "mine", "queue": "a", "request.cpu": 2000, "submit_time": 60, "duration": 50},
    )
    return replayed(trace, queues(TWO), tmp_path, plugin="kueue-classic")


def replayed(trace: Path, manifests: str, folder: Path, **settings: Any) -> Run:
    cluster = folder / "cluster.yaml"
    cluster.write_text(manifests)
    return harness.replay(trace, cluster=cluster, output=folder / "results", **settings)


def lines(run: Run, *args: Any, **options: Any) -> list[str]:
    return harness.explain(run, *args, **options).text().split("\n")


def told_events(run: Run, job: str) -> list[dict[str, Any]]:
    """The events of a job as `explain --json` has them."""
    told = harness.explain(run, job).to_json()
    return [event for chapter in told["chapters"] for event in chapter["events"]]


def test_a_preemption_is_told_to_both_sides_with_rule_figures_and_cost(kueue: Run) -> None:
    """Who, by which rule, what both queues used and own, and what was lost."""
    (line,) = (line for line in lines(kueue, "theirs") if "preempted by" in line)
    assert line == (
        "0d 00:01:00  preempted by job mine of queue a (InCohortReclamation): 1 pod; a requested 2 cpu; "
        "a used 0 of 2 cpu; b used 4 of 2 cpu; it had run for 1m00s and lost 1m00s of work (0.07 cpu-hours)"
    )
    (line,) = (line for line in lines(kueue, "mine") if "preempts" in line)
    assert line == (
        "0d 00:01:00  it preempts job theirs of queue b (InCohortReclamation); a requested 2 cpu; "
        "a used 0 of 2 cpu; b used 4 of 2 cpu"
    )


def test_an_admission_tells_whom_it_waits_for_and_when_the_job_starts(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """The victim is leaving for 30 s: one job starts then, another is evicted before it can."""
    trace = write_trace(
        {"job_id": "victim", "duration": 100, "request.cpu": 2000},
        {"job_id": "next", "submit_time": 5},
        {"job_id": "last", "submit_time": 5},
    )
    steps = {
        0: [("admit", "victim")],
        5: [("preempt", "victim", "next", "Rule"), ("admit", "next"), ("admit", "last")],
        9: [("preempt", "last", None, "Drained")],
    }
    run = replayed(trace, queues({"default": {"cpu": "2"}}), tmp_path, plugin=scripted(steps))
    assert lines(run, "next")[4:] == [
        "0d 00:00:05  submitted to queue default: 1 pod, priority 0",
        "0d 00:00:05  it preempts job victim of queue default (Rule)",
        "0d 00:00:05  admitted; it starts when the evicted jobs are gone",
        "0d 00:00:35  1 pod started, because the resources for the job are free",
        "0d 00:00:45  1 pod finished",
    ]
    assert lines(run, "next", at="0d 00:00:20")[3] == "  at 0d 00:00:20 it held quota"
    assert lines(run, "next", at="0d 00:00:36")[3] == "  at 0d 00:00:36 it ran"
    assert lines(run, "last")[6:] == [
        "0d 00:00:09  evicted (Drained): 1 pod; it had no work to lose",
        "0d 00:00:09  back in the queue",
    ]
    at = run.micros("timeline").collect().filter(time=5_000_000).row(0, named=True)
    assert (at["allocated"], at["pending"], at["held"]) == (2000, 2000, 4000)
    assert (at["running_jobs"], at["pending_jobs"]) == (1, 2)


def test_the_summary_adds_up(kueue: Run) -> None:
    """60 s of work lost, 30 s of grace held idle, and a wait until the preemptor has ended."""
    head = lines(kueue, "theirs")[:3]
    assert head[0] == "job theirs of queue b: 1 pod, priority 0"
    assert "was preempted once and lost 1m00s of work" in head[2]
    assert "held its resources without progress for 30s" in head[2]


def test_time_of_several_pods_is_said_to_be_summed(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A gang of 4 starts up for 15 s, runs for 5 s and then holds its resources for another 5 s."""
    gang = {"job_id": "gang", "pods": 4, "startup": 15, "grace_period": 5, "duration": 60}
    trace = write_trace(gang, {"job_id": "one", "startup": 0, "duration": 70})
    steps = {0: [("admit", "gang"), ("admit", "one")], 20: [("preempt", "gang", "one")]}
    run = replayed(trace, queues({"default": {"cpu": "5"}}), tmp_path, plugin=scripted(steps))
    told = lines(run, "gang")
    assert told[2].endswith(
        "was preempted once and lost 20s of work, summed over 4 pods; "
        "held its resources without progress for 1m20s, summed over 4 pods"
    )
    assert "it had run for 5s and lost 20s of work, summed over 4 pods (0.01 cpu-hours)" in "\n".join(told)
    assert lines(run, queue="default")[2].endswith("lost 20s of work, summed over pods")
    assert "summed" not in "\n".join(lines(run, "one"))


def test_usage_and_quota_of_cpu_are_told_in_one_unit(write_trace: WriteTrace, tmp_path: Path) -> None:
    """3 of 1500m would look like little. Whole cores of both stay as they are."""
    trace = write_trace(
        {"job_id": "x", "queue": "b", "request.cpu": 3000, "duration": 100},
        {"job_id": "y", "queue": "b", "request.cpu": 1000, "submit_time": 1},
        {"job_id": "z", "queue": "a", "request.cpu": 2500, "submit_time": 2},
    )
    own = queues({"a": {"cpu": "2"}, "b": {"cpu": "1500m"}})
    run = replayed(trace, own, tmp_path, plugin="kueue-classic")
    text = "\n".join(lines(run, "y") + lines(run, "z"))
    assert "b used 3000m of 1500m cpu; all queues of all used 3000m of 3500m cpu" in text
    assert "a used 0 of 2 cpu" in text
    assert "a would use 2500m, over its 2000m cpu" in text


def test_lost_memory_is_said_in_gib_hours(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Half an hour of 4 GiB; devices and cores are counted, so their hours need no unit."""
    asked = {"request.cpu": 1000, "request.memory": 4 * 2**30, "request.nvidia.com/gpu": 2}
    trace = write_trace({"job_id": "a", "duration": 3600, **asked})
    steps = {0: [("admit", "a")], 1800: [("preempt", "a", None, "Drained")]}
    sizes = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "8"}
    run = replayed(trace, queues({"default": sizes}), tmp_path, plugin=scripted(steps))
    lost = "(0.50 cpu-hours, 2.00 GiB-hours of memory, 1.00 nvidia.com/gpu-hours)"
    assert lost in "\n".join(lines(run, "a"))


def test_a_node_that_failed_tells_how_many_pods_of_the_job_were_there(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Of a gang of 8 pods, of all of another one's, and of a job with one pod."""
    trace = write_trace(
        {"job_id": "gang", "pods": 8, "request.cpu": 500, "duration": 60},
        {"job_id": "pair", "pods": 2, "request.cpu": 100},
        {"job_id": "one", "request.cpu": 100},
    )
    places = [("gang", pod, "n0" if pod < 3 else "n1") for pod in range(8)]
    places += [("pair", 0, "n0"), ("pair", 1, "n0"), ("one", 0, "n0")]
    steps = {
        0: [("bind", *place) for place in places],
        5: [("preempt", job, None, LOST_WITH_NODE, pod) for job, pod, node in places if node == "n0"],
    }
    run = replayed(trace, queues({}, nodes=2), tmp_path, plugin=scripted(steps))
    told = {
        job: next(line[13:] for line in lines(run, job) if "failed" in line)
        for job in ("gang", "pair", "one")
    }
    start = "node n0 failed (DeletionByPodGC); "
    assert told["gang"].startswith(
        f"{start}3 of its 8 pods were there; it had run for 5s and lost 40s of work"
    )
    assert told["pair"].startswith(f"{start}all 2 pods were there; ")
    assert told["one"].startswith(f"{start}its pod was there; ")


def test_a_wait_says_what_was_short_and_who_held_it(kueue: Run) -> None:
    """2 of 4 cpu are missing while a runs; in the cycle before they were kept for a's job."""
    turned_down, line = (line for line in lines(kueue, "theirs") if "waits (" in line)
    assert "(FailedAfterNomination); kept free for jobs ahead of it: 2 cpu for job mine; " in turned_down
    assert "; short of 2 cpu" in turned_down
    assert "short of 2 cpu, requesting 4 cpu; b used 0 of 2 cpu; all queues of all used 2 of 4 cpu" in line
    assert line.endswith("most cpu is held by a 2")


def test_what_queues_keep_by_lending_limits_is_told_apart(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Of a's 4 cpu 3 stay with a, so that b finds one of the three that are shared free, and lacks two."""
    trace = write_trace(
        {"job_id": "theirs", "queue": "b", "request.cpu": 2000, "duration": 90},
        {"job_id": "kept", "queue": "a", "request.cpu": 1000, "duration": 90},
        {"job_id": "waits", "queue": "b", "request.cpu": 3000, "submit_time": 1, "duration": 9},
    )
    cluster = queues({"a": {"cpu": "4"}, "b": {"cpu": "2"}}, limits={"a": (None, "1")})
    run = replayed(trace, cluster, tmp_path, plugin="kueue-classic")
    (line,) = (line for line in lines(run, "waits") if "waits (" in line)
    assert "short of 2 cpu, requesting 3 cpu; b used 2 of 2 cpu; all queues of all used 2 of 3 cpu" in line
    assert "lending limits keep another 3 cpu for individual queues" in line
    (event,) = (each for each in told_events(run, "waits") if each["what"] == "refuse")
    assert event["figures"]["pool"] == ("all", {"f/cpu": 2000}, {"f/cpu": 3000}, {"f/cpu": 3000})


def test_who_waits_behind_a_job_that_preempts_others_is_told_so(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Whom that job preempts, all of them, although it was never refused anything itself."""
    trace = write_trace(
        {"job_id": "theirs-1", "queue": "b", "request.cpu": 2000, "duration": 100},
        {"job_id": "theirs-2", "queue": "b", "request.cpu": 2000, "duration": 100},
        {"job_id": "first", "queue": "a", "request.cpu": 3000, "submit_time": 60, "duration": 50},
        {"job_id": "second", "queue": "a", "request.cpu": 1000, "submit_time": 65, "duration": 50},
    )
    manifests = [*yaml.safe_load_all(queues({"a": {"cpu": "4"}, "b": {"cpu": "0"}}))]
    for each in manifests:
        if each["kind"] == "ClusterQueue":
            each["spec"]["queueingStrategy"] = "StrictFIFO"
    run = replayed(trace, yaml.safe_dump_all(manifests), tmp_path, plugin="kueue-classic")
    assert run.decisions.filter(job_id="second")["action"].to_list() == ["submit", "admit", "finish"]
    (line,) = (line for line in lines(run, "second") if "recorded no reason" in line)
    assert "job first of the same queue preempts job theirs-1, job theirs-2 of queue b (InCoho" in line


def strict(quota: str, *, nodes: int = 0, **spec: Any) -> str:
    """A StrictFIFO queue `a`."""
    manifests = [*yaml.safe_load_all(queues({"a": {"cpu": quota}}, nodes=nodes))]
    for each in manifests:
        if each["kind"] == "ClusterQueue":
            each["spec"] |= {"queueingStrategy": "StrictFIFO", **spec}
    return yaml.safe_dump_all(manifests)


def test_until_a_job_is_tried_itself_the_job_ahead_of_it_explains_its_wait(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """In a StrictFIFO queue, only the head is tried: `small` waits for `big` until `big` has started."""
    trace = write_trace(
        {"job_id": "runs", "queue": "a", "request.cpu": 4000, "duration": 100},
        {"job_id": "big", "queue": "a", "request.cpu": 4000, "submit_time": 10, "duration": 100},
        {"job_id": "small", "queue": "a", "request.cpu": 2000, "submit_time": 20, "duration": 100},
    )
    run = replayed(trace, strict("4"), tmp_path, plugin="kueue-classic")
    said = (
        "own wait until 0d 00:01:40; job big of the same queue waits (PreemptionNoCandidates); short of 4 cpu"
    )
    (line,) = (line for line in lines(run, "small") if "recorded no reason" in line)
    assert said in line
    assert said in harness.explain(run, "small", at="50s").text().split("\n\n")[0]
    assert "recorded no reason" not in harness.explain(run, "small", at="101s").text().split("\n\n")[0]
    assert not any("recorded no reason" in line for line in lines(run, "big"))


def test_the_wait_after_an_eviction_is_explained_in_the_same_way(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """`low` returns to the queue behind `top`, and starts together with it."""
    trace = write_trace(
        {"job_id": "big", "queue": "a", "request.cpu": 4000, "duration": 900, "priority": 1},
        {"job_id": "low", "queue": "a", "request.cpu": 2000, "submit_time": 1, "duration": 90},
        {"job_id": "high", "queue": "a", "request.cpu": 2000, "submit_time": 5, "duration": 9, "priority": 1},
        {"job_id": "top", "queue": "a", "request.cpu": 4000, "submit_time": 6, "duration": 9, "priority": 1},
    )
    lower = {"preemption": {"withinClusterQueue": "LowerPriority"}}
    run = replayed(trace, strict("6", **lower), tmp_path, plugin="kueue-classic")
    (line,) = (line for line in lines(run, "low") if "recorded no reason" in line)
    assert "own wait; job top of the same queue waits (PreemptionNoCandidates); short of " in line
    assert line.partition("  ")[2] in harness.explain(run, "low", at="5m").text().split("\n\n")[0]
    assert "recorded no reason" not in harness.explain(run, "low", at="2s").text()


def test_a_job_that_has_quota_but_no_node_explains_no_wait_in_the_queue(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """`top` has left the queue. `small` waits behind `big`."""
    trace = write_trace(
        {"job_id": "x", "queue": "a", "request.cpu": 4000, "pods": 2, "duration": 100},
        {"job_id": "big", "queue": "a", "request.cpu": 4000, "pods": 2, "submit_time": 2, "duration": 9},
        {"job_id": "small", "queue": "a", "request.cpu": 1000, "submit_time": 3, "duration": 9},
        {"job_id": "top", "queue": "a", "request.cpu": 4000, "submit_time": 4, "priority": 1, "duration": 9},
    )
    run = replayed(trace, strict("12", nodes=2), tmp_path, plugin="kueue-classic")
    assert any("waits (Unschedulable)" in line for line in lines(run, "top"))
    assert "  waited 0s in total; held quota without resources for 1m36s" in lines(run, "top")
    (line,) = (line for line in lines(run, "small") if "recorded no reason" in line)
    assert "job big of the same queue waits" in line


def test_a_backoff_after_a_time_out_is_not_explained_by_another_job(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """The eviction itself says how long the job stays out of its queue."""
    trace = write_trace(
        *({"job_id": name, "queue": "a", "request.cpu": 4000, "duration": 7200} for name in ("x", "y", "z"))
    )
    run = replayed(trace, queues({"a": {"cpu": "12"}}, nodes=1), tmp_path, plugin="kueue-classic")
    told = list(lines(run, "z"))
    assert any("it stays out of its queue for 1m00s" in line for line in told)
    assert not any("recorded no reason" in line for line in told)


def test_who_waits_behind_a_job_that_can_never_start_is_told_so(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """In a StrictFIFO queue it stays first: of two the one of higher priority, though it came later."""
    trace = write_trace(
        {"job_id": "large", "queue": "a", "request.cpu": 3000},
        {"job_id": "larger", "queue": "a", "request.cpu": 4000, "priority": 5},
        {"job_id": "small", "queue": "a", "request.cpu": 1000},
        {"job_id": "other", "queue": "b", "request.cpu": 1000, "duration": 3600},
    )
    manifests = [*yaml.safe_load_all(queues(TWO, limits={"a": ("0", None)}))]
    for each in manifests:
        if each["kind"] == "ClusterQueue":
            each["spec"]["queueingStrategy"] = "StrictFIFO"
    run = replayed(trace, yaml.safe_dump_all(manifests), tmp_path, plugin="kueue-classic")
    (line,) = (line for line in lines(run, "small") if "recorded no reason" in line)
    assert "own wait; job larger of the same queue is rejected for good: no flavor" in line


def test_a_wait_for_a_place_says_which_level_has_how_much_room_where(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Two racks of one node of 2 cores each: quota for one of 4 cores is free, half of it in either rack."""
    cluster = [
        ("harness/v1", "NodePool", f"n{number}", {"count": 1, "template": template})
        for number in range(2)
        for template in [{"allocatable": {"cpu": 2}, "metadata": {"labels": {"rack": f"r{number}"}}}]
    ]
    kueue = "kueue.x-k8s.io/v1beta2"
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    cores = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": cores}]
    cluster += [
        (kueue, "Topology", "t", {"levels": levels}),
        (kueue, "ResourceFlavor", "f", {"topologyName": "t"}),
        (kueue, "ClusterQueue", "q", {"namespaceSelector": {}, "resourceGroups": groups}),
    ]
    manifests = "\n".join(
        json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
        for version, kind, name, spec in cluster
    )
    trace = write_trace(
        *({"job_id": f"a{number}", "queue": "q", "request.cpu": 1500} for number in range(2)),
        {
            "job_id": "b",
            "queue": "q",
            "pods": 2,
            "request.cpu": 500,
            "topology_required": "rack",
            "submit_time": 1,
        },
    )
    run = replayed(trace, manifests, tmp_path, plugin="kueue-classic")
    (line,) = (line for line in lines(run, "b") if " waits " in line)
    assert (
        "it requests 1 cpu; pod set main requests 2 pods in one rack of flavor f; most free: 1 in rack r0, "
        in line
    )
    assert "q used 3 of 4 cpu" in line


def test_a_node_that_fails_tells_its_pods_and_which_node_takes_its_place(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Kueue marks the job, and a second later its pods have another node; of the second one there is none."""
    kueue = "kueue.x-k8s.io/v1beta2"
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    cores = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 9}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": cores}]
    named = ((name, {"kubernetes.io/hostname": name}) for name in ("n-0", "n-1"))
    documents: list[dict[str, object]] = [
        *(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": {"cpu": 2}},
            }
            for name, labels in named
        ),
        *(
            {"apiVersion": kueue, "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, name, spec in (
                ("Topology", "t", {"levels": levels}),
                ("ResourceFlavor", "f", {"topologyName": "t"}),
                ("ClusterQueue", "q", {"namespaceSelector": {}, "resourceGroups": groups}),
            )
        ),
        *(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "annotations": {"harness/from": since}},
                "$patch": "delete",
            }
            for name, since in (("n-0", "10s"), ("n-1", "20s"))
        ),
    ]
    trace = write_trace({"job_id": "a", "queue": "q", "pods": 2, "request.cpu": 1000, "duration": 60})
    run = replayed(trace, "\n---\n".join(map(json.dumps, documents)), tmp_path, plugin="kueue-classic")
    said = "\n".join(lines(run, "a"))
    assert "node n-0 failed: its pods need other nodes" in said
    assert "node n-0 failed (DeletionByPodGC); all 2 pods were there" in said
    assert "node n-0 failed; replaced by n-1\n" in said
    assert "evicted (NodeFailures): 2 pods; node n-1 failed: there is no other place for its pods" in said


def test_an_instant_of_a_job_tells_its_state_and_its_chapter(kueue: Run) -> None:
    """At 70 s it is leaving."""
    told = lines(kueue, "theirs", at="70s")
    assert "  at 0d 00:01:10 it was terminating after a preemption" in told
    assert any("preempted by" in line for line in told)
    assert not any("finished" in line for line in told[4:])


@pytest.mark.parametrize("asked", [{"job": "mine"}, {"queue": "a"}, {"at": "65s"}])
def test_what_is_explained_can_be_printed(asked: dict[str, str], kueue: Run) -> None:
    """In Python as by the command, of a run or of its folder."""
    found = harness.explain(kueue, **asked)
    assert str(found) == found.text() == harness.explain(str(kueue.path), **asked).text()


def test_an_instant_tells_levels_waiting_jobs_and_the_last_decisions(kueue: Run) -> None:
    """Of all queues, or of one."""
    text = "\n".join(lines(kueue, at="65s"))
    assert "\n1 job held nothing (longest wait first)\n" in text
    assert "at 0d 00:01:05" in text
    assert "mine since 0d 00:01:00 (5s)" in text
    assert "job theirs of queue b: preempted by job mine of queue a" in text
    assert "mine since" not in "\n".join(lines(kueue, queue="b", at="65s"))


def test_a_queue_is_what_jobs_name_and_its_quotas_stand_beside_it(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """One LocalQueue name in two namespaces is shown with each; a ClusterQueue is no queue."""
    rows = [
        {"queue": "door", "namespace": namespace, "request.cpu": 2000, "duration": 60}
        for namespace in ("left", "right")
    ]
    doors = local_queue("left", "door", "a") + local_queue("right", "door", "b")
    run = replayed(write_trace(*rows), queues(TWO) + doors, tmp_path, plugin="kueue-classic")
    text = "\n".join(lines(run, queue="door", at="5s"))
    assert "left/door" in text
    assert "right/door" in text
    with pytest.raises(RunError, match="no jobs of queue 'b'") as error:
        lines(run, queue="b")
    assert error.value.hint == "b is a quota; jobs of right/door count against it"


def test_a_queue_of_which_labels_name_quotas_stands_with_each_of_them(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """What is held, and of which quota, is told apart as in the timeline."""
    label = "quota.scheduling.koordinator.sh/name"
    rows = [
        {"queue": "door", "request.cpu": cores, "labels": [{"key": label, "value": name}] if name else []}
        for name, cores in (("a", 1000), ("b", 1500), ("", 500))
    ]
    tree = quota_tree({"a": {"cpu": "2"}, "b": {"cpu": "2"}}, {"cpu": "4", "memory": "8Gi"})
    run = replayed(write_trace(*rows), queues({}, nodes=1) + tree, tmp_path, plugin="elasticquota")
    rows_of = [line.split()[:4] for line in lines(run, queue="door", at="5s") if line.startswith("default/")]
    assert rows_of == [
        ["default/door", "cpu", "500m", "-"],
        ["default/door/a", "cpu", "1", "2"],
        ["default/door/b", "cpu", "1500m", "2"],
    ]


def test_pods_that_nobody_preempted_are_not_counted_as_preempted(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Two of four pods are revoked at once, because another quota asks for its half."""
    rows = [
        {"job_id": "a", "queue": "a", "pods": 4, "duration": 3600},
        {"job_id": "b", "queue": "b", "request.cpu": 2000, "submit_time": 10, "duration": 3600},
    ]
    tree = quota_tree({"a": {"cpu": "1"}, "b": {"cpu": "1"}}, {"cpu": "4", "memory": "8Gi"})
    run = replayed(
        write_trace(*rows),
        queues({}, nodes=1) + tree,
        tmp_path,
        plugin="elasticquota",
        options={"semantics": "koordinator"},
    )
    told = lines(run, "a")
    assert "was evicted 2 times and lost" in told[2]
    assert any("evicted (QuotaOveruse): 2 pods" in line for line in told)


def test_what_koordinators_quotas_may_use_is_told_where_they_refuse_and_revoke(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Their runtime: each has half of what there is, which is less than its job asks for."""
    rows = [
        {"job_id": name, "queue": name, "request.cpu": 300, "submit_time": at, "duration": 3600}
        for name, at in (("a", 0), ("b", 10))
    ]
    tree = quota_tree({"a": {"cpu": "1m"}, "b": {"cpu": "1m"}}, {"cpu": "500m", "memory": "8Gi"})
    options = {"semantics": "koordinator"}
    run = replayed(
        write_trace(*rows), queues({}, nodes=1) + tree, tmp_path, plugin="elasticquota", options=options
    )
    (refused,) = (line for line in lines(run, "b") if "waits" in line and "Unschedulable" in line)
    assert "b used 0 of 1m cpu (runtime 250m cpu, at most 500m cpu)" in refused
    (revoked,) = (line for line in lines(run, "a") if "QuotaOveruse" in line)
    assert (
        "a used 300m of 1m cpu (runtime 250m cpu, at most 500m cpu); quota a has used more than its"
        in revoked
    )
    total = "\n".join(lines(run, queue="a"))
    assert "1 was evicted, once in total (1 without a preemptor), and lost " in total


def test_a_queue_tells_who_preempted_it_and_which_jobs_lost(kueue: Run) -> None:
    """Over the whole run."""
    text = "\n".join(lines(kueue, queue="b"))
    assert "1 was preempted, once in total, and lost 1m00s of work" in text
    assert "InCohortReclamation" in text
    assert "theirs" in text
    json.dumps(harness.explain(kueue, queue="b").to_json())


@pytest.mark.parametrize(
    ("until", "told"),
    [
        ("5s", "fewer than half of them started; 6 had not started by the end of the run"),
        ("15s", "first start within 10s for half of them; 4 had not started by the end of the run"),
        ("1d", "first start within 10s for half of them, 30s for 95 of 100, 30s for all"),
    ],
)
def test_first_starts_of_a_queue_are_of_jobs_that_started(
    until: str, told: str, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Of 8 jobs that run two at a time; what was rejected counts nowhere."""
    asks = {"request.cpu": 3000}
    large = {"request.cpu": 5000}
    trace = write_trace(
        *({"queue": "a", **asks} for _ in range(8)), {"queue": "a", **large}, {"queue": "b", **large}
    )
    cluster = queues({"a": {"cpu": "9"}, "b": {"cpu": "9"}}, nodes=2)
    run = replayed(trace, cluster, tmp_path, until=until)
    assert lines(run, queue="a")[1] == f"  {told}"
    assert lines(run, queue="b")[:2] == ["queue b: 1 job (1 rejected)", "  none of them started"]


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ({"job": "their"}, "the run has no job 'their'", "theirs"),
        ({"queue": "bb"}, "the run has no jobs of queue 'bb'", "b"),
        ({}, "there is nothing to explain", "--queue"),
        ({"job": "mine", "queue": "a"}, "not both", ""),
    ],
)
def test_what_a_run_does_not_know_is_an_error_with_what_was_probably_meant(
    asked: Mapping[str, str], message: str, hint: str, kueue: Run
) -> None:
    """Close matches are named."""
    with pytest.raises(RunError, match=message) as error:
        harness.explain(kueue, **asked)
    assert hint in (error.value.hint or "")


def test_a_job_is_found_by_its_id_in_another_system(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Its own id comes first, and the text has both; an id of several jobs is refused with their own ids."""
    ids = {"7": "4_0", "8": "4_1", "9": "7", "10": "4_1", "11": None}
    rows = [{"job_id": job, "slurm_job_id": other, "queue": "a"} for job, other in ids.items()]
    run = replayed(write_trace(*rows), queues(TWO), tmp_path)
    assert lines(run, "4_0")[0].startswith("job 7 (slurm_job_id 4_0) of queue a: ")
    assert lines(run, "7") == lines(run, "4_0")
    assert lines(run, "11")[0].startswith("job 11 of queue a: ")
    with pytest.raises(RunError, match="'4_1' is the slurm_job_id of 2 jobs") as error:
        harness.explain(run, "4_1")
    assert error.value.hint == "there is: 8, 10"
    with pytest.raises(RunError, match="the run has no job '4_9'") as error:
        harness.explain(run, "4_9")
    assert "'4_0'" in (error.value.hint or "")


def test_a_pattern_that_stands_for_several_runs_names_them(
    kueue: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command to type; a shell hands them all over, with the job behind them."""
    other = harness.replay(
        tmp_path / "trace.parquet",
        cluster=tmp_path / "cluster.yaml",
        output=tmp_path / "results",
        plugin="kueue-classic",
        until="70s",
    )
    assert called(["explain", str(kueue.path), "mine"]) == 0
    assert capsys.readouterr().out.startswith("job mine of queue a")
    for rest in ([], ["mine"]):
        assert called(["explain", str(kueue.path), str(other.path), *rest]) == 2
        err = " ".join(capsys.readouterr().err.split())
        assert "explain accepts one run, but these are 2, the latest first:" in err
        assert f"{kueue.path}: made in Python" in err
        assert f"name one of them: {' '.join(['harness explain', str(other.path), *rest])}" in err
    assert called(["explain", str(kueue.path), "mine", "theirs"]) == 2
    assert "unexpected extra argument (theirs)" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["yesterday", "1:2", "1d 02:03", "::"])
def test_what_is_no_time_is_an_error_that_shows_one(text: str, kueue: Run) -> None:
    """As the run writes it, and as a duration."""
    with pytest.raises(InputError, match="is not a time of this run") as error:
        harness.explain(kueue, at=text)
    assert "30d12h" in (error.value.hint or "")


@pytest.mark.parametrize("asked", [{"job": 5}, {"queue": 5}, {"at": 5.5}, {"at": True}, {"job": ["mine"]}])
def test_an_argument_of_another_type_is_an_error_in_words(asked: dict[str, Any], kueue: Run) -> None:
    """Polars would refuse a number as a job's id in its own words."""
    with pytest.raises(OptionError, match=f"{next(iter(asked))} must be a .*, not a value of type"):
        harness.explain(kueue, **asked)


@pytest.mark.parametrize("time", [0, 1, 999_999, 61_000_000, 86_400_000_000 * 40 + 5])
def test_a_time_that_was_written_is_read_again(time: int, kueue: Run) -> None:
    """To the microsecond."""
    clock = Clock(kueue)
    assert clock.parse(clock.text(time)) == time


@pytest.fixture
def windowed(kueue: Run, tmp_path: Path) -> Run:
    """The second day of a trace of durations: `first` of the day before is not in it."""
    day = 24 * 3600
    frame = pl.read_parquet(tmp_path / "trace.parquet")
    later = frame.with_columns(pl.col("submit_time") + pl.duration(days=1, hours=2))
    first = frame.head(1).with_columns(job_id=pl.lit("first"))
    pl.concat([first, later]).write_parquet(tmp_path / "days.parquet")
    calibration = Calibration.parse(window=f"{day}s..")
    return replayed(
        tmp_path / "days.parquet", queues(TWO), tmp_path, plugin="kueue-classic", calibration=calibration
    )


def test_times_of_a_window_of_durations_are_those_of_its_tables(windowed: Run) -> None:
    """In sentences, and in what is asked for in either form; not since the window's beginning."""
    assert windowed.info["trace"]["origin_us"] == 26 * 3600 * 1_000_000
    (submitted,) = windowed.jobs.filter(job_id="mine")["submit_time"]
    assert submitted == timedelta(days=1, hours=2, minutes=1)
    assert any(line.startswith("1d 02:01:00  submitted") for line in lines(windowed, "mine"))
    told = lines(windowed, at="1d 02:01:05")
    assert told == lines(windowed, at="1d2h65s") == lines(windowed, at=65_000_000)
    assert told[0] == "at 1d 02:01:05"
    assert any("mine since 1d 02:01:00 (5s)" in line for line in told)
    clock = Clock(windowed)
    for time in (0, 1, 65_000_000):
        assert clock.parse(clock.text(time)) == time
    part = part_of(windowed, "1d2h10s", "1d 02:00:20")
    assert part == (10_000_000, 20_000_000)


@pytest.mark.parametrize("asked", [{}, {"queue": "a"}, {"job": "mine"}])
def test_an_instant_that_the_run_does_not_cover_is_refused(
    asked: Mapping[str, str], kueue: Run, windowed: Run, tmp_path: Path
) -> None:
    """After its end, also where it was cut short, and before its clock begins; with when it goes."""
    cut = replayed(tmp_path / "trace.parquet", queues(TWO), tmp_path, plugin="kueue-classic", until="70s")
    end = kueue.window.end
    for run, at, told in [
        (cut, "10d", "10d: it lasts from 0d 00:00:00 to 0d 00:01:10"),
        (cut, 70_000_001, "70000001 microseconds: it lasts from 0d 00:00:00 to 0d 00:01:10"),
        (kueue, end + 1, f"{end + 1} microseconds: it lasts from 0d 00:00:00 to "),
        (kueue, -1, "-1 microseconds: it lasts from 0d 00:00:00 to "),
        (windowed, "12h", "12h: it lasts from 1d 02:00:00 to 1d 02:0"),
    ]:
        with pytest.raises(RunError, match=f"the run has no time {re.escape(told)}"):
            harness.explain(run, at=at, **asked)
    for run, at in ((cut, "70s"), (cut, 0), (kueue, end), (windowed, "1d 02:00:00")):
        assert harness.explain(run, at=at, **asked).text()


def test_an_instant_before_the_first_submission_tells_that_there_was_none(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Simulated time begins before it in a trace of durations."""
    run = replayed(write_trace({"queue": "a", "submit_time": 60}), queues(TWO), tmp_path)
    assert lines(run, at="30s") == ["at 0d 00:00:30: nothing had been submitted"]
    assert "  at 0d 00:00:30 it had not been submitted yet" in lines(run, "j0", at="30s")


def test_durations_count_from_the_window_where_a_run_has_timestamps(windowed: Run, tmp_path: Path) -> None:
    """Its tables have none that they could count as."""
    frame = pl.read_parquet(tmp_path / "days.parquet")
    midnight = pl.datetime(2024, 5, 1, time_unit="us")
    dated = frame.with_columns(submit_time=midnight + pl.col("submit_time"))
    dated.write_parquet(tmp_path / "dated.parquet")
    run = replayed(
        tmp_path / "dated.parquet",
        queues(TWO),
        tmp_path,
        plugin="kueue-classic",
        calibration=Calibration.parse(window="1d.."),
    )
    assert lines(run, at="65s") == lines(run, at="2024-05-02 02:01:05")
    assert lines(run, at="65s")[0] == "at 2024-05-02 02:01:05"


@pytest.fixture
def in_berlin(kueue: Run, tmp_path: Path) -> Run:
    """In the night in which clocks are put back from 3 to 2 o'clock; it begins at 2:59:30 summer time."""
    frame = pl.read_parquet(tmp_path / "trace.parquet")
    evening = pl.datetime(2024, 10, 27, 0, 59, 30, time_unit="us", time_zone="UTC")
    zoned = (evening + pl.col("submit_time")).dt.convert_time_zone("Europe/Berlin")
    frame.with_columns(submit_time=zoned).write_parquet(tmp_path / "zoned.parquet")
    return replayed(tmp_path / "zoned.parquet", queues(TWO), tmp_path, plugin="kueue-classic")


def test_timestamps_are_in_the_time_zone_of_the_trace(in_berlin: Run) -> None:
    """As in its tables, with the offset, by which two of its times of one name are told apart."""
    told = lines(in_berlin, "mine")
    assert told[4].startswith("2024-10-27 02:00:30+01:00  submitted to queue a")
    assert f"{in_berlin.jobs.row(1, named=True)['submit_time']}" == "2024-10-27 02:00:30+01:00"
    assert lines(in_berlin, at="10s")[0] == "at 2024-10-27 02:59:40+02:00"
    assert lines(in_berlin, at="2024-10-27 02:59:40") == lines(in_berlin, at="10s")
    assert lines(in_berlin, at="2024-10-27T00:59:40Z") == lines(in_berlin, at="10s")
    clock = Clock(in_berlin)
    for time in (0, 1, 10_000_000, 61_000_000):
        assert clock.parse(clock.text(time)) == time
    assert part_of(in_berlin, "2024-10-27 02:59:40", "2024-10-27 02:00:30+01:00") == (10_000_000, 60_000_000)


class Terse:
    """A third party's policy: it refuses all jobs once, preempts the first for the second, tells little."""

    def __init__(self, *_: Any) -> None:
        self.waiting: list[Job] = []
        self.running: list[Job] = []

    def submit(self, job: Job, pods: range, now: int) -> None:
        self.waiting.append(job)

    def release(self, job: Job, pods: range, now: int, why: Why) -> None:
        if job in self.running:
            self.running.remove(job)

    def cycle(self, now: int) -> Iterator[Decision]:
        if self.waiting and self.running:
            detail = {
                "quota": "mine",
                "usage": 7,
                "request": {"cpu": "many"},
                "pool": {},
                "share": [1],
                "x": None,
            }
            yield Refuse(self.waiting[0], "", detail)
            if len(self.waiting) == 1 and now:
                yield Preempt(self.running[0], self.waiting[0], "MyRule", detail=detail)
        if self.waiting and not self.running:
            self.running.append(self.waiting.pop(0))
            yield Admit(self.running[0])


def test_fields_of_another_form_are_passed_over(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A third party may call what it likes `quota`: nothing breaks, and nothing is invented."""
    trace = write_trace({"job_id": "one", "duration": 9}, {"job_id": "two", "submit_time": 3})
    run = replayed(trace, queues({"default": {"cpu": "1"}}), tmp_path, plugin=Terse)
    told = lines(run, "one")
    assert any(
        "preempted by job two of queue default (MyRule): 1 pod; it had run for 3s" in each for each in told
    )
    assert any(each.endswith("  waits") for each in lines(run, "two"))
    assert not any("None" in each or "many" in each for each in told)


def test_names_from_a_trace_cannot_steer_a_terminal(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Control characters are replaced; markup stays the text that it is."""
    bad = "<script>\x1b[31m"
    trace = write_trace(
        {"job_id": "j\x1b[2J", "queue": bad, "request.cpu": 4000, "duration": 90},
        {"job_id": "k", "queue": bad, "request.cpu": 4000, "duration": 90},
    )
    run = harness.replay(trace, output=tmp_path / "results")
    for told in (
        lines(run, "j\x1b[2J"),
        lines(run, queue=bad),
        lines(run, at="1s"),
        lines(run, queue=bad, at=0),
    ):
        text = "\n".join(told)
        assert "\x1b" not in text
        assert "<script>" in text


def test_a_label_is_a_resource_or_a_resource_of_a_flavor() -> None:
    """Names of resources may have a slash themselves."""
    units = Units(["cpu", "nvidia.com/gpu"])
    assert units.named("gpu/nvidia.com/gpu", 3) == "3 nvidia.com/gpu"
    assert units.named("nvidia.com/gpu", 3) == "3 nvidia.com/gpu"
    assert units.named("spot/cpu", 1500) == "1500m cpu"
    assert units.named("other/thing", 2) == "2 other/thing"
    units = Units(["pods"], flavors=True)
    assert [units.named("f/pods", amount) for amount in (1, 2)] == ["1 pod of f", "2 pods of f"]


def test_a_detail_that_is_no_object_says_nothing() -> None:
    """Whatever a policy wrote."""
    assert read(None) == read("[1]") == read('{"round": true, "nodes": {"a": 3}}')


def test_a_pod_group_that_is_placed_in_part_is_told_with_those_that_wait(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    """Two of three pods fit, and two are enough; the last one is placed by itself."""
    labels = [{"key": "pod-group.scheduling.sigs.k8s.io/name", "value": "g"}]
    labels.append({"key": "pod-group.scheduling.sigs.k8s.io/min-available", "value": "2"})
    group = {"job_id": "group", "pods": 3, "gang": False, "labels": labels}
    trace = write_trace({"job_id": "other", "pods": 1, "gang": False, "labels": []}, group)
    nodes = (
        "{apiVersion: harness/v1, kind: NodePool, metadata: {name: node}, "
        'spec: {count: 3, template: {allocatable: {cpu: "1", pods: 9}}}}'
    )
    run = replayed(trace, nodes, tmp_path, plugin="none", options={"gang": "all-or-nothing"})
    told = [line.split("  ")[1] for line in lines(run, "group") if "bound" in line]
    assert told == [
        "2 pods bound to node-1 (1), node-2 (1), 2 of its group together while 1 more wait",
        "1 pod bound to node-0",
    ]


def test_holders_are_those_of_the_flavor_that_is_short(write_trace: WriteTrace, tmp_path: Path) -> None:
    """All cpu of f is free until b takes it in the same cycle. What a holds of g is another flavor."""
    docs = list(yaml.safe_load_all(queues({"a": {"cpu": "0"}, "b": {"cpu": "2"}})))
    docs.append({**docs[0], "metadata": {"name": "g"}})
    for doc, nominal in zip(docs[1:3], ("1", "1"), strict=True):
        own = {"name": "g", "resources": [{"name": "cpu", "nominalQuota": nominal}]}
        doc["spec"]["resourceGroups"][0]["flavors"].append(own)
    trace = write_trace(
        {"job_id": "long", "queue": "b", "request.cpu": 2000, "duration": 50},
        {"job_id": "held", "queue": "a", "request.cpu": 1000, "duration": 90},
        {"job_id": "next", "queue": "b", "request.cpu": 2000, "duration": 90, "submit_time": 1},
        {"job_id": "last", "queue": "a", "request.cpu": 2000, "duration": 90, "submit_time": 2},
    )
    run = replayed(trace, yaml.safe_dump_all(docs), tmp_path, plugin="kueue-classic")
    told = [line for line in lines(run, "last") if " waits (" in line]
    assert "most cpu of f is held by b 2" in told[0]
    later = [line for line in told if "all queues of all used 0 of 2 cpu of f" in line]
    assert later
    assert not any("held by" in line for line in later)
