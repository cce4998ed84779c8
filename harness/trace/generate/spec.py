"""Defines the parts of a synthetic trace: tenants, their arrival processes, and their kinds of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from harness.trace.generate.arrivals import Process
from harness.trace.generate.distributions import Distribution

MOST_JOBS = 10**9
"""The maximum number of jobs in a trace."""

MOST_STREAMS = 10_000
"""The maximum number of streams in a trace. A higher number is probably a mistake."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job.

    Attributes:
        weight: how frequent this kind is, relative to the tenant's other kinds.
        duration: the duration in microseconds.
        requests: the quantity of each resource for one pod (cpu in millicores, memory in bytes).
        pods: the number of identical pods, or None for one.
        gang: whether the job needs all pods at the same time, or None for the schema's default.
        priority: the priority, or None to omit it.
    """

    weight: float
    duration: Distribution
    requests: Mapping[str, Distribution]
    pods: Distribution | None = None
    gang: bool | None = None
    priority: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The jobs of one tenant that one arrival process submits.

    Attributes:
        name: a unique name. It is the key of the jobs' random numbers and the prefix of their ids.
        queue: the tenant.
        most: the maximum number of jobs, or None for no limit.
        namespace: the namespace, or "" to omit it.
        suffix: the part of the ids that comes after the name and the number.
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
        jobs: the maximum number of jobs, in order of submission, or None for no limit.
        span: the end of submissions, in microseconds, or None for no limit.
        source: the origin of the specification, for the trace's metadata.
        manifests: the manifests of the queues, or an empty tuple if the specification does not define them.
    """

    streams: tuple[Stream, ...]
    jobs: int | None
    span: int | None
    source: str
    manifests: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The resources that jobs request, in sorted order."""
        return tuple(sorted({name for kind in self._kinds for name in kind.requests}))

    @cached_property
    def optional(self) -> Mapping[str, pl.DataType]:
        """The optional columns that at least one kind of job has, with their types."""
        types = {"pods": pl.Int32(), "gang": pl.Boolean(), "priority": pl.Int32()}
        return {
            name: dtype
            for name, dtype in types.items()
            if any(getattr(kind, name) is not None for kind in self._kinds)
        }

    @property
    def namespaced(self) -> bool:
        """True if any tenant has its own namespace."""
        return any(stream.namespace for stream in self.streams)

    @property
    def _kinds(self) -> list[JobKind]:
        return [kind for stream in self.streams for kind in stream.kinds]
