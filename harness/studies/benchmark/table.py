"""Formats the table of a benchmark, which shows the scores of every policy in every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from harness.base.markdown import pipe_table
from harness.base.text import aligned
from harness.studies.benchmark.running import Reference
from harness.studies.benchmark.scores import Score, pareto_ranks
from harness.studies.benchmark.submission import Result, Submission
from harness.studies.experiments.objectives import Estimate

Scores = Mapping[str, Mapping[str, Score]]

_NONE = "-"


def scores_of(
    references: Mapping[str, Reference], submissions: Sequence[Submission], seed: int | None
) -> Scores:
    """Returns the scores of the built-in policies and the submissions in each task of `references`.

    The submissions count with their results for `seed`, or for the task's own weeks if it is None.
    """
    found: dict[str, dict[str, Score]] = {}
    for task, reference in references.items():
        found[task] = dict(reference.scores)
        for submission in submissions:
            mine = result_of(submission, task, seed)
            if mine is not None:
                found[task][submission.policy] = mine.score
    return found


def result_of(submission: Submission, task: str, seed: int | None) -> Result | None:
    """Returns the result of a task for the weeks of a seed, or None if there is none."""
    return next((each for each in submission.results if (each.task, each.seed) == (task, seed)), None)


def text(scores: Scores, width: int | None = None) -> str:
    """Returns the table for a terminal of `width` columns."""
    return "\n\n".join(aligned(rows, width=width) for rows in _rows(scores))


def markdown(scores: Scores) -> str:
    """Returns the table as Markdown."""
    return "\n\n".join("\n".join(pipe_table(rows)) for rows in _rows(scores))


def to_json(scores: Scores) -> dict[str, Any]:
    """Returns the table as plain values."""
    return {
        "schema": "1",
        "tasks": {
            task: {
                policy: {
                    "score": score.score.value,
                    "low": score.score.low,
                    "high": score.score.high,
                    "groups": {group: found.value for group, found in score.groups.items()},
                    "rank": rank,
                }
                for (policy, score), rank in zip(of.items(), _ranks(of), strict=True)
            }
            for task, of in scores.items()
        },
    }


def _ranks(scores: Mapping[str, Score]) -> list[int]:
    found = pareto_ranks(scores)
    return [found[policy] for policy in scores]


def _rows(scores: Scores) -> tuple[list[list[str]], list[list[str]]]:
    """Returns the rows of two tables: scores by task, and means and first ranks by group."""
    policies = list(dict.fromkeys(policy for of in scores.values() for policy in of))
    first = [["task", *policies]]
    for task, of in scores.items():
        first.append([task, *(_cell(of[policy].score) if policy in of else _NONE for policy in policies)])
    every = {
        policy: [of[policy].score.value for of in scores.values() if policy in of] for policy in policies
    }
    first.append(["mean", *(_mean(of) if len(of) == len(scores) else _NONE for of in every.values())])
    groups = list(dict.fromkeys(g for of in scores.values() for score in of.values() for g in score.groups))
    ranks = {task: pareto_ranks(of) for task, of in scores.items()}
    second = [["policy", *groups, "first rank"]]
    for policy in policies:
        mine = [of[policy] for of in scores.values() if policy in of]
        cells = [
            _mean([score.groups[group].value for score in mine if group in score.groups]) for group in groups
        ]
        often = sum(of.get(policy) == 1 for of in ranks.values())
        second.append([policy, *cells, f"{often} of {len(mine)}"])
    return first, second


def _cell(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)} ±{(found.high - found.low) / 2:.2f}"


def _mean(values: Sequence[float]) -> str:
    return _number(fsum(values) / len(values)) if values else _NONE


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # avoids -0.00
