"""What a synthetic trace is made of: tenants, how their jobs arrive, and what kinds of jobs they submit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from harness.trace.generate.arrivals import Process
from harness.trace.generate.distributions import Distribution

MOST_JOBS = 10**9
"""No trace has more jobs."""

MOST_STREAMS = 10_000
"""No trace has more streams, which are made side by side; more are a mistaken number."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job.

    Attributes:
        weight: how many there are, compared with the tenant's other kinds.
        duration: microseconds.
        requests: resource -> amount of one pod (cpu in millicores, memory in bytes).
        pods: how many equal pods; None for one.
        gang: whether all pods are needed at once; None for the schema's default.
        priority: None where the trace does not say.
    """

    weight: float
    duration: Distribution
    requests: Mapping[str, Distribution]
    pods: Distribution | None = None
    gang: bool | None = None
    priority: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The jobs of one tenant that arrive by one process.

    Attributes:
        name: what the random numbers of its jobs depend on, and their ids begin with; no two have the same.
        queue: the tenant.
        arrivals: when its jobs are submitted.
        kinds: what they are.
        most: how many there are at most; None for no end.
        namespace: "" where the trace does not say.
        suffix: what ids end with, after the name and the number.
    """

    name: str
    queue: str
    arrivals: Process
    kinds: tuple[JobKind, ...]
    most: int | None = None
    namespace: str = ""
    suffix: str = ""


@dataclass(frozen=True)
class Spec:
    """A synthetic trace.

    Attributes:
        streams: who submits.
        jobs: how many jobs there are at most, in the order of their submission; None for no bound.
        span: jobs are submitted before this time, microseconds; None for no bound.
        source: where it comes from, for the trace's metadata.
        manifests: of the queues that belong to it; empty where it says nothing of them.
    """

    streams: tuple[Stream, ...]
    jobs: int | None
    span: int | None
    source: str
    manifests: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """What jobs ask for, sorted."""
        return tuple(sorted({name for kind in self._kinds for name in kind.requests}))

    @cached_property
    def optional(self) -> Mapping[str, pl.DataType]:
        """Columns that some kind of job has but not every trace, with their types."""
        types = {"pods": pl.Int32(), "gang": pl.Boolean(), "priority": pl.Int32()}
        return {
            name: dtype
            for name, dtype in types.items()
            if any(getattr(kind, name) is not None for kind in self._kinds)
        }

    @property
    def namespaced(self) -> bool:
        """Whether some tenant has a namespace of its own."""
        return any(stream.namespace for stream in self.streams)

    @property
    def _kinds(self) -> list[JobKind]:
        return [kind for stream in self.streams for kind in stream.kinds]
