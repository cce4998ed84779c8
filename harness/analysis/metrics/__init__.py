"""The built-in metrics over a finished run, registered like any other plugin's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from harness.plugins.hookspecs import hookimpl
from harness.plugins.measurement import Measurement, Window

if TYPE_CHECKING:
    from harness.plugins.registries import RegisterMetric
    from harness.runs.run import Run


def _utilization(run: Run, window: Window) -> Iterable[Measurement]:
    """The use of the cluster, and its purposes; see `harness.analysis.metrics.utilization`."""
    from harness.analysis.metrics.utilization import measure

    return measure(run, window)


def _waiting(run: Run, window: Window) -> Iterable[Measurement]:
    """The waits of jobs; see `harness.analysis.metrics.waiting`."""
    from harness.analysis.metrics.waiting import measure

    return measure(run, window)


def _starvation(run: Run, window: Window) -> Iterable[Measurement]:
    """The number of jobs that waited far too long; see `harness.analysis.metrics.starvation`."""
    from harness.analysis.metrics.starvation import measure

    return measure(run, window)


def _fairness(run: Run, window: Window) -> Iterable[Measurement]:
    """The fairness of the queues' shares; see `harness.analysis.metrics.fairness`."""
    from harness.analysis.metrics.fairness import measure

    return measure(run, window)


def _fragmentation(run: Run, window: Window) -> Iterable[Measurement]:
    """The capacity that was free where no waiting pod fits; see `harness.analysis.metrics.fragmentation`."""
    from harness.analysis.metrics import device_fragmentation, fragmentation

    return chain(fragmentation.measure(run, window), device_fragmentation.measure(run, window))


def _users(run: Run, window: Window) -> Iterable[Measurement]:
    """The inequality between users in what they got; see `harness.analysis.metrics.users`."""
    from harness.analysis.metrics.users import measure

    return measure(run, window)


def _disruption(run: Run, window: Window) -> Iterable[Measurement]:
    """The number and the cost of preemptions; see `harness.analysis.metrics.disruption`."""
    from harness.analysis.metrics.disruption import measure

    return measure(run, window)


def _quota(run: Run, window: Window) -> Iterable[Measurement]:
    """The amounts that queues held beyond their quota; see `harness.analysis.metrics.quota`."""
    from harness.analysis.metrics.quota import measure

    return measure(run, window)


def _reclaim(run: Run, window: Window) -> Iterable[Measurement]:
    """The time that quotas waited for their own resources; see `harness.analysis.metrics.reclaim`."""
    from harness.analysis.metrics.reclaim import measure

    return measure(run, window)


def _topology(run: Run, window: Window) -> Iterable[Measurement]:
    """The number of topology domains that jobs are spread over; see `harness.analysis.metrics.topology`."""
    from harness.analysis.metrics.topology import measure

    return measure(run, window)


@hookimpl
def harness_register_metrics(register: RegisterMetric) -> None:
    """Register the built-in families of metrics."""
    register("utilization", _utilization, help="allocated, useful, lost and idle shares of capacity")
    register("fragmentation", _fragmentation, help="free capacity of nodes that no waiting pod fits on")
    register("waiting", _waiting, help="waiting, completion and slowdown of jobs, and how many finished")
    register("starvation", _starvation, help="jobs that waited over a day, and far longer than they run")
    register("fairness", _fairness, help="shares against ideal shares, unmet guarantees, unequal slowdowns")
    register("users", _users, help="how unequally users' requests became useful work")
    register("disruption", _disruption, help="preemptions and other evictions, their victims, and lost work")
    register("quota", _quota, help="quota that queues held beyond what they might borrow")
    register("reclaim", _reclaim, help="how long quotas wait for their own resources")
    register("topology", _topology, help="how many domains of a topology jobs are spread over")
