"""`harness bench`: runs go on where they were, tables show them, and forged submissions are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from cli_environment import called
from small_suites import written

from harness.runs.seal import seal_info

MINE = "results/bench/small/default-preemption"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small suite, in which a policy was run."""
    place = tmp_path_factory.mktemp("bench")
    written(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        line = ["bench", "run", "--suite", "small.yaml", "-p", "default-preemption", "-q", "--workers", "1"]
        assert called(line) == 0
    return place


@pytest.fixture
def copied(made: Path, folder: Path) -> Path:
    """A copy of it that may be changed."""
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


def test_what_is_there_is_not_replayed_again(copied: Path, harness: Callable) -> None:
    """The same command goes on where it was; the table shows all policies."""
    ended = harness("bench", "run", "--suite", "small.yaml", "-p", "default-preemption", "--workers", "1")
    assert "0.0 CPU-s of replays" in ended.err
    for name in ("morning", "none", "kueue-classic", "default-preemption", "first rank"):
        assert name in ended.out
    table = json.loads(harness("bench", "table", "--suite", "small.yaml", "--format", "json").out)
    policies = table["tasks"]["morning"]
    scores = sorted(policies[name]["groups"]["waited"] for name in ("none", "kueue-classic"))
    assert scores == [0, 1]


def test_a_submission_is_judged_by_its_decisions(copied: Path, harness: Callable) -> None:
    """Without the policy; a score that does not follow from them is refused."""
    ended = harness("bench", "check", MINE, "--suite", "small.yaml")
    assert ended.out == "morning: the results match the decisions\n"
    path = copied / MINE / "submission.json"
    document = json.loads(path.read_text())
    document["results"][0]["score"]["value"] += 1
    path.write_text(json.dumps(document))
    ended = harness("bench", "check", MINE, "--suite", "small.yaml")
    assert ended.code == 1
    assert "the score is" in ended.out


def tampered(folder: Path, change: Callable[[Path], None]) -> None:
    """The first run of the submission, changed."""
    run = min((folder / MINE / "morning" / "runs" / "mix").iterdir())
    change(run)


def shorter(run: Path) -> None:
    """Jobs end earlier than they can."""
    table = pl.read_parquet(run / "jobs.parquet")
    table.with_columns(pl.col("finish_time") - pl.duration(minutes=5)).write_parquet(run / "jobs.parquet")


def fewer(run: Path) -> None:
    """Jobs that waited long never arrived."""
    table = pl.read_parquet(run / "jobs.parquet")
    table.head(table.height - 1).write_parquet(run / "jobs.parquet")


def cheaper(run: Path) -> None:
    """Preemptions cost nothing."""
    info = json.loads((run / "run.json").read_text())
    info["settings"]["on_preemption"] = "resume"
    (run / "run.json").write_text(json.dumps(seal_info(info)))


def larger(run: Path) -> None:
    """The quotas are others."""
    info = json.loads((run / "run.json").read_text())
    info["cluster"]["queues"] = {}
    (run / "run.json").write_text(json.dumps(seal_info(info)))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (shorter, "jobs.finish_time"),
        pytest.param(fewer, "not arrive", marks=pytest.mark.nightly),
        pytest.param(cheaper, "setting", marks=pytest.mark.nightly),
        pytest.param(larger, "quotas", marks=pytest.mark.nightly),
    ],
)
def test_what_the_outside_checker_refuses_is_refused(
    change: Callable[[Path], None], why: str, copied: Path, harness: Callable
) -> None:
    """Tables that do not follow from the decisions, jobs left out, other settings and other quotas."""
    tampered(copied, change)
    ended = harness("bench", "check", MINE, "--suite", "small.yaml")
    assert ended.code == 1
    assert "morning: twin" in ended.out
    assert why in ended.out


def test_what_is_no_submission_is_refused(copied: Path, harness: Callable) -> None:
    """A folder without a document, and one of another suite."""
    assert "is not a submission" in harness("bench", "check", "results").err
    assert "is a submission to small" in harness("bench", "check", MINE).err
