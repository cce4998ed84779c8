"""Policies that nobody would want score below `none`, in every task in which they differ from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bad_policies import BAD, LikeNone

from harness.plugins import Plugins, load
from harness.plugins.measurement import Measurement
from harness.studies.benchmark.running import Reference, reference
from harness.studies.benchmark.scores import values_of_rows
from harness.studies.benchmark.suite import Suite, Task, load_suite
from harness.studies.experiments.preparation import items_of, prepared
from harness.studies.experiments.specification import Arm


def score(policy: type, task: Task, plugins: Plugins, scale: Reference, twins: int) -> float:
    """The score of a class."""
    bench = prepared(task.spec([Arm("none", "none")], twins=twins, keep="metrics"), plugins)
    rows = []
    for item in items_of(bench):
        request = replace(bench.request(item.point), plugin=policy, label=None, keep="nothing")
        run = request.run(plugins=plugins)
        rows.append([Measurement(**row) for row in run.metrics.iter_rows(named=True)])
    return scale.score(values_of_rows(rows, task)).score.value


def bad_ones(task: Task, output: Path, twins: int) -> dict[str, tuple[float, float]]:
    """Bad policy -> its score, and that of `none` on the same twins; only those that differ from it."""
    plugins = load()
    scale = reference(task, plugins, output, workers=1)
    none = score(LikeNone, task, plugins, scale, twins)
    found = {policy.__name__: score(policy, task, plugins, scale, twins) for policy in BAD}
    return {name: (mine, none) for name, mine in found.items() if mine != none}


def test_bad_policies_score_below_none(small: Suite, scale: Path) -> None:
    """One that starves the large, one that preempts everybody, and one that completes no gang."""
    found = bad_ones(small.task("morning"), scale / "small", 1)
    assert set(found) == {policy.__name__ for policy in BAD}
    assert all(mine < none for mine, none in found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("task", list(load_suite().tasks))
def test_bad_policies_score_below_none_in_every_task(task: str, tmp_path: Path) -> None:
    """In which they differ from it, over all twins."""
    given = load_suite().task(task)
    found = bad_ones(given, tmp_path, given.twins)
    assert "PreemptsEverybody" in found
    assert all(mine < none for mine, none in found.values()), found
