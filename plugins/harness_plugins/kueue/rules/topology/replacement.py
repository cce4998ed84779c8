"""Finds new places for those pods of a workload that were on a failed node. The other pods stay.

Upstream: `findReplacementAssignment` in pkg/cache/scheduler/tas_flavor_snapshot.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.policy import PodSet
from harness_plugins.kueue.rules.topology.placement import (
    IMPLIED,
    PodSetRequest,
    groups_of,
    place,
    suitable_leaves,
)
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavors, located
from harness_plugins.kueue.state.topology.tree import DomainAssignment, Room, TopologyAssignment, TopologyTree


class Replacement(NamedTuple):
    """The new places of a workload.

    Attributes:
        placed: all places of the workload. They are unchanged if some pod set has no other place.
        without: a pod set that has no other place, or None if every pod set has one.
    """

    placed: tuple[Placed, ...]
    without: Placed | None


def replacement(placed: Sequence[Placed], node: str, flavors: TopologyFlavors, *, mixed: bool) -> Replacement:
    """Finds other places for a workload's pods on a node. These places must be free now.

    Pod sets that are not on the node keep their places. The other pod sets are placed one by one, even if
    they belong to the same group. Pods that were placed before, and all old places of the workload, occupy
    capacity during the search.

    Args:
        placed: the places of the workload's pods in the current trees.
        node: the name of the node.
        flavors: all flavors with a topology.
        mixed: whether the `TASProfileMixed` gate is on.
    """
    asked = [
        PodSetRequest(each.pod_set, each.on(node), each.pod_set.topology or IMPLIED)
        for each in placed
        if each.on(node)
    ]
    by_name = {each.pod_set.name: each for each in placed}
    in_turn = [request for group in groups_of(asked) for request in group]
    in_turn.sort(key=lambda request: by_name[request.pod_set.name].flavor.name)
    taken: list[Placed] = []
    for request in in_turn:
        each = by_name[request.pod_set.name]
        kept = [domain for domain in each.domains if domain.values != (node,)]
        rest = located(each.pod_set, each.flavor, kept).leaves
        room = Room(each.flavor.room)
        flavors.take(taken, each.flavor, room)
        new = _new_leaves(each.flavor.tree, room, rest, request, mixed=mixed)
        if not new or len(rest) < len(kept):
            return Replacement(tuple(placed), each)
        taken.append(Placed(each.pod_set, each.flavor, new))
        total: dict[int, int] = {}
        for leaf, pods in (*rest, *new):
            total[leaf] = total.get(leaf, 0) + pods
        leaves = tuple([DomainAssignment(leaf, total[leaf]) for leaf in sorted(total)])
        by_name[request.pod_set.name] = Placed(each.pod_set, each.flavor, leaves)
    return Replacement(tuple([by_name[each.pod_set.name] for each in placed]), None)


def added(after: Sequence[Placed], before: Sequence[Placed]) -> tuple[Placed, ...]:
    """Returns the number of pods that each leaf gets in addition to the pods that it had before."""
    found = []
    held = {each.pod_set.name: dict(each.leaves) for each in before}
    for each in after:
        had = held.get(each.pod_set.name, {})
        more = [(leaf, pods - had.get(leaf, 0)) for leaf, pods in each.leaves]
        leaves = tuple([DomainAssignment(leaf, pods) for leaf, pods in more if pods > 0])
        if leaves:
            found.append(Placed(each.pod_set, each.flavor, leaves))
    return tuple(found)


def _new_leaves(
    tree: TopologyTree, room: Room, rest: Sequence[DomainAssignment], asked: PodSetRequest, *, mixed: bool
) -> TopologyAssignment:
    """Returns places for the missing pods of a pod set. The result is empty if they have no place.

    The missing pods must go to the same domain as the remaining pods in two cases: if all pods must share a
    domain, or if a slice is incomplete.
    """
    request, missing = asked.request, asked.count
    region: range | None = None
    if request.slices and missing % request.slices[0].size:
        layer = next(each for each in reversed(request.slices) if missing % each.size)
        region = _broken(tree, rest, layer.level, missing, layer.size)
        if region is not None:
            whole = next((each for each in reversed(request.slices) if missing % each.size == 0), None)
            if whole is None and not (request.required or request.preferred or request.unconstrained):
                return ()
            request = replace(request, slices=() if whole is None else (whole,))
    elif request.required and rest:
        region = _domain(tree, rest[0].leaf, request.required)

    def suitable(tree: TopologyTree, pod_set: PodSet) -> Sequence[bool] | None:
        may_run = suitable_leaves(tree, pod_set)
        if region is None:
            return may_run
        return tuple(
            [leaf in region and (may_run is None or may_run[leaf]) for leaf in range(len(tree.leaves))]
        )

    alone = PodSetRequest(asked.pod_set, missing, request)
    return place(tree, room, [alone], mixed=mixed, suitable=suitable)[asked.pod_set.name] or ()


def _broken(
    tree: TopologyTree, rest: Sequence[DomainAssignment], level: str, missing: int, size: int
) -> range | None:
    """Returns the first domain in which the missing pods would complete all slices, or None."""
    pods: dict[range, int] = {}
    for leaf, number in rest:
        domain = _domain(tree, leaf, level)
        pods[domain] = pods.get(domain, 0) + number
    whole = [domain for domain, number in pods.items() if (number + missing) % size == 0]
    return min(whole, key=lambda domain: domain.start, default=None)


def _domain(tree: TopologyTree, leaf: int, level: str) -> range:
    """Returns the leaves of the domain that contains a leaf at a level. They are adjacent when sorted."""
    depth, first = tree.levels.index(level) + 1, tree.leaves.start
    values = tree.values[first + leaf][:depth]
    within = [each - first for each in tree.leaves if tree.values[each][:depth] == values]
    return range(within[0], within[-1] + 1)
