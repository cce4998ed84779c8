"""Checks after every decision that pods don't exceed the capacity of their node, or of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.cluster.model import Cluster
from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import Rule, Step

PODS = "pods"


class Capacity(Rule):
    """The resources that pods hold on each node, or in the whole cluster."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._held: dict[str, dict[str, int]] = {}
        self._places: dict[str, dict[int, str]] = {}
        # place -> its pods, and the time of their arrival
        self._since: dict[str, dict[tuple[str, int], int]] = {}
        self._lost = sorted(facts.removed, reverse=True)
        self._quotas: dict[tuple[str, str, str, str], tuple[int, int]] = {}
        # without nodes: the decrease of quotas since all capacity was free
        self._beyond: dict[str, int] = {}
        self.change(facts.start)

    def change(self, now: int) -> None:
        """Updates the capacity. The pods keep the resources that they hold."""
        if self.facts.on_nodes:
            return
        before, self._quotas = self._quotas, _quotas(self.facts.cluster)
        for key, amounts in before.items():
            after = self._quotas.get(key, (0, 0))
            fell = max(was - becomes for was, becomes in zip(amounts, after, strict=True))
            self._beyond[key[-1]] = self._beyond.get(key[-1], 0) + max(0, fell)

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields violations after a decision took effect.

        After the capacity of a node has shrunk, its pods can hold more than the capacity. If a resource is
        exceeded in this way, a pod that requests it must not be bound to the node.
        """
        name, now = step.life.asked.name, step.row["time"]
        while self._lost and self._lost[-1] < now:
            yield from self._stays(step, self._lost.pop())
        places, holds = self._places.setdefault(name, {}), step.life.holds
        for pod in [pod for pod in places if pod not in holds]:
            place = places.pop(pod)
            del self._since[place][name, pod]
            self._add(step, pod, place, -1)
        for pod, hold in holds.items():
            if pod not in places:
                place = places[pod] = hold.node or ""
                self._since.setdefault(place, {})[name, pod] = now
                added = self._add(step, pod, place, +1)
                yield from self._too_much(step, place, [each for each, amount in added.items() if amount])

    def _too_much(self, step: Step, place: str, resources: list[str]) -> Iterator[Broken]:
        if not place:
            room = self.facts.cluster.capacity
        else:
            node = self.facts.cluster.nodes.get(place)
            room = {} if node is None else node.allocatable
        for resource in resources:
            amount = self._held[place][resource]
            unlimited = not self.facts.on_nodes or (resource == PODS and place and PODS not in room)
            limit = room.get(resource, amount if unlimited else 0) + self._beyond.get(resource, 0)
            if amount > limit:
                what = f"pods hold {amount} of {resource}, but the limit is {limit}"
                yield Broken("capacity.node" if place else "capacity.cluster", step.where, what)

    def _stays(self, step: Step, at: int) -> Iterator[Broken]:
        for node in sorted(self.facts.removed[at]):
            left = [pod for pod, since in self._since.get(node, {}).items() if since < at]
            if left:
                what = f"{left[0]} is still on {node}, which was removed at {at} microseconds"
                yield Broken("capacity.gone", step.where, what)

    def _add(self, step: Step, pod: int, place: str, sign: int) -> Mapping[str, int]:
        held = self._held.setdefault(place, {})
        amounts = {**step.life.asked.part_of(pod).requests, **({PODS: 1} if self.facts.on_nodes else {})}
        for resource, amount in amounts.items():
            held[resource] = held.get(resource, 0) + sign * amount
            if not held[resource]:
                self._beyond.pop(resource, None)
        return amounts


def _quotas(cluster: Cluster) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    """Returns each nominal quota and its lendable part, by owner (kind and name), flavor and resource."""
    owners = {("queue", name): each.resource_groups for name, each in cluster.cluster_queues.items()}
    owners |= {("cohort", name): each.resource_groups for name, each in cluster.cohorts.items()}
    return {
        (*owner, flavor, resource): (
            quota.nominal,
            quota.nominal if quota.lending_limit is None else min(quota.nominal, quota.lending_limit),
        )
        for owner, groups in owners.items()
        for group in groups
        for flavor, resource, quota in group.quotas()
    }
