"""Joint flavor assignment for pod sets of the same group. Their requests to a resource group are summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness_plugins.kueue.rules.flavor_offers import GroupOffer, PodSetOffer


class Part(NamedTuple):
    """The resources of a pod set that belong to one resource group.

    Attributes:
        pod_set: the index of the pod set.
        group: the index of the resource group among the groups of the pod set.
        resources: the positions of these resources in the list of resources of all pod sets in the joint
            group.
    """

    pod_set: int
    group: int
    resources: tuple[int, ...]


class JointGroup(NamedTuple):
    """A resource group of a queue, and the resources that several pod sets take from it.

    Attributes:
        offer: the flavors and flavor-resources for every resource that any pod set takes, without amounts.
        parts: the resources of each pod set.
        entry: the part of the first pod set. The flavors that this pod set has tried determine where a scan
            continues. None if the pod set does not take the resource that Kueue looks up. Every scan then
            starts with the first flavor.
    """

    offer: GroupOffer
    parts: tuple[Part, ...]
    entry: Part | None

    def with_counts(self, offers: Sequence[PodSetOffer], counts: Sequence[int]) -> GroupOffer:
        """Returns the offer of the group, with the amounts that all pods of the pod sets take in total."""
        amounts = [0] * len(self.offer.resources)
        for pod_set, group, resources in self.parts:
            for at, amount in zip(resources, offers[pod_set].groups[group].amounts, strict=True):
                amounts[at] += amount * counts[pod_set]
        return GroupOffer(self.offer.resources, tuple(amounts), self.offer.flavors, self.offer.cells)


def joint_groups(offers: Sequence[PodSetOffer], mates: Sequence[int]) -> list[JointGroup]:
    """Returns the resource groups from which the pod sets of one group take resources."""
    by_flavors: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number in mates:
        for at, group in enumerate(offers[number].groups):
            by_flavors.setdefault(group.flavors, []).append((number, at))
    return [_joined(offers, mates[0], members) for members in by_flavors.values()]


def _joined(offers: Sequence[PodSetOffer], first: int, members: Sequence[tuple[int, int]]) -> JointGroup:
    groups = [offers[number].groups[at] for number, at in members]
    resources = tuple(dict.fromkeys(resource for group in groups for resource in group.resources))
    cells: list[tuple[int, ...] | None] = []
    for flavor in range(len(groups[0].flavors)):
        numbers: dict[str, int] = {}
        for group in groups:
            numbers.update(zip(group.resources, group.cells[flavor] or (), strict=False))
        cells.append(tuple(numbers[each] for each in resources) if len(numbers) == len(resources) else None)
    parts = tuple(
        Part(number, at, tuple(resources.index(each) for each in group.resources))
        for (number, at), group in zip(members, groups, strict=True)
    )
    enters = parts[0].pod_set == first and min(resources, key=_hash) in groups[0].resources
    return JointGroup(
        GroupOffer(resources, (), groups[0].flavors, tuple(cells)), parts, parts[0] if enters else None
    )


def _hash(resource: str) -> int:
    """Returns the 64-bit FNV-1a hash of a resource name, which Kueue uses to order requests."""
    value = 0xCBF29CE484222325
    for byte in resource.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
