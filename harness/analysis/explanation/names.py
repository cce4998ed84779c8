"""Finds jobs by their names in harness or in other systems, and suggests similar names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from harness.base.errors import RunError
from harness.base.options import did_you_mean, there_is

if TYPE_CHECKING:
    import polars as pl

OTHER_IDS = "_job_id"
"""The suffix of columns that contain the ids of jobs in another system, such as `slurm_job_id`."""


def job_named(jobs: pl.DataFrame, name: str) -> str:
    """Finds a job by its `job_id` or by its id in another system, and returns its `job_id`.

    Raises:
        RunError: no job has this name, or several jobs have this id in another system.
    """
    if name in jobs["job_id"]:
        return name
    known = jobs["job_id"].to_list()
    for column in (each for each in jobs.columns if each.endswith(OTHER_IDS)):
        ids = jobs[column].to_list()
        found = [job for job, each in zip(jobs["job_id"], ids, strict=True) if each == name]
        if len(found) > 1:
            raise RunError(f"{name!r} is the {column} of {len(found):,} jobs", hint=there_is(found))
        if found:
            return str(found[0])
        known += [each for each in ids if isinstance(each, str)]
    raise RunError(f"the run has no job {name!r}", hint=close_to(name, dict.fromkeys(known)))


def other_ids(job: Mapping[str, Any]) -> list[str]:
    """Returns the job's ids in other systems that differ from its `job_id`, each with its column."""
    ids = {column: value for column, value in job.items() if column.endswith(OTHER_IDS)}
    return [f"{column} {value}" for column, value in ids.items() if value not in (None, job["job_id"])]


def close_to(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the known names that are most similar to an unknown name."""
    names = list(known)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    return f"did you mean {', '.join(map(repr, close))}?" if len(close) > 1 else did_you_mean(name, names)
