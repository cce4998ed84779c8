"""Represents a ClusterQueue, with its manifest and its position in the tree of cohorts."""

from __future__ import annotations

from collections.abc import Container
from typing import final

from harness.models.cluster import DELETION, ClusterQueue


@final
class ClusterQueueState:
    """A ClusterQueue in the quota tree.

    Attributes:
        number: the index of the queue among the ClusterQueues.
        root: the root of its quota tree. If the queue has no cohort, it is the same as `node`.
        path: the cohorts above the queue, starting with its own cohort.
        above: the cohort of the queue, or its own node if it has no cohort.
        below: for each cohort in `path`, the child of the cohort that contains the queue or is the queue
            itself.
        branch: the child of the root that contains the queue or is the queue itself. Without a cohort, it is
            the queue's own node.
        reclaims: whether the queue may preempt workloads of other queues.
        strict: whether the queue is StrictFIFO. Its head then blocks all others until it is admitted.
        preempts: whether the queue may preempt any workloads.
        usable: whether the queue takes part in scheduling. A stopped queue only lends its quota.
        generation: how often the workloads with quota have changed (Kueue's AllocatableResourceGeneration). A
            new generation invalidates a LastAssignment.
    """

    spec: ClusterQueue
    number: int
    node: int
    path: tuple[int, ...]
    above: int
    below: dict[int, int]
    root: int
    branch: int
    reclaims: bool
    strict: bool
    preempts: bool
    usable: bool

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 0

    def be(self, spec: ClusterQueue, number: int, node: int, path: tuple[int, ...], *, usable: bool) -> None:
        """Sets the manifest of the queue and its position in the tree."""
        self.spec = spec
        self.number = number
        self.node = node
        self.path = path
        self.above = path[0] if path else node
        self.below = dict(zip(path, (node, *path), strict=False))
        self.root = path[-1] if path else node
        self.branch = (node, *path)[-2] if path else node
        self.reclaims = bool(path) and spec.preemption.reclaim_within_cohort != "Never"
        self.strict = spec.queueing_strategy == "StrictFIFO"
        self.preempts = self.reclaims or spec.preemption.within_cluster_queue != "Never"
        self.usable = usable

    def sides(self, other: ClusterQueueState) -> tuple[int, int]:
        """Returns two children of the lowest common ancestor: one contains this queue, the other `other`."""
        mine, theirs = self.below, other.below
        for ancestor in theirs:  # nearest ancestors come first
            if ancestor in mine:
                return mine[ancestor], theirs[ancestor]
        raise AssertionError("queues of one tree have a common ancestor")


def inactive_reason(spec: ClusterQueue, flavors: Container[str]) -> str:
    """Returns why a ClusterQueue is inactive, or "" if it is active. `flavors` are those that exist.

    Kueue's `clusterQueue.inactiveReason` names a begun deletion first, and then the stop policy.
    """
    if spec.inactive == DELETION:
        return spec.inactive
    if spec.stop_policy != "None":
        return f"its stopPolicy is {spec.stop_policy}"
    for quotas in (quotas for group in spec.resource_groups for quotas in group.flavors):
        if quotas.flavor not in flavors:
            return f"there is no ResourceFlavor {quotas.flavor}"
    return spec.inactive
