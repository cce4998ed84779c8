"""Searches for victims in one attempt for a pod or gang, by quotas or by default preemption."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, final

from harness.models.elastic.quota import Quota
from harness.models.kube.gangs import are_mates
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.shape_nodes import ShapeNodes
from harness.models.kube.placement.status import NO_VICTIMS as NOBODY_ELIGIBLE
from harness.models.kube.placement.status import Code, Status
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import (
    NEVER_PREEMPTS,
    Found,
    Preemption,
    deciding_criterion,
    pick_one_node_for_preemption,
)
from harness.models.kube.preemption.victims import Candidate, EligiblePods, select_victims_on_node
from harness.models.kube.scheduler import PREEMPTED, detail_of
from harness_plugins.elastic_quota.dry_run import NO_VICTIMS, Exceeded, QuotaBound, no_victims
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.quota_detail import quota_detail
from harness_plugins.elastic_quota.rules import Rules

RECLAIM = "QuotaReclaim"
"""The reason for a preemption with which a quota reclaims its guarantee from quotas that borrow."""

WITHIN_QUOTA = "QuotaPriority"
"""The reason for the preemption of a less important pod of the same quota."""

NO_QUOTA = "a pod without a quota cannot preempt"
NOBODY_BORROWS = "no other quota uses more than its min"
FIRM_PODS = "with it, pods that must not be preempted would exceed their quota's min"

FROM_EVERYONE = 1 << 62
"""A value above every priority. With this value, the freed resources are reserved against all pods."""

_code = attrgetter("code")


class Tries(NamedTuple):
    """The input that all dry runs of one search share.

    Attributes:
        eligible_pods: finds the potential victims on a node.
        exceeded: the exceeded limits that count.
        reclaims: whether the pod, with its gang, claims the guarantee of its quota.
    """

    failure: Failure
    eligible_pods: EligiblePods
    exceeded: Exceeded
    nodes: ShapeNodes
    reclaims: bool


class Step(NamedTuple):
    """The preemption for one pod, with the node, the victims in order, the reason, and the detail."""

    pod: PodInfo
    chosen: Candidate
    victims: Sequence[PodInfo]
    reason: str
    detail: dict[str, Any]


DryRun: TypeAlias = Callable[[Tries, NodeInfo], Candidate | Status]
DryRuns: TypeAlias = Callable[[Tries, Sequence[NodeInfo], DryRun], dict[int, Candidate | Status]]
"""Returns the results of dry runs on some nodes, by the positions of the nodes."""


def on_each(tries: Tries, nodes: Sequence[NodeInfo], dry_run: DryRun) -> dict[int, Candidate | Status]:
    """Performs a dry run on each node."""
    return {node.position: dry_run(tries, node) for node in nodes}


@final
class QuotaSearch:
    """A search for victims by the rules of quotas.

    Args:
        reclaims: for each quota of the attempt's pods, whether the attempt's pods in this quota together
            claim its guarantee.
        dry_runs: performs the dry runs on the nodes that may have a victim.
    """

    def __init__(
        self,
        scheduling: Scheduling,
        budgets: Budgets,
        rules: Rules,
        reclaims: Mapping[Quota | None, bool],
        dry_runs: DryRuns = on_each,
    ) -> None:
        self._scheduling = scheduling
        self._cache = scheduling.cache
        self._budgets = budgets
        self._usage = rules.usage
        self._rules = rules
        self._reclaims = reclaims
        self._dry_runs = dry_runs

    def why_not(self, failure: Failure) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can.

        The pod may never preempt, or it waits for pods to terminate.
        """
        request, expected = failure.request, failure.expected
        if not request.pod.preempts:
            return NEVER_PREEMPTS
        if expected is None:
            return None
        return self._rules.why_waiting(request, expected, reclaims=self._reclaims[request.quota])

    def why_never(self, failure: Failure) -> str | None:
        """Returns the reason why preemption cannot help a pod, or None if only a dry run can tell."""
        request, rules, usage = failure.request, self._rules, self._usage
        quota, reclaims = request.quota, self._reclaims[request.quota]
        if rules.claim(quota, reclaims=reclaims).is_in_vain():
            return NO_QUOTA if quota is None else NOBODY_BORROWS
        if not (reclaims or usage.has_lower(quota, request.pod.priority)):
            return rules.not_lower
        if rules.keeps_firm and quota is not None and usage.of(request.pod).firm:
            return FIRM_PODS if usage.tree.over_firm(quota, request.own) is not None else None
        return None

    def candidates(self, failure: Failure, failures: Collection[Failure], *, explain: bool = False) -> Found:
        """Performs dry runs on the nodes that may have a victim, and returns the candidates.

        Earlier steps of the plan count as done. `failures` has the failures of all pods of the attempt that
        have no node, including this pod. A node that may help one pod of a gang is also tried for the other
        pods of the gang. If `explain` is True, the result always has the reasons why nodes are not
        candidates. Otherwise, it has them only if no node is a candidate.
        """
        request, rules = failure.request, self._rules
        reclaims = self._reclaims[request.quota]
        alone = len(failures) == 1
        pool: Iterable[int] = failure.potential
        if not alone:
            pool = sorted(set(pool).union(*(each.potential for each in failures)))
        nodes = self._cache.nodes
        if alone and not rules.examines_all:
            pool = [each for each in pool if not nodes[each].unschedulable]
        with self._usage.tree.departed() if rules.looks_ahead else nullcontext():
            losing, eligible_pods = rules.claim(request.quota, reclaims=reclaims)
            where = set().union(*map(self._usage.nodes_of, losing))
            shape_nodes = self._scheduling.shape_nodes(request.pod.template.shape)
            tries = Tries(failure, eligible_pods, rules.exceeded(request), shape_nodes, reclaims)
            there = [nodes[each] for each in pool if each in where]
            answers = self._dry_runs(tries, there, self._dry_run)
        candidates = [each for each in answers.values() if isinstance(each, Candidate)]
        rejected: dict[int, Status] = {}
        if explain or not candidates:
            rejected = dict.fromkeys(pool, NO_VICTIMS)
            if rules.names_nodes:
                rejected = {each: no_victims(request.pod, nodes[each]) for each in pool}
            for position, answer in answers.items():
                if isinstance(answer, Candidate):
                    del rejected[position]
                elif answer is not NOBODY_ELIGIBLE:
                    rejected[position] = answer
        failed = not candidates and Code.ERROR in map(_code, rejected.values())
        return Found(candidates, rejected, failed=failed)

    def _dry_run(self, tries: Tries, node: NodeInfo) -> Candidate | Status:
        failure, exceeded, rules = tries.failure, tries.exceeded, self._rules
        pod = failure.request.pod
        fixed = tries.nodes.ruled_out(node.position)
        if fixed is not None and tries.eligible_pods(node, pod):
            return fixed
        return select_victims_on_node(
            pod,
            node,
            failure.state,
            self._budgets,
            self._cache.names,
            tries.eligible_pods,
            gone=[each for each in node.pods if each.terminating] if rules.looks_ahead else (),
            bound=QuotaBound(exceeded, self._usage, twice=rules.counts_twice) if any(exceeded) else None,
            sorts=rules.sorts_victims,
        )

    def step(self, pod: PodInfo, found: Found) -> Step:
        """Returns the preemption for a pod on the best candidate.

        Its detail has the usage and limits of all quotas that are involved.
        """
        quota, rules = self._usage.quota_of(pod), self._rules
        chosen, detail = _choose(found)
        victims = chosen.victims[::-1] if rules.least_first else chosen.victims
        reason = PREEMPTED if quota is None else RECLAIM if self._reclaims[quota] else WITHIN_QUOTA
        return Step(pod, chosen, victims, reason, detail | quota_detail(pod, chosen.victims, self._usage))

    def keeps(self, pod: PodInfo) -> int:
        """Returns a priority. Pods up to this priority cannot use the resources freed for this pod.

        Under some rules, no other pod can use resources that a pod reclaims for its guarantee.
        """
        reclaims = self._reclaims[self._usage.quota_of(pod)]
        return FROM_EVERYONE if self._rules.keeps_room and reclaims else pod.priority


