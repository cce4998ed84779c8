"""A replay that goes nowhere: it is ended, kept, and told of by every command that reads the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
import yaml
from cli_environment import called

from harness.engine import livelock
from harness.runs.run import Run
from harness.studies.experiments.experiment import Experiment

LOWER = {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}}
ROUNDS = ("--set", "evictionLatency=0s", "--grace-period", "4h")
"""Four hours a round: 175 of them are a loop of 30 days."""


@pytest.fixture(scope="module", autouse=True)
def few_rounds_are_a_loop() -> Iterator[None]:
    """tests/engine/test_livelock.py counts the rounds of real loops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(livelock, "ROUNDS", 100)
        yield


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """An object of Kueue's."""
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def queue(name: str, cohort: str, cpu: int, **spec: Any) -> dict[str, Any]:
    """A ClusterQueue with so many cores."""
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    spec |= {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups}
    return kueue("ClusterQueue", name, **spec)


class Replayed(NamedTuple):
    """Where a replay was made, and what it said at the end."""

    folder: Path
    error: str


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """`j1` borrows from far and evicts `j0`, which borrows from near and so takes its quota back first."""
    folder = tmp_path_factory.mktemp("loop")
    manifests = [
        kueue("ResourceFlavor", "f"),
        *(kueue("Cohort", name, parentName="root") for name in ("near", "far")),
        queue("a", "near", 2, preemption=LOWER),
        queue("b", "near", 0),
        queue("c", "far", 1),
    ]
    (folder / "trace.cluster.yaml").write_text(yaml.safe_dump_all(manifests))
    jobs = {"job_id": ["j0", "j1"], "queue": ["b", "a"], "request.cpu": [1000, 3000]}
    times = {"submit_time": pl.Series([0, 5_000_000]), "duration": pl.Series([100_000_000] * 2)}
    pl.DataFrame(
        {
            **jobs,
            **{name: each.cast(pl.Duration("us")) for name, each in times.items()},
            "priority": pl.Series([0, 1], dtype=pl.Int32),
        }
    ).write_parquet(folder / "trace.parquet")
    with chdir(folder), redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        assert called(["replay", "trace.parquet", "-p", "kueue-classic", *ROUNDS]) == 1
    return Replayed(folder, said.getvalue())


@pytest.fixture
def trace(folder: Path, replayed: Replayed) -> Path:
    """The trace of the loop, to replay from nothing."""
    for name in ("trace.parquet", "trace.cluster.yaml"):
        shutil.copy(replayed.folder / name, folder)
    return Path("trace.parquet")


@pytest.fixture
def run(trace: Path, folder: Path, replayed: Replayed) -> Path:
    """The run of it with Kueue, made before."""
    shutil.copytree(replayed.folder / "results", folder / "results")
    (made,) = Path("results/trace").iterdir()
    return made


def test_the_run_is_kept_and_the_exit_code_is_1(harness: Callable, trace: Path) -> None:
    """The table is printed, then what ended the replay, and how to see the loop; the others go on."""
    ended = harness("replay", trace, "-p", "kueue-classic", "-p", "none", *ROUNDS[2:], "--set", ROUNDS[1])
    assert ended.code == 1
    assert "disruption.preemptions" in ended.out
    error, hint = ended.err.splitlines()[-2:]
    assert error.startswith(
        "Error: kueue-classic: the replay was ended at 30d03h after the origin: for 30d03h, no job"
    )
    assert "preemptions brought no progress: job j0 (preempted " in error
    assert "job j1 (preemptor " in error
    explain = hint.partition("to see the loop: harness ")[2].split()
    told = harness(*explain)
    assert told.code == 0
    assert "the replay was ended at 30d 03:" in told.out
    assert "this repeats" in told.out


