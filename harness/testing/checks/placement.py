"""Checks the nodes and devices of bound pods, and the priorities of kube-scheduler's victims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from harness.cluster.kinds.selectors import Taint
from harness.testing.checks.facts import Broken, Facts, by_node
from harness.testing.checks.history import Rule, Step

_CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

_ONE: Mapping[str, int] = {
    "nvidia.com/gpu": 1,
    "nvidia.com/gpu-milli": 1000,
    "koordinator.sh/gpu": 100,
    "koordinator.sh/gpu-core": 100,
    "koordinator.sh/gpu-memory-ratio": 100,
    "alibabacloud.com/gpu-count": 1,
    "alibabacloud.com/gpu-milli": 1000,
}


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
        flavors = [self.facts.cluster.flavor(name) for name in chosen.values()]
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


class Devices(Rule):
    """The shares that pods hold of each device on each node, which add up to at most one.

    The rule doesn't depend on how devices are chosen. A pod that requests GPUs on a node with devices must be
    bound to as many devices as it requests. A share must come from a single device.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._held: dict[tuple[str, int], int] = {}
        self._by: dict[tuple[str, int], tuple[str, list[int], int]] = {}

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields violations if a pod is bound to too few or too many devices, or if a device is overused."""
        row, name, holds = step.row, step.life.asked.name, step.life.holds
        for key in [key for key in self._by if key[0] == name and key[1] not in holds]:
            node, devices, share = self._by.pop(key)
            for device in devices:
                self._held[node, device] -= share
        if row["action"] != "bind" or not (count := self._count(row["node"])):
            return
        said = json.loads(row["detail"] or "{}").get("devices", [])
        for pod in step.pods:
            requests = step.life.asked.part_of(pod).requests
            amount = max((1000 * requests.get(each, 0) // one for each, one in _ONE.items()), default=0)
            number, share = (1, amount) if amount % 1000 else (amount // 1000, 1000)
            if len(set(said)) != number or len(said) != number:
                what = f"the pod requests {amount} thousandths of a device, but its devices are {said}"
                yield Broken("devices.number", step.where, what)
            if any(not 0 <= device < count for device in said):
                yield Broken("devices.unknown", step.where, f"{row['node']} has {count} devices, not {said}")
            self._by[name, pod] = row["node"], said, share
            for device in said:
                key = row["node"], device
                self._held[key] = self._held.get(key, 0) + share
                if self._held[key] > 1000:
                    used = f"{self._held[key]} of 1000 thousandths"
                    what = f"pods use {used} of device {device} on {row['node']}"
                    yield Broken("devices.beyond", step.where, what)

    def _count(self, name: str) -> int:
        node = self.facts.cluster.nodes.get(name)
        if node is None:
            return 0
        if "koordinator.sh/gpu-core" in node.allocatable:
            return node.allocatable["koordinator.sh/gpu-core"] // 100
        alibaba = [node.allocatable.get(f"alibabacloud.com/gpu-{part}") for part in ("count", "milli")]
        if alibaba[0] is not None and alibaba[1] is not None:
            return min(alibaba[0], alibaba[1] // 1000)
        said = node.labels.get("nvidia.com/gpu.count", "")
        milli = node.allocatable.get("nvidia.com/gpu-milli")
        return min(int(said), milli // 1000) if milli is not None and said.isdecimal() else 0
