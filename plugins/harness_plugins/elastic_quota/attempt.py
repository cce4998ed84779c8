"""One attempt at a pod, or at a gang as one: where its pods go, whom that costs, or why it fails.

Everything is worked out here and nothing is decided: the books are as before when an attempt is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import Preemption, pick_one_node_for_preemption
from harness.models.kube.preemption.victims import Candidate
from harness.models.kube.refusal import DISABLED, NO_VICTIMS
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.claim import Claim, add, claim_of
from harness_plugins.elastic_quota.failure import Failure, Refusal
from harness_plugins.elastic_quota.plan import Plan
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import DefaultSearch, QuotaSearch, Search
from harness_plugins.elastic_quota.tree import Excess, Quota

TOO_FEW = "fewer pods of its group are there than have to be placed together"


class Whole(NamedTuple):
    """What pods of one quota claim together, see `Claim`; `first` is the claim of the first of them."""

    first: Claim
    in_quota: dict[str, int]
    in_all: dict[str, int]


@final
@dataclass(frozen=True, slots=True)
class Placed:
    """All pods get a node as things stand."""

    nodes: Mapping[PodInfo, NodeInfo]


@final
@dataclass(frozen=True, slots=True)
class Step:
    """Room that is made for one pod: on which node, whom it costs in which order, why, and the figures."""

    pod: PodInfo
    chosen: Candidate
    victims: Sequence[PodInfo]
    reason: str
    figures: Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """A preemption helps all pods.

    Attributes:
        nodes: where each of them goes.
        steps: what is done for those that need room to be made.
        search: how it was found.
        rejecting: the plugins that rejected pods.
    """

    nodes: Mapping[PodInfo, NodeInfo]
    steps: Sequence[Step]
    search: Search
    rejecting: frozenset[str]


Outcome: TypeAlias = Placed | Planned | Refusal


@final
class Attempts:
    """Tries pods and gangs.

    Args:
        scheduling: finds nodes.
        budgets: the PodDisruptionBudgets.
        accounts: the quotas.
        rules: who may preempt whom by quotas.
        default: preempts for pods that belong to no quota; None leaves that to the rules.
        preempts: whether anybody is preempted at all.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        budgets: Budgets,
        accounts: Accounts,
        rules: Rules,
        default: Preemption | None,
        *,
        preempts: bool,
    ) -> None:
        self._scheduling = scheduling
        self._cache = scheduling.cache
        self._budgets = budgets
        self._accounts = accounts
        self._rules = rules
        self._default = default
        self._preempts = preempts

    def try_pod(self, pod: PodInfo) -> Outcome:
        """Try one pod."""
        claim = claim_of(pod, self._accounts, self._cache)
        found = self._find_node(claim)
        if isinstance(found, NodeInfo):
            return Placed({pod: found})
        quota = claim.quota
        search = self._search({quota: self._rules.reclaims(quota, claim.in_quota)})
        refusal = self._refused(search, found)
        return refusal or self._make_room([pod], search, {}, {pod: found})

    def try_gang(self, pods: Sequence[PodInfo], least: int) -> Outcome:
        """Try pods one after the other, each with those before it in place; if one fails, all do.

        Where fewer than all have to be placed together, those that fit are, if they are enough; the others
        are a list of their own afterwards. Room is made for all of a list or for none.

        A gang that no preemption can help fails at its first pod that gets no node, and before anything is
        placed if its quota has no room for all of it.
        """
        outcome = self._try_together(pods, least)
        if isinstance(outcome, Refusal):
            return outcome._replace(place=pods.index(outcome.failure.claim.pod))
        return outcome

    def _try_together(self, pods: Sequence[PodInfo], least: int) -> Outcome:
        if least > len(pods):
            claim = claim_of(pods[0], self._accounts, self._cache, mates=pods)
            return _refusal(self._failure(claim), TOO_FEW)
        if least < len(pods):
            fitting = self._fitting(pods)
            if fitting and len(fitting) >= least:
                return Placed(fitting)
        wholes = self._wholes(pods)
        search = self._search(
            {quota: self._rules.reclaims(quota, whole.in_quota) for quota, whole in wholes.items()}
        )
        for quota, whole in wholes.items():
            excess = self._over(quota, whole)
            if excess is None:
                continue
            claim = whole.first._replace(in_quota=whole.in_quota, in_all=whole.in_all, refusal=excess)
            refusal = self._refused(search, self._failure(claim, excess))
            if refusal is not None:
                return refusal
        plan = Plan(self._cache, self._accounts, self._budgets)
        failures: dict[PodInfo, Failure] = {}
        try:
            for pod in pods:
                found = self._find_node(claim_of(pod, self._accounts, self._cache, mates=pods))
                if isinstance(found, NodeInfo):
                    plan.place(pod, found)
                    continue
                refusal = self._refused(search, found)
                if refusal is not None:
                    return refusal
                failures[pod] = found
        finally:
            plan.undo()
        return self._make_room(pods, search, plan.placed, failures) if failures else Placed(plan.placed)

    def _find_node(self, claim: Claim) -> NodeInfo | Failure:
        """The node that a pod gets, if its quota lets it in."""
        if claim.refusal is not None:
            return self._failure(claim, claim.refusal)
        found = self._scheduling.schedule(claim.pod)
        if isinstance(found, Diagnosis):
            return Failure(claim, found.state, self._cache, found)
        return found

    def _failure(self, claim: Claim, excess: Excess | None = None) -> Failure:
        return Failure(claim, self._scheduling.pre_filter(claim.pod), self._cache, None, excess)

    def _fitting(self, pods: Sequence[PodInfo]) -> Mapping[PodInfo, NodeInfo]:
        """The pods that get a node as things stand, each with those before it in place."""
        plan = Plan(self._cache, self._accounts, self._budgets)
        try:
            for pod in pods:
                found = self._find_node(claim_of(pod, self._accounts, self._cache, mates=pods))
                if isinstance(found, NodeInfo):
                    plan.place(pod, found)
        finally:
            plan.undo()
        return plan.placed

    # --- gangs --------------------------------------------------------------------------------------------

    def _wholes(self, pods: Sequence[PodInfo]) -> dict[Quota | None, Whole]:
        """What the pods of a gang claim together, for each of their quotas."""
        wholes: dict[Quota | None, Whole] = {}
        for pod in pods:
            quota = self._accounts.quota_of(pod)
            whole = wholes.get(quota)
            if whole is None:
                first = claim_of(pod, self._accounts, self._cache, mates=pods)
                wholes[quota] = Whole(first, dict(first.in_quota), dict(first.in_all))
            else:
                add(whole.in_quota, self._accounts.amounts(pod))
                add(whole.in_all, self._accounts.amounts(pod))
        return wholes

    def _over(self, quota: Quota | None, whole: Whole) -> Excess | None:
        """Why a quota has no room for all pods; None when it has."""
        if quota is None:
            return None
        tree = self._accounts.tree
        return tree.over_max(quota, whole.in_quota, whole.first.shared) or tree.over_guaranteed(whole.in_all)

    # --- preemption ---------------------------------------------------------------------------------------

    def _search(self, reclaims: Mapping[Quota | None, bool]) -> Search | None:
        """How an attempt of pods of these quotas looks for victims; None when it does not."""
        if not self._preempts:
            return None
        if self._default is not None and None in reclaims:
            return DefaultSearch(self._default)
        return QuotaSearch(self._scheduling, self._budgets, self._accounts, self._rules, reclaims)

    def _refused(self, search: Search | None, failure: Failure) -> Refusal | None:
        """Why no preemption is tried for a pod; None when one is."""
        if search is None:
            return _refusal(failure, DISABLED, keeps=True)
        why = search.why_not(failure)
        if why is not None:
            return _refusal(failure, why, keeps=True)
        why = search.why_never(failure)
        return None if why is None else _refusal(failure, why)

    def _make_room(
        self,
        pods: Sequence[PodInfo],
        search: Search | None,
        placed: Mapping[PodInfo, NodeInfo],
        failures: Mapping[PodInfo, Failure],
    ) -> Planned | Refusal:
        """Make room for one pod after the other, in simulation; one that cannot be helped ends it for all.

        Args:
            pods: all pods of the attempt.
            search: how victims are looked for.
            placed: the pods that get a node as things stand.
            failures: the others.
        """
        assert search is not None, "room is made without a preemption"
        rejecting = frozenset(plugin for failure in failures.values() for plugin in failure.rejecting)
        plan = Plan(self._cache, self._accounts, self._budgets)
        steps: list[Step] = []
        try:
            for pod, node in placed.items():
                plan.place(pod, node)
            for pod, first in failures.items():
                failure = first
                if plan.placed:
                    # Room that was made for others may do, and what it costs is to be seen anew.
                    again = self._find_node(claim_of(pod, self._accounts, self._cache, mates=pods))
                    if isinstance(again, NodeInfo):
                        plan.place(pod, again)
                        continue
                    failure = again
                found = search.candidates(failure, failures.values())
                if not found.candidates:
                    rule = NO_VICTIMS
                    return _refusal(failure, rule, found.rejected, keeps=found.failed, rejecting=rejecting)
                chosen = pick_one_node_for_preemption(found.candidates)
                figures = search.figures(pod, chosen, found)
                if len(pods) > 1:
                    figures["gang"] = {"pods": len(pods), "short": len(failures), "pod": pod.name}
                victims = search.in_turn(chosen.victims)
                steps.append(Step(pod, chosen, victims, search.reason(pod), figures))
                for victim in victims:
                    plan.evict(victim)
                plan.place(pod, chosen.node)
        finally:
            plan.undo()
        return Planned(plan.placed, steps, search, rejecting)


def _refusal(
    failure: Failure,
    rule: str,
    nodes: Mapping[int, Any] | None = None,
    *,
    keeps: bool = False,
    rejecting: frozenset[str] | None = None,
) -> Refusal:
    return Refusal(
        failure.claim.pod.name, rule, failure, nodes, keeps=keeps, rejecting=rejecting or failure.rejecting
    )
