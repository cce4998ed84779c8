"""The dry run of a preemption on one node: which pods would have to go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import nominated_before
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, NO_VICTIMS, Status
from harness.models.kube.placement.trial import PreFilter, Trial
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets

_EACH_VICTIM = 2**31
"""Added to each victim's priority before they are summed up, so that no summand is negative."""

Key = tuple[int, int, int, int, int, int]


@final
class Candidate:
    """A node on which a preemption would help.

    Attributes:
        node: the node.
        victims: most important first.
        violations: how many of them break a PodDisruptionBudget.
        budgeted: whether a budget covers any pod that was considered.
        key: what nodes are compared by, the least first, see `preemption.CRITERIA`; the last part, the rank
            of its name, decides where kube-scheduler takes any.
    """

    __slots__ = ("budgeted", "key", "node", "victims", "violations")

    def __init__(
        self, node: NodeInfo, victims: tuple[PodInfo, ...], violations: int, *, budgeted: bool
    ) -> None:
        self.node = node
        self.victims = victims
        self.violations = violations
        self.budgeted = budgeted
        highest = victims[0].priority
        total = _EACH_VICTIM * len(victims)
        start = victims[0].start
        for victim in victims:
            total += victim.priority
            if victim.priority == highest and victim.start < start:
                start = victim.start
        self.key: Key = (violations, highest, total, len(victims), -start, node.rank)


def select_victims_on_node(
    pod: PodInfo, node: NodeInfo, state: PreFilter, budgets: Budgets, names: Sequence[str]
) -> Candidate | Status:
    """Take away all pods of lower priority, then put back as many as possible, important ones first.

    Pods whose removal would break a budget are put back before all others.

    Args:
        pod: the preemptor.
        node: a node that rejected it and might not, without some pods.
        state: the counts of the attempt.
        budgets: the PodDisruptionBudgets.
        names: names of the resources.
    """
    lower = [other for other in node.by_importance() if other.priority < pod.priority]
    if not lower:
        return NO_VICTIMS
    trial = Trial(pod, node, state, names)
    for other in lower:
        trial.remove(other)
    nominated = nominated_before(pod, node)
    if not fits(trial, nominated):
        return rejection(trial, nominated)
    budgeted = any(other.template.budgets for other in lower)
    violating, others = budgets.filter_pods_with_pdb_violation(lower) if budgeted else ([], lower)
    victims = _not_reprieved(trial, nominated, violating)
    violations = len(victims)
    victims += _not_reprieved(trial, nominated, others)
    if not victims:
        return NO_VICTIM_NEEDED
    if violating and others:
        order = {other: place for place, other in enumerate(lower)}
        victims.sort(key=order.__getitem__)
    return Candidate(node, tuple(victims), violations, budgeted=budgeted)


def _not_reprieved(trial: Trial, nominated: Sequence[PodInfo], pods: Sequence[PodInfo]) -> list[PodInfo]:
    """Put pods back one by one; answers those that leave no room for the preemptor."""
    victims = []
    for pod in pods:
        trial.add(pod)
        if not fits(trial, nominated):
            trial.remove(pod)
            victims.append(pod)
    return victims


def fits(trial: Trial, nominated: Sequence[PodInfo]) -> bool:
    """Whether the preemptor fits, with the nominated pods in place and without them."""
    if nominated:
        for other in nominated:
            trial.add(other)
        fits = trial.fits()
        for other in nominated:
            trial.remove(other)
        if not fits:
            return False
    return trial.fits()


def rejection(trial: Trial, nominated: Sequence[PodInfo]) -> Status:
    """Why the preemptor does not fit even without any pod of lower priority."""
    for other in nominated:
        trial.add(other)
    status = trial.filter()
    for other in nominated:
        trial.remove(other)
    status = status or trial.filter()
    assert status is not None, "a dry run failed without a reason"
    return status
