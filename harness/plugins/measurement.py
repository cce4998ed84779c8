"""The answer of a metric: one measured value, with its scope, resource, unit and better direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harness.base.units import HOUR, unit_of

if TYPE_CHECKING:
    from harness.runs.run import Run


SHARE = "share"
"""The unit of a part of a whole; tables show it in per cent, and differences in percentage points."""

MEAN = "mean"
"""The unit of a mean of counts."""


class Window(NamedTuple):
    """The measured span, microseconds since the origin, both ends included."""

    start: int
    end: int


class Measurement(NamedTuple):
    """One row of `metrics.parquet`.

    Attributes:
        metric: its name, such as `wait.first_start.p95`; each scope and resource has at most one value.
        value: a finite number; None if undefined (a denominator of 0, no capacity).
        unit: `share` of a whole, `s`, `count`, `mean` of counts, ...; for a resource the unit of `unit_of`.
        better: `higher`, `lower`, or "" if neither is better.
        scope: `all`, or a scope of a kind, such as `queue=<name>`; see `harness.plugins.scopes`.
        resource: the resource, or "".
        at_least: whether jobs that were unfinished at the end of the window make the value a lower bound.
            None if they could change it in either direction, or if this is unknown (for older runs).
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
    """Returns a measurement in resource-hours: of cores for cpu, of GiB for memory, else of devices."""
    unit = unit_of(resource)
    hours = None if amount is None else float(amount / (HOUR * unit.size))
    return Measurement(metric, hours, unit.hours, better, scope, resource)


Compute: TypeAlias = "Callable[[Run, Window], Iterable[Measurement]]"
