"""Finds jobs that don't fit into any topology domain, although the quota and the cluster are large enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.cluster.model import Cluster, Node
from harness.policy import PodSet
from harness.trace.lint.finding import Finding, Material, counted
from harness.trace.pod_sets import PodSetMaker

_SHOWN = 3


def check(material: Material) -> Iterator[Finding]:
    """Yields a single finding for all jobs whose pods do not fit into one domain of their required level."""
    cluster, frame = material.cluster, material.trace.frame
    if cluster is None or not cluster.topologies:
        return
    known: dict[PodSet, str] = {}
    lacking: dict[str, str] = {}
    rows = zip(frame["job_id"].to_list(), PodSetMaker(frame, None).of(0, frame.height), strict=True)
    for job, (pod_set,) in rows:
        if pod_set not in known:
            known[pod_set] = _lacks(pod_set, cluster)
        if known[pod_set]:
            lacking.setdefault(job, known[pod_set])
    if lacking:
        jobs = material.jobs.height
        named = "; ".join(f"{job}: {why}" for job, why in list(lacking.items())[:_SHOWN])
        more = f"; and {len(lacking) - _SHOWN:,} more" if len(lacking) > _SHOWN else ""
        yield Finding(
            "no-domain",
            f"{counted(len(lacking), jobs)} require one domain of a topology, but no domain can hold them "
            f"even when empty: {named}{more}",
            "these jobs wait forever; request the level as preferred, or require a coarser level",
        )


def _lacks(pod_set: PodSet, cluster: Cluster) -> str:
    """Explains why no domain has enough capacity for the minimum number of pods of a pod set.

    If some domain has enough capacity, or if the pod set does not require a domain, the result is "".
    """
    request = pod_set.topology
    if request is None or not request.required:
        return ""
    most = -1
    for flavor in cluster.flavors.values():
        topology = cluster.topologies.get(flavor.topology)
        if topology is None or request.required not in topology.levels:
            continue
        levels = topology.levels[: topology.levels.index(request.required) + 1]
        domains: dict[tuple[str, ...], int] = {}
        for node in cluster.nodes.values():
            labels = node.labels
            if flavor.node_labels.items() <= labels.items() and labels.keys() >= set(topology.levels):
                domain = tuple(labels[level] for level in levels)
                domains[domain] = domains.get(domain, 0) + _times(node, pod_set.requests)
        most = max([most, *domains.values()])
    if most < 0:
        return f"no node is in a domain of {request.required}"
    least = pod_set.min_count
    return f"{least:,} pods must be in one {request.required}, but only {most:,} fit" if most < least else ""


def _times(node: Node, requests: Mapping[str, int]) -> int:
    asked = {resource: amount for resource, amount in requests.items() if amount}
    slots = node.allocatable.get("pods")
    fits = [node.allocatable.get(resource, 0) // amount for resource, amount in asked.items()]
    return min([*fits, *([] if slots is None else [slots])], default=0)
