"""`harness trace generate`, as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

SPEC = """
jobs: 50
tenants:
- queue: q
  arrivals: {poisson: {rate: 60/h}}
  jobs: [{duration: 1m, requests: {cpu: 1}}]
"""
KUEUE = """
cohorts:
- className: c
  count: 1
  queuesSets:
  - className: cq
    count: 1
    nominalQuota: 2
    workloadsSets:
    - count: 4
      creationIntervalMs: 100
      workloads: [{className: small, runtimeMs: 200, priority: 50, request: 1}]
"""


@pytest.fixture
def spec(folder: Path) -> Path:
    (folder / "spec.yaml").write_text(SPEC)
    return Path("spec.yaml")


def test_equal_calls_write_equal_bytes(harness: Callable, spec: Path) -> None:
    """The file is a function of specification and seed; it says both."""
    for name, seed in (("a.parquet", 3), ("b.parquet", 3), ("c.parquet", 4)):
        ended = harness("trace", "generate", spec, "-o", name, "--seed", seed)
        assert (ended.code, ended.out) == (0, f"50 rows written to {name}\n")
    a, b, c = (Path(f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b != c
    assert "source: generated from spec.yaml (sha256 " in harness("trace", "info", "a.parquet").out


def test_bounds_of_the_call_stand_above_those_of_the_file(harness: Callable, spec: Path) -> None:
    """Fewer jobs, or a shorter time."""
    harness("trace", "generate", spec, "-o", "a.parquet", "--jobs", 7)
    assert pl.read_parquet("a.parquet").height == 7
    harness("trace", "generate", spec, "-o", "a.parquet", "--span", "10m")
    assert pl.read_parquet("a.parquet")["submit_time"].max().total_seconds() < 600


def test_queues_of_kueues_files_are_written_beside(harness: Callable, folder: Path) -> None:
    """A replay of the trace finds them by itself."""
    (folder / "generator.yaml").write_text(KUEUE)
    made = harness("trace", "generate", "generator.yaml", "-o", "perf.parquet")
    assert made.out == "its queues are in perf.cluster.yaml\n4 rows written to perf.parquet\n"
    replayed = harness("replay", "perf.parquet", "-p", "kueue-classic")
    assert replayed.code == 0
    assert "cluster: perf.cluster.yaml" in replayed.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give either a specification or --fit TRACE"),
        (("spec.yaml", "--fit", "t.parquet"), "give either"),
        (("none.yaml",), "none.yaml: cannot be read: No such file"),
        (("bad.yaml",), "bad.yaml: 2 faults\n  jobs: must be a whole number, not 'x'\n  tenants: is missing"),
        (("spec.yaml", "--span", "1us"), "no job is submitted in that time"),
        (("spec.yaml", "--span", "0"), "--span: 0 is not a time span longer than 0"),
        (("spec.yaml", "--span", "soon"), "--span: 'soon' is not a duration"),
        (("--fit", "none.parquet"), "none.parquet: there is no such file"),
    ],
)
def test_what_cannot_be_made_is_said(
    harness: Callable, spec: Path, folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    """The exit code is 2, and nothing is left behind."""
    (folder / "bad.yaml").write_text("jobs: x\n")
    ended = harness("trace", "generate", *arguments, "-o", "out.parquet")
    assert ended.code == 2
    assert says in ended.err
    assert sorted(path.name for path in folder.iterdir()) == ["bad.yaml", "spec.yaml"]


def test_a_folder_that_is_not_there_is_said(harness: Callable, spec: Path) -> None:
    """Before anything is made."""
    ended = harness("trace", "generate", spec, "-o", "nowhere/out.parquet")
    assert (ended.code, ended.err) == (
        2,
        "Error: nowhere/out.parquet cannot be written: there is no folder nowhere\n",
    )


def test_more_jobs_than_a_trace_holds_are_refused(harness: Callable, spec: Path) -> None:
    """A number that no machine counts to is an error of the call, with nothing written."""
    ended = harness("trace", "generate", spec, "-o", "a.parquet", "--jobs", 10**30)
    assert (ended.code, "a trace can have at most 1,000,000,000 jobs" in ended.err) == (2, True)
    assert not Path("a.parquet").exists()
