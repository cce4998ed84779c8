"""Defines the input and the result of the checks of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from harness.base.units import short_number
from harness.cluster.model import Cluster
from harness.trace.demand import traced_capacity
from harness.trace.level import timed_jobs
from harness.trace.schema import resources_of
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Finding:
    """A misleading property of a trace.

    Attributes:
        check: a short name for the kind of finding.
        says: the property, with a figure.
    """

    check: str
    says: str
    do: str


@dataclass(frozen=True)
class Material:
    """The input of the checks: a trace, and the cluster for its replay.

    Attributes:
        impossible: sentences from plugins about jobs that can never start on the cluster.
    """

    trace: Trace
    cluster: Cluster | None = None
    impossible: Sequence[str] = ()

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row per job, with `SUBMIT` and `duration` in microseconds."""
        return timed_jobs(self.trace)

    @property
    def resources(self) -> list[str]:
        """The resources that jobs request."""
        return resources_of(self.jobs.columns)

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """The capacity of each resource, if it is known."""
        if self.cluster is not None:
            return self.cluster.capacity
        stated = {name: traced_capacity(self.trace, name) for name in self.resources}
        return {name: amount for name, amount in stated.items() if amount is not None}


def counted(count: int, whole: int) -> str:
    """Formats a number of jobs and its share of all jobs."""
    return f"{count:,} of {whole:,} jobs ({percent(count / whole)})"


def percent(part: float) -> str:
    """Formats a share as a short percentage."""
    return f"{short_number(round(100 * part, 2))} %"
