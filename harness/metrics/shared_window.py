"""What is measured again where runs are compared over a window that all of them share.

That is what is relative to a capacity or a quota: after the last arrival a run that takes longer has an
emptier cluster, which says nothing of how it did before.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.metrics import fairness, quota, utilization
from harness.metrics.measurement import Measurement, Window
from harness.runs.run import Run


def measure_shared(run: Run, window: Window) -> Iterator[Measurement]:
    """Utilization, goodput, backlog, fairness and quota over a window within the run's own."""
    for family in (utilization, fairness, quota):
        yield from family.measure(run, window)
