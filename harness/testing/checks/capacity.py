"""Nothing holds more than there is: nodes, or without nodes the cluster, after every decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.testing.checks.facts import Broken, Facts
from harness.testing.checks.history import Rule, Step

PODS = "pods"


class Capacity(Rule):
    """What is held on each node, or in the cluster.

    Args:
        facts: the run.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._held: dict[str, dict[str, int]] = {}
        self._places: dict[str, dict[int, str]] = {}
        self._since: dict[str, dict[tuple[str, int], int]] = {}  # place -> the pods there, and since when
        self._lost = sorted(facts.removed, reverse=True)

    def turn(self, step: Step) -> Iterator[Broken]:
        """What is too much once a decision took effect.

        A node may hold more than it has once it has less than before. Who comes then may ask for nothing of
        which there is too little.
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
        """Of which of these resources a place has too little."""
        if not place:
            room = self.facts.cluster.capacity
        else:
            node = self.facts.nodes_at(step.row["time"]).get(place)
            room = {} if node is None else node.allocatable
        for resource in resources:
            amount = self._held[place][resource]
            unlimited = not self.facts.on_nodes or (resource == PODS and place and PODS not in room)
            limit = room.get(resource, amount if unlimited else 0)
            if amount > limit:
                what = f"{amount} of {resource} are held of {limit}"
                yield Broken("capacity.node" if place else "capacity.cluster", step.where, what)

    def _stays(self, step: Step, at: int) -> Iterator[Broken]:
        """Who is still on a node that was removed, although it came before that."""
        for node in sorted(self.facts.removed[at]):
            left = [pod for pod, since in self._since.get(node, {}).items() if since < at]
            if left:
                yield Broken("capacity.gone", step.where, f"{left[0]} stays on {node}, removed at {at} us")

    def _add(self, step: Step, pod: int, place: str, sign: int) -> Mapping[str, int]:
        held = self._held.setdefault(place, {})
        amounts = {**step.life.asked.part_of(pod).requests, **({PODS: 1} if self.facts.on_nodes else {})}
        for resource, amount in amounts.items():
            held[resource] = held.get(resource, 0) + sign * amount
        return amounts
