"""The tasks of suites: what is fixed of them, and what their files may say."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_suites import written

from harness.base.errors import InputError, OptionError, SpecError
from harness.plugins import load
from harness.studies.benchmark.suite import MOST_TASKS, load_suite
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.specification import Arm

ARMS = [Arm("none", "none")]


def test_the_files_of_the_newest_suite_have_the_sums_that_it_names() -> None:
    """So that a version means the same jobs, clusters and events everywhere."""
    suite = load_suite()
    assert len(suite.tasks) <= MOST_TASKS
    for task in suite.tasks.values():
        task.check()
        assert "none" in task.built_in
        assert list(task.objectives) == ["served", "waited", "shared", "disrupted"]


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A task is about the file of its sum alone."""
    suite = load_suite(written(tmp_path, sha256={"trace": "0" * 64, "cluster": "0" * 64}))
    with pytest.raises(InputError, match=r"mix\.parquet is not the file of small"):
        suite.task("morning").check()


def test_a_faulty_suite_names_every_fault(tmp_path: Path) -> None:
    """With its field, also what is not known."""
    path = written(tmp_path, resource=7, twins=1, colour="blue")
    with pytest.raises(SpecError) as raised:
        load_suite(path)
    told = str(raised.value)
    assert all(word in told for word in ("resource", "twins", "colour"))


def test_names_that_are_not_there_are_refused_with_what_was_meant() -> None:
    """Of suites and of tasks."""
    with pytest.raises(OptionError, match="no suite"):
        load_suite("sched-0")
    with pytest.raises(OptionError, match="no task"):
        load_suite().task("mixed")


def test_a_seed_draws_weeks_that_nobody_has_seen(tmp_path: Path) -> None:
    """Equal seeds draw equal weeks; other seeds, and the task's own weeks, are other jobs."""
    task, plugins = load_suite(written(tmp_path)).task("morning"), load(block=["metrics"])

    def jobs(seed: int | None) -> list[object]:
        bench = prepared(task.spec(ARMS, seed, twins=1, keep="metrics"), plugins)
        (drawn,) = bench.spec.seeds.numbers if bench.spec.seeds else ()
        frame = bench.trace({"plugin": "none", "seed": drawn}).frame
        return frame.select("submit_time", "duration").rows()

    assert jobs(1) == jobs(1)
    assert jobs(1) != jobs(2)
    assert jobs(1) != jobs(None)
    speeds = {task.spec(ARMS, seed, keep="metrics").settings["scale-arrivals"] for seed in range(1, 20)}
    assert speeds == {"9/5", "2", "11/5"}
    with pytest.raises(OptionError, match="seed"):
        task.spec(ARMS, 0, keep="metrics")
