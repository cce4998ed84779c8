"""Checks rules of Kueue about quotas, preemption policies and stopped queues."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.options import boolean
from harness.base.units import MINUTE, SECOND
from harness.models.cluster import KueueConfiguration
from harness.testing.checks.facts import Asked, Broken, Facts, by_node
from harness.testing.checks.history import Step
from harness.testing.checks.quota_forest import Cell, Node
from harness.testing.checks.quotas import ClusterQuotas

LONGEST = 10 * MINUTE
"""The maximum time until Kueue observes an eviction."""

_NO_PLACE = "NodeFailures"
"""The reason for evicting a job that has lost nodes of a topology and finds no replacement."""

_BY_STOPS = ("ClusterQueueStopped", "LocalQueueStopped")
_TIMED_OUT = ("PodsReadyTimeout", "DeactivatedDueToRequeuingLimitExceeded")


class Kueue(ClusterQuotas):
    """The rule about quotas, stop policies, and preemption policies of ClusterQueues."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        options = facts.run.info["policy"]["options"]
        self._latency: int = options.get("evictionLatency", 0)
        kueue = facts.cluster.kueue or KueueConfiguration()
        chosen = (each.split("=") for each in options.get("featureGates", "").split(",") if each)
        gates = {**kueue.gates, **{name.strip(): boolean(value.strip()) for name, value in chosen}}
        self._until_the_last = not gates.get("ReclaimablePods", True)
        self._waits = None if gates.get("DisableWaitForPodsReady") else kueue.pods_ready
        self._admitted: dict[str, int] = {}
        self._lost: dict[str, set[int]] = {}  # admitted job -> when it lost pods with their node
        # departing usage, with the time until which Kueue counts it, and its queue
        self._going: list[tuple[int, Node, dict[Cell, int]]] = []
        # job without quota -> its queue and requests
        self._waiting: dict[str, tuple[Node, dict[str, int]]] = {}

    def turn(self, step: Step) -> Iterator[Broken]:
        """Yields violations for admissions beyond a quota and for preemptions against a queue's policy."""
        name, action = step.life.asked.quota, step.row["action"]
        queue = self.facts.cluster.cluster_queues.get(name or "")
        if queue is not None and action in ("preempt", "evict") and not by_node(step.row):
            yield from self._evicted(step, Node("queue", queue.name))
        if action == "admit":
            self._admitted[step.life.asked.name] = step.row["time"]
            self._lost.pop(step.life.asked.name, None)
        elif by_node(step.row):
            self._lost.setdefault(step.life.asked.name, set()).add(step.row["time"])
        if action in ("submit", "requeue") and step.row["pod_number"] is None:
            asked = step.life.asked
            self._waiting[asked.name] = Node("queue", name or ""), asked.amounts(range(asked.pods))
        elif action in ("admit", "reject"):
            self._waiting.pop(step.life.asked.name, None)
        if queue is not None and action == "admit" and queue.stop_policy != "None":
            yield Broken("kueue.stopped", step.where, f"queue {queue.name} is stopped: {queue.stop_policy}")
        yield from super().turn(step)

    def _evicted(self, step: Step, node: Node) -> Iterator[Broken]:
        """Check an eviction, and count the victim's usage until Kueue observes the departure."""
        row, asked = step.row, step.life.asked
        yield from self._timed_out(step) if row["action"] == "evict" else self._preempted(step, node)
        latency = LONGEST if "round" in (row["detail"] or "") else self._latency
        self._going.append((row["time"] + asked.grace + latency, node, self.held_by(asked.name)))

    def _preempted(self, step: Step, node: Node) -> Iterator[Broken]:
        """Check that a preemption follows priorities in the queue, and the preemptor's policy in the cohort.

        In the cohort, only borrowers can be preempted.
        """
        row, asked = step.row, step.life.asked
        by = self.facts.jobs[row["by"]]
        queue = self.facts.cluster.cluster_queues.get(by.quota or "")
        if queue is None:
            yield Broken("kueue.queue", step.where, f"the queue of {by.name} has no quota")
            return
        policy, theirs = queue.preemption, Node("queue", queue.name)
        if theirs == node:
            rule, allowed = policy.within_cluster_queue, _allowed(policy.within_cluster_queue, by, asked)
        else:
            rule, allowed = policy.reclaim_within_cohort, _allowed(policy.reclaim_within_cohort, by, asked)
            if self.holds.top(theirs) != self.holds.top(node):
                yield Broken("kueue.cohort", step.where, f"{queue.name} and {node.name} share no cohort")
            if not self._borrows(node, row["time"]):
                yield Broken("kueue.borrows", step.where, f"queue {node.name} of the victim does not borrow")
        if not allowed:
            what = f"{rule}: {by.name} has priority {by.priority}, but its victim has {asked.priority}"
            yield Broken("kueue.policy", step.where, what)

    def _timed_out(self, step: Step) -> Iterator[Broken]:
        """Check that a drained queue, lost nodes or unready pods explain an eviction without a preemptor."""
        waits = self._waits
        if step.row["reason"] == _NO_PLACE and self.facts.ever.nodes_change:
            return
        if step.row["reason"] in _BY_STOPS and self._is_drained(step.life.asked):
            if not self.facts.is_instant_of_change(step.row["time"]):
                yield Broken(
                    "kueue.drain", step.where, "no change of the cluster drains the job's queue at this time"
                )
            return
        if waits is None or step.row["reason"] not in _TIMED_OUT:
            yield Broken(
                "kueue.evicts",
                step.where,
                "this policy evicts pods only for a preemptor, but the decision names none",
            )
            return
        name = step.life.asked.name
        due = {self._admitted[name] // SECOND * SECOND + waits.timeout}
        if waits.recovery_timeout is not None:
            due |= {time // SECOND * SECOND + waits.recovery_timeout for time in self._lost.get(name, ())}
        if step.row["time"] not in due:
            times = " or ".join(f"{time} microseconds" for time in sorted(due))
            yield Broken("kueue.timeout", step.where, f"it can only time out at {times}")

    def _is_drained(self, asked: Asked) -> bool:
        cluster = self.facts.cluster
        stops = [cluster.cluster_queues.get(asked.quota or "")]
        doors = [cluster.local_queues.get((asked.namespace, asked.queue))]
        return any(each is not None and each.stop_policy == "HoldAndDrain" for each in (*stops, *doors))

    def _borrows(self, node: Node, now: int) -> bool:
        """Returns True if a queue uses more than its own quota from Kueue's point of view.

        Kueue observes departures late. In addition, the request of a waiting head counts as usage of its
        queue for later heads of the same cycle. A checker can't observe this.
        """
        if self._until_the_last:
            return True  # Kueue counts ended pods as long as other pods of their job run
        self._going = [each for each in self._going if each[0] >= now]
        used = dict(self.stays.used[node])
        for _, of_node, amounts in self._going:
            if of_node == node:
                used |= {cell: used.get(cell, 0) + amount for cell, amount in amounts.items()}
        heads = [asks for of_node, asks in self._waiting.values() if of_node == node]
        return any(
            amount + asks.get(cell[1], 0) > self.stays.quota(node, cell).nominal
            for asks in ({}, *heads)
            for cell, amount in used.items()
        )


def _allowed(rule: str, by: Asked, victim: Asked) -> bool:
    if rule == "LowerOrNewerEqualPriority":
        return victim.priority <= by.priority
    return rule == "Any" or (rule == "LowerPriority" and victim.priority < by.priority)
