"""Models Kueue's scheduler: queues and cohorts, flavors, the admission cycle, and preemption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import Cluster, Option, PolicySpec, Register, hookimpl
from harness.models.cluster import PERMITTED_TEXT
from harness.models.evictions import LATENCY
from harness.models.ignored import ignored_groups, ignored_scheduling_groups
from harness.plugins.hookspecs import late
from harness_plugins.kueue.options import (
    BY_NAME,
    BY_NAMESPACE,
    MIN_RUN_TIME,
    PREEMPTION_RATE,
    checked,
    parse_check_delays,
    parse_gates,
    parse_guarantees,
    parse_rate,
    parse_release,
    parse_strategies,
    parse_weights,
)

if TYPE_CHECKING:
    from harness.plugins.conformance import ConformanceSpec

_HERE = "harness_plugins.kueue"
_COMMON = (
    LATENCY,
    Option(
        "kueueVersion",
        "",
        "the release of Kueue to model: v0.17.8, v0.17 for its newest patch, or ff69552; default: the "
        "release of the cluster's controller, or else the newest release",
        type=checked(parse_release),
    ),
    Option(
        "featureGates",
        "",
        "feature gates that override Kueue's Configuration, such as PriorityBoost=true",
        type=checked(parse_gates),
    ),
    Option(
        "admissionCheckDelay",
        "0s",
        "the time from a quota reservation until its admission checks are ready: 2m for all checks, or "
        "prov=2m,other=30s by name",
        type=checked(parse_check_delays),
    ),
    Option(
        "localQueueIdentity",
        BY_NAME,
        "whether the namespace also identifies a LocalQueue when past usage orders preemption candidates",
        choices=(BY_NAME, BY_NAMESPACE),
    ),
    Option(
        MIN_RUN_TIME,
        "",
        "preview, not in Kueue: how long a workload runs before it can be preempted: 30m, team-a=1h for a "
        "ClusterQueue, priority:1000=2h for this priority and higher",
        type=checked(parse_guarantees),
    ),
    Option(
        PREEMPTION_RATE,
        "",
        "preview, not in Kueue: how many workloads of a ClusterQueue can be preempted per period: 3/1h, or "
        "team-a=1/10m",
        type=checked(parse_rate),
    ),
)
_FAIR = (
    Option(
        "preemptionStrategies",
        "",
        f"{PERMITTED_TEXT}; default: as in Kueue's Configuration",
        type=checked(parse_strategies),
    ),
    Option(
        "weights",
        "",
        "fair-sharing weights that override the manifests, such as team-a=2,team-b=500m",
        type=checked(parse_weights),
    ),
)


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `kueue-classic` and `fairsharing`."""
    register(
        PolicySpec(
            "kueue-classic",
            late(f"{_HERE}.factory:classic"),
            help="Kueue with classic preemption: by priority, and to reclaim quota that other queues borrow",
            options=_COMMON,
            running=late(f"{_HERE}.manifests.beginning:running_jobs"),
            ignored_fields=_ignored_fields,
            never=late(f"{_HERE}.factory:impossible"),
            by_queues=_by_queues,
            assumes=late(f"{_HERE}.factory:assumptions"),
        )
    )
    register(
        PolicySpec(
            "fairsharing",
            late(f"{_HERE}.factory:fair_sharing"),
            help="Kueue with fair sharing: fair shares determine who is admitted first and who is preempted",
            options=(*_COMMON, *_FAIR),
            running=late(f"{_HERE}.manifests.beginning:running_jobs"),
            ignored_fields=_ignored_by_fair_sharing,
            never=late(f"{_HERE}.factory:impossible"),
            by_queues=_by_queues,
            assumes=late(f"{_HERE}.factory:assumptions"),
        )
    )


@hookimpl
def harness_register_conformance(register: Register[ConformanceSpec]) -> None:
    """Register the recorded cases of Kueue's scheduler."""
    from harness.plugins.conformance import ConformanceSpec

    register(
        ConformanceSpec(
            "kueue/targets",
            late(f"{_HERE}.conformance.targets:answer"),
            help="which workloads Kueue preempts for another workload, and why",
            explain=late(f"{_HERE}.conformance.targets:explain"),
        )
    )
    register(
        ConformanceSpec(
            "kueue/cycles",
            late(f"{_HERE}.conformance.cycles:answer"),
            help="which workloads are admitted and preempted over time",
            informative=("cycle", "cycles", "heads"),
        )
    )
    register(
        ConformanceSpec(
            "kueue/tas",
            late(f"{_HERE}.conformance.placement:answer_placement"),
            help="where topology-aware scheduling places the pods of a workload",
        )
    )


def _by_queues(cluster: Cluster) -> bool:
    """Returns True, because Kueue can admit a Workload only if its queue refers to a ClusterQueue."""
    return True


def _ignored_fields(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on PodGroups and admission check delays that have no effect."""
    yield from ignored_groups(
        cluster, "Kueue admits a job as a whole, or with fewer pods if its min_pods allows it"
    )
    yield from ignored_scheduling_groups(cluster)
    delay = parse_check_delays(options["admissionCheckDelay"])
    if delay and not any(queue.checks for queue in cluster.cluster_queues.values()):
        yield "option admissionCheckDelay does nothing: no ClusterQueue has an admission check"


def _ignored_by_fair_sharing(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on fields without an effect. Fair sharing does not use `borrowWithinCohort`."""
    yield from _ignored_fields(cluster, options)
    for name, queue in cluster.cluster_queues.items():
        if queue.preemption.borrow_within_cohort != "Never":
            yield (
                f"ClusterQueue {name}: spec.preemption.borrowWithinCohort has no effect: with fair sharing, "
                "only shares determine which workloads are preempted"
            )
