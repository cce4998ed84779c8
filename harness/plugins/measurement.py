"""What a metric answers: one measured value, with its scope, resource, unit and better direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from harness.base.units import HOUR, unit_of

if TYPE_CHECKING:
    from harness.runs.run import Run


SHARE = "share"
"""The unit of a part of a whole; tables have it in per cent, and differences in points."""

MEAN = "mean"
"""The unit of a mean of counts."""


class Window(NamedTuple):
    """The span that is measured, microseconds since the origin, both ends included."""

    start: int
    end: int


class Measurement(NamedTuple):
    """One row of `metrics.parquet`.

    Attributes:
        metric: its name, such as `wait.first_start.p95`; nothing is measured twice of one scope and resource.
        value: finite; None where it cannot be defined (a denominator of 0, no capacity).
        unit: `share` of a whole, `s`, `count`, `mean` of counts, ...; of a resource that of `unit_of`.
        better: `higher`, `lower` or "" where neither is.
        scope: `all`, or one of a kind, such as `queue=<name>`; `harness.plugins.scopes` defines them.
        resource: the resource that it is about, or "".
        at_least: whether jobs that had not come so far by the end of the window make it the least that it can
            become. None where they could move it either way, or where that is not known (of older runs).
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
    """Resource-microseconds in hours: of cores for cpu, of GiB for memory, else of devices."""
    unit = unit_of(resource)
    hours = None if amount is None else float(amount / (HOUR * unit.size))
    return Measurement(metric, hours, unit.hours, better, scope, resource)


Compute: TypeAlias = "Callable[[Run, Window], Iterable[Measurement]]"
