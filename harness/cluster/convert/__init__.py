"""Converts quotas from one family to another, either from ClusterQueues to elastic quotas or the reverse.

The guarantee is the nominal quota of a ClusterQueue, or the `min` of an elastic quota. The upper limit is the
nominal quota plus the borrowing limit, or the `max`. Notes about each object name its settings that have no
counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.errors import InputError
from harness.cluster.convert.to_elastic import elastic_quota_tree
from harness.cluster.convert.to_kueue import kueue_queues
from harness.cluster.draft import Warnings
from harness.cluster.load import cluster_from
from harness.cluster.manifests import to_manifests
from harness.cluster.model import Cluster

ELASTIC = "elasticquota"
KUEUE = "kueue"
FAMILIES = (ELASTIC, KUEUE)

_OF_FAMILY: Mapping[str, Mapping[str, str]] = {
    ELASTIC: {"ElasticQuotaTree": "scheduling", "ElasticQuota": "scheduling"},
    KUEUE: {
        "ResourceFlavor": "kueue",
        "ClusterQueue": "kueue",
        "Cohort": "kueue",
        "LocalQueue": "kueue",
        "Workload": "kueue",
        "Configuration": "config",
    },
}
"""Maps each family to its kinds, and each kind to the prefix of its API group.

WorkloadPriorityClasses belong to neither family, because they set the priorities of jobs under any scheduler.
"""


@dataclass(frozen=True, slots=True)
class Converted:
    """Manifests with the quotas of the other family, and notes about settings that couldn't be converted."""

    manifests: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def convert(cluster: Cluster, to: str, *, keep: bool = False) -> Converted:
    """Returns the manifests of a cluster, with its quotas converted to another family.

    Args:
        cluster: a cluster read from manifests.
        to: one of `FAMILIES`.
        keep: whether to keep the original quotas, so that the manifests contain the quotas of both families.

    Raises:
        InputError: the cluster has no quotas to convert, or already has quotas of that family.
    """
    has = {
        ELASTIC: len(cluster.elastic_quotas),
        KUEUE: len(cluster.cluster_queues) + len(cluster.cohorts),
    }
    called = {ELASTIC: "elastic quotas", KUEUE: "ClusterQueues"}
    (source,) = (family for family in FAMILIES if family != to)
    if has[to]:
        raise InputError(
            f"{cluster.source} already has {called[to]}",
            hint=f"remove them from the file to convert its {called[source]}",
        )
    if not has[source]:
        raise InputError(
            f"{cluster.source} has no {called[source]} to convert",
            hint="harness cluster check shows what the manifests contain",
        )
    notes = Warnings()
    made = elastic_quota_tree(cluster, notes) if to == ELASTIC else kueue_queues(cluster, notes)
    manifests = to_manifests(cluster)
    stay = [manifest for manifest in manifests if keep or not _is_of(manifest, source)]
    whole = (*stay, *made)
    cluster_from(whole, f"{cluster.source}, converted to {to}")  # raises if the result can't be read
    return Converted(whole, notes.sentences())


def _is_of(manifest: Mapping[str, Any], family: str) -> bool:
    group = _OF_FAMILY[family].get(str(manifest.get("kind")))
    return group is not None and str(manifest.get("apiVersion")).startswith(f"{group}.")
