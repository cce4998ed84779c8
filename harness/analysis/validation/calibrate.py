"""Fits settings of a simulation to the first jobs of a record, and tests them on later jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

import polars as pl

from harness.analysis.validation.errors import Errors, errors_of
from harness.analysis.validation.findings import LATE
from harness.analysis.validation.pairs import pairs_of
from harness.analysis.validation.validation import Validation
from harness.base.errors import TraceError
from harness.base.units import SECOND, format_duration

if TYPE_CHECKING:
    from harness.plugins import Plugins
    from harness.runs.request import Request

CAPACITIES = (Fraction(1), Fraction(19, 20), Fraction(9, 10), Fraction(17, 20), Fraction(4, 5))
"""The fractions of the cluster's capacity to try."""

LATENCY = "evictionLatency"
"""The option of policies for the time from a victim's grace period until its resources are free."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted settings, and the errors with and without them.

    Attributes:
        startup: how long pods take until they are ready, in microseconds.
        eviction_latency: the policy's eviction latency in microseconds; None if the policy has no such
            option, or the record does not show it.
        capacity: the fraction of the cluster's capacity that fits the record best.
        split: the fit uses the jobs submitted before this time, in microseconds since the origin.
        before: errors of the jobs submitted later, without the fitted settings.
        after: the same errors with the fitted settings.
    """

    startup: int
    eviction_latency: int | None
    capacity: Fraction
    split: int
    before: Errors
    after: Errors

    @property
    def told(self) -> Iterator[str]:
        """Returns the fitted settings and their effect, in sentences."""
        fitted = [f"--startup {format_duration(self.startup)}"] if self.startup else []
        if self.eviction_latency:
            fitted.append(f"--set {LATENCY}={format_duration(self.eviction_latency)}")
        if self.capacity != 1:
            fitted.append(f"--scale-cluster {self.capacity}")
        yield f"fitted on the first half of the jobs: {' '.join(fitted) or 'nothing to change'}"
        for name, errors in (("without", self.before), ("with", self.after)):
            if errors.told:
                yield f"the other jobs {name} this fit: {errors.told}"

    def to_json(self) -> dict[str, Any]:
        """Returns the fit as plain values."""
        return {
            "startup": self.startup,
            "eviction_latency": self.eviction_latency,
            "capacity": str(self.capacity),
            "split": self.split,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
        }


def calibrate(validation: Validation, request: Request, plugins: Plugins) -> Fit:
    """Fits start-up time, eviction latency and capacity to the first jobs, and tests them on the later jobs.

    `validation` compares the record with the simulation of `request`, which does not use these settings.
    """
    from harness.cluster.changes.scale import scaled_cluster

    pairs = validation.pairs
    split = int(pairs["submit"][pairs.height // 2])
    first = pl.col("submit") < split
    half = replace(request, until=split)
    startup = next((each.amount for each in validation.findings if each.kind == LATE), 0)
    latency = _latency(validation, startup, split)
    option = any(each.name == LATENCY for each in plugins.policy(str(request.plugin)).options)
    options: Mapping[str, Any] = dict(request.options)
    if option and latency:
        options = {**options, LATENCY: f"{latency}us"}

    def tried(asked: Request, part: Fraction) -> Request:
        cluster = scaled_cluster(validation.cluster, part)
        return replace(asked, cluster=cluster, startup=startup, options=options)

    def loss(part: Fraction) -> tuple[float, Fraction]:
        try:
            simulated = tried(half, part).run(plugins=plugins)
        except TraceError:
            if part == 1:
                raise
            return inf, -part  # with so little capacity, a job of the trace could never start
        found = pairs_of(validation.recorded, simulated, validation.resource)
        waits = pl.coalesce("simulated_wait", pl.lit(split) - pl.col("submit"))
        error = found.filter(first).select((waits - pl.col("wait")).abs().mean()).item()
        return float(error), -part

    capacity = -min(loss(part) for part in CAPACITIES)[1]
    fitted = pairs_of(validation.recorded, tried(request, capacity).run(plugins=plugins), validation.resource)
    return Fit(
        startup // SECOND * SECOND,
        latency if option else None,
        capacity,
        split,
        errors_of(pairs.filter(~first), short=validation.short),
        errors_of(fitted.filter(~first), short=validation.short),
    )


def _latency(validation: Validation, startup: int, split: int) -> int | None:
    """Returns how much later preemptors start than their start-up time explains, as a median."""
    simulated = validation.simulated
    preempting = (
        simulated.scan("decisions")
        .filter(pl.col("action") == "preempt")
        .select("by")
        .unique()
        .collect()["by"]
    )
    late = validation.pairs.filter(
        pl.col("job_id").is_in(preempting.to_list()) & (pl.col("submit") < split) & (pl.col("error") <= 0)
    )
    if late.height < 2:
        return None
    median = late["error"].median()
    found = -int(median) - startup if isinstance(median, (int, float)) else 0
    return max(0, found // SECOND * SECOND) or None
