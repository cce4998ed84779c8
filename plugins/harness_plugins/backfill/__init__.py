"""The plugin `backfill` models batch schedulers, where jobs can overtake other jobs without delaying them.

The rules are based on these sources:

- D. Lifka, The ANL/IBM SP scheduling system (1995), for EASY.
- A. Mu'alem and D. Feitelson, Utilization, predictability, workloads, and user runtime estimates in
  scheduling the IBM SP2 with backfilling (2001), for both algorithms.
- D. Tsafrir, Y. Etsion and D. Feitelson, Backfilling using system-generated predictions rather than user
  runtime estimates (2007), for `estimate=last-two`.

The rules of `correction=from-first` are based on jad-darrous/predictsim 174c453.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Cluster, Option, Policy, PolicySpec, Possible, Register, View, hookimpl
from harness.base.errors import InputError
from harness.base.options import refuse_set
from harness.base.units import parse_duration
from harness.models.ignored import ignored_groups, ignored_scheduling_groups, stopped_queues
from harness.models.job_quotas import BORROW
from harness.models.kube.running import running_jobs
from harness.policy import Arrival

OPTIONS = (
    Option(
        "algorithm",
        "easy",
        "which waiting jobs must not be delayed: the first one (easy), or all of them (conservative)",
        choices=("easy", "conservative"),
    ),
    Option(
        "estimate",
        "requested",
        "the expected run time of a job: requested, actual, or the mean of its user's last two jobs",
        choices=("requested", "actual", "last-two"),
    ),
    Option(
        "correction",
        "steps",
        "how to lengthen a prediction that is too short: in steps, in steps from the first prediction, "
        "or to the request",
        choices=("steps", "from-first", "requested"),
    ),
    Option(
        "order",
        "fcfs",
        "which job comes first: the oldest, the shortest expected, or the one with the highest priority",
        choices=("fcfs", "sjf", "priority"),
    ),
    Option(
        "ties",
        "ends-first",
        "the order of simultaneous events: ends first, submissions first, or one decision after all events",
        choices=("ends-first", "submissions-first", "together"),
    ),
    Option(
        "unstated",
        None,
        "the expected run time of jobs without requested_time; by default, they never end",
        type=parse_duration,
    ),
    BORROW,
)


@hookimpl
def harness_register_policies(register: Register[PolicySpec]) -> None:
    """Register `backfill`."""
    register(
        PolicySpec(
            "backfill",
            backfilling,
            help="EASY and conservative backfilling of whole jobs, on nodes or within quotas",
            options=OPTIONS,
            clairvoyant=True,
            running=_running,
            ignored_fields=_ignored_fields,
            never=_never,
            by_queues=lambda cluster: not _on_nodes(cluster),  # queues have no effect beside nodes
        )
    )


def backfilling(cluster: Cluster, view: View, options: Mapping[str, Any]) -> Policy:
    """Returns the scheduler for a cluster.

    Raises:
        InputError: the cluster has neither nodes nor queues.
        OptionError: an option is set that has no effect on nodes.
    """
    from harness_plugins.backfill.policy import Backfill  # the list of plugins does not need it

    _check(cluster, options)
    return Backfill(cluster, options)


def _on_nodes(cluster: Cluster) -> bool:
    return bool(cluster.nodes) or cluster.nodes_change


def _check(cluster: Cluster, options: Mapping[str, Any]) -> None:
    if _on_nodes(cluster):
        refuse_set("backfill", (BORROW,), options, "the cluster has nodes, so quotas have no effect")
    elif not cluster.cluster_queues:
        raise InputError("the cluster has neither nodes nor ClusterQueues, so there is nothing to run on")


def _never(cluster: Cluster, options: Mapping[str, Any]) -> Possible:
    from harness_plugins.backfill.policy import possible

    _check(cluster, options)
    return possible(cluster, options)


def _running(cluster: Cluster, at: int) -> Sequence[Arrival]:
    return running_jobs(cluster, at) if cluster.nodes else ()


def _ignored_fields(cluster: Cluster, options: Mapping[str, Any]) -> Iterator[str]:
    yield from ignored_groups(cluster, "jobs start as a whole")
    yield from ignored_scheduling_groups(cluster)
    if _on_nodes(cluster):
        if cluster.cluster_queues:
            yield "ClusterQueues have no effect: on a cluster with nodes, only nodes decide which jobs start"
    else:
        yield from stopped_queues(cluster)
