"""Reads, writes and checks submissions, which are folders with the runs and results of one policy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.build import version
from harness.base.errors import HarnessError, RunError, why
from harness.base.files.whole import whole_file
from harness.plugins import Plugins
from harness.studies.benchmark.checking import Expected, Judgement, info_of, judge
from harness.studies.benchmark.running import Reference
from harness.studies.benchmark.scores import Score, values_of_rows
from harness.studies.benchmark.suite import Task
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import Estimate
from harness.studies.experiments.preparation import prepared
from harness.studies.experiments.requests import Bench
from harness.studies.experiments.specification import PLUGIN, SEED, Arm, Point

FILE = "submission.json"
SCHEMA = "1"


@dataclass(frozen=True)
class Result:
    """The result of a policy in a task.

    Attributes:
        seed: the seed with which the weeks were drawn; None for the task's own weeks.
        twins: the number of replayed twins.
        score: the score over these twins.
    """

    task: str
    seed: int | None
    twins: int
    score: Score

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values."""
        return {
            "task": self.task,
            "seed": self.seed,
            "twins": self.twins,
            "score": _ends(self.score.score),
            "groups": {group: _ends(found) for group, found in self.score.groups.items()},
            "objectives": dict(self.score.objectives),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Result:
        """Makes a result from the plain values that `to_json` returns."""
        twins = int(content["twins"])
        score = Score(
            _estimate(content["score"], twins),
            {str(group): _estimate(found, twins) for group, found in content["groups"].items()},
            dict(content["objectives"]),
        )
        seed = content["seed"]
        return cls(str(content["task"]), None if seed is None else int(seed), twins, score)


@dataclass(frozen=True)
class Submission:
    """The results of one policy.

    Attributes:
        clairvoyant: whether the policy knows how long jobs will run, which no real scheduler can know.
        results: the results, in the order in which the suite lists the tasks.
    """

    suite: str
    policy: str
    clairvoyant: bool
    results: Sequence[Result] = field(default_factory=tuple)

    def with_result(self, result: Result) -> Submission:
        """Returns the submission with a new result, which replaces an earlier result for the same weeks."""
        others = [each for each in self.results if (each.task, each.seed) != (result.task, result.seed)]
        return Submission(self.suite, self.policy, self.clairvoyant, [*others, result])

    def write(self, folder: Path) -> None:
        """Writes the submission into its folder.

        Raises:
            RunError: the file cannot be written.
        """
        content = {
            "schema": SCHEMA,
            "suite": self.suite,
            "policy": self.policy,
            "clairvoyant": self.clairvoyant,
            "harness": version(),
            "results": [result.to_json() for result in self.results],
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(folder / FILE) as file:
                file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8", newline="\n")
        except OSError as error:
            raise RunError(f"{folder / FILE} cannot be written: {error.strerror}") from error

    @classmethod
    def read(cls, folder: Path) -> Submission:
        """Reads the submission in a folder.

        Raises:
            RunError: the folder has no submission, or the submission is damaged.
        """
        path = folder / FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise RunError(
                    f"{path} has the schema {content['schema']!r}, but this version of harness "
                    f"reads {SCHEMA!r}"
                )
            results = [Result.from_json(each) for each in content["results"]]
            return cls(str(content["suite"]), str(content["policy"]), bool(content["clairvoyant"]), results)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{folder} is not a submission: {FILE}: {why(error, 'it is damaged')}",
                hint="harness bench run -p PLUGIN makes one",
            ) from error


def faults_of(
    folder: Path, submission: Submission, result: Result, task: Task, plugins: Plugins, reference: Reference
) -> list[str]:
    """Returns the faults of a result in a submission.

    The runs are judged by their decisions, and their scores are computed again.

    The submission's policy is not among `plugins`. `reference` has the results for the same weeks.
    """
    found: list[str] = []
    rows = []
    try:
        for twin, judgement in _judged(folder, submission, result, task, plugins):
            found += [f"twin {twin}: {fault}" for fault in judgement.faults]
            rows.append(judgement.rows)
    except HarnessError as error:
        return [error.message]
    if found:
        return found
    if len(rows) != result.twins:
        return [f"it has runs of {len(rows)} twins, but says that it has {result.twins}"]
    mine, said = reference.score(values_of_rows(rows, task)), result.score
    figures: list[tuple[str, float | None, Any]] = [("the score", mine.score.value, said.score.value)]
    figures += [
        (f"the score of {group}", of.value, said.groups.get(group)) for group, of in mine.groups.items()
    ]
    figures += [(name, value, said.objectives.get(name)) for name, value in mine.objectives.items()]
    return [
        f"{name} is {value:.6g} according to the decisions, but the submission says {_plain(told)}"
        for name, value, told in figures
        if value is not None and not _equal(value, _plain(told))
    ]


def _judged(
    folder: Path, submission: Submission, result: Result, task: Task, plugins: Plugins
) -> Iterator[tuple[int, Judgement]]:
    experiment = Experiment.open(folder / task.called(result.seed))
    arms = [Arm(name, name) for name in task.built_in]
    spec = task.spec(arms, result.seed, twins=result.twins, keep="metrics")
    bench = prepared(spec, plugins)
    items = experiment.items
    if SEED not in items.columns or PLUGIN not in items.columns:
        raise RunError(f"{experiment.root} has no replays of twins")
    mine = items.filter((pl.col(PLUGIN) == submission.policy) & (pl.col("state") == "done"))
    for number, seed in enumerate(spec.seeds.numbers if spec.seeds is not None else (), start=1):
        key = mine.filter(pl.col(SEED) == seed)["key"]
        if key.len() != 1:
            raise RunError(f"{experiment.root} has no run of twin {number}")
        run = experiment.about(key.item())["run"]
        path = experiment.root / "runs" / task.trace.stem / str(run)
        yield number, judge(path, _expected(bench, task, seed), plugins)


def _expected(bench: Bench, task: Task, seed: int) -> Iterator[Expected]:
    for policy in task.built_in:
        point: Point = {PLUGIN: policy, SEED: seed}
        make = partial(bench.plan, point, bench.request(point))
        yield Expected(info_of(make()), make)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Estimate) else value


def _equal(mine: float, said: Any) -> bool:
    return isinstance(said, (int, float)) and isclose(mine, said, rel_tol=1e-9, abs_tol=1e-12)


def _ends(found: Estimate) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _estimate(content: Mapping[str, Any], twins: int) -> Estimate:
    low, high = content["low"], content["high"]
    ends = [None if end is None else float(end) for end in (low, high)]
    return Estimate(float(content["value"]), ends[0], ends[1], None, twins)
