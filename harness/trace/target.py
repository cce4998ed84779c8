"""Finds the scale of arrivals, or of the cluster, that gives a wanted load.

The load is the mean demand of the trace divided by the capacity of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from harness.base.errors import InputError
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.model import Cluster
from harness.trace.level import level_of, timed_jobs
from harness.trace.schema import resources_of
from harness.trace.trace import Trace

_DIGITS = 4
_NEAR = Fraction(1, 100)
"""The maximum relative difference between the wanted load and the load with an accepted scale."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The load that a trace offers for one resource of a cluster.

    Attributes:
        mean: the resource-time of all jobs divided by the time between the first and the last submission.
    """

    mean: Fraction
    capacity: int

    @property
    def load(self) -> Fraction:
        """The mean demand divided by the capacity. If it is above 1, the queue only grows."""
        return self.mean / self.capacity


@dataclass(frozen=True, slots=True)
class Target:
    """The scales that give the wanted load.

    Attributes:
        resource: the scarcest resource, whose load is the target.
        offers: the current load for each resource.
        scale_arrivals, scale_cluster: the scales. Each scale alone gives the load.
        arrivals_load, cluster_load: the exact load with each scale. It can differ from the wanted load,
            because a cluster consists of whole nodes.
    """

    resource: str
    wanted: Fraction
    offers: Mapping[str, Offer]
    scale_arrivals: Fraction
    arrivals_load: Fraction
    scale_cluster: Fraction
    cluster_load: Fraction

    @property
    def cluster_reaches(self) -> bool:
        """True if `scale_cluster` gives the wanted load, although a cluster consists of whole nodes."""
        return abs(self.cluster_load - self.wanted) <= _NEAR * self.wanted


def offers_of(trace: Trace, cluster: Cluster) -> dict[str, Offer]:
    """Returns the load that a trace offers for each resource that it requests and that the cluster has."""
    jobs = timed_jobs(trace)
    levels = {
        resource: level_of(jobs, resource)
        for resource in resources_of(jobs.columns)
        if cluster.capacity.get(resource, 0) > 0
    }
    return {
        resource: Offer(level.exact_mean, cluster.capacity[resource])
        for resource, level in levels.items()
        if level.work
    }


def aim(trace: Trace, cluster: Cluster, load: Fraction) -> Target:
    """Find the scales with which the mean demand is `load` times the capacity of the scarcest resource.

    Raises:
        InputError: the trace has no load, the cluster has no resource that the trace requests, or all jobs
            arrive at the same time.
    """
    offers = offers_of(trace, cluster)
    if not offers:
        jobs = timed_jobs(trace)
        if not any(level_of(jobs, resource).work for resource in resources_of(jobs.columns)):
            raise InputError(f"{trace.path}: no job requests a resource for any time, so there is no load")
        raise InputError(
            f"{cluster.source or 'the cluster'} does not have, or does not limit, the resources that "
            f"{trace.path} requests",
            hint="give the manifests of the cluster for the replay: --cluster FILE",
        )
    submit = trace.frame["submit_time"]
    if submit.min() == submit.max():
        raise InputError(
            f"{trace.path}: all jobs are submitted at the same time, so there is no load over time that a "
            "target could refer to",
            hint="harness trace info shows the total requests of the jobs",
        )
    resource = max(sorted(offers), key=lambda name: offers[name].load)
    now = offers[resource].load
    arrivals = _rounded(load / now)
    sizes = {
        size: _load(trace, scaled_cluster(cluster, size), resource) for size in _sizes(cluster, now / load)
    }
    size, reached = min(sizes.items(), key=lambda each: (abs(each[1] - load), each[0]))
    return Target(resource, load, offers, arrivals, now * arrivals, size, reached)


def _sizes(cluster: Cluster, wanted: Fraction) -> list[Fraction]:
    """Returns the wanted size or, for a cluster with nodes, the nearest sizes with whole nodes."""
    nodes = len(cluster.nodes)
    if not nodes:
        return [_rounded(wanted)]
    least = max(1, floor(wanted * nodes))
    return [_rounded(Fraction(count, nodes)) for count in (least, least + 1)]


def _load(trace: Trace, cluster: Cluster, resource: str) -> Fraction:
    offers = offers_of(trace, cluster)
    return offers[resource].load if resource in offers else Fraction(0)


def _rounded(number: Fraction) -> Fraction:
    """Rounds a number to a few digits, so that users can type it easily."""
    return Fraction(f"{float(number):.{_DIGITS}g}")
