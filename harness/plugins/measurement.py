"""Defines the result of a metric: a value with its scope, resource and unit, and whether higher is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harness.base.units import HOUR, unit_of

if TYPE_CHECKING:
    from harness.runs.run import Run


SHARE = "share"
"""The unit of a share. Tables show shares as percentages, and differences of shares in percentage points."""

MEAN = "mean"
"""The unit of a mean of counts."""


class Window(NamedTuple):
    """The measured time span in microseconds since the origin, including both ends."""

    start: int
    end: int


class Measurement(NamedTuple):
    """One row of `metrics.parquet`.

    Attributes:
        metric: the name of the metric, such as `wait.first_start.p95`. A metric has at most one value for
            each scope and resource.
        value: a finite number, or None if the value is undefined, for example because a denominator is 0 or
            there is no capacity.
        unit: `share` of a whole, `s`, `count`, `mean` of counts, and so on. For a resource, the unit is that
            of `unit_of`.
        better: `higher`, `lower`, or "" if neither is better.
        scope: `all` or a scope such as `queue=<name>`; see `harness.plugins.scopes`.
        resource: the resource, or "".
        at_least: whether the value is a lower bound because some jobs were unfinished at the end of the
            window. None if these jobs could change the value in either direction, or if the answer is unknown
            (for older runs).
    """

    metric: str
    value: float | None
    unit: str
    better: str = ""
    scope: str = "all"
    resource: str = ""
    at_least: bool | None = False


def resource_hours(
    metric: str, amount: float | Fraction | None, resource: str, scope: str = "all", *, better: str = "lower"
) -> Measurement:
    """Returns a measurement in core-hours for cpu, in GiB-hours for memory, and in device-hours otherwise."""
    unit = unit_of(resource)
    hours = None if amount is None else float(amount / (HOUR * unit.size))
    return Measurement(metric, hours, unit.hours, better, scope, resource)


Compute: TypeAlias = "Callable[[Run, Window], Iterable[Measurement]]"
