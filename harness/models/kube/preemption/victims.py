"""Performs the dry run of a preemption on one node, to find the pods that would be evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, final

from harness.models.kube.node import NodeInfo, importance
from harness.models.kube.placement.scheduling import nominated_before
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, NO_VICTIMS, Status
from harness.models.kube.placement.trial import PreFilter, Trial
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets

_EACH_VICTIM = 2**31
"""This number is added to each victim's priority before summing, so that no summand is negative."""

Key = tuple[int, int, int, int, int, int]


@final
class Candidate:
    """A node on which preemption would help.

    Attributes:
        node: the node.
        victims: the victims. The most important victim is first, unless a scheduler keeps the order of its
            dry run.
        violations: how many victims violate a PodDisruptionBudget.
        budgeted: whether a budget covers any of the pods that were considered.
        key: the key by which nodes are compared. The lowest key is best. See `CRITERIA`. Its last part is the
            rank of the name. kube-scheduler does not have this criterion, and picks any node.
    """

    __slots__ = ("budgeted", "key", "node", "victims", "violations")

    def __init__(
        self, node: NodeInfo, victims: tuple[PodInfo, ...], violations: int, *, budgeted: bool
    ) -> None:
        self.node = node
        self.victims = victims
        self.violations = violations
        self.budgeted = budgeted
        first = highest = victims[0].priority
        total = _EACH_VICTIM * len(victims)
        start = victims[0].start
        for victim in victims:
            priority = victim.priority
            total += priority
            if priority > highest or (priority == highest and victim.start < start):
                highest, start = priority, victim.start
        self.key: Key = (violations, first, total, len(victims), -start, node.rank)


class Bound(Protocol):
    """A limit, such as a quota, that applies to a preemptor in a dry run in addition to the node's limits."""

    def without(self, pods: Sequence[PodInfo]) -> Status | None:
        """Removes all potential victims from the usage of the limit.

        Returns:
            None if the preemptor is then within the limit, or else the reason why it is not.
        """

    def with_again(self, pod: PodInfo) -> bool:
        """If a potential victim can stay without exceeding the limit, counts it again and returns True."""

    def is_short(self, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Checks the limit after a dry run has found that a potential victim can't stay on the node.

        Returns:
            The reason why the node is therefore not a candidate, or None if it may be one.
        """


EligiblePods: TypeAlias = Callable[[NodeInfo, PodInfo], Sequence[PodInfo]]
"""Returns the pods of a node that a preemptor can evict. Equally important pods keep this order.

This is the function field `IsEligiblePod` of DefaultPreemption. The field `MoreImportantPod` is the same
function in each upstream (see `importance`).
"""


def of_lower_priority(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
    """Returns the pods that kube-scheduler can evict, which are all pods of lower priority."""
    return [other for other in node.pods if other.priority < preemptor.priority]


def select_victims_on_node(
    pod: PodInfo,
    node: NodeInfo,
    state: PreFilter,
    budgets: Budgets,
    names: Sequence[str],
    eligible_pods: EligiblePods = of_lower_priority,
    *,
    gone: Iterable[PodInfo] = (),
    bound: Bound | None = None,
    sorts: bool = True,
) -> Candidate | Status:
    """Removes all eligible pods, and then puts back as many as possible, important pods first.

    Pods whose removal would violate a budget are put back before all other pods.

    Args:
        pod: the preemptor.
        node: a node that rejected the preemptor, but may accept it without some pods.
        state: the counts of other pods for topology spread and affinity.
        budgets: the PodDisruptionBudgets.
        names: the names of the resources.
        eligible_pods: the potential victims.
        gone: other pods of the node that count as gone.
        bound: another limit that applies, or None if there is none.
        sorts: whether to sort the victims so that the most important is first. If not, victims that violate a
            budget come first.
    """
    potential = sorted(eligible_pods(node, pod), key=importance)
    if not potential:
        return NO_VICTIMS
    trial = Trial(pod, node, state, names)
    for other in gone:
        trial.remove(other)
    for other in potential:
        trial.remove(other)
    nominated = nominated_before(pod, node)
    if not fits(trial, nominated):
        return rejection(trial, nominated)
    if bound is not None:
        status = bound.without(potential)
        if status is not None:
            return status
    budgeted = any(other.template.budgets for other in potential)
    violating, others = budgets.filter_pods_with_pdb_violation(potential) if budgeted else ([], potential)
    victims: list[PodInfo] = []
    violations = 0
    for group in (violating, others):
        for other in group:
            trial.add(other)
            if fits(trial, nominated):
                if bound is None or bound.with_again(other):
                    continue
            else:
                violations += group is violating
                if bound is not None:
                    status = bound.is_short(other, node)
                    if status is not None:
                        return status
            trial.remove(other)
            victims.append(other)
    if not victims:
        return NO_VICTIM_NEEDED
    if sorts and violating and others:
        order = {other: place for place, other in enumerate(potential)}
        victims.sort(key=order.__getitem__)
    return Candidate(node, tuple(victims), violations, budgeted=budgeted)


def fits(trial: Trial, nominated: Sequence[PodInfo]) -> bool:
    """Returns True if the preemptor fits both with and without the nominated pods on the node."""
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
    """Returns the reason why the preemptor does not fit, although all potential victims were removed."""
    for other in nominated:
        trial.add(other)
    status = trial.filter()
    for other in nominated:
        trial.remove(other)
    status = status or trial.filter()
    assert status is not None, "a dry run failed without a reason"
    return status
