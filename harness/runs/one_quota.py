"""Prepares the replay of a single quota, with only its jobs and only its nominal quota."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from harness.base.errors import OptionError
from harness.base.options import did_you_mean
from harness.cluster.changes.edits import ever
from harness.cluster.kinds.elastic import leaves_of
from harness.cluster.one_quota import alone_on
from harness.runs.tenants import elastic_quotas, tenants
from harness.trace.job_rows import filled
from harness.trace.quota_names import QUOTA_NAME, quota_names
from harness.trace.schema import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins.registries import PolicySpec
    from harness.runs.at_start import AtStart
    from harness.trace.trace import Trace


def alone(
    trace: Trace, cluster: Cluster, quota: str, *, by_elastic_quotas: bool = False
) -> tuple[Trace, Cluster]:
    """Returns the trace with only the jobs of a quota, and the cluster with only the quotas of these jobs.

    The queues in `trace` are queues of the cluster (`harness.trace.homes`). `quota` is a ClusterQueue or
    ElasticQuota. For `by_elastic_quotas`, see `tenants`.

    Raises:
        OptionError: the quota does not exist, or no job counts against it.
    """
    there = ever(cluster)
    known = {**leaves_of(there.elastic_quotas), **there.cluster_queues}
    if quota not in known:
        raise OptionError(
            f"alone: the cluster has no ClusterQueue or ElasticQuota {quota!r}",
            hint=did_you_mean(quota, list(known)),
        )
    rows = trace.frame
    named = quota_names(rows, there)
    doors = rows.select("job_id", "queue", filled(rows, "namespace", DEFAULT_NAMESPACE))
    doors = doors if named is None else doors.with_columns(named)
    jobs = doors if named is None else doors.with_columns(pl.col(QUOTA_NAME).first().over("job_id"))
    found = tenants(jobs, there, by_elastic_quotas=by_elastic_quotas)
    own = found.names.cast(pl.String).is_in(
        [name for name, behind in found.quotas.items() if behind == quota]
    )
    frame = rows.filter(own)
    if frame.is_empty():
        raise OptionError(f"alone: no job of {trace.path} counts against quota {quota!r}")
    return replace(trace, frame=frame), alone_on(cluster, quota, elastic_quotas(doors.filter(own), there))


def faults(policy: PolicySpec, begun: AtStart) -> Iterator[str]:
    """Yields the reasons why a quota can't be replayed alone with a policy."""
    if policy.record:
        yield "it repeats recorded events"
    if begun.takes_part:
        yield (
            "the replay includes work from the manifests, which belongs to all quotas (--at-start empty "
            "leaves it out)"
        )
