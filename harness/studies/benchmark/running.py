"""Runs tasks as experiments over twins, so that completed replays are kept.

Twins are versions of a task's trace with slightly shifted arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import RunError
from harness.plugins import Plugins
from harness.studies.benchmark.scores import Scale, Score, Values, scales, scored, values_of
from harness.studies.benchmark.suite import Task
from harness.studies.experiments.evaluation import Made
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.specification import Arm, ItemKeep
from harness.studies.experiments.sweep import State, Sweep

BUILT_IN = "built-in"
"""The folder of the built-in policies, next to the folders of submissions."""

Watch = Callable[[State, Made | None], None]


class Reference(NamedTuple):
    """The results of the built-in policies in a task."""

    values: Mapping[str, Values]
    scales: Sequence[Scale]

    def score(self, values: Values) -> Score:
        """Returns the score that corresponds to a policy's values."""
        return scored(self.scales, values)

    @property
    def scores(self) -> Mapping[str, Score]:
        """The score of each built-in policy."""
        return {name: self.score(values) for name, values in self.values.items()}


def run_task(
    task: Task,
    policies: Sequence[str],
    plugins: Plugins,
    output: Path,
    *,
    seed: int | None = None,
    keep: ItemKeep = "all",
    workers: int | None = None,
    watch: Watch | None = None,
) -> Experiment:
    """Replays policies on the twins of a task. Replays that are already stored are skipped.

    Twins are versions of the task's trace with slightly shifted arrivals.

    The task's folder is a subfolder of `output`. For `workers`, see `harness.sweep`. `watch` is called at the
    beginning and after each replay.

    Raises:
        InputError: a file of the task has changed, or there is no such policy.
        RunError: a file cannot be written.
    """
    task.check()
    spec = task.spec([Arm(name, name) for name in policies], seed, keep=keep)
    return Sweep(prepared(spec, plugins), output).run(workers=workers, watch=watch)


def reference(
    task: Task,
    plugins: Plugins,
    output: Path,
    *,
    seed: int | None = None,
    workers: int | None = None,
    watch: Watch | None = None,
) -> Reference:
    """Returns the results of the built-in policies in a task. Missing runs are replayed first.

    For the meaning of the arguments, see `run_task`.

    Raises:
        InputError: a file of the task has changed.
        RunError: a file can't be written, or a replay failed.
    """
    home = output / BUILT_IN
    made = run_task(
        task, task.built_in, plugins, home, seed=seed, keep="metrics", workers=workers, watch=watch
    )
    failed = made.items.filter(state="failed")
    if not failed.is_empty():
        raise RunError(f"task {task.name}: a built-in policy failed: {failed['error'][0]}")
    values = values_of(made, task)
    frame = made.to_polars().filter(scope="all").select("metric", "better").unique()
    directions = dict(frame.rows())
    better = {
        objective: directions[objective.partition("{")[0]]
        for objective in dict.fromkeys(name for of in values.values() for name in of)
    }
    return Reference(values, scales(task, values, better))
