"""The dry run of a preemption on one node, with quotas: which pods would have to go.

Who may be a victim at all is the semantics' to say (`capacity.py`, `ack.py`); the rest is common to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import nominated_before
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, Code, Status
from harness.models.kube.placement.trial import PreFilter, Trial
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate, fits, rejection
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.tree import Amounts, Excesses, Quota

OVER_QUOTA = Status(Code.UNSCHEDULABLE, "", ("global quota max exceeded",))
"""The preemptor's quota does not let it in even when all potential victims are gone."""


NO_VICTIMS = Status(Code.UNRESOLVABLE, "", ("no pod on it may be a victim",))
"""There is nobody on a node who may be a victim."""


def no_victims(pod: PodInfo, node: NodeInfo) -> Status:
    """The same in scheduler-plugins' words."""
    said = f"No victims found on node {node.name} for preemptor pod {pod.name}"
    return Status(Code.UNRESOLVABLE, "", (said,))


@final
class Shortfall:
    """How much has to be given back so that a quota lets a pod in.

    Pods are taken away and put back, so that no other bound than those exceeded now comes to be exceeded.

    Args:
        excesses: the bounds that are exceeded.
    """

    __slots__ = ("_excesses", "_left")

    def __init__(self, excesses: Excesses) -> None:
        self._excesses = excesses
        self._left = [excess for _, _, excess in excesses]

    def change(self, leaf: Quota | None, amounts: Amounts, sign: int) -> None:
        """A pod of a leaf is taken away (-1), or put back (1)."""
        if leaf is not None:
            for place, (quota, resource, _) in enumerate(self._excesses):
                if quota is None or quota in leaf.line:
                    self._left[place] += sign * amounts.get(resource, 0)

    def is_covered(self) -> bool:
        """Whether so much is given back."""
        for left in self._left:  # noqa: SIM110 `all` of a generator takes twice as long, for one bound or two
            if left > 0:
                return False
        return True

    def still_covered(self, leaf: Quota | None, amounts: Amounts) -> bool:
        """Put a pod of a leaf back if so much is given back without it; answers whether it is back."""
        self.change(leaf, amounts, 1)
        if self.is_covered():
            return True
        self.change(leaf, amounts, -1)
        return False


@final
class DryRun:
    """One preemptor's simulation on one node.

    Args:
        pod: the preemptor.
        excesses: the bounds that keep it out, with nominated pods.
        own_excesses: the same for what it takes itself; only asked for in upstream's way.
        node: the node.
        potential: who may be a victim, most important first.
        state: the counts of the attempt.
        usage: the quotas.
        names: names of the resources.
        looks_ahead: whether pods that are leaving the node count as gone.
    """

    def __init__(
        self,
        pod: PodInfo,
        excesses: Excesses,
        own_excesses: Excesses,
        node: NodeInfo,
        potential: Sequence[PodInfo],
        state: PreFilter,
        usage: QuotaUsage,
        names: Sequence[str],
        *,
        looks_ahead: bool,
    ) -> None:
        self._node = node
        self._potential = potential
        self._usage = usage
        self._trial = Trial(pod, node, state, names)
        self._nominated = nominated_before(pod, node)
        self._bounded = bool(excesses or own_excesses)
        self._short = Shortfall(excesses)
        self._own_short = Shortfall(own_excesses)
        for other in node.pods if looks_ahead else ():
            if other.terminating:
                self._trial.remove(other)

    def run(self, budgets: Budgets, *, as_upstream: bool) -> Candidate | Status:
        """Take away all potential victims, then put back as many as possible, important ones first.

        Pods whose removal would break a budget are put back before all others.

        Args:
            budgets: the PodDisruptionBudgets.
            as_upstream: keep two things that scheduler-plugins does. Nominated pods do not count when all
                potential victims are gone, though they do in the attempt that follows; and a pod that leaves
                no room on the node is also held against the quota, where the whole node fails if the quota
                refuses too.
        """
        trial, nominated, short = self._trial, self._nominated, self._short
        for pod in self._potential:
            trial.remove(pod)
            self._count(pod, -1)
        if not fits(trial, nominated):
            return rejection(trial, nominated)
        if not (self._own_short if as_upstream else short).is_covered():
            return OVER_QUOTA
        budgeted = any(pod.template.budgets for pod in self._potential)
        violating, others = (
            budgets.filter_pods_with_pdb_violation(self._potential) if budgeted else ([], self._potential)
        )
        victims: list[PodInfo] = []
        violations = 0
        for group in (violating, others):
            for pod in group:
                trial.add(pod)
                fit = fits(trial, nominated)
                if not fit:
                    violations += group is violating
                    if as_upstream and not short.is_covered():
                        return Status(Code.ERROR, "", (_gone_already(pod, self._node),))
                else:
                    self._count(pod, 1)
                    if short.is_covered():
                        continue
                    self._count(pod, -1)
                trial.remove(pod)
                victims.append(pod)
        if not victims:
            return NO_VICTIM_NEEDED
        if violating and others:
            order = {pod: place for place, pod in enumerate(self._potential)}
            victims.sort(key=order.__getitem__)
        return Candidate(self._node, tuple(victims), violations, budgeted=budgeted)

    def _count(self, pod: PodInfo, sign: int) -> None:
        """A pod is taken away (-1), or put back (1), as far as quotas are concerned."""
        if self._bounded:
            leaf, amounts = self._usage.of(pod)
            self._short.change(leaf, amounts, sign)
            self._own_short.change(leaf, amounts, sign)


def _gone_already(pod: PodInfo, node: NodeInfo) -> str:
    return f"no corresponding pod {pod.name} in pods of node {node.name}"
