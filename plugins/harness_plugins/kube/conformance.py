"""Computes the results of recorded kube-scheduler cases with the same code that replays use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness import Cluster
from harness.base.errors import ClusterError, Fault
from harness.models.cluster import Pod, SchedulerConfiguration
from harness.models.kube.cache import Cache
from harness.models.kube.placement.scheduling import Diagnosis, Scheduling
from harness.models.kube.placement.status import NO_VICTIM_NEEDED, Status
from harness.models.kube.pod import NOT_STARTED, PodInfo, Templates
from harness.models.kube.preemption.budgets import Budgets
from harness.models.kube.preemption.evaluator import Preemption, acceptable, pick_one_node_for_preemption
from harness.models.kube.preemption.victims import Candidate
from harness.models.manifests import Fields, cluster_from, read_pod


class Question(NamedTuple):
    """The input of a case about one scheduling attempt: a pod to schedule, and the cluster.

    Attributes:
        cluster: the cluster in the manifests.
        budgets: the PodDisruptionBudgets, with the allowed disruptions in the manifests.
        scheduling: the nodes, to which the pods in the manifests are already bound or nominated.
    """

    cluster: Cluster
    budgets: Budgets
    scheduling: Scheduling
    running: list[PodInfo]
    pod: PodInfo


class World(NamedTuple):
    """The cluster of a case, with its nodes and pods. See `Question`."""

    cluster: Cluster
    budgets: Budgets
    cache: Cache
    templates: Templates
    pods: list[PodInfo]


def world_of(case: Mapping[str, Any]) -> World:
    """Returns the nodes of a case, with its pods bound or nominated to them.

    Raises:
        ClusterError: the case is invalid.
    """
    cluster = cluster_from(case["objects"], case["id"], webhooks=False)
    cache = Cache(cluster)
    budgets = Budgets(cluster.disruption_budgets, live=False)
    templates = Templates(cache.resources, budgets.covering)
    pods = [_pod_info(manifest, templates) for manifest in cluster.pods]
    for placed, manifest in zip(pods, cluster.pods, strict=True):
        _place(placed, manifest, cache)
    return World(cluster, budgets, cache, templates, pods)


def question_of(case: Mapping[str, Any]) -> Question:
    """Returns the input of a case about one scheduling attempt.

    Raises:
        ClusterError: the case is invalid.
    """
    faults: list[Fault] = []
    incoming = read_pod(Fields(case["given"]["pod"], f"{case['id']}: given.pod", faults))
    if faults:
        raise ClusterError(case["id"], faults)
    cluster, budgets, cache, templates, running = world_of(case)
    pod = _pod_info(incoming, templates)
    pod.nominated = incoming.nominated_node
    return Question(cluster, budgets, Scheduling(cache), running, pod)


def preempt(case: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the node and the victims that preemption chooses in a case of `kube-scheduler/preempt`."""
    asked = question_of(case)
    preemption = Preemption(asked.scheduling.cache, asked.budgets, SchedulerConfiguration())
    return _answer(asked.pod, asked.scheduling, preemption)


def explain_preempt(case: Mapping[str, Any]) -> str:
    """Describes the result of a case of `kube-scheduler/preempt`, node by node."""
    answer = preempt(case)
    outcome = str(answer["outcome"])
    lines = [outcome, *(f"{key}: {answer[key]}" for key in ("reason", "node", "victims") if key in answer)]
    candidates = {candidate["node"]: candidate for candidate in answer.get("candidates", ())}
    for node, status in sorted(answer.get("filter", {}).items()):
        lines.append(f"node {node}: {status['code']} by {status['plugin']}: {', '.join(status['reasons'])}")
        if node in candidates:
            candidate = candidates[node]
            victims, violations = ", ".join(candidate["victims"]), candidate["numPDBViolations"]
            lines.append(f"  candidate: {violations} PDB violations, victims {victims}")
        elif node in answer.get("rejected", {}):
            lines.append(f"  no candidate: {', '.join(answer['rejected'][node]['reasons'])}")
    for node, scores in answer.get("scores", {}).items():
        lines.append(f"node {node} fits: {', '.join(f'{name} {score}' for name, score in scores.items())}")
    return "\n".join(lines)


