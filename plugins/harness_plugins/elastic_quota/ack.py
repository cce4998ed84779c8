"""Implements the rules that ACK documents for preemption between quotas. These rules are the default.

If a quota stays within its `min`, its pods and gangs can preempt pods of quotas that use more than their
`min`. Otherwise, they can preempt only less important pods of their own quota. A pod without a quota cannot
preempt. No pod is preempted twice, or in violation of a PodDisruptionBudget. Protected pods are never
preempted.

https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/enable-preemptive-scheduling
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.models.cluster import SYSTEM_PRIORITY_CLASSES
from harness.models.elastic.lent import Lent
from harness.models.elastic.quota import Quota
from harness.models.kube.drains import is_left
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import VICTIMS_LEAVING
from harness_plugins.elastic_quota.dry_run import Claim
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules

QUOTA_LEAVING = "not eligible until terminating pods have released their quota."
NOT_LOWER = "its quota would exceed its min, and has no pod of lower priority"
NOT_LOWER_BY_USAGE = "its quota uses more than its min, and has no pod of lower priority"

_SYSTEM = min(known.value for known in SYSTEM_PRIORITY_CLASSES.values())


@final
class Protection:
    """Determines which pods are protected.

    Args:
        label: the key and value of a label that protects pods, or None if there is no such label. The value
            None means any value.
        daemons: whether pods of DaemonSets are protected.
    """

    def __init__(self, label: tuple[str, str | None] | None = None, *, daemons: bool = True) -> None:
        self._label = label
        self._daemons = daemons

    def covers(self, pod: PodInfo) -> bool:
        """Returns True if a pod is never a victim."""
        job = pod.job
        if pod.priority >= _SYSTEM:
            return True
        if job is not None:
            if job.priority_class.startswith("system-"):
                return True
            if self._daemons and is_left(job, pod.pod):  # a drain leaves the pods of DaemonSets, too
                return True
        if self._label is None:
            return False
        key, value = self._label
        labels = pod.template.labels
        return key in labels and value in (None, labels[key])


@final
class AckRules(Rules):
    """The rules of ACK.

    Args:
        usage: the quotas.
        budgets: the PodDisruptionBudgets. Under these rules, preemption never violates them.
        protection: determines which pods are protected.
        by_usage: see `Rules`.
        examines_all: see `Rules`.
    """

    least_first = True  # so that no quota falls below its `min` when another quota preempts one of its pods
    keeps_room = True
    looks_ahead = True

    def __init__(
        self,
        usage: QuotaUsage,
        budgets: Budgets,
        protection: Protection,
        *,
        by_usage: bool = False,
        examines_all: bool = False,
    ) -> None:
        super().__init__(usage)
        self.by_usage = by_usage
        self.examines_all = examines_all
        self.not_lower = NOT_LOWER_BY_USAGE if by_usage else NOT_LOWER
        self._budgets = budgets
        self._protection = protection

    def reclaims(self, request: QuotaRequest) -> bool:
        """Returns True if a quota is within its `min` in every resource.

        The option `by_usage` determines whether the request is added to the usage. Resources that a
        preemption is freeing for other pods of the quota count as used. A quota therefore cannot claim its
        guarantee more than once while victims terminate.

        If the result is False, it remains False with more nominated pods, unless the quota's usage changes.
        """
        if request.quota is None:
            return False
        amounts, own = request.in_quota, request.asked
        if self.by_usage:
            amounts = {resource: amount - own.get(resource, 0) for resource, amount in amounts.items()}
        return self.usage.tree.within_min(request.quota, amounts)

    def why_waiting(self, request: QuotaRequest, expected: NodeInfo, *, reclaims: bool) -> str | None:
        """See `Rules`. A pod also waits for pods of its quota, or for any pod on its nominated node.

        The dry run of the earlier preemption counted terminating pods as gone.
        """
        if request.quota is None:
            return None
        if any(other.terminating for other in expected.pods):
            return VICTIMS_LEAVING
        if request.excess is not None:
            tree = self.usage.tree
            with tree.departed():
                if tree.refusing(request.quota, request.in_quota, request.shared, request.in_all) is None:
                    return QUOTA_LEAVING
        return None

    def claim(self, quota: Quota | None, *, reclaims: bool) -> Claim:
        """See `Rules`. Pods of the same gang or job are no victims, and neither are protected pods.

        The least important pods are considered first. They are the first to use up the disruptions that
        budgets allow, and quotas lose pods only until they no longer borrow. See `Lent`.
        """
        if quota is None:
            return super().claim(quota, reclaims=False)
        lent = Lent(quota) if reclaims else None
        quota_of, covers = self.usage.of, self._protection.covers

        def victims(node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
            found: list[PodInfo] = []
            left: dict[int, int] = {}
            if lent is not None:
                lent.restore()
            for each in reversed(node.by_importance()):
                if lent is None and each.priority >= preemptor.priority:
                    break  # the remaining pods are not less important
                theirs, amounts, _ = quota_of(each)
                if theirs is None or (theirs is quota) == reclaims:
                    continue
                if lent is not None and not lent.may_lose(theirs):
                    continue
                if each.terminating or covers(each) or are_mates(each, preemptor):
                    continue
                if each.template.budgets and not self._disrupts(each, left):
                    continue
                found.append(each)
                if lent is not None:
                    lent.take(theirs, amounts)
            found.reverse()
            return found

        if lent is None:
            return Claim((quota,), victims)
        leaves = self.usage.tree.leaves.values()
        return Claim((leaf for leaf in leaves if leaf is not quota and lent.may_lose(leaf)), victims)

    def _disrupts(self, victim: PodInfo, left: dict[int, int]) -> bool:
        """Charges a victim to its budgets if all of them allow it, and returns True if they do."""
        charged = list(self._budgets.charged(victim))
        if any(left.setdefault(number, self._budgets.allowed[number]) < 1 for number in charged):
            return False
        for number in charged:
            left[number] -= 1
        return True
