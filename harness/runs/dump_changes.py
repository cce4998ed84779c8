"""Describes which Workloads and Pods of a dump a replay omits or changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.base.errors import InputError
from harness.base.json_text import mapping_of
from harness.base.options import did_you_mean
from harness.base.text import first_of
from harness.cluster.kinds.pods import DEFAULT_SCHEDULER, Pod
from harness.cluster.kinds.queues_missing import REMEDY
from harness.cluster.kinds.workloads import Workload
from harness.cluster.model import Cluster
from harness.cluster.owners import owners_of
from harness.cluster.standing import Standing, differs, requests_of_workloads, standing_of

if TYPE_CHECKING:
    from harness.plugins.registries import PolicySpec

_NAMED = 3
_FINDS = "the scheduler finds nodes for them"


def not_as_it_was(several: Sequence[Cluster], taken: Collection[str], policy: PolicySpec) -> Iterator[str]:
    """Yields sentences about the Workloads and Pods of a dump that a replay omits or changes.

    Args:
        several: the cluster with the work that exists at the beginning. If some work arrives later, the
            cluster with that work follows.
        taken: the `namespace/name` of each Workload and Pod that the policy takes over as a job.
        policy: the policy of the replay.
    """
    yield from _nobody_takes(several, taken, policy)
    cluster = several[0]
    if not cluster.nodes:
        return
    working = [each for each in cluster.workloads if each.key in taken]
    held = [standing_of(cluster, each) for each in working if each.holds_quota]
    own = {pod.key for standing in held for pod in standing.pods.values()}
    more = [pod.key for standing in held for pod in standing.more]
    bound = [pod for pod in cluster.pods if pod.node and not pod.terminating]
    going = [
        pod.key
        for pod in cluster.pods
        if pod.terminating and not (pod.key in cluster.staying and (pod.key in own or pod.key in taken))
    ]
    yield from _said(going, "are terminating", "harness treats them as gone")
    yield from _missing(held, [each.key for each in working if each.holds_quota])
    yield from _without_node(cluster, bound, own, taken)
    of_workloads = requests_of_workloads(cluster)
    yield from _said(
        [pod.key for pod in bound if pod.key in own and differs(pod, of_workloads[pod.key])],
        "have other requests than their Workloads",
        "on the nodes, harness counts the Workloads' requests",
    )
    yield from _said(
        [pod.key for pod in bound if pod.workload in taken and pod.key not in own and pod.key not in taken],
        "run while their Workloads hold no quota",
        "harness treats them as gone",
    )
    yield from _said(
        more, "exceed the count in their Workloads", "running Pods use capacity of nodes, but no quota"
    )
    if policy.admits_by_queues(cluster):  # Otherwise, no Pod needs a Workload to use quota.
        alone = [pod.key for pod in cluster.pods if pod.key in taken and pod.key not in more]
        yield from _said(alone, "belong to no Workload", "they use capacity of nodes, but no quota")


def _nobody_takes(several: Sequence[Cluster], taken: Collection[str], policy: PolicySpec) -> Iterator[str]:
    def left(pod: Pod) -> bool:
        return not pod.terminating and pod.key not in taken and pod.workload not in taken

    untaken = f"{policy.name} does not take them over"
    runs = [pod.key for pod in several[0].pods if left(pod) and pod.node in several[0].nodes]
    yield from _said(runs, "already run", f"{untaken}, so harness treats their nodes as free")
    found: dict[str, list[str]] = {}
    for each in several:
        for pod in each.pods:
            if left(pod) and not pod.node:
                found.setdefault(_why_untaken(each, pod), []).append(pod.key)
    for why, names in found.items():
        yield from _said(names, f"wait for a node{why and f', but have {why}'}", untaken)
    yield from workloads_left_out(several, taken, policy)


def _why_untaken(cluster: Cluster, pod: Pod) -> str:
    """Returns what a waiting Pod has that keeps it from being scheduled in a replay, or ""."""
    if not cluster.schedules(pod):
        return f"another scheduler ({pod.scheduler or DEFAULT_SCHEDULER})"
    return "scheduling gates" if pod.gates else ""


def workloads_left_out(
    several: Sequence[Cluster], taken: Collection[str], policy: PolicySpec
) -> Iterator[str]:
    """Yields sentences about the Workloads that a policy does not take over as jobs.

    For the arguments, see `not_as_it_was`.
    """
    untaken, by_queues = f"{policy.name} does not take them over", policy.admits_by_queues(several[0])
    found: dict[tuple[str, str], list[str]] = {}
    for cluster in several:
        for each in cluster.workloads:
            if each.key in taken or not each.takes_part:
                continue
            lost = _lost(cluster, each) if by_queues else None
            if lost is None and each.holds_quota:
                lost = "hold quota", f"{untaken}, so harness treats their quota as free", each.key
            what, then, told = lost or ("wait for quota", untaken, each.key)
            found.setdefault((what, then), []).append(told)
    for (what, then), names in found.items():
        yield from _said(names, what, then, "Workload")


def workloads_missing(cluster: Cluster) -> Iterator[str]:
    """Yields a sentence if ClusterQueues count more Workloads with quota in their status than a dump has.

    Kueue changes the status while kubectl prints the objects, so a tenth of the Workloads may be missing.
    """
    admissions = (each.admission for each in cluster.workloads if each.holds_quota or each.job_ended)
    held = Counter(each.cluster_queue for each in admissions if each is not None)
    few = []
    for manifest in cluster.manifests:
        if manifest.get("kind") == "ClusterQueue":
            name = str(mapping_of(manifest, "metadata").get("name"))
            counted = mapping_of(manifest, "status").get("reservingWorkloads")
            if isinstance(counted, int) and held[name] * 10 < counted * 9:
                few.append(f"{name}: {held[name]:,} of {counted:,}")
    if few:
        yield (
            "the manifests lack Workloads that hold quota according to the status of their ClusterQueues "
            f"({first_of(few, _NAMED)}); harness treats their quota as free; "
            "kubectl get workloads -A -o yaml prints them"
        )


def named_waiting(
    cluster: Cluster, names: Iterable[str], waiting: Collection[str], policy: PolicySpec
) -> frozenset[str]:
    """Returns the ids of the Workloads and Pods that a user names, as `NAME` or `NAMESPACE/NAME`.

    `waiting` contains the ids of all that wait for a start.

    Raises:
        InputError: one of them does not wait. The hint says why, if the dump contains it.
    """
    found = set()
    for name in names:
        whole = name if "/" in name or name in waiting else f"default/{name}"
        if whole not in waiting:
            hint = _why_not_waiting(cluster, whole, policy) or did_you_mean(whole, waiting)
            raise InputError(f"no Workload or Pod {whole} waits for a start", hint=hint)
        found.add(whole)
    return frozenset(found)


def _why_not_waiting(cluster: Cluster, key: str, policy: PolicySpec) -> str:
    """Returns the reason why a Workload or Pod does not wait; "" if the dump does not contain it."""
    for each in cluster.workloads:
        if each.key == key and not each.finished:
            if not each.takes_part:
                return "it is deactivated: spec.active is false, or its condition DeactivationTarget is True"
            if not policy.admits_by_queues(cluster):
                return f"{policy.name} does not take over Workloads"
            if (lost := _lost(cluster, each)) is not None:
                what, then, told = lost
                return "".join(_said([told], what, then, "Workload"))
    for pod in cluster.pods:
        if pod.key == key and not pod.node:
            whose = f"it belongs to Workload {pod.workload}" if pod.workload else ""
            why = _why_untaken(cluster, pod)
            return whose or f"{policy.name} does not take it over{why and f', because it has {why}'}"
    there = {*(each.key for each in cluster.workloads), *(pod.key for pod in cluster.pods)}
    return "it holds quota or a node, or has ended" if key in there else ""


def _lost(cluster: Cluster, each: Workload) -> tuple[str, str, str] | None:
    """Returns why a Workload has no pods or no ClusterQueue, or None if it has both.

    The three texts are the end of a sentence about such Workloads, the consequence together with a remedy,
    and the names of this Workload and its queue.
    """
    if all(each.over(pod_set) == pod_set.count for pod_set in each.pod_sets):
        return "have no pods to run", "they are left out", each.key
    if each.holds_quota and each.admission is not None:
        queue = each.admission.cluster_queue
        if queue in cluster.cluster_queues:
            return None
        what = "hold quota of a ClusterQueue that is not in the manifests"
        return what, f"harness treats their quota as free; {REMEDY}", f"{each.key} of {queue}"
    if cluster.queue_of_object(each.namespace, each.queue) is not None:
        return None
    if not each.queue:
        return "name no queue", "they are left out, as in Kueue; name a queue in spec.queueName", each.key
    of = "whose ClusterQueue" if (each.namespace, each.queue) in cluster.local_queues else "that"
    what = f"wait in a LocalQueue {of} is not in the manifests"
    return what, f"they are left out; {REMEDY}", f"{each.key} in {each.queue}"


def _missing(held: Sequence[Standing], names: Sequence[str]) -> Iterator[str]:
    """Yields sentences about Pods that are missing from the dump although Workloads hold quota for them."""
    lacking = [standing.wanted - len(standing.pods) for standing in held]
    without = [
        each for each, lack, standing in zip(names, lacking, held, strict=True) if lack and not standing.pods
    ]
    yield from _said(without, "hold quota while none of their Pods is in the manifests", _FINDS, "Workload")
    partly = [
        each for each, lack, standing in zip(names, lacking, held, strict=True) if lack and standing.pods
    ]
    yield from _said(
        partly, "hold quota while not all of their Pods are in the manifests", _FINDS, "Workload"
    )


def _without_node(
    cluster: Cluster, bound: Sequence[Pod], own: Collection[str], taken: Collection[str]
) -> Iterator[str]:
    gone = [pod for pod in bound if pod.node not in cluster.nodes]
    yield from _said(
        [pod.key for pod in gone if pod.key in own], "run on nodes that are not in the manifests", _FINDS
    )
    others = [pod.key for pod in gone if pod.key not in own]
    yield from _said(others, "run on nodes that are not in the manifests", "they are left out")
    crowded = [
        pod.key
        for pod in bound
        if pod.node in cluster.nodes
        and pod.key not in cluster.staying
        and (pod.key in own or pod.key in taken)
    ]
    yield from _said(crowded, "run on nodes that do not have enough capacity for all of their Pods", _FINDS)


def _said(names: Sequence[str], what: str, then: str, kind: str = "Pod") -> Iterator[str]:
    if names:
        yield f"{kind}s of the manifests that {what}: {len(names):,} ({first_of(names, _NAMED)}); {then}"


def already_there(cluster: Cluster, jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each submitted job that the dump contains already, as a Workload or a Pod.

    The answer about such a job is about a second job. `jobs` are the manifests of the submitted jobs.
    """
    working = {each.key for each in cluster.workloads if each.takes_part}
    working.update(pod.full_name for pod in cluster.pods)
    there: dict[tuple[str, str, str], str] = {}
    for manifest in cluster.manifests:
        metadata, kind = mapping_of(manifest, "metadata"), str(manifest.get("kind"))
        space = str(metadata.get("namespace") or "default")
        key = f"{space}/{metadata.get('name')}"
        if kind not in ("Workload", "Pod") or key not in working:
            continue
        there[space, kind, str(metadata.get("name"))] = f"{kind} {key}"
        for owner in owners_of(metadata) if kind == "Workload" else ():
            there[space, owner.kind, owner.name] = f"{kind} {key}"
    for job in jobs:
        metadata, kind = mapping_of(job, "metadata"), str(job.get("kind"))
        space, name = str(metadata.get("namespace") or "default"), str(metadata.get("name"))
        if found := there.get((space, kind, name)):
            yield (
                f"{kind} {space}/{name} is in the dump already, as {found}, so the answer is about a second "
                f"job; to ask about {found}, leave out the job and use --for"
            )
