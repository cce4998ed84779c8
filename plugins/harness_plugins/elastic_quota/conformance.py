"""Computes the results of recorded capacity scheduling and Koordinator cases with the code of replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness import Cluster
from harness.base.units import format_amounts
from harness.models.elastic.runtime_quotas import RuntimeQuotas
from harness.models.elastic.tree import FIRM, QuotaTree
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.status import Code
from harness.models.kube.pod import PodInfo
from harness.models.kube.preemption.evaluator import pick_one_node_for_preemption
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.koordinator import KoordinatorRules
from harness_plugins.elastic_quota.quota_request import Nominated, QuotaRequest, quota_request
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.search import QuotaSearch
from harness_plugins.kube.conformance import (
    Question,
    candidate_as_recorded,
    choice_as_recorded,
    question_of,
    statuses,
    world_of,
)

_REASONS = {"max": "overMax", "min": "overAggregatedMin", "runtime": "runtime", FIRM: "nonPreemptible"}


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns whether a pod is admitted, its node, and the victims in a case of `elasticquota/preempt`."""
    asked = question_of(case)
    tree = QuotaTree(asked.cluster.elastic_quotas, hierarchical=False)
    usage = _usage(asked.cluster, tree, asked.running)
    others = Nominated(usage, asked.scheduling.cache).besides([asked.pod])
    request = quota_request(asked.pod, usage, others)
    return {"used": _used(usage), **_pre_filter(request), **_outcome(request, asked, CapacityRules(usage))}


def runtime(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request, usage and runtime of each quota in a case of `koordinator/runtime`."""
    world = world_of(case)
    tree, runtimes = _with_runtimes(case, world.cluster)
    usage = _usage(world.cluster, tree, world.pods)
    shares = {name: runtimes.runtime(name) for name in case["given"]["refresh"]}
    return {
        "runtime": _as_recorded(shares),
        "request": _as_recorded({name: runtimes.request(name) for name in shares}),
        "used": _used(usage),
    }


def attempt(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns whether a pod is admitted, its node, and the victims in a case of `koordinator/preempt`."""
    asked = question_of(case)
    tree, _ = _with_runtimes(case, asked.cluster)
    usage = _usage(asked.cluster, tree, asked.running)
    usage.ask(asked.pod)
    request = quota_request(asked.pod, usage, Nominated(usage, asked.scheduling.cache).beside)
    limit = {} if request.quota is None else tree.runtime(request.quota)
    said = _outcome(request, asked, KoordinatorRules(usage))
    said.pop("deleted", None)
    if said["outcome"] != "Fits":
        said["rejected"] = {name: {"code": each["code"]} for name, each in said.get("rejected", {}).items()}
    return {"limit": _as_recorded({"": limit})[""], **_pre_filter(request), **said}


def _with_runtimes(case: Mapping[str, Any], cluster: Cluster) -> tuple[QuotaTree, RuntimeQuotas]:
    quotas, scales = cluster.elastic_quotas, case["config"]["enableMinQuotaScale"]
    runtimes = RuntimeQuotas(quotas, cluster.capacity, scales=scales)
    return QuotaTree(quotas, hierarchical=True, runtimes=runtimes), runtimes


def _usage(cluster: Cluster, tree: QuotaTree, pods: Iterable[PodInfo]) -> QuotaUsage:
    usage = QuotaUsage(cluster, tree)
    for pod in pods:
        usage.ask(pod)
        if pod.node >= 0:
            usage.bind(pod, pod.node)
    return usage


def explain(case: Mapping[str, Any]) -> str:
    """Describes the result of a case, node by node."""
    found = attempt(case) if case["component"] == "koordinator/preempt" else answer(case)
    lines = [f"{found['outcome']}; quota: {found.get('preFilterReason', 'admits the pod')}"]
    lines += [f"{key}: {found[key]}" for key in ("limit", "reason", "node", "victims") if key in found]
    lines += [f"{quota} uses {amounts}" for quota, amounts in found.get("used", {}).items()]
    for candidate in found.get("candidates", ()):
        victims, violations = ", ".join(candidate["victims"]), candidate["numPDBViolations"]
        lines.append(f"node {candidate['node']}: {violations} PDB violations, victims {victims}")
    for node, status in found.get("rejected", {}).items():
        lines.append(": ".join([f"node {node}", status["code"], *status.get("reasons", ())]))
    return "\n".join(lines)


def _pre_filter(request: QuotaRequest) -> dict[str, str]:
    if request.excess is None:
        return {"preFilter": "Success"}
    return {"preFilter": Code.UNSCHEDULABLE.value, "preFilterReason": _REASONS[request.excess.bound]}


def _outcome(request: QuotaRequest, asked: Question, rules: Rules) -> dict[str, Any]:
    scheduling = asked.scheduling
    pod, cache = request.pod, scheduling.cache
    state, nodes = scheduling.pre_filter(pod), scheduling.shape_nodes(pod.template.shape)
    diagnosis = None
    if request.excess is None:
        found = scheduling.schedule(pod)
        if isinstance(found, NodeInfo):
            if pod.nominated == found.name and scheduling.filter(pod, found, state, nodes) is None:
                return {"outcome": "Fits", "feasibleNodes": [found.name]}
            feasible = scheduling.examine(pod, state, nodes).feasible
            return {"outcome": "Fits", "feasibleNodes": sorted(node.name for node in feasible)}
        diagnosis = found
    failure = Failure(request, state, cache, diagnosis)
    reclaims = {request.quota: rules.reclaims(request)}
    search = QuotaSearch(scheduling, asked.budgets, rules, reclaims)
    why = search.why_not(failure)
    if why is not None:
        return {"outcome": "NotEligible", "reason": why}
    dry_runs = search.candidates(failure, [failure], explain=True)
    said: dict[str, Any] = {"rejected": statuses(cache, dry_runs.rejected)} if dry_runs.rejected else {}
    candidates = sorted(dry_runs.candidates, key=lambda candidate: candidate.node.name)
    said["candidates"] = [candidate_as_recorded(each) for each in candidates]
    if not candidates:
        return {**said, "outcome": "Error" if dry_runs.failed else "NoCandidates"}
    chosen = pick_one_node_for_preemption(candidates)
    return {**said, **choice_as_recorded(chosen, candidates)}


def _used(usage: QuotaUsage) -> dict[str, dict[str, str]]:
    quotas = usage.tree.quotas.values()
    return _as_recorded({quota.name: {k: v for k, v in quota.used.items() if v} for quota in quotas})


def _as_recorded(amounts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    return {name: format_amounts(of) for name, of in amounts.items()}
