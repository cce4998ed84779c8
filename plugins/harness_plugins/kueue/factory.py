"""Makes the policies `kueue-classic` and `fairsharing` from a cluster and their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cluster.kueue_configuration import STRATEGIES, KueueConfiguration
from harness.cluster.model import Cluster
from harness.errors import OptionError
from harness.options import did_you_mean
from harness.policy import View
from harness_plugins.kueue.configuration import (
    Gates,
    gates_from,
    parse_gates,
    parse_strategies,
    parse_weights,
)
from harness_plugins.kueue.imported import used_flavor_resources
from harness_plugins.kueue.policy import KueuePolicy
from harness_plugins.kueue.scheduler import Scheduler


def classic(cluster: Cluster, view: View, options: Mapping[str, Any]) -> KueuePolicy:
    """Kueue with classic preemption, whatever its Configuration says of fair sharing."""
    also = used_flavor_resources(cluster.workloads)
    return _policy(Scheduler(cluster, _gates(cluster, options), None, also=also), cluster, options)


def fair_sharing(cluster: Cluster, view: View, options: Mapping[str, Any]) -> KueuePolicy:
    """Kueue with fair sharing.

    Raises:
        OptionError: a weight for something that is neither ClusterQueue nor Cohort.
    """
    weights = parse_weights(options["weights"])
    known = {**cluster.cluster_queues, **cluster.cohorts}
    for name in weights:
        if name not in known:
            raise OptionError(
                f"option weights: there is no ClusterQueue or Cohort {name!r}", hint=did_you_mean(name, known)
            )
    strategies = parse_strategies(options["preemptionStrategies"]) or _configuration(cluster).strategies
    gates, also = _gates(cluster, options), used_flavor_resources(cluster.workloads)
    scheduler = Scheduler(cluster, gates, strategies or STRATEGIES, weights=weights, also=also)
    return _policy(scheduler, cluster, options)


def _policy(scheduler: Scheduler, cluster: Cluster, options: Mapping[str, Any]) -> KueuePolicy:
    binder = None
    if cluster.nodes:
        from harness_plugins.kueue.binding import Binder

        binder = Binder(cluster)
    return KueuePolicy(scheduler, cluster, latency=options["evictionLatency"], binder=binder)


def _configuration(cluster: Cluster) -> KueueConfiguration:
    return cluster.kueue or KueueConfiguration()


def _gates(cluster: Cluster, options: Mapping[str, Any]) -> Gates:
    return gates_from({**_configuration(cluster).gates, **parse_gates(options["featureGates"])})
