"""Whether jobs had something, held against the spans in which their pods held resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from older_runs import as_schema_2
from policies import AtRandom, PodByPod, scripted
from small_clusters import queues

import harness
from harness import Cluster, View
from harness.analysis.explanation.clock import Clock
from harness.analysis.explanation.explain import units_of
from harness.analysis.explanation.histories import Histories
from harness.analysis.explanation.moment import Moment
from harness.runs.run import Run

WriteTrace = Callable[..., Path]
Span = tuple[int, int]
ONE = {"default": {"cpu": "4"}}


class Singly(PodByPod):
    """Preempts pods at random."""

    def __init__(self, cluster: Cluster, view: View, options: Mapping[str, Any]) -> None:
        super().__init__(cluster, view, {"preemptions": 90})


def replayed(trace: Path, nodes: int, folder: Path, plugin: Any, **settings: Any) -> Run:
    (folder / "cluster.yaml").write_text(queues(ONE, nodes=nodes))
    return harness.replay(
        trace, cluster=folder / "cluster.yaml", plugin=plugin, output=folder / "results", **settings
    )


def without_anything(run: Run) -> dict[str, list[Span]]:
    """Job -> the spans in which no pod of it held anything, until its end or the run's; from the stints."""
    held: dict[str, list[Span]] = {}
    for job, start, end in run.micros("stints").select("job_id", "start", "end").collect().iter_rows():
        held.setdefault(job, []).append((start, end))
    found: dict[str, list[Span]] = {}
    for row in run.micros("jobs").collect().iter_rows(named=True):
        since, end = row["submit_time"], row["finish_time"]
        spans = found[row["job_id"]] = []
        for start, until in sorted(held.get(row["job_id"], [])):
            if start > since:
                spans.append((since, start))
            since = max(since, until)
        end = run.window.end if end is None else end
        if since < end:
            spans.append((since, end))
    return found


@pytest.mark.parametrize(
    ("policy", "nodes", "older"),
    [
        pytest.param(Singly, 2, False, id="now"),
        pytest.param(AtRandom, 0, True, id="schema 2"),
        pytest.param(Singly, 2, True, marks=pytest.mark.nightly),
        pytest.param(AtRandom, 0, False, marks=pytest.mark.nightly),
    ],
)
def test_jobs_wait_while_no_pod_of_theirs_holds_anything(
    policy: type, nodes: int, older: bool, write_trace: WriteTrace, tmp_path: Path
) -> None:
    """In all, and at every instant: also where pods come back one by one, and in runs of older versions."""
    trace = write_trace(
        *(
            {
                "pods": 1 + number % 3,
                "gang": number % 2 == 0,
                "submit_time": number,
                "duration": 4 + number % 5,
            }
            | {"grace_period": number % 4}
            for number in range(24)
        )
    )
    run = replayed(trace, nodes, tmp_path, policy, until="90s")
    expected = without_anything(run)
    if older:
        as_schema_2(run.path)
        run = Run.open(run.path)
    units = units_of(run)
    assert sum(len(spans) > 1 for spans in expected.values()) > 5
    for history in Histories(run, units).of(list(expected)):
        assert history.waited == sum(end - start for start, end in expected[history.job["job_id"]])
    for at in range(0, run.window.end, 5_100_000):
        waiting = Moment(run, Clock(run), units, None, at).to_json()["waiting"]
        assert {each["job_id"]: each["since"] for each in waiting} == {
            job: start for job, spans in expected.items() for start, end in spans if start <= at < end
        }


@pytest.fixture
def singly(write_trace: WriteTrace, tmp_path: Path) -> Run:
    """The pods of x run one after the other, from 0 to 10 s and from 20 s on; the second one is preempted."""
    trace = write_trace(
        {"job_id": "x", "pods": 2, "gang": False, "grace_period": 5}, {"job_id": "y", "duration": 60}
    )
    steps = {
        0: [("bind", "x", 0, "n0"), ("bind", "y", 0, "n0")],
        20: [("bind", "x", 1, "n0")],
        25: [("preempt", "x", "y", "Rule", 1)],
        40: [("bind", "x", 1, "n0")],
    }
    return replayed(trace, 1, tmp_path, scripted(steps))


@pytest.mark.parametrize("older", [False, True], ids=["now", "schema 2"])
def test_an_instant_of_pods_bound_one_by_one_is_told_as_it_was(singly: Run, older: bool) -> None:
    """A job holds nodes while one of its pods does, leaves while all of them do, and else waits."""
    if older:
        as_schema_2(singly.path)
        singly = Run.open(singly.path)
    for at, told in {
        "5s": "it held nodes",
        "10s": "it waited",
        "15s": "it waited",
        "22s": "it held nodes",
        "27s": "it was terminating after a preemption",
        "35s": "it waited",
        "45s": "it held nodes",
        "50s": "it was finished",
    }.items():
        head = harness.explain(singly, "x", at=at).text().split("\n")
        assert head[2].startswith("  waited 20s in total")
        assert head[3].endswith(f" {told}"), at
        nothing = f"x since 0d 00:00:{'10' if at in ('10s', '15s') else '30'}" if told == "it waited" else ""
        standing = harness.explain(singly, at=at).text()
        assert nothing in standing if nothing else "held nothing" not in standing


def test_an_instant_of_a_job_without_nodes_is_told_as_it_was(write_trace: WriteTrace, tmp_path: Path) -> None:
    """It runs from its admission, where what it asks for is free, until it is preempted, and leaves then."""
    trace = write_trace({"job_id": "x", "grace_period": 5}, {"job_id": "y", "submit_time": 1})
    steps = {1: [("admit", "x")], 3: [("preempt", "x", "y")], 9: [("admit", "x", {}, 2)]}
    run = replayed(trace, 0, tmp_path, scripted(steps))
    told = [
        harness.explain(run, "x", at=f"{second}s").text().split("\n")[3] for second in (0, 2, 4, 8, 10, 12)
    ]
    assert [line.split(" ", 5)[-1] for line in told] == [
        "it waited",
        "it ran",
        "it was terminating after a preemption",
        "it waited",
        "it held quota",
        "it ran",
    ]
