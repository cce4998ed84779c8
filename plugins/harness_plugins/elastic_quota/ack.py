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

from harness import PodSet
from harness.models.cluster import SYSTEM_PRIORITY_CLASSES
from harness.models.elastic.lent import Lent
from harness.models.elastic.quota import Amounts, Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import NEVER_PREEMPTS, VICTIMS_LEAVING
from harness.models.manifests import manifest_of
from harness_plugins.elastic_quota.dry_run import Claim, Exceeded
from harness_plugins.elastic_quota.quota_request import QuotaRequest
from harness_plugins.elastic_quota.quota_usage import QuotaUsage

NO_QUOTA = "a pod without a quota cannot preempt"
QUOTA_LEAVING = "not eligible until terminating pods have released their quota."
NOT_LOWER = "its quota would exceed its min, and has no pod of lower priority"
NOT_LOWER_BY_USAGE = "its quota uses more than its min, and has no pod of lower priority"
NOBODY_BORROWS = "no other quota uses more than its min"

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
        self._of_daemon_sets: dict[str, bool] = {}  # keyed by the manifest

    def covers(self, pod: PodInfo) -> bool:
        """Returns True if a pod is never a victim."""
        job = pod.job
        if pod.priority >= _SYSTEM:
            return True
        if job is not None:
            if job.priority_class.startswith("system-"):
                return True
            if self._daemons and self._is_of_daemon_set(job.pod_set_of(pod.pod)):
                return True
        if self._label is None:
            return False
        key, value = self._label
        labels = pod.template.labels
        return key in labels and value in (None, labels[key])

    def _is_of_daemon_set(self, pod_set: PodSet) -> bool:
        text = pod_set.pod_template
        if not text:
            return False
        known = self._of_daemon_sets.get(text)
        if known is None:
            manifest = manifest_of(pod_set)
            known = self._of_daemon_sets[text] = manifest is not None and manifest.of_daemon_set
        return known


