"""Reads the input of a replay: a trace, a cluster, and the policy that the cluster selects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import Fault, TraceError
from harness.base.text import first_of
from harness.cluster.changes.edits import ever
from harness.runs.cache import Lasting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.plugins.registries import PolicySpec
    from harness.trace.calibration import Calibration
    from harness.trace.trace import Trace

_fits: Lasting[None] = Lasting()
"""Caches whether a trace fits a cluster.

The key says whether only ClusterQueues admit jobs although ElasticQuotas exist as well.
"""

_DUMP = "kubectl get nodes,clusterqueues -o yaml > FILE, or harness cluster init TRACE -o FILE"
_DROP = "harness replay --drop-impossible leaves out jobs of unknown queues and jobs that can never start"


def read_trace(
    trace: str | Path | Trace,
    plugins: Plugins,
    calibration: Calibration | None = None,
    *,
    reader: str | None = None,
) -> Trace:
    """Read a trace, check it against the schema, and calibrate it.

    Without `reader`, the format is determined by the suffix or the first bytes of the file.

    Raises:
        TraceError: the trace can't be read, or violates the schema. The error lists all faults together.
        OptionError: a step of the calibration is not suitable for the trace.
    """
    from harness.trace.trace import open_trace

    opened = open_trace(Path(trace), plugins, reader=reader) if isinstance(trace, (str, Path)) else trace
    return opened if calibration is None else calibration.of_trace(opened)


def read_cluster(
    cluster: str | Path | Cluster | None, trace: Trace, calibration: Calibration | None = None
) -> Cluster:
    """Read the given cluster, or else the manifests next to the trace, or else derive a cluster.

    The calibration then scales the cluster.

    Raises:
        ClusterError: the manifests are faulty.
        TraceError: the trace does not fit the cluster, because of unknown queues or jobs that are larger than
            the whole cluster.
    """
    chosen = cluster_for(cluster, trace, calibration)
    check_fit(trace, chosen)
    return chosen


def check_fit(trace: Trace, cluster: Cluster, *, by_queues: bool = False) -> None:
    """Check that a cluster has all objects that a trace names, and is large enough for each job.

    If ClusterQueues admit the jobs (`by_queues`), an ElasticQuota with the name of a job's queue is not
    sufficient.

    Raises:
        TraceError: the trace does not fit the cluster. The error lists all faults together.
    """
    asked = by_queues and bool(cluster.elastic_quotas)
    _fits.answer(trace, cluster, lambda: _check_fit(trace, cluster, by_queues=asked), asked)


def without_queues(trace: Trace, cluster: Cluster, policy: PolicySpec) -> Iterator[str]:
    """Yields a warning if the policy admits jobs by ClusterQueues, but the cluster has none at any time."""
    there = ever(cluster)
    if there.cluster_queues or not trace.frame.height or not policy.admits_by_queues(there):
        return
    queues = first_of([repr(name) for name in trace.frame["queue"].unique().sort()], 3)
    yield (
        f"{policy.name} admits jobs by ClusterQueues, but the cluster has none, so {policy.name} rejects "
        f"every job. harness cluster init {trace.path} -o FILE writes a cluster with a ClusterQueue for "
        f"each queue of the trace ({queues}). default-preemption needs nodes and no queues"
    )


def _check_fit(trace: Trace, cluster: Cluster, *, by_queues: bool) -> None:
    from harness.trace.homes import homed, map_hint
    from harness.trace.validate import cluster_faults

    there = ever(cluster)
    faults = cluster_faults(homed(trace, there), there, by_queues=by_queues)
    source = cluster.source or "the cluster"
    if faults and not (there.nodes or there.resource_groups):
        raise TraceError(
            source,
            [Fault("", "has neither Nodes nor quotas of ClusterQueues, so no job can start")],
            hint=_DUMP,
        )
    if faults:
        raise TraceError(
            f"{trace.path} does not fit {source}",
            faults,
            hint="; ".join(filter(None, (map_hint(faults), _DROP))),
        )


def cluster_for(
    cluster: str | Path | Cluster | None, trace: Trace, calibration: Calibration | None = None
) -> Cluster:
    """Returns the same cluster as `read_cluster`, but does not check that the trace fits the cluster.

    Raises:
        ClusterError: the manifests are faulty.
    """
    from harness.cluster.derive import find_cluster
    from harness.cluster.load import load_cluster
    from harness.trace.demand import derived_cluster

    if cluster is None:
        cluster = find_cluster(trace.path)
    if cluster is None:
        chosen = derived_cluster(trace)
    else:
        chosen = load_cluster(Path(cluster)) if isinstance(cluster, (str, Path)) else cluster
    return chosen if calibration is None else calibration.of_cluster(chosen, trace)


def default_plugin(cluster: Cluster) -> str:
    """Returns the plugin that `preemptionAlgorithm` of a KubeSchedulerConfiguration selects.

    Returns `none`, the name of the plugin without preemption, if the cluster has no such configuration.
    """
    return cluster.scheduler.plugin if cluster.scheduler is not None else "none"
