"""Answers recorded cases of capacity scheduling with the same code that replays use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import ClusterError, Fault
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.status import Code
from harness.models.kube.pod import Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import acceptable, pick_one_node_for_preemption
from harness.models.manifests import Fields, cluster_from, read_pod
from harness.units import format_amount
from harness_plugins.elastic_quota.accounts import Accounts
from harness_plugins.elastic_quota.capacity import CapacityRules
from harness_plugins.elastic_quota.claim import Claim, claim_of
from harness_plugins.elastic_quota.failure import Failure
from harness_plugins.elastic_quota.search import QuotaSearch
from harness_plugins.elastic_quota.tree import QuotaTree
from harness_plugins.kube.conformance import place, pod_info, statuses

_REASONS = {"max": "overMax", "min": "overAggregatedMin"}


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a case of `elasticquota/preempt`: is the pod let in, and whom does it preempt on which node."""
    cluster = cluster_from(case["objects"], case["id"], webhooks=False)
    faults: list[Fault] = []
    incoming = read_pod(Fields(case["given"]["pod"], f"{case['id']}: given.pod", faults))
    if faults:
        raise ClusterError(case["id"], faults)
    cache = Cache(cluster)
    budgets = Budgets(cluster.disruption_budgets, live=False)
    templates = Templates(cache.resources, budgets.covering)
    accounts = Accounts(cluster, QuotaTree(cluster.elastic_quotas, hierarchical=False))
    for manifest in cluster.pods:
        running = pod_info(manifest, templates)
        place(running, manifest, cache)
        if running.node >= 0:
            accounts.bind(running, running.node)
    pod = pod_info(incoming, templates)
    pod.nominated = incoming.nominated_node
    claim = claim_of(pod, accounts, cache)
    said: dict[str, Any] = {
        "used": _used(accounts),
        "preFilter": "Success" if claim.refusal is None else Code.UNSCHEDULABLE.value,
    }
    if claim.refusal is not None:
        said["preFilterReason"] = _REASONS[claim.refusal.bound]
    return {**said, **_outcome(claim, Scheduling(cache), budgets, accounts)}


def explain(case: Mapping[str, Any]) -> str:
    """The answer to a case in words, node by node."""
    found = answer(case)
    lines = [f"{found['outcome']}; quota: {found.get('preFilterReason', 'lets it in')}"]
    lines += [f"{key}: {found[key]}" for key in ("reason", "node", "victims") if key in found]
    lines += [f"{quota} uses {amounts}" for quota, amounts in found["used"].items()]
    for candidate in found.get("candidates", ()):
        victims, violations = ", ".join(candidate["victims"]), candidate["numPDBViolations"]
        lines.append(f"node {candidate['node']}: {violations} PDB violations, victims {victims}")
    for node, status in found.get("rejected", {}).items():
        lines.append(f"node {node}: {status['code']}: {', '.join(status['reasons'])}")
    return "\n".join(lines)


def _outcome(claim: Claim, scheduling: Scheduling, budgets: Budgets, accounts: Accounts) -> dict[str, Any]:
    pod, cache = claim.pod, scheduling.cache
    state, nodes = scheduling.pre_filter(pod), scheduling.shape_nodes(pod.template.shape)
    diagnosis = None
    if claim.refusal is None:
        found = scheduling.schedule(pod)
        if isinstance(found, NodeInfo):
            if pod.nominated == found.name and scheduling.filter(pod, found, state, nodes) is None:
                return {"outcome": "Fits", "feasibleNodes": [found.name]}
            feasible = scheduling.examine(pod, state, nodes).feasible
            return {"outcome": "Fits", "feasibleNodes": sorted(node.name for node in feasible)}
        diagnosis = found
    failure = Failure(claim, state, cache, diagnosis, claim.refusal)
    rules = CapacityRules(accounts)
    reclaims = {claim.quota: rules.reclaims(claim.quota, claim.in_quota)}
    search = QuotaSearch(scheduling, budgets, accounts, rules, reclaims)
    why = search.why_not(failure)
    if why is not None:
        return {"outcome": "NotEligible", "reason": why}
    dry_runs = search.candidates(failure, [failure])
    said: dict[str, Any] = {"rejected": statuses(cache, dry_runs.rejected)} if dry_runs.rejected else {}
    candidates = sorted(dry_runs.candidates, key=lambda candidate: candidate.node.name)
    said["candidates"] = [
        {
            "node": candidate.node.name,
            "victims": [victim.key for victim in candidate.victims],
            "numPDBViolations": candidate.violations,
        }
        for candidate in candidates
    ]
    if not candidates:
        return {**said, "outcome": "Error" if dry_runs.failed else "NoCandidates"}
    chosen = pick_one_node_for_preemption(candidates)
    return {
        **said,
        "outcome": "Preempt",
        "node": chosen.node.name,
        "victims": [victim.key for victim in chosen.victims],
        "numPDBViolations": chosen.violations,
        "acceptableNodes": [candidate.node.name for candidate in acceptable(candidates)],
        "deleted": sorted(victim.key for victim in chosen.victims if not victim.terminating),
    }


def _used(accounts: Accounts) -> dict[str, dict[str, str]]:
    """Quota -> what it uses, as the corpora write it."""
    return {
        name: {resource: format_amount(resource, amount) for resource, amount in quota.used.items() if amount}
        for name, quota in accounts.tree.leaves.items()
    }
