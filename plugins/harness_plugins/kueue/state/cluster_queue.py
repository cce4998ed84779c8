"""A ClusterQueue: its manifest, and its place in the tree of cohorts."""

from __future__ import annotations

from typing import final

from harness.models.cluster import ClusterQueue


@final
class ClusterQueueState:
    """A ClusterQueue in the quota tree.

    Attributes:
        spec: its manifest.
        number: its place among the ClusterQueues.
        node: its node in the quota tree.
        root: the node at the top of its tree; equal to `node` without a cohort.
        path: the cohorts above it, nearest first.
        below: cohort above it -> the node right below that one on the way to it.
        usable: whether it takes part in scheduling; a stopped queue does not, but its quota is still lent.
        generation: how often its holders of quota changed (Kueue's AllocatableResourceGeneration): it
            outdates a LastAssignment.
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
        """Sets its manifest and its place in the tree."""
        self.spec = spec
        self.number = number
        self.node = node
        self.path = path
        self.below = dict(zip(path, (node, *path), strict=False))
        self.root = path[-1] if path else node
        self.usable = usable

    def sides(self, other: ClusterQueueState) -> tuple[int, int]:
        """The nodes right below the lowest common ancestor: on this queue's side, and on another one's."""
        mine, theirs = self.below, other.below
        for ancestor in theirs:  # from the nearest one on
            if ancestor in mine:
                return mine[ancestor], theirs[ancestor]
        raise AssertionError("queues of one tree have a common ancestor")

    def __repr__(self) -> str:
        return f"<ClusterQueue {self.name}>"
