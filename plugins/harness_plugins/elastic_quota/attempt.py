"""Attempts to place a pod or a gang. An attempt finds nodes and victims, or the reason for its failure.

An attempt has no lasting effect. Afterwards, the cache, quotas and budgets are the same as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from harness.models.elastic.quota import Quota
from harness.models.elastic.tree import Excess
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import Preemption
from harness.models.kube.refusal import DISABLED, NO_VICTIMS
from harness_plugins.elastic_quota.failure import Failure, QuotaRefusal
from harness_plugins.elastic_quota.quota_request import Nominated, Others, QuotaRequest, quota_request
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import DefaultSearch, DryRuns, QuotaSearch, Search, Step
from harness_plugins.elastic_quota.tentative import TentativePlacement

TOO_FEW = "its group has fewer pods than must be placed together"


@final
@dataclass(frozen=True, slots=True)
class Placed:
    """The outcome if all pods get a node without preemption."""

    nodes: Mapping[PodInfo, NodeInfo]


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome if preemption helps all pods.

    Attributes:
        steps: the preemptions for the pods that do not fit.
        rejecting: the plugins that rejected pods.
    """

    nodes: Mapping[PodInfo, NodeInfo]
    steps: Sequence[Step]
    search: Search
    rejecting: frozenset[str]


Outcome: TypeAlias = Placed | Planned | QuotaRefusal