def test_the_stored_run_is_answered_alike(
    harness: Callable, trace: Path, run: Path, replayed: Replayed
) -> None:
    """With the same error, also where nothing else is to be said; `--json` stays a document."""
    again = harness("replay", trace, "-p", "kueue-classic", *ROUNDS, "--quiet", "--json")
    assert again.code == 1
    assert again.err == "\n".join(replayed.error.splitlines()[-2:]) + "\n"
    (answer,) = json.loads(again.out)["runs"]
    assert answer["stored"]
    assert [job["job"] for job in answer["outcome"]["stopped"]["jobs"]] == ["j0", "j1"]


def test_whatever_reads_the_run_says_so(harness: Callable, run: Path) -> None:
    """A comparison, a report, and explanations of a job, a queue and the end, which needs no question."""
    for command in (
        ("compare", run),
        ("compare", run, "--format", "markdown"),
        ("report", run, "--format", "markdown"),
        ("explain", run, "j1"),
        ("explain", run, "--queue", "b"),
        ("explain", run),
    ):
        ended = harness(*command)
        assert ended.code == 0, command
        assert "the replay was ended at" in ended.out, command
        assert "brought no progress: job j0 (preempted" in ended.out, command
    assert "the replay was ended" not in harness("explain", run, "--at", "4s").out
    opened = Run.open(run)
    assert opened.stopped is not None
    assert opened.stopped.at == opened.window.end
    assert "stopped" in repr(opened)
    told = json.loads(harness("explain", run, "--json").out)
    assert told["stopped"] == json.loads(harness("explain", run, "j0", "--json").out)["stopped"]
    assert told["stopped"] == opened.info["outcome"]["stopped"]


@pytest.mark.parametrize(
    "damage", [5, {}, {"since_us": 0, "at_us": 1, "preemptions": 2, "jobs": [{"job": "j0", "preempted": 1}]}]
)
def test_a_damaged_account_of_it_is_found_out(harness: Callable, run: Path, damage: object) -> None:
    """As any other damage of `run.json`."""
    damaged(run, damage)
    ended = harness("compare", run)
    assert ended.code == 2
    assert "outcome.stopped does not describe a livelock" in ended.err


def test_the_next_replay_puts_it_right(harness: Callable, trace: Path, run: Path) -> None:
    """As with any other damaged run."""
    damaged(run, 5)
    assert harness("replay", trace, "-p", "kueue-classic", *ROUNDS).code == 1
    assert harness("compare", run).code == 0


def damaged(run: Path, stopped: object) -> None:
    """Have a run say something else of what ended it."""
    info = json.loads((run / "run.json").read_text())
    info["outcome"]["stopped"] = stopped
    (run / "run.json").write_text(json.dumps(info))


def test_an_experiment_names_the_items_that_went_nowhere(harness: Callable, trace: Path) -> None:
    """In the sweep, what is shown of it and its report: their figures are not of all jobs."""
    spec = {
        "experiment": "loop",
        "trace": str(trace),
        "plugins": [{"kueue-classic": {"evictionLatency": "0s"}}, "none"],
        "settings": {"grace-period": "4h"},
        "metrics": ["waiting"],
    }
    Path("loop.yaml").write_text(yaml.safe_dump(spec))
    ended = harness("sweep", "loop.yaml", "--workers", "1", "-o", "kept")
    assert ended.code == 0
    told = "item 0 was ended because the replay made no progress: these figures do not cover all jobs"
    assert told in ended.err
    assert told in harness("experiment", "show", "kept/loop", "--objective", "wait.first_start.p95").out
    page = harness(
        "experiment", "report", "kept/loop", "--objective", "wait.first_start.p95", "--format", "markdown"
    )
    assert told[1:] in page.out
    found = Experiment.open("kept/loop")
    assert found.stopped == [0]
    assert found.about(found.items["key"][1])["stopped"] == ""


def test_an_ended_replay_is_no_error_in_python(trace: Path) -> None:
    """The run says it."""
    import harness as package

    run = package.replay(trace, plugin="kueue-classic", options={"evictionLatency": "0s"}, grace_period="4h")
    assert run.stopped is not None
    assert {party.job for party in run.stopped.jobs} == {"j0", "j1"}
    calm = package.replay(trace, plugin="none")
    assert calm.stopped is None
    assert "stopped" not in calm.info["outcome"]