@final
class DefaultSearch:
    """A search for victims by default preemption, for the pods of a gang one after another."""

    def __init__(self, preemption: Preemption) -> None:
        self._preemption = preemption

    def why_not(self, failure: Failure) -> str | None:
        """Returns the reason why a pod cannot preempt now, or None if it can."""
        if failure.diagnosis is None:
            return None
        return self._preemption.pod_eligible_to_preempt_others(failure.request.pod, failure.diagnosis)

    def why_never(self, failure: Failure) -> str | None:
        """Returns a reason if the quota does not admit the pod. Preemption by priority cannot change this."""
        return None if failure.diagnosis is not None else "the quota of the pod does not admit the pod"

    def candidates(self, failure: Failure, failures: Collection[Failure]) -> Found:
        """Performs dry runs for one pod, and returns the candidates.

        A node with victims of the pod's own gang or job is not a candidate. If the quota does not admit the
        pod, no node is a candidate, because priority cannot change this.
        """
        pod = failure.request.pod
        if failure.diagnosis is None:
            return Found((), {}, failed=False)
        found = self._preemption.find_candidates(pod, failure.diagnosis)
        if pod.gang is None:  # only pods of a gang can count as more important than other pods of their job
            return found
        apart = [each for each in found.candidates if not any(are_mates(pod, it) for it in each.victims)]
        return found._replace(candidates=apart)

    def step(self, pod: PodInfo, found: Found) -> Step:
        """Returns the preemption for a pod on the best candidate."""
        chosen, detail = _choose(found)
        return Step(pod, chosen, chosen.victims, PREEMPTED, detail)

    def keeps(self, pod: PodInfo) -> int:
        """Returns the pod's priority. Pods up to this priority cannot use the resources freed for the pod."""
        return pod.priority


def _choose(found: Found) -> tuple[Candidate, dict[str, Any]]:
    """Returns the best candidate, with its details for the record."""
    chosen = pick_one_node_for_preemption(found.candidates)
    return chosen, detail_of(chosen, deciding_criterion(found.candidates), len(found.candidates))


Search: TypeAlias = QuotaSearch | DefaultSearch
"""The search for victims after a failed attempt. Its methods are called before any eviction."""
