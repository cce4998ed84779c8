"""Finds the nodes on which a preemption for one pod would help, by the rules of some semantics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, final

from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.claim import Claim
from harness_plugins.elastic_quota.dry_run import DryRun, no_victims
from harness_plugins.elastic_quota.tree import Excess
from harness_plugins.kube.budgets import Budgets
from harness_plugins.kube.cache import Cache
from harness_plugins.kube.node import NodeInfo
from harness_plugins.kube.pod import PodInfo
from harness_plugins.kube.preemption import Found
from harness_plugins.kube.scheduling import Scheduling
from harness_plugins.kube.status import Code, Status
from harness_plugins.kube.trial import PreFilter
from harness_plugins.kube.victims import Candidate

PLUGIN = "ElasticQuota"
"""Who rejects a pod that its quota does not let in, among the plugins of kube-scheduler."""


class Rules(Protocol):
    """What semantics say about who may preempt whom."""

    @property
    def removes_twice(self) -> bool:
        """Whether upstream's defect is kept, see `DryRun.run`."""

    def reclaims(self, claim: Claim) -> bool:
        """Whether the pod claims what its quota is guaranteed, instead of borrowing."""

    def why_not_eligible(self, claim: Claim, nominated: NodeInfo | None) -> str | None:
        """Why a pod may not preempt now; None when it may."""

    def potential_victims(self, claim: Claim, node: NodeInfo) -> list[PodInfo]:
        """Who may be a victim on a node, most important first."""


@final
class Preemption:
    """Dry runs by some rules.

    Args:
        scheduling: has the nodes and what pods find on them.
        budgets: the PodDisruptionBudgets.
        accounts: the quotas.
        rules: who may preempt whom.
    """

    def __init__(self, scheduling: Scheduling, budgets: Budgets, accounts: Accounts, rules: Rules) -> None:
        self._scheduling = scheduling
        self._cache: Cache = scheduling.cache
        self._budgets = budgets
        self._accounts = accounts
        self.rules = rules

    def find_candidates(self, claim: Claim, positions: Iterable[int], state: PreFilter) -> Found:
        """Dry runs on all of some nodes; every rejection is told.

        Args:
            claim: the preemptor's claim.
            positions: of the nodes on which a preemption may help.
            state: the counts of the attempt.
        """
        candidates: list[Candidate] = []
        rejected: dict[int, Status] = {}
        for position in positions:
            answer = self._dry_run(claim, self._cache.nodes[position], state)
            if isinstance(answer, Status):
                rejected[position] = answer
            else:
                candidates.append(answer)
        failed = not candidates and any(status.code is Code.ERROR for status in rejected.values())
        return Found(candidates, rejected, failed=failed)

    def _dry_run(self, claim: Claim, node: NodeInfo, state: PreFilter) -> Candidate | Status:
        potential = self.rules.potential_victims(claim, node)
        if not potential:
            return no_victims(claim.pod, node)
        fixed = self._scheduling.shape_nodes(claim.pod.template.shape).ruled_out(node.position)
        if fixed is not None:
            return fixed
        run = DryRun(claim, node, potential, state, self._accounts, self._cache.names)
        return run.run(self._budgets, removes_twice=self.rules.removes_twice)


def refused(excess: Excess) -> Status:
    """How every node stands to a pod that its quota does not let in."""
    whose = f"quota {excess.quota}" if excess.quota else "all quotas together"
    return Status(Code.UNSCHEDULABLE, PLUGIN, (f"{whose} would exceed {excess.bound} of {excess.resource}",))
