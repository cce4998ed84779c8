"""`--shake`: twins of every run, made once, and a table in which every change is judged or equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.runs.seal import seal_info

POOL = """
apiVersion: harness/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10}}}}
"""


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Jobs that wait for each other on the node beside them."""
    path = write_trace(*({"submit_time": 60 + 5 * n, "duration": 30, "priority": n % 2} for n in range(20)))
    (path.parent / "trace.cluster.yaml").write_text(POOL)
    return path


def test_one_command_replays_twins_once(harness: Callable, trace: Path) -> None:
    """Asked again nothing is made; finished runs are compared over the same ones."""
    command = ("replay", trace, "-p", "none", "-p", "default-preemption", "--notes")
    first = harness(*command, "--shake", "2")
    assert first.code == 0
    told = "shaking: 4 replays of 2 twins (arrivals ±30s; seed 0); harness stores each replay"
    assert told in first.err
    assert "values: means over 2 twins (arrivals ±30s; seed 0)" in first.out
    assert "its interval excludes 0, and p < 0.05" in first.out or "[95 % interval]" not in first.out
    again = harness(*command, "--shake", "2")
    assert "shaking" not in again.err
    assert "none: 2 twins, none replayed, 2 stored before, kept in results/trace/.twins/none-" in again.err
    assert again.out == first.out
    runs = sorted(Path("results/trace").glob("[a-z]*"))
    assert len(runs) == 2
    compared = harness("compare", *runs, "--baseline", "none", "--shake", "3", "--json")
    assert "2 replays of 3 twins" in compared.err
    document = json.loads(compared.out)
    assert document["twins"] == "3@0,arrivals=30s"
    grounds = {change["ground"] for row in document["metrics"] for change in row["changes"].values()}
    assert grounds <= {"twins", "few"}


def test_without_twins_a_table_says_what_it_does_not_judge(harness: Callable, trace: Path) -> None:
    """In one line, and no sign stands beside a figure of the run as a whole."""
    ended = harness("replay", trace, "-p", "none", "-p", "default-preemption", "--scale-cluster", "1/2")
    assert ended.code == 0
    told = "changes without a sign: one replay of each run cannot separate them from luck; add --shake 10"
    assert ended.out.count(told) == 1
    assert "no chance" not in ended.out
    table = ended.out.split("▲")[0]
    assert not set(table) & set("▼△▽~")


def test_a_shake_that_cannot_be_is_refused_before_anything_is_read(harness: Callable) -> None:
    """Even the trace."""
    refused = (("1", "at least 2"), ("ten", "not understood"), ("5,jitter", "'jitter' cannot be varied"))
    for text, said in refused:
        ended = harness("replay", "absent.parquet", "--shake", text)
        assert ended.code == 2
        assert said in ended.err


def test_priorities_are_shaken_from_what_the_trace_states(harness: Callable, trace: Path) -> None:
    """The command knows the trace before a share of its jobs had them."""
    share = ("--priority-share", "0.3:9@4", "-p", "default-preemption")
    ended = harness("replay", trace, *share, "--shake", "2,arrivals=0s,priorities")
    assert ended.code == 0, ended.err
    twins = list(Path("results/trace/.twins").glob("*/*/run.json"))
    assert len(twins) == 2
    refused = harness("replay", trace, "--shake", "2,priorities")
    assert refused.code == 2
    assert "priorities cannot vary without --priority-share" in refused.err


PATCH = """
kind: NodePool
metadata: {name: pool}
spec: {count: 3}
"""
PRIORITIES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""


def patched(harness: Callable, trace: Path, *options: str) -> list[Path]:
    """Runs with and without a patch, each with two twins."""
    Path("more.yaml").write_text(PATCH)
    ended = harness("replay", trace, "-p", "none", "--patch", "more.yaml", *options, "--shake=2", "-q")
    assert ended.code == 0, ended.err
    return sorted(Path("results/trace").glob("[a-z]*"))


FILES, SCALED = ("--cluster", "pool.yaml,classes.yaml"), ("--scale-cluster", "2")


@pytest.mark.parametrize(
    "clusters",
    [(*FILES, *SCALED), *(pytest.param(each, marks=pytest.mark.slow) for each in ((), FILES, SCALED))],
)
def test_missing_twins_of_a_run_with_a_patch_are_replayed(
    clusters: tuple[str, ...], harness: Callable, trace: Path, folder: Path
) -> None:
    """Its manifests and the patch are read once more, of several files and scaled, too."""
    Path("pool.yaml").write_text(POOL)
    Path("classes.yaml").write_text(PRIORITIES)
    runs = patched(harness, trace, *clusters)
    assert len(runs) == 2
    for command in ("compare", "report"):
        ended = harness(command, *runs, "--shake", "3" if command == "compare" else "4")
        assert ended.code == 0, ended.err
        assert "2 replays of" in ended.err


def test_a_patch_over_what_was_assumed_for_the_trace_is_read_again(
    harness: Callable, trace: Path, folder: Path
) -> None:
    """Where there are no manifests the cluster is made from the trace, and then patched."""
    (trace.parent / "trace.cluster.yaml").unlink()
    patch = "kind: ClusterQueue\nmetadata: {name: default}\nspec: {fairSharing: {weight: 2}}\n"
    Path("weight.yaml").write_text(patch)
    ended = harness("replay", trace, "-p", "none", "--patch", "weight.yaml", "--shake", "2", "-q")
    assert ended.code == 0, ended.err
    runs = sorted(Path("results/trace").glob("[a-z]*"))
    ended = harness("compare", *runs, "--shake", "3")
    assert ended.code == 0, ended.err


def test_a_run_whose_patch_has_changed_says_so_and_how_to_replay_it(
    harness: Callable, trace: Path, folder: Path
) -> None:
    """How many twins there are is said, and the command has one --shake, with the number that is wanted."""
    runs = patched(harness, trace)
    Path("more.yaml").write_text(PATCH.replace("3", "4"))
    ended = harness("compare", *runs, "--shake", "3")
    assert ended.code == 2
    assert "has 2 of 3 twins, and cannot be replayed: the code, the trace, the manifests or the" in ended.err
    command = f"harness replay {trace} -p none --patch more.yaml -q --shake 3"
    told = f"replay the run with this command: {command}\n"
    assert ended.err.endswith(told)


def test_a_run_of_before_its_files_were_kept_says_so(harness: Callable, trace: Path, folder: Path) -> None:
    """What it was called then is no file."""
    runs = patched(harness, trace)
    for run in runs:
        info = json.loads((run / "run.json").read_text())
        del info["provenance"]["cluster_files"], info["provenance"]["sha256"]
        (run / "run.json").write_text(json.dumps(seal_info(info)))
    ended = harness("compare", *runs, "--shake", "3")
    assert ended.code == 2
    called = f"({trace.parent}/trace.cluster.yaml with more.yaml)"
    assert f"it does not say which files its cluster was read from {called}" in ended.err


@pytest.mark.parametrize("command", ["compare", "report"])
def test_runs_of_other_jobs_are_refused_before_their_twins_are_made(
    command: str, harness: Callable, trace: Path
) -> None:
    """One ends before all jobs have arrived."""
    assert harness("replay", trace, "-p", "none", "-q").code == 0
    assert harness("replay", trace, "-p", "none@cut", "--until", "100s", "-q").code == 0
    ended = harness(command, *sorted(Path("results/trace").glob("[a-z]*")), "--shake", "2")
    assert ended.code == 2
    assert "twins can be compared only if all runs have the same jobs" in ended.err
    assert "shaking" not in ended.err
    assert not Path("results/trace/.twins").exists()
