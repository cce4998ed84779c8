"""What of a dump's Workloads and Pods does not go on as it was, in sentences with numbers and names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.cluster.standing import Standing, standing_of

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.cluster.pods import Pod

_NAMED = 3
_FINDS = "the scheduler finds nodes for them"


def not_as_it_was(
    several: Sequence[Cluster], taken: Collection[str], name: str, *, by_queues: bool
) -> Iterator[str]:
    """What of the work of a dump a policy does not take over, and what does not go on as it was.

    Args:
        several: the cluster with the work that is there, then, if there is one, with what comes later.
        taken: namespaces and names of the jobs that the policy makes of it.
        name: the policy's.
        by_queues: whether it admits by ClusterQueues, so that a Pod without a Workload is no job of theirs.
    """
    yield from _nobody_takes(several, taken, name)
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
    yield from _said(going, "are terminating", "they are taken to be gone")
    yield from _missing(held, [each.key for each in working if each.holds_quota])
    yield from _without_node(cluster, bound, own, taken)
    yield from _said(
        [pod.key for pod in bound if pod.workload in taken and pod.key not in own and pod.key not in taken],
        "run, and their Workloads hold no quota",
        "they are taken to be gone",
    )
    yield from _said(more, "are more than their Workloads ask for", "those that run hold room, and no quota")
    if by_queues:
        alone = [pod.key for pod in cluster.pods if pod.key in taken and pod.key not in more]
        yield from _said(alone, "belong to no Workload", "they hold room on nodes, and no quota")


def _nobody_takes(several: Sequence[Cluster], taken: Collection[str], name: str) -> Iterator[str]:
    """Work that the policy makes no jobs of."""

    def left(pod: Pod) -> bool:
        return not pod.terminating and pod.key not in taken and pod.workload not in taken

    runs = sum(left(pod) and pod.node in several[0].nodes for pod in several[0].pods)
    if runs:
        yield (
            f"{runs:,} pods of the manifests run already; {name} does not take them over, "
            "so their nodes are taken to be free"
        )
    waits = sum(left(pod) and not pod.node for each in several for pod in each.pods)
    if waits:
        yield f"{waits:,} pods of the manifests wait for a node; {name} does not take them over"
    expected = (each for one in several for each in one.workloads if each.takes_part)
    workloads = sum(each.key not in taken for each in expected)
    if workloads:
        yield (
            f"{workloads:,} Workloads of the manifests hold quota or wait for it; {name} does not take "
            "them over, so their quota is taken to be free"
        )


def _missing(held: Sequence[Standing], names: Sequence[str]) -> Iterator[str]:
    """Pods that Workloads with quota are to have, and that the dump does not have."""
    lacking = [standing.wanted - len(standing.pods) for standing in held]
    without = [
        each for each, lack, standing in zip(names, lacking, held, strict=True) if lack and not standing.pods
    ]
    yield from _said(without, "hold quota, and none of their Pods is in the manifests", _FINDS, "Workload")
    partly = [
        each for each, lack, standing in zip(names, lacking, held, strict=True) if lack and standing.pods
    ]
    yield from _said(partly, "hold quota, and not all of their Pods are in the manifests", _FINDS, "Workload")


def _without_node(
    cluster: Cluster, bound: Sequence[Pod], own: Collection[str], taken: Collection[str]
) -> Iterator[str]:
    """Pods that cannot stay where they are: their node is not there, or has no room for them."""
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
    yield from _said(crowded, "run on nodes that have no room for them beside the others", _FINDS)


def _said(names: Sequence[str], what: str, then: str, kind: str = "Pod") -> Iterator[str]:
    """A sentence about some objects; none where there are none."""
    if names:
        shown = ", ".join(names[:_NAMED])
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        yield f"{kind}s of the manifests: {len(names):,} {what} ({shown}{more}): {then}"
