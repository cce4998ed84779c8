"""What a check of a trace looks at, and what it answers."""

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
    """One thing that will mislead.

    Attributes:
        check: a short name of the kind of finding.
        says: what is so, with the figure.
        do: what to do about it.
    """

    check: str
    says: str
    do: str


@dataclass(frozen=True)
class Material:
    """A trace and what it is to be replayed on.

    Attributes:
        trace: the rows.
        cluster: None where it is not known.
        impossible: what plugins say of jobs that can never start on the cluster.
    """

    trace: Trace
    cluster: Cluster | None = None
    impossible: Sequence[str] = ()

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row a job, with `SUBMIT` and `duration` in microseconds."""
        return timed_jobs(self.trace)

    @property
    def resources(self) -> list[str]:
        """What jobs ask for."""
        return resources_of(self.jobs.columns)

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """Resource -> how much there is of it, where that is known."""
        if self.cluster is not None:
            return self.cluster.capacity
        stated = {name: traced_capacity(self.trace, name) for name in self.resources}
        return {name: amount for name, amount in stated.items() if amount is not None}


def counted(count: int, whole: int) -> str:
    """A number of jobs, and which part of all they are."""
    return f"{count:,} of {whole:,} jobs ({percent(count / whole)})"


def percent(part: float) -> str:
    """A part of a whole at a glance."""
    return f"{short_number(round(100 * part, 2))} %"