def _pod_info(manifest: Pod, templates: Templates) -> PodInfo:
    """Returns a pod from the manifests as the scheduler sees it, neither bound nor nominated yet."""
    template = templates.of(manifest.namespace, manifest.labels, manifest.spec)
    pod = PodInfo(manifest.name, template, manifest.priority or 0, preempts=manifest.preempts is not False)
    pod.start = NOT_STARTED if manifest.start is None else manifest.start
    pod.terminating, pod.preempted = manifest.terminating, manifest.preempted
    return pod


def _place(pod: PodInfo, manifest: Pod, cache: Cache) -> None:
    node = cache.by_name.get(manifest.node)
    if node is not None:
        cache.add_pod(pod, node)
    elif not manifest.node and manifest.nominated_node:
        cache.nominate(pod, manifest.nominated_node)


def _answer(pod: PodInfo, scheduling: Scheduling, preemption: Preemption) -> dict[str, Any]:
    cache = scheduling.cache
    found = scheduling.schedule(pod)
    state, nodes = scheduling.pre_filter(pod), scheduling.shape_nodes(pod.template.shape)
    if not isinstance(found, Diagnosis):
        fits: dict[str, Any] = {"outcome": "Fits", "node": found.name}
        if pod.nominated == found.name and scheduling.filter(pod, found, state, nodes) is None:
            return {**fits, "feasibleNodes": [found.name], "acceptableNodes": [found.name]}
        examined = scheduling.examine(pod, state, nodes)
        fits["filter"] = statuses(cache, examined.statuses)
        feasible = sorted(examined.feasible, key=lambda node: node.name)
        fits["feasibleNodes"] = [node.name for node in feasible]
        if len(feasible) == 1:
            return {**fits, "acceptableNodes": [found.name]}
        totals = {}
        fits["scores"] = {}
        for node, scores in zip(feasible, scheduling.scores(pod, feasible), strict=True):
            totals[node.name] = sum(scores.values())
            said = {plugin: score for plugin, score in scores.items() if score}
            fits["scores"][node.name] = {**said, "total": totals[node.name]}
        best = max(totals.values())
        return {**fits, "acceptableNodes": [name for name, total in totals.items() if total == best]}
    rejections = {node.position: found.status(node) for node in cache.nodes}
    answer: dict[str, Any] = {"filter": statuses(cache, rejections)}
    reason = preemption.pod_eligible_to_preempt_others(pod, found)
    if reason is not None:
        return {**answer, "outcome": "NotEligible", "reason": reason}
    answer["potentialNodes"] = sorted(cache.nodes[position].name for position in found.potential)
    search = preemption.find_candidates(pod, found, explain=True)
    quick = preemption.find_candidates(pod, found)
    if search.rejected:
        answer["rejected"] = statuses(cache, search.rejected)
    candidates = sorted(search.candidates, key=lambda candidate: candidate.node.name)
    answer["candidates"] = [candidate_as_recorded(each) for each in candidates]
    if not candidates:
        outcome = "Error" if search.failed else "NoCandidates"
        return {**answer, "outcome": outcome, **({} if search.failed else {"clearsNomination": True})}
    chosen = pick_one_node_for_preemption(quick.candidates)
    answer |= choice_as_recorded(chosen, candidates)
    cleared = preemption.nominations_to_clear(pod, chosen)
    return {**answer, "nominationsCleared": sorted(other.key for other in cleared)} if cleared else answer


def candidate_as_recorded(candidate: Candidate) -> dict[str, Any]:
    """Returns a candidate node in the format of the recorded cases."""
    return {
        "node": candidate.node.name,
        "victims": [victim.key for victim in candidate.victims],
        "numPDBViolations": candidate.violations,
    }


def choice_as_recorded(chosen: Candidate, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Returns the outcome of a preemption in the format of the recorded cases."""
    return {
        "outcome": "Preempt",
        **candidate_as_recorded(chosen),
        "acceptableNodes": [each.node.name for each in acceptable(candidates)],
        "deleted": sorted(victim.key for victim in chosen.victims if not victim.terminating),
    }


def statuses(cache: Cache, rejections: Mapping[int, Status]) -> dict[str, Any]:
    """Returns the rejection of each node in the format of the recorded cases."""
    return {
        cache.nodes[position].name: {
            "code": status.code.value,
            **({"plugin": status.plugin} if status.plugin else {}),
            "reasons": _reasons(status, cache.nodes[position].name),
        }
        for position, status in sorted(rejections.items())
    }


def _reasons(status: Status, node: str) -> list[str]:
    if status is NO_VICTIM_NEEDED:
        return [f'{status.reasons[0]} "{node}"']
    return list(status.reasons)
