"""Scales a cluster, which multiplies its nodes and quotas but keeps their proportions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor

from harness.base.errors import InputError
from harness.base.options import factor_text
from harness.base.text import agreeing
from harness.base.units import INT64_MAX
from harness.cluster.kinds.core import HOSTNAME
from harness.cluster.kinds.elastic import ElasticQuota
from harness.cluster.model import MOST_NODES, UNLIMITED, Cluster, Node, ResourceGroup, ResourceQuota, frozen
from harness.cluster.shares import largest_remainder


def scaled_cluster(cluster: Cluster, scale: Fraction) -> Cluster:
    """Returns the cluster with `scale` times its nodes and quotas.

    - A smaller cluster keeps nodes at even intervals of the list, so the mix of nodes stays the same. A
      larger cluster contains copies of nodes.
    - For each resource in each flavor, the sum of the nominal quotas is scaled and rounded down. The largest
      remainder method then divides the sum.
    - Limits and elastic quotas are rounded down one by one. Unlimited quantities stay unlimited.
    - Objects of plugin kinds scale themselves. If an object can't scale itself, the cluster gets a warning.
    - Pods on removed nodes are also removed, and the cluster gets a warning.

    `scale` is greater than 0. At least one node remains.

    Raises:
        InputError: there would be too many nodes, or quantities that are too large to represent.
    """
    if scale == 1:
        return cluster
    nodes = _scaled_nodes(cluster.nodes, scale)
    pods = tuple(pod for pod in cluster.pods if not pod.node or pod.node in nodes)
    lost = len(cluster.pods) - len(pods)
    warning = (f"{agreeing(lost, 'pod', 'are')} left out with the nodes that they run on",) if lost else ()
    unscaled = [
        f"{kind}: --scale-cluster does not change objects of this kind"
        for kind, found in cluster.custom_resources.items()
        if not all(map(scales, found.values()))
    ]
    owners = {("queue", name): queue.resource_groups for name, queue in cluster.cluster_queues.items()}
    owners |= {("cohort", name): cohort.resource_groups for name, cohort in cluster.cohorts.items()}
    groups = _scaled_groups(owners, scale)
    return replace(
        cluster,
        nodes=nodes,
        pods=pods,
        cluster_queues=frozen(
            {
                name: replace(queue, resource_groups=groups["queue", name])
                for name, queue in cluster.cluster_queues.items()
            }
        ),
        cohorts=frozen(
            {
                name: replace(cohort, resource_groups=groups["cohort", name])
                for name, cohort in cluster.cohorts.items()
            }
        ),
        elastic_quotas=frozen(
            {name: _scaled_elastic(quota, scale) for name, quota in cluster.elastic_quotas.items()}
        ),
        custom_resources=frozen(
            {
                kind: frozen(
                    {name: each.scaled(scale) if scales(each) else each for name, each in found.items()}
                )
                for kind, found in cluster.custom_resources.items()
            }
        ),
        warnings=(*cluster.warnings, *warning, *unscaled),
        scale=cluster.scale * scale,
    )


def scales(resource: object) -> bool:
    """Returns True if an object of a plugin kind can scale itself."""
    return callable(getattr(resource, "scaled", None))


def _scaled_nodes(nodes: Mapping[str, Node], scale: Fraction) -> Mapping[str, Node]:
    """Returns the scaled nodes. The numbers of copies of any two nodes differ by at most one."""
    if not nodes:
        return nodes
    there = list(nodes.values())
    wanted, times = max(1, round(len(there) * scale)), factor_text(str(scale))
    if wanted > MOST_NODES:
        raise InputError(
            f"scaled by {times}, the cluster would need {wanted:,} nodes, but the limit is {MOST_NODES:,}",
            hint="use a smaller scale, or fewer and larger nodes",
        )
    made: dict[str, Node] = {}
    copies: dict[str, int] = {}
    total: dict[str, int] = {}
    for place in range(wanted):
        node = there[place * len(there) // wanted]
        copy, name = copies.get(node.name, 1), node.name
        while name in made or (copy > 1 and name in nodes):
            copy += 1
            name = f"{node.name}-{copy}"
        copies[node.name] = copy
        labels = {**node.labels, HOSTNAME: name} if HOSTNAME in node.labels else node.labels
        made[name] = node if copy == 1 else replace(node, name=name, labels=frozen(labels))
        for resource, amount in node.allocatable.items():
            total[resource] = total.get(resource, 0) + amount
    if beyond := sorted(resource for resource, amount in total.items() if amount > INT64_MAX):
        raise InputError(
            f"a cluster with {times} times as many nodes has more {beyond[0]} than 64 bits can count"
        )
    return frozen(made)


def _scaled_groups(
    owners: Mapping[tuple[str, str], tuple[ResourceGroup, ...]], scale: Fraction
) -> dict[tuple[str, str], tuple[ResourceGroup, ...]]:
    """Returns the scaled quotas of all queues and cohorts.

    Quotas of one resource in one flavor keep their proportions.
    """
    nominal: dict[tuple[str, str], dict[str, int]] = {}
    for owner, groups in owners.items():
        for flavor, resource, quota in (each for group in groups for each in group.quotas()):
            if quota.nominal < UNLIMITED:
                nominal.setdefault((flavor, resource), {})["/".join(owner)] = quota.nominal
    shares = {
        key: largest_remainder(floor(sum(amounts.values()) * scale), amounts) if any(amounts.values()) else {}
        for key, amounts in nominal.items()
    }

    def scaled(owner: tuple[str, str], flavor: str, resource: str, quota: ResourceQuota) -> ResourceQuota:
        own = shares.get((flavor, resource), {}).get("/".join(owner), quota.nominal)
        lending = _scaled(quota.lending_limit, scale)
        if lending is not None and quota.lending_limit is not None and quota.lending_limit <= quota.nominal:
            lending = min(lending, own)
        return ResourceQuota(own, _scaled(quota.borrowing_limit, scale), lending)

    return {
        owner: tuple(group.with_quotas(partial(scaled, owner)) for group in groups)
        for owner, groups in owners.items()
    }


def _scaled_elastic(quota: ElasticQuota, scale: Fraction) -> ElasticQuota:
    least, most = (
        None
        if bounds is None
        else frozen({resource: _scaled(amount, scale) or 0 for resource, amount in bounds.items()})
        for bounds in (quota.min, quota.max)
    )
    return replace(quota, min=least, max=most)


def _scaled(amount: int | None, scale: Fraction) -> int | None:
    return amount if amount is None or amount >= UNLIMITED else floor(amount * scale)
