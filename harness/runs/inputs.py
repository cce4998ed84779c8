"""What a replay reads: a trace, the cluster to replay it on, and what that says of the policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import TraceError

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.trace.calibration import Calibration
    from harness.trace.trace import Trace


def read_trace(trace: str | Path | Trace, plugins: Plugins, calibration: Calibration | None = None) -> Trace:
    """A trace that holds to its schema, calibrated.

    Raises:
        TraceError: it cannot be read, or breaks the schema; all faults at once.
        OptionError: a step of the calibration does not fit it.
    """
    from harness.trace.trace import open_trace

    opened = open_trace(Path(trace), plugins) if isinstance(trace, (str, Path)) else trace
    return opened if calibration is None else calibration.of_trace(opened)


def read_cluster(
    cluster: str | Path | Cluster | None, trace: Trace, calibration: Calibration | None = None
) -> Cluster:
    """The cluster for a trace: the one given, the one beside the trace, or one made from it; then scaled.

    Raises:
        ClusterError: the manifests are faulty.
        TraceError: the trace does not fit the cluster (unknown queues, jobs larger than all of it).
    """
    from harness.cluster.derive import find_cluster
    from harness.cluster.load import load_cluster
    from harness.trace.demand import derived_cluster
    from harness.trace.homes import homed, map_hint
    from harness.trace.validate import cluster_faults

    if cluster is None:
        cluster = find_cluster(trace.path)
    if cluster is None:
        chosen = derived_cluster(trace)
    else:
        chosen = load_cluster(Path(cluster)) if isinstance(cluster, (str, Path)) else cluster
    if calibration is not None:
        chosen = calibration.of_cluster(chosen)
    faults = cluster_faults(homed(trace, chosen), chosen)
    if faults:
        raise TraceError(
            f"{trace.path} does not fit {chosen.source or 'the cluster'}",
            faults,
            hint=map_hint(faults) or "harness cluster check shows it",
        )
    return chosen


def default_plugin(cluster: Cluster) -> str:
    """The plugin that the `preemptionAlgorithm` of a KubeSchedulerConfiguration selects; none without one."""
    return cluster.scheduler.plugin if cluster.scheduler is not None else "none"
