"""Creates a cluster again from changed manifests, with the same scale and assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.base.errors import ClusterError, InputError
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.load import cluster_of
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document


def require_manifests(cluster: Cluster) -> None:
    """Check that the cluster can be created again from its manifests.

    Otherwise, changes to the manifests could not be applied to the cluster.

    Raises:
        InputError: the cluster has no manifests, or was changed after it was read from them.
    """
    name = cluster.source or "the cluster"
    if not cluster.manifests:
        raise InputError(
            f"{name} has no manifests to change",
            hint="make it from manifests: harness.cluster.load.cluster_from(documents, source)",
        )
    if not cluster.follows_manifests:
        raise InputError(
            f"{name} was changed after it was read, and its manifests lack these changes, so "
            "the changes would be lost",
            hint="change the manifests instead, then scale the cluster once",
        )


def follows_manifests(cluster: Cluster) -> bool:
    """Returns True if a cluster equals the cluster created again from its manifests and its scale."""
    documents = [Document("", content) for content in cluster.manifests]
    try:
        return remade(cluster, documents, cluster.source).digest == cluster.digest
    except ClusterError:
        return False


def without_work(cluster: Cluster) -> Cluster:
    """Returns the cluster without the Workloads and Pods of its manifests."""
    if not (cluster.workloads or cluster.pods):
        return cluster
    kinds = [(each["apiVersion"].partition("/")[0], each["kind"]) for each in cluster.manifests]
    rest = [
        Document("", each)
        for each, kind in zip(cluster.manifests, kinds, strict=True)
        if kind not in (("v1", "Pod"), ("kueue.x-k8s.io", "Workload"))
    ]
    return remade(cluster, rest, cluster.source)


def remade(cluster: Cluster, documents: Iterable[Document], source: str, *, at_once: bool = False) -> Cluster:
    """Returns the cluster that documents describe, with the scale and the assumptions of another cluster.

    For `at_once`, see `harness.cluster.load.cluster_of`.

    Raises:
        ClusterError: the documents are faulty.
    """
    made = cluster_of(documents, source, [], at_once=at_once)
    if cluster.assumed:
        made = replace(made, assumed=cluster.assumed)
    return scaled_cluster(made, cluster.scale)
