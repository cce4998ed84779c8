"""The dry run of a preemption on one node, with quotas: which pods would have to go.

Who may be a victim at all is the semantics' to say (`capacity.py`, `ack.py`); the rest is common to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import nominated_before
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, Code, Status
from harness.models.kube.placement.trial import PreFilter, Trial
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.victims import Candidate, fits, rejection
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

OVER_QUOTA = Status(Code.UNSCHEDULABLE, "", ("global quota max exceeded",))
"""The preemptor's quota does not let it in even when all potential victims are gone."""


NO_VICTIMS = Status(Code.UNRESOLVABLE, "", ("no pod on it may be a victim",))
"""There is nobody on a node who may be a victim."""


def no_victims(pod: PodInfo, node: NodeInfo) -> Status:
    """The same in scheduler-plugins' words."""
    said = f"No victims found on node {node.name} for preemptor pod {pod.name}"
    return Status(Code.UNRESOLVABLE, "", (said,))


class DryRun:
    """One preemptor's simulation on one node.

    Args:
        request: the preemptor's request.
        node: the node.
        potential: who may be a victim, most important first.
        state: the counts of the attempt.
        usage: the quotas; they are as before when the dry run is over.
        names: names of the resources.
        looks_ahead: whether pods that are leaving the node count as gone.
    """

    def __init__(
        self,
        request: QuotaRequest,
        node: NodeInfo,
        potential: Sequence[PodInfo],
        state: PreFilter,
        usage: QuotaUsage,
        names: Sequence[str],
        *,
        looks_ahead: bool,
    ) -> None:
        self._request = request
        self._node = node
        self._potential = potential
        self._usage = usage
        self._trial = Trial(request.pod, node, state, names)
        self._nominated = nominated_before(request.pod, node)
        self._bounded = request.excess is not None  # else its quota lets it in, all the more with pods gone
        self._gone: dict[PodInfo, None] = {}
        for pod in node.pods if looks_ahead else ():
            if pod.terminating:
                self._trial.remove(pod)

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
        try:
            return self._run(budgets, as_upstream=as_upstream)
        finally:
            for pod in self._gone:
                self._usage.charge(pod)

    def _run(self, budgets: Budgets, *, as_upstream: bool) -> Candidate | Status:
        for pod in self._potential:
            self._trial.remove(pod)
            self._refund(pod)
        if not fits(self._trial, self._nominated):
            return rejection(self._trial, self._nominated)
        if not self._quota_admits(own_only=as_upstream):
            return OVER_QUOTA
        budgeted = any(pod.template.budgets for pod in self._potential)
        violating, others = (
            budgets.filter_pods_with_pdb_violation(self._potential) if budgeted else ([], self._potential)
        )
        victims: list[PodInfo] = []
        violations = 0
        for group in (violating, others):
            for pod in group:
                self._trial.add(pod)
                fit = fits(self._trial, self._nominated)
                if not fit:
                    violations += group is violating
                    if as_upstream and not self._quota_admits(own_only=False):
                        return Status(Code.ERROR, "", (_gone_already(pod, self._node),))
                else:
                    self._charge(pod)
                    if self._quota_admits(own_only=False):
                        continue
                    self._refund(pod)
                self._trial.remove(pod)
                victims.append(pod)
        if not victims:
            return NO_VICTIM_NEEDED
        if violating and others:
            order = {pod: place for place, pod in enumerate(self._potential)}
            victims.sort(key=order.__getitem__)
        return Candidate(self._node, tuple(victims), violations, budgeted=budgeted)

    def _refund(self, pod: PodInfo) -> None:
        if self._bounded:
            self._usage.refund(pod)
            self._gone[pod] = None

    def _charge(self, pod: PodInfo) -> None:
        if self._bounded:
            self._usage.charge(pod)
            del self._gone[pod]

    def _quota_admits(self, *, own_only: bool) -> bool:
        """Whether the quotas, as they are now, let the preemptor in, with nominated pods or without."""
        request, tree = self._request, self._usage.tree
        if request.quota is None or not self._bounded:
            return True
        if own_only:
            return (
                tree.over_max(request.quota, request.own) is None
                and tree.over_guaranteed(request.own) is None
            )
        return (
            tree.over_max(request.quota, request.in_quota, request.shared) is None
            and tree.over_guaranteed(request.in_all) is None
        )


def _gone_already(pod: PodInfo, node: NodeInfo) -> str:
    return f"no corresponding pod {pod.name} in pods of node {node.name}"
