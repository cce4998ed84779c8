"""Checks the selectors and tolerations of bound pods, and the priorities of kube-scheduler's victims."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.cluster.kinds.selectors import Taint
from harness.testing.checks.facts import Broken, Facts, by_node
from harness.testing.checks.history import Rule, Step

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Placement(Rule):
    """The rule about node selectors, taints, and the node labels of flavors that Kueue assigned to a pod.

    This rule doesn't check required node affinity.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._flavors: dict[str, dict[str, dict[str, str]]] = {}

    def turn(self, step: Step) -> Iterator[Broken]:
        """Check that a pod can run on its node."""
        row, asked = step.row, step.life.asked
        if row["action"] == "admit":
            self._flavors[asked.name] = json.loads(row["flavors"] or "{}")
        if row["action"] != "bind":
            return
        (pod,) = step.pods
        part, node = asked.part_of(pod), self.facts.cluster.nodes[row["node"]]
        chosen = self._flavors.get(asked.name, {}).get(part.name, {})
        flavors = [self.facts.cluster.flavors[name] for name in chosen.values()]
        tolerations = [*part.tolerations, *(each for flavor in flavors for each in flavor.tolerations)]
        # If flavors of several groups contradict each other, Kueue keeps the label of one flavor.
        wanted: dict[str, set[str]] = {}
        for flavor in flavors:
            for key, value in flavor.node_labels.items():
                wanted.setdefault(key, set()).add(value)
        wanted = {key: {value} for key, value in part.selector.items()} | wanted
        wrong = {key: sorted(values) for key, values in wanted.items() if node.labels.get(key) not in values}
        if wrong:
            yield Broken("placement.selector", step.where, f"node {node.name} lacks the labels {wrong}")
        taints = [*node.taints, *([_CORDONED] if node.unschedulable else [])]
        for taint in taints:
            if taint.effect != "PreferNoSchedule" and not any(each.tolerates(taint) for each in tolerations):
                yield Broken(
                    "placement.taint",
                    step.where,
                    f"node {node.name} has {taint}, which the pod does not tolerate",
                )


class Never(Rule):
    """The rule that the policy preempts no job."""

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields a violation for each preemption."""
        if step.row["action"] in ("preempt", "evict") and not by_node(step.row):
            yield Broken("none.preempts", step.where, "this policy never preempts")


class ByPriority(Rule):
    """The rule that preemptors are allowed to preempt, and have a higher priority than their victims."""

    def turn(self, step: Step) -> Iterator[Broken]:
        """Check that kube-scheduler is allowed to make a preemption."""
        if step.row["action"] == "evict" and not by_node(step.row):
            yield Broken("priority.evicts", step.where, "kube-scheduler evicts a pod only for a preemptor")
        if step.row["action"] == "preempt":
            by, asked = self.facts.jobs[step.row["by"]], step.life.asked
            if (priority := self.facts.importance(by)) <= asked.priority:
                what = f"{by.name} has priority {priority}, but its victim has {asked.priority}"
                yield Broken("priority.lower", step.where, what)
            if not by.preempts:
                yield Broken("priority.never", step.where, f"{by.name} has preemptionPolicy Never")
