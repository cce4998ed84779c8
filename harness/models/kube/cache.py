"""Models the scheduler's cache, with all nodes and their pods, and the version of each node's last change.

Other modules cache results that depend on nodes, such as the feasible nodes of a shape, or preemption dry
runs. They ask which nodes have changed since they computed their results, so they don't have to examine all
nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import compress
from operator import is_not
from typing import TypeVar, final

from harness.cluster.model import Cluster, Node
from harness.models.kube.devices import IDLE, LARGEST, have_devices
from harness.models.kube.moves import Moves
from harness.models.kube.node import GONE, NodeInfo
from harness.models.kube.node_order import NodeOrder
from harness.models.kube.pod import PodInfo, Template

_Key = TypeVar("_Key")


@final
class Cache:
    """The nodes, bound pods and nominations.

    Args:
        cluster: the cluster with the nodes and namespaces.

    Attributes:
        resources: the index of each resource, with cpu and memory first. The number of pods is counted
            separately.
        names: the names of the resources by index.
        nodes: the nodes in the order in which the scheduler checks them. A removed node remains until
            `settle`.
        by_name: the nodes that exist.
        unsettled: whether the order of nodes must be computed before the next attempt, see `settle`.
        version: a number that grows with every change of a node.
        moves: how the positions of nodes have changed.
        by_rank: the nodes sorted by name, or as `draw_order` has sorted them. The rank of a node is its index
            in this list. A removed node remains, so it has the same rank when it returns.
        rankings: how often the ranks have changed.
        last_changed: the position of the node that changed last. It is -1 before the first change.
        freed_at: the version at which a pod last left a node.
        bound: the number of bound pods of each priority.
        placed: the templates that have bound pods, sorted by their first pod.
        repelling: the templates in `placed` with required anti-affinity.
        attracting: the templates in `placed` whose affinity or preferences score nodes for other pods.
        expecting: the nodes that have nominated pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        names = {"cpu": None, "memory": None}
        for node in cluster.nodes.values():
            names |= dict.fromkeys(node.allocatable)
        names.pop("pods", None)
        if have_devices(cluster):
            names |= {LARGEST: None, IDLE: None}
        self.names = list(names)
        self.resources: dict[str, int] = {name: index for index, name in enumerate(self.names)}
        self._seed: int | None = None
        ranks = {name: rank for rank, name in enumerate(sorted(cluster.nodes))}
        self._order = NodeOrder(cluster.nodes.values())
        self.nodes = [
            NodeInfo(cluster.nodes[name], position, ranks[name], self.resources)
            for position, name in enumerate(self._order.in_turn())
        ]
        self.by_name = {node.name: node for node in self.nodes}
        self.unsettled = True
        self._awaited: dict[str, list[PodInfo]] = {}  # missing node -> the pods nominated to it
        self.labels_of = cluster.namespace_labels
        self.version = 0
        self.last_changed = -1
        self.freed_at = 0
        self.bound: dict[int, int] = {}
        self.placed: dict[Template, None] = {}
        self.repelling: dict[Template, None] = {}
        self.attracting: dict[Template, None] = {}
        self.expecting: dict[NodeInfo, None] = {}
        self.moves = Moves()
        self.by_rank = sorted(self.nodes, key=self._by_rank)
        self.rankings = 0
        self._left_at = -1
        self._changes: dict[NodeInfo, int] = {}  # the version of each node's last change, in this order
        self._forget_positions()

    def _forget_positions(self) -> None:
        """Drops the cache's own results that are kept by position, because nodes have changed."""
        self._positions_since = self.version
        # One list for each resource with the free amounts, and one with the numbers of further pods that fit,
        # all by position.
        self._left: list[list[int]] = []

    # --- nodes that change --------------------------------------------------------------------------------

    def put(self, node: Node) -> bool:
        """Adds or replaces a node.

        Returns:
            True if the node has a resource that no node had before.
        """
        new = [name for name in node.allocatable if name not in self.resources and name != "pods"]
        for name in new:
            self.resources[name] = len(self.names)
            self.names.append(name)
        for each in self.nodes if new else ():
            each.allocatable += [0] * len(new)
            each.free += [0] * len(new)
        self._order.put(node)
        info = self.by_name.get(node.name)
        if info is None:
            info = NodeInfo(node, len(self.nodes), 0, self.resources)
            self._rank(info)
            info.nominated = self._awaited.pop(node.name, [])
            if info.nominated:
                self.expecting[info] = None
            self.moves.add(info.position, info.position, (-1,))
            self.nodes.append(info)
            self.by_name[node.name] = info
        else:
            info.become(node, self.resources)
            self.moves.add(info.position, info.position + 1, (-1,))
        self._unsettle(info)
        return bool(new)

    def drop(self, name: str) -> None:
        """Removes a node. The caller must still remove its pods one by one.

        Nominations to the node remain. They become valid again if a node with the same name returns.
        """
        self._order.drop(name)
        node = self.by_name.pop(name)
        if node.nominated:
            self._awaited[name] = node.nominated
            node.nominated = []
            del self.expecting[node]
        self._unsettle(node)

    def _unsettle(self, node: NodeInfo) -> None:
        self.unsettled = True
        self._note(node)
        self.freed_at = self.version
        self._forget_positions()

    def settle(self) -> bool:
        """Sorts the nodes into their current order before an attempt, and drops removed nodes.

        Returns:
            True if nodes or their positions have changed.
        """
        self.unsettled = not self.by_name  # without nodes, no pod gets an ordinary attempt
        nodes = [*map(self.by_name.__getitem__, self._order.renew())]
        first, last = _others(nodes, self.nodes)
        if first == last == len(self.nodes):
            return False
        end = last + len(self.nodes) - len(nodes)
        self.moves.add(first, end, [node.position for node in nodes[first:last]])
        for node in self.nodes[first:end]:
            if self.by_name.get(node.name) is not node:
                node.position = GONE
                self._changes.pop(node, None)
        self._place(nodes[first:], first)
        self.nodes[:] = nodes
        self.version += 1
        self._forget_positions()
        return True

    def _place(self, nodes: Iterable[NodeInfo], first: int) -> None:
        for position, node in enumerate(nodes, first):
            if node.position != position:
                node.position = position
                for pod in node.pods:
                    pod.node = position

    def draw_order(self, seed: int) -> None:
        """Sorts equally good nodes in a random order, which depends on the seed, instead of by name."""
        self._seed = seed
        self.by_rank.sort(key=self._by_rank)
        self._number()

    def _rank(self, node: NodeInfo) -> None:
        """Assigns a rank to a new node. If a node with this name had a rank before, it gets the same rank."""
        at = bisect_left(self.by_rank, self._by_rank(node), key=self._by_rank)
        if at < len(self.by_rank) and self.by_rank[at].name == node.name:
            self.by_rank[at] = node
            node.rank = at
        else:
            self.by_rank.insert(at, node)
            self._number()

    def _number(self) -> None:
        for rank, node in enumerate(self.by_rank):
            node.rank = rank
        self.rankings += 1

    def _by_rank(self, node: NodeInfo) -> tuple[bytes, str]:
        if self._seed is None:
            return b"", node.name
        return blake2b(f"{self._seed}\0{node.name}".encode(), digest_size=8).digest(), node.name

    # --- changes ------------------------------------------------------------------------------------------

    def changed_since(self, version: int) -> Iterable[int]:
        """Returns the positions of the nodes that changed after a version, the last one first."""
        if version == self.version:
            return ()
        if version < self._positions_since:
            return range(len(self.nodes))
        return [node.position for node in self.changed_nodes_since(version)]

    def changed_nodes_since(self, version: int) -> Iterable[NodeInfo]:
        """Returns the nodes that changed after a version, even if positions have changed since then."""
        if version < 0:
            return self.nodes
        found = []
        for node, changed_at in reversed(self._changes.items()):
            if changed_at <= version:
                break
            found.append(node)
        return found

    def touch(self, node: NodeInfo) -> None:
        """Records that a node has changed."""
        node.generation += 1
        self.last_changed = node.position
        self.version += 1  # as `_note`, for nearly every event
        self._changes.pop(node, None)
        self._changes[node] = self.version

    def _note(self, node: NodeInfo) -> None:
        self.last_changed = node.position
        self.version += 1
        self._changes.pop(node, None)
        self._changes[node] = self.version

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        """Adds a bound pod to its node."""
        pod.node = node.position
        node.add(pod)
        template = pod.template
        template.placed[node] = template.placed.get(node, 0) + 1
        if template not in self.placed:
            self.placed[template] = None
            if template.spec.anti_affinity:
                self.repelling[template] = None
            if template.spec.affinity or template.spec.preferred_pods:
                self.attracting[template] = None
        self.bound[pod.priority] = self.bound.get(pod.priority, 0) + 1
        if pod.terminating:
            template.leaving[node] = template.leaving.get(node, 0) + 1
        self.touch(node)

    def remove_pod(self, pod: PodInfo) -> NodeInfo:
        """Removes a bound pod, and returns its node."""
        node, template = self.nodes[pod.node], pod.template
        node.remove(pod)
        placed = template.placed
        if placed[node] > 1:
            placed[node] -= 1
        else:
            del placed[node]
            if not placed:
                del self.placed[template]
                self.repelling.pop(template, None)
                self.attracting.pop(template, None)
        if pod.terminating:
            _less(template.leaving, node)
        _less(self.bound, pod.priority)
        pod.node = -1
        self.touch(node)
        self.freed_at = self.version
        return node

    def terminate(self, pod: PodInfo, *, preempted: bool = True) -> None:
        """Marks a bound pod as terminating. The pod uses its resources until it is gone."""
        pod.terminating, pod.preempted = True, preempted
        leaving, node = pod.template.leaving, self.nodes[pod.node]
        leaving[node] = leaving.get(node, 0) + 1
        self.touch(node)

    def reprioritize(self, pod: PodInfo, priority: int) -> None:
        """Changes the priority of a running pod."""
        if pod.node < 0:  # the pod is not on its node yet, see `Scheduler.add_running`
            pod.priority = priority
            return
        _less(self.bound, pod.priority)
        pod.priority = priority
        self.bound[priority] = self.bound.get(priority, 0) + 1
        self.touch(self.nodes[pod.node])

    def nominate(self, pod: PodInfo, name: str) -> None:
        """Nominates a pod to the node with this name. If the name is "", withdraws its nomination.

        A pod is nominated again after each failed attempt. It then comes after the other pods that are
        nominated to the node.
        """
        before, after = self.by_name.get(pod.nominated), self.by_name.get(name)
        if pod.nominated == name:
            line = after.nominated if after is not None else self._awaited.get(name)
            if line is not None and line[-1] is not pod:
                line.remove(pod)
                line.append(pod)
            return
        if before is None and pod.nominated:
            self._no_longer_awaits(pod)
        pod.nominated = name
        if before is not None:
            before.nominated.remove(pod)
            if not before.nominated:
                del self.expecting[before]
            self.touch(before)
        if after is not None:
            after.nominated.append(pod)
            self.expecting[after] = None
            self.touch(after)
        elif name:
            self._awaited.setdefault(name, []).append(pod)

    def _no_longer_awaits(self, pod: PodInfo) -> None:
        awaiting = self._awaited[pod.nominated]
        awaiting.remove(pod)
        if not awaiting:
            del self._awaited[pod.nominated]

    def keeps_otherwise(self, pod: PodInfo) -> None:
        """Records that `keeps` of a nominated pod has changed. Its nominated node then counts as changed."""
        node = self.by_name.get(pod.nominated)
        if node is not None:
            self.touch(node)

    # --- questions ----------------------------------------------------------------------------------------

    def free_of(self, resource: int) -> Sequence[int]:
        """Returns the free quantity of a resource on each node, by position.

        The result is valid until the next change, and callers must not change it. Only nodes that changed
        since the last call are updated.
        """
        return self._columns()[resource]

    def slots(self) -> Sequence[int]:
        """Returns how many more pods each node accepts, in the same form as `free_of`."""
        return self._columns()[-1]

    def _columns(self) -> list[list[int]]:
        columns, version = self._left, self.version
        if not columns:
            columns += [[node.free[resource] for node in self.nodes] for resource in range(len(self.names))]
            columns.append([node.slots for node in self.nodes])
            self._left_at = version
        elif self._left_at != version:
            for position in self.changed_since(self._left_at):
                node = self.nodes[position]
                for column, left in zip(columns, node.free, strict=False):
                    column[position] = left
                columns[-1][position] = node.slots
            self._left_at = version
        return columns

    def has_lower(self, priority: int) -> bool:
        """Returns True if any pod with a lower priority is bound."""
        return bool(self.bound) and min(self.bound) < priority


def _others(nodes: Sequence[NodeInfo], before: Sequence[NodeInfo]) -> tuple[int, int]:
    """Returns the first position whose node has changed, and the end of the changed part."""
    most = min(len(nodes), len(before))
    first = _alike(nodes, before, most)
    return first, len(nodes) - min(most - first, _alike(reversed(nodes), reversed(before), most))


def _alike(nodes: Iterable[NodeInfo], before: Iterable[NodeInfo], most: int) -> int:
    return next(compress(range(most), map(is_not, nodes, before)), most)


def _less(counts: dict[_Key, int], key: _Key) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1
