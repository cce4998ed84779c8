"""A cluster once more, from manifests that were changed: scaled, and assumed, as it was before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.base.errors import ClusterError, InputError
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.load import cluster_of
from harness.cluster.model import Cluster
from harness.cluster.yaml.documents import Document


def require_manifests(cluster: Cluster) -> None:
    """Check that a cluster is what its manifests say, so that they can be changed instead of it.

    Raises:
        InputError: it was made or changed without manifests.
    """
    name = cluster.source or "the cluster"
    if not cluster.manifests:
        raise InputError(
            f"{name} holds no manifests that could be changed",
            hint="make it of manifests: harness.cluster.load.cluster_from(documents, source)",
        )
    if not cluster.follows_manifests:
        raise InputError(
            f"{name} was changed after it was read, and would lose that: its manifests say something else",
            hint="change the manifests instead, and only then scale the cluster, once",
        )


def follows_manifests(cluster: Cluster) -> bool:
    """Whether a cluster's manifests, at its scale, make the same cluster once more."""
    documents = [Document("", content) for content in cluster.manifests]
    try:
        return remade(cluster, documents, cluster.source).digest == cluster.digest
    except ClusterError:
        return False


def remade(cluster: Cluster, documents: Iterable[Document], source: str) -> Cluster:
    """The cluster that documents describe, as large as another one.

    Args:
        cluster: whose scale and assumptions are kept.
        documents: changed manifests.
        source: where they come from, for messages.

    Raises:
        ClusterError: the documents are faulty.
    """
    made = cluster_of(documents, source, [])
    if cluster.assumed:
        made = replace(made, assumed=cluster.assumed)
    return scaled_cluster(made, cluster.scale)
