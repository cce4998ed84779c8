"""The built-in metrics of a finished run. They are registered like the metrics of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from harness.plugins.hookspecs import hookimpl
from harness.plugins.measurement import Measurement, Window
from harness.plugins.registries import MetricSpec, Register

if TYPE_CHECKING:
    from harness.runs.run import Run


_MORE = {"fragmentation": ("device_fragmentation",), "waiting": ("job_counts",)}
"""Maps a family of metrics to the further modules that measure it."""


def _measure(modules: tuple[str, ...], run: Run, window: Window) -> Iterator[Measurement]:
    """Measures a family of metrics with the modules that implement it, which are imported on first use."""
    for name in modules:
        found: Iterable[Measurement] = import_module(f"{__name__}.{name}").measure(run, window)
        yield from found


@hookimpl
def harness_register_metrics(register: Register[MetricSpec]) -> None:
    """Register the built-in metrics."""
    for name, about in {
        "utilization": "allocated, useful, lost and idle shares of capacity",
        "fragmentation": "free capacity of nodes that no waiting pod fits on",
        "waiting": "waiting, completion and slowdown of jobs, and how many finished",
        "starvation": "jobs that waited over a day, and far longer than they run",
        "fairness": "shares against ideal shares, unmet guarantees, unequal slowdowns",
        "users": "how unequally useful work was spread over users, relative to their requests",
        "disruption": "preemptions and other evictions, their victims, and lost work",
        "quota": "quota that queues held beyond what they might borrow",
        "reclaim": "how long quotas wait for their own resources",
        "topology": "how many domains of a topology jobs are spread over",
    }.items():
        register(MetricSpec(name, partial(_measure, (name, *_MORE.get(name, ()))), help=about))
