"""What a metric answers: one measured value, with its scope, resource, unit and better direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harness.run import Run


class Window(NamedTuple):
    """The span that is measured, microseconds since the origin, both ends included."""

    start: int
    end: int


class Measurement(NamedTuple):
    """One row of `metrics.parquet`.

    Attributes:
        metric: its name, such as `wait.first_start.p95`.
        value: None where it cannot be defined (a denominator of 0, no capacity).
        unit: `ratio`, `s`, `count`, ...
        better: `higher`, `lower` or "" where neither is.
        scope: `all`, `queue=<name>`, `priority=<n>` or `reason=<name>`.
        resource: the resource that it is about, or "".
    """

    metric: str
    value: float | None
    unit: str
    better: str = ""
    scope: str = "all"
    resource: str = ""


Compute: TypeAlias = "Callable[[Run, Window], Iterable[Measurement]]"