@final
class Attempts:
    """Tries to place pods and gangs.

    Args:
        preemption: default preemption, or None if no pod is preempted.
        falls_back: whether pods without a quota use default preemption. If not, the rules apply to them, too.
        dry_runs: performs the dry runs of the rules.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        budgets: Budgets,
        rules: Rules,
        nominated: Nominated,
        preemption: Preemption | None,
        *,
        falls_back: bool,
        dry_runs: DryRuns,
    ) -> None:
        self._scheduling = scheduling
        self._cache = scheduling.cache
        self._budgets = budgets
        self._usage = rules.usage
        self._rules = rules
        self._nominated = nominated
        self._preemption = preemption
        self._falls_back = falls_back
        self._dry_runs = dry_runs

    def try_pod(self, pod: PodInfo) -> Outcome:
        """Tries to place one pod."""
        found = self._find_node(pod, self._nominated.besides([pod]))
        if isinstance(found, NodeInfo):
            return Placed({pod: found})
        search = self._search({found.request.quota: self._rules.reclaims(found.request)})
        refusal = self._refused(search, found)
        return refusal or self._make_room([pod], search, {}, {pod: found})

    def try_gang(self, pods: Sequence[PodInfo], least: int) -> Outcome:
        """Tries to place pods one by one. The earlier pods count as placed. If one pod fails, all fail.

        If only some pods must be placed together, the pods that fit are placed, provided that there are
        enough of them. The remaining pods are then tried as a group of their own. Preemption helps all pods
        of a group, or none of them.

        If no preemption can help a gang, the attempt ends at the first pod without a node. If the quota
        cannot admit the whole gang, the attempt ends before any pod is placed. Such an attempt does not
        change the node at which the next search for nodes starts. Neither does a skipped attempt of an equal
        gang.
        """
        start = self._scheduling.start
        outcome = self._try_together(pods, least)
        if not isinstance(outcome, Placed):
            self._scheduling.start = start
        if isinstance(outcome, QuotaRefusal):
            return outcome._replace(place=pods.index(outcome.failure.request.pod))
        return outcome

    def _try_together(self, pods: Sequence[PodInfo], least: int) -> Outcome:
        others = self._nominated.besides(pods)
        if least > len(pods):
            request = quota_request(pods[0], self._usage, others)
            return _refusal(self._failure(request._replace(excess=None)), TOO_FEW)
        if least < len(pods):
            fitting = self._fitting(pods, others)
            if fitting and len(fitting) >= least:
                return Placed(fitting)
        wholes = self._wholes(pods, others)
        search = self._search({quota: self._rules.reclaims(whole) for quota, whole in wholes.items()})
        for whole in wholes.values():
            excess = self._over(whole)
            if excess is None:
                continue
            refusal = self._refused(search, self._failure(whole._replace(excess=excess)))
            if refusal is not None:
                return refusal
        tentative = TentativePlacement(self._cache, self._usage, self._budgets)
        failures: dict[PodInfo, Failure] = {}
        try:
            for pod in pods:
                found = self._find_node(pod, others)
                if isinstance(found, NodeInfo):
                    tentative.place(pod, found)
                    continue
                refusal = self._refused(search, found)
                if refusal is not None:
                    return _as_seen(refusal, tentative)
                failures[pod] = found
        finally:
            tentative.undo()
        return (
            self._make_room(pods, search, tentative.placed, failures)
            if failures
            else Placed(tentative.placed)
        )

    def _find_node(self, pod: PodInfo, others: Others) -> NodeInfo | Failure:
        request = quota_request(pod, self._usage, others)
        if request.excess is not None:
            return self._failure(request)
        found = self._scheduling.schedule(pod)
        if isinstance(found, Diagnosis):
            return Failure(request, found.state, self._cache, found)
        return found

    def _failure(self, request: QuotaRequest) -> Failure:
        return Failure(request, self._scheduling.pre_filter(request.pod), self._cache, None)

    def _fitting(self, pods: Sequence[PodInfo], others: Others) -> Mapping[PodInfo, NodeInfo]:
        """Returns the pods that get a node without preemption, each as if the earlier pods were placed."""
        tentative = TentativePlacement(self._cache, self._usage, self._budgets)
        try:
            for pod in pods:
                found = self._find_node(pod, others)
                if isinstance(found, NodeInfo):
                    tentative.place(pod, found)
        finally:
            tentative.undo()
        return tentative.placed

    # --- gangs --------------------------------------------------------------------------------------------

    def _wholes(self, pods: Sequence[PodInfo], others: Others) -> dict[Quota | None, QuotaRequest]:
        """Returns the request of all pods to each quota. Its `excess` is that of the first pod alone."""
        mates: dict[Quota | None, list[PodInfo]] = {}
        for pod in pods:
            mates.setdefault(self._usage.quota_of(pod), []).append(pod)
        return {
            quota: quota_request(of[0], self._usage, others).joined_by(
                self._usage.of(each).amounts for each in of[1:]
            )
            for quota, of in mates.items()
        }

    def lets_in(self, pods: Sequence[PodInfo]) -> bool:
        """Returns True if the quotas admit all of these pods now, in addition to nominated pods."""
        wholes = self._wholes(pods, self._nominated.besides(pods))
        return all(whole.excess is None and self._over(whole) is None for whole in wholes.values())

    def _over(self, request: QuotaRequest) -> Excess | None:
        if request.quota is None:
            return None
        return self._usage.tree.refusing(request.quota, request.in_quota, request.shared, request.in_all)

    # --- preemption ---------------------------------------------------------------------------------------

    def _search(self, reclaims: Mapping[Quota | None, bool]) -> Search | None:
        if self._preemption is None:
            return None
        if self._falls_back and None in reclaims:
            return DefaultSearch(self._preemption)
        return QuotaSearch(self._scheduling, self._budgets, self._rules, reclaims, self._dry_runs)

    def _refused(self, search: Search | None, failure: Failure) -> QuotaRefusal | None:
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
    ) -> Planned | QuotaRefusal:
        """Plans a preemption for one pod after another. If preemption cannot help one of them, all fail."""
        assert search is not None, "resources became free without a preemption"
        rejecting = frozenset(plugin for failure in failures.values() for plugin in failure.rejecting)
        tentative = TentativePlacement(self._cache, self._usage, self._budgets)
        steps: list[Step] = []
        others = self._nominated.besides(pods)
        try:
            for pod, node in placed.items():
                tentative.place(pod, node)
            for pod, first in failures.items():
                failure = first
                if tentative.placed:
                    # The resources that were freed for earlier pods may be enough. If not, the search for
                    # victims is repeated.
                    again = self._find_node(pod, others)
                    if isinstance(again, NodeInfo):
                        tentative.place(pod, again)
                        continue
                    failure = again
                found = search.candidates(failure, failures.values())
                if not found.candidates:
                    rule, keeps = NO_VICTIMS, found.failed
                    refusal = _refusal(failure, rule, found.rejected, keeps=keeps, rejecting=rejecting)
                    return _as_seen(refusal, tentative)
                step = search.step(pod, found)
                if len(pods) > 1:
                    step.detail["gang"] = {"pods": len(pods), "short": len(failures), "pod": pod.name}
                steps.append(step)
                for victim in step.victims:
                    tentative.evict(victim)
                tentative.place(pod, step.chosen.node)
        finally:
            tentative.undo()
        return Planned(tentative.placed, steps, search, rejecting)


def _as_seen(refusal: QuotaRefusal, tentative: TentativePlacement) -> QuotaRefusal:
    """Returns a refusal, with its figures if there are trial placements that are about to be reverted."""
    return refusal.with_figures() if tentative.placed else refusal


def _refusal(
    failure: Failure,
    rule: str,
    nodes: Mapping[int, Any] | None = None,
    *,
    keeps: bool = False,
    rejecting: frozenset[str] | None = None,
) -> QuotaRefusal:
    return QuotaRefusal(
        failure.request.pod.name, rule, failure, nodes, keeps=keeps, rejecting=rejecting or failure.rejecting
    )
