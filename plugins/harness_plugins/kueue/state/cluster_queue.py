"""A ClusterQueue: its manifest, and its place in the tree of cohorts."""

from __future__ import annotations

from typing import final

from harness.models.cluster import ClusterQueue


@final
class ClusterQueueState:
    """A ClusterQueue in the quota tree.

    Attributes:
        spec: the manifest.
        number: the queue's place among the ClusterQueues.
        node: the queue's node in the quota tree.
        root: the node at the top of its tree; equal to `node` without a cohort.
        path: the cohorts above the queue, nearest first.
        below: cohort in `path` -> the node right below this cohort on the way to the queue.
        usable: whether the queue takes part in scheduling; a stopped queue only lends its quota.
        generation: how often the holders of quota changed (Kueue's AllocatableResourceGeneration); a new
            generation invalidates a LastAssignment.
    """

    __slots__ = ("below", "generation", "name", "node", "number", "path", "root", "spec", "usable")

    spec: ClusterQueue
    number: int
    node: int
    path: tuple[int, ...]
    below: dict[int, int]
    root: int
    usable: bool

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 0

    def be(self, spec: ClusterQueue, number: int, node: int, path: tuple[int, ...], *, usable: bool) -> None:
        """Sets the manifest of the queue and its place in the tree."""
        self.spec = spec
        self.number = number
        self.node = node
        self.path = path
        self.below = dict(zip(path, (node, *path), strict=False))
        self.root = path[-1] if path else node
        self.usable = usable

    def sides(self, other: ClusterQueueState) -> tuple[int, int]:
        """Returns the nodes right below the lowest common ancestor, on this side and on the other's."""
        mine, theirs = self.below, other.below
        for ancestor in theirs:  # nearest first
            if ancestor in mine:
                return mine[ancestor], theirs[ancestor]
        raise AssertionError("queues of one tree have a common ancestor")

    def __repr__(self) -> str:
        return f"<ClusterQueue {self.name}>"
