"""The policy `default-preemption`, with its options and the fields that it ignores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness import Cluster, Option, Possible, View, boolean
from harness.base.errors import InputError
from harness.models.cluster import DEVICE_POLICIES, SchedulerConfiguration
from harness.models.evictions import LATENCY
from harness.models.ignored import ignored_groups, ignored_scheduling_groups
from harness.models.kube.gang_scheduling import PermitGangs
from harness.models.kube.kinds import Kinds
from harness.models.kube.policy import PodPolicy, require_nodes
from harness.models.kube.scheduler import Scheduler

PERCENTAGE = Option(
    "percentageOfNodesToScore",
    0,
    "stop searching when the pod fits on this percentage of nodes; 0 means 100 nodes, or 5 to 50 % of "
    "the nodes of a large cluster",
    type=int,
)
TOGETHER = "all-or-nothing"
ALONE = "pods"
GANG = Option(
    "gang",
    ALONE,
    "how to place a gang: pod by pod, as kube-scheduler does, or all of its pods together",
    choices=(TOGETHER, ALONE),
)
GANG_SCHEDULING = Option(
    "gangScheduling",
    False,
    "approximation: kube-scheduler's own gangs, as upstream describes v1.35; no recorded case confirms it",
    type=boolean,
)
DEVICES = (
    Option(
        "devices",
        None,
        "how pods that share GPUs choose a node and device; default: as in the manifests, or binpack",
        choices=DEVICE_POLICIES,
    ),
    Option(
        "deviceSeed",
        None,
        "seed for the order of equal nodes, and for the choice of devices with devices=random",
        type=int,
    ),
)
OPTIONS = (
    PERCENTAGE,
    *DEVICES,
    Option("disablePreemption", False, "wait for free capacity instead of preempting", type=boolean),
    LATENCY,
    GANG,
    GANG_SCHEDULING,
)

_APPROXIMATION = (
    f"{GANG_SCHEDULING.name}=true is an approximation: it follows upstream's pages on v1.35, "
    "and no recorded case confirms it"
)


def pods_alone(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """If pods are placed one by one, yields a note that PodGroups have no effect."""
    if options[GANG.name] == ALONE:
        yield from ignored_groups(cluster, f"pods are placed one by one; {GANG.name}={TOGETHER} applies it")


def ignored_fields(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes on pod groups that have no effect, and a note if gang scheduling is an approximation."""
    yield from pods_alone(cluster, options)
    if options.get(GANG_SCHEDULING.name):
        yield _APPROXIMATION
    else:
        yield from ignored_scheduling_groups(cluster)


def configuration_of(cluster: Cluster, options: Mapping[str, Any]) -> SchedulerConfiguration:
    """Returns the configuration in the manifests, combined with the settings in the options."""
    configuration = cluster.scheduler or SchedulerConfiguration()
    percentage = options.get("percentageOfNodesToScore", 0)
    if not 0 <= percentage <= 100:
        raise InputError(f"option percentageOfNodesToScore: {percentage} is not a percentage (0 to 100)")
    said = {"policy": options.get("devices"), "seed": options.get("deviceSeed")}
    return replace(
        configuration,
        devices=replace(configuration.devices, **{k: v for k, v in said.items() if v is not None}),
        percentage_of_nodes_to_score=percentage or configuration.percentage_of_nodes_to_score,
        disable_preemption=options.get("disablePreemption", False) or configuration.disable_preemption,
    )


def fits_no_node(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    """Finds the jobs that don't fit even on empty nodes, and the jobs whose required pod group is missing.

    Raises:
        InputError: the cluster has no nodes, or an option is out of range.
    """
    require_nodes(cluster)
    groups = bool(options.get(GANG_SCHEDULING.name))
    return Kinds(Scheduler(cluster, configuration_of(cluster, options)), cluster, groups=groups).never


def default_preemption(
    cluster: Cluster,
    view: View,
    options: Mapping[str, Any],
    *,
    gives_up: bool = True,
    latency: int | None = None,
) -> PodPolicy:
    """Returns the policy `default-preemption`.

    Args:
        cluster: the cluster, which must have nodes.
        view: not used, because the scheduler does its own accounting, as in reality.
        options: the values of `OPTIONS`.
        gives_up: see `PodPolicy`.
        latency: see `PodPolicy`.

    Raises:
        InputError: the cluster has no nodes, or an option is out of range.
    """
    gangs = PermitGangs(cluster.scheduling_groups) if options.get(GANG_SCHEDULING.name) else None
    configuration = configuration_of(cluster, options)
    return PodPolicy(
        cluster,
        Scheduler(cluster, configuration, gangs=gangs),
        gives_up=gives_up,
        latency=latency,
        groups=gangs is not None,
        preempts=not configuration.disable_preemption,
    )