@final
class AckRules:
    """The rules of ACK.

    Args:
        budgets: the PodDisruptionBudgets. Under these rules, preemption never violates them.

    Attributes:
        by_usage: True if a quota can claim its guarantee while its usage is within its `min`. False if the
            usage plus the request must be within its `min`.
        names_nodes: whether the record lists each node on which no pod can be preempted.
        counts_twice: whether a dry run also checks the quota for a victim that does not fit on the node. See
            `QuotaBound`.
        sorts_victims: whether victims are sorted by importance, even if evicting some of them violates a
            budget.
        least_first: whether the least important victims are evicted first. Otherwise, the dry run's order is
            kept.
        keeps_room: whether no other pod may use resources that a preemptor has reclaimed for its quota's
            guarantee.
        looks_ahead: whether dry runs count terminating pods as gone, so that no pod is preempted twice.
        examines_all: whether preemption for a single pod also tries unschedulable nodes, as for several pods.
    """

    names_nodes = False
    counts_twice = False
    sorts_victims = True
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
        self.by_usage = by_usage
        self.examines_all = examines_all
        self.usage = usage
        self.budgets = budgets
        self._protection = protection
        self._may_go: dict[NodeInfo, tuple[int, list[PodInfo]]] = {}  # with the generation of the node

    def reclaims(self, quota: Quota | None, amounts: Amounts, own: Amounts) -> bool:
        """Returns True if a quota is within its `min` in every resource.

        The option `by_usage` determines whether the request is added to the usage. Resources that a
        preemption is freeing for other pods of the quota count as used. A quota therefore cannot claim its
        guarantee more than once while victims terminate.

        If the result is False, it remains False with more nominated pods, unless the quota's usage changes.

        Args:
            quota: the quota.
            amounts: the requests, including those of nominated pods. See `QuotaRequest.in_quota`.
            own: the part of `amounts` that belongs to the pod, or to the pods of its gang.
        """
        if quota is None:
            return False
        if self.by_usage:
            amounts = {resource: amount - own.get(resource, 0) for resource, amount in amounts.items()}
        return self.usage.tree.within_min(quota, amounts)

    def why_never(self, request: QuotaRequest, *, reclaims: bool) -> str | None:
        """Returns the reason why preemption cannot help, such as a missing quota, or None if it might."""
        usage, quota = self.usage, request.quota
        if quota is None:
            return NO_QUOTA
        if not reclaims:
            if usage.has_lower(quota, request.pod.priority):
                return None
            return NOT_LOWER_BY_USAGE if self.by_usage else NOT_LOWER
        lent = Lent(quota)
        found = any(leaf is not quota and lent.may_lose(leaf) for leaf in usage.tree.leaves.values())
        return None if found else NOBODY_BORROWS

    def why_not_eligible(
        self, request: QuotaRequest, expected: NodeInfo | None, *, reclaims: bool
    ) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can.

        The pod may never preempt, or it waits for pods to terminate. It waits for pods of its quota, or for
        pods on the node to which an earlier preemption nominated it. The dry run of that preemption counted
        terminating pods as gone.

        Args:
            request: the request of the pod.
            expected: the node to which a preemption nominated the pod, unless the pod can never run on it.
            reclaims: whether the pod, with its gang, claims the guarantee of its quota.
        """
        if not request.pod.preempts:
            return NEVER_PREEMPTS
        if expected is None or request.quota is None:
            return None
        if any(other.terminating for other in expected.pods):
            return VICTIMS_LEAVING
        if request.excess is not None:
            tree = self.usage.tree
            with tree.departed():
                if tree.refusing(request.quota, request.in_quota, request.shared, request.in_all) is None:
                    return QUOTA_LEAVING
        return None

    def exceeded(self, request: QuotaRequest) -> Exceeded:
        """Returns all limits that are exceeded, including the requests of nominated pods."""
        excesses = request.excesses(self.usage.tree)
        return Exceeded(excesses, excesses)

    def claim(self, request: QuotaRequest, *, reclaims: bool) -> Claim:
        """Returns the potential victims of a pod. If the pod reclaims, these are pods of borrowing quotas.

        Otherwise, they are less important pods of the pod's own quota. See `AckVictims`.
        """
        usage, quota = self.usage, request.quota
        assert quota is not None, "see `why_never`"
        if not reclaims:
            return Claim(usage.nodes_of(quota), AckVictims(self, quota, None).eligible_pods)
        lent = Lent(quota)
        losing = (leaf for leaf in usage.tree.leaves.values() if leaf is not quota and lent.may_lose(leaf))
        where = set().union(*(usage.nodes_of(leaf) for leaf in losing))
        return Claim(where, AckVictims(self, quota, lent).eligible_pods)

    def may_go(self, node: NodeInfo) -> Sequence[PodInfo]:
        """Returns the pods of a node that can be preempted, regardless of budgets, least important first."""
        known = self._may_go.get(node)
        if known is not None and known[0] == node.generation:
            return known[1]
        covers = self._protection.covers
        found = [each for each in node.by_importance() if not (each.terminating or covers(each))]
        found.reverse()
        self._may_go[node] = node.generation, found
        return found


@final
class AckVictims:
    """The potential victims of a pod on each node.

    Args:
        lent: the usage beyond guarantees if the pod reclaims the guarantee of its quota, or else None.
    """

    def __init__(self, rules: AckRules, quota: Quota, lent: Lent | None) -> None:
        self._rules = rules
        self._usage = rules.usage
        self._quota = quota
        self._lent = lent

    def eligible_pods(self, node: NodeInfo, preemptor: PodInfo) -> Sequence[PodInfo]:
        """Returns the potential victims on a node, without pods of the same gang or job.

        The least important pods come first. They are the first to use up the disruptions that budgets allow,
        and quotas lose pods only until they no longer borrow.
        """
        quota, lent, quota_of, job = self._quota, self._lent, self._usage.of, preemptor.job
        may_have_mates = preemptor.gang is not None or (job is not None and job.pods > 1)
        found: list[PodInfo] = []
        left: dict[int, int] = {}
        if lent is not None:
            lent.restore()
        for each in self._rules.may_go(node):
            if lent is None and each.priority >= preemptor.priority:
                break  # the remaining pods are not less important
            theirs, amounts, _ = quota_of(each)
            if lent is None:
                if theirs is not quota:
                    continue
            elif theirs is None or theirs is quota or not lent.may_lose(theirs):
                continue
            if may_have_mates and are_mates(each, preemptor):
                continue
            if each.template.budgets and not self._disrupts(each, left):
                continue
            found.append(each)
            if lent is not None and theirs is not None:
                lent.take(theirs, amounts)
        found.reverse()
        return found

    def _disrupts(self, victim: PodInfo, left: dict[int, int]) -> bool:
        """Charges a victim to its budgets if all of them allow it, and returns True if they do."""
        budgets = self._rules.budgets
        charged = list(budgets.charged(victim))
        if any(left.setdefault(number, budgets.allowed[number]) < 1 for number in charged):
            return False
        for number in charged:
            left[number] -= 1
        return True
