"""Nothing holds more than there is: nodes, or without nodes the cluster, after every decision."""

from __future__ import annotations

from collections.abc import Iterator

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
        self._room = {name: node.allocatable for name, node in facts.cluster.nodes.items()}
        if not facts.on_nodes:
            self._room[""] = facts.cluster.capacity
        self._held: dict[str, dict[str, int]] = {name: {} for name in self._room}
        self._places: dict[str, dict[int, str]] = {}

    def turn(self, step: Step) -> Iterator[Broken]:
        """What is too much once a decision took effect."""
        places = self._places.setdefault(step.life.asked.name, {})
        holds = step.life.holds
        for pod in [pod for pod in places if pod not in holds]:
            self._add(step, pod, places.pop(pod), -1)
        for pod, hold in holds.items():
            if pod not in places:
                places[pod] = hold.node or ""
                self._add(step, pod, places[pod], +1)
        for place in {places[pod] for pod in step.pods if pod in places}:
            for resource, amount in self._held[place].items():
                limit = self._room[place].get(resource, 0 if self.facts.on_nodes else amount)
                if resource == PODS and PODS not in self._room[place]:
                    continue
                if amount > limit:
                    what = f"{amount} of {resource} are held of {limit}"
                    yield Broken("capacity.node" if place else "capacity.cluster", step.where, what)

    def _add(self, step: Step, pod: int, place: str, sign: int) -> None:
        held = self._held[place]
        amounts = {**step.life.asked.part_of(pod).requests, **({PODS: 1} if self.facts.on_nodes else {})}
        for resource, amount in amounts.items():
            held[resource] = held.get(resource, 0) + sign * amount
