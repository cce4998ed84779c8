"""Commands that accept one run or two: what they say if a pattern of the shell stands for more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import harness as library


@pytest.fixture
def runs(write_trace: Callable[..., Path], folder: Path) -> list[str]:
    """Three runs of one job, the latest first."""
    trace = write_trace({"submit_time": 60})
    made = [library.replay(trace, output="results", until=f"{days}d").path for days in (1, 2, 3)]
    return [str(path) for path in reversed(made)]


@pytest.mark.parametrize(
    ("command", "number", "rest"),
    [
        (["diff"], "two", []),
        (["explain"], "one", ["job-1"]),
        (["export", "--format", "perfetto"], "one", []),
        (["trace", "from-run"], "one", ["out.parquet"]),
    ],
)
def test_more_runs_than_a_command_accepts_are_listed(
    harness: Callable, runs: list[str], command: list[str], number: str, rest: list[str]
) -> None:
    """With what made them, and the command to type."""
    ended = harness(*command, *runs, *rest)
    assert (ended.code, ended.out) == (2, "")
    said = " ".join(ended.err.split())
    assert (
        f"accepts {number} run{'s' * (number == 'two')}, but these are 3, the latest first: {runs[0]}: made"
        in said
    )
    assert f"name {number} of them: harness" in said
    assert said.endswith(" ".join([*sorted(runs[: len(runs) - 1 if number == "two" else 1]), *rest]))


def test_a_run_that_several_patterns_stand_for_counts_once(harness: Callable, runs: list[str]) -> None:
    """`diff results/a-* results/*-b` may give the two runs twice."""
    assert harness("diff", *runs[:2], *runs[:2]).code == 0
    assert "these are 3" in harness("diff", *runs, *runs).err
    assert "accepts two runs, but this is only one" in harness("diff", *runs[:1] * 3).err
    assert f"{runs[0]} is given twice" in harness("diff", runs[0], runs[0]).err


def test_a_missing_or_further_argument_is_named(harness: Callable, runs: list[str]) -> None:
    """In the words of other commands."""
    assert "diff accepts two runs, but this is only one" in harness("diff", runs[0]).err
    assert "unexpected extra argument (more)" in harness("diff", *runs[:2], "more").err
    assert (
        "unexpected extra argument (b.parquet)"
        in harness("trace", "from-run", runs[0], "a.parquet", "b.parquet").err
    )
    assert "nothing: there is no such folder" in harness("diff", "nothing", runs[0]).err
