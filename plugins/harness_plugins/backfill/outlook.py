"""Models the announced changes of nodes, such as maintenance.

Node failures are not announced. The model ignores announced changes of labels, taints and cordons.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, final

from harness import Cluster
from harness.models.cluster import Node, frozen
from harness.models.kube.cache import Cache
from harness.models.kube.devices import WHOLE, amounts_of, device_count
from harness.models.kube.node import NodeInfo

_NOBODY = 1 << 40
"""A number of pods that is larger than the capacity of any node."""


class Step(NamedTuple):
    """The state of a node from a given time on. `node` is None if the node does not exist then."""

    at: int
    node: Node | None


class Less(NamedTuple):
    """The part of a node that announced changes make unavailable: resources, pod slots and devices."""

    node: NodeInfo
    amounts: Sequence[int]
    pods: int
    devices: Sequence[int]


@final
class Outlook:
    """The announced changes of a cluster, which determine the capacity that stays available on each node.

    Attributes:
        times: the times of announced changes, in order.
        ahead: whether any of these times is in the future.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._steps: dict[str, list[Step]] = {}
        for at, edits in cluster.changes:
            for edit in edits:
                if edit.kind != "Node" or not edit.announced:
                    continue
                before, after = (
                    None if each is None else each.allocatable for each in (edit.before, edit.after)
                )
                if before != after:
                    self._steps.setdefault(edit.name, []).append(Step(at, edit.after))
        self.times = sorted({step.at for steps in self._steps.values() for step in steps})
        self.advance(-1)
        self._there: Mapping[str, Node] = {}

    def advance(self, now: int) -> None:
        """Advances to `now`."""
        self._now = now
        self.ahead = bool(self.times) and self.times[-1] > now

    def with_coming(self, cluster: Cluster) -> Cluster:
        """Returns the cluster, including nodes that are announced for later."""
        self._there = cluster.nodes
        coming = {
            name: next((step.node for step in steps if step.at > self._now and step.node is not None), None)
            for name, steps in self._steps.items()
            if name not in cluster.nodes
        }
        found = {name: node for name, node in coming.items() if node is not None}
        return replace(cluster, nodes=frozen({**cluster.nodes, **found})) if found else cluster

    def less(self, cache: Cache, start: int, end: int) -> Iterator[Less]:
        """Yields the parts of nodes that are unavailable at any time from `start` until just before `end`."""
        for name, steps in self._steps.items():
            info = cache.by_name.get(name)
            if info is None:
                continue
            ahead = [Step(self._now, self._there.get(name)), *(step for step in steps if step.at > self._now)]
            first = max(0, bisect_right(ahead, start, key=lambda step: step.at) - 1)
            nodes = [step.node for step in ahead[first:] if step.at < end or step is ahead[first]]
            there = [node for node in nodes if node is not None]
            if len(there) < len(nodes):
                yield Less(info, (), _NOBODY, ())
                continue
            states = [amounts_of(node, cache.resources) for node in there]
            least = [min(amounts) for amounts in zip(info.allocatable, *states, strict=True)]
            amounts = [has - left for has, left in zip(info.allocatable, least, strict=True)]
            if any(amounts):
                count = min(device_count(node) for node in there)
                yield Less(
                    info, amounts, 0, [WHOLE * (number >= count) for number in range(len(info.devices))]
                )

    def moments(self, now: int) -> list[int]:
        """Returns the times of announced changes after `now`."""
        return [at for at in self.times if at > now]
