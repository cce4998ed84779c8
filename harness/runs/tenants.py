"""Determines the quota that a queue's jobs count against, and a name for the queue that is unique in a run.

A queue in a trace is a LocalQueue in the namespace of the row, a ClusterQueue, or a quota. The same name can
stand for different quotas in different namespaces. The labels of pods can name a quota other than the queue's
quota.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from harness.base.arrays import places
from harness.base.grouping import summed
from harness.base.tables.schemas import TIMELINE_QUEUE
from harness.cluster.kinds.elastic import QuotaLeaves, leaves_of
from harness.cluster.kinds.quotas import quotas_of_plugins
from harness.cluster.model import Cluster, ResourceGroup
from harness.models.quota import UNLIMITED, QuotaTree, minus
from harness.trace.quota_names import QUOTA_NAME

_SLICE = 1 << 20
_NAME = "harness.tenant"


class Tenants(NamedTuple):
    """The queues of a trace on a cluster.

    Attributes:
        names: the queue of each job. It is `<namespace>/<queue>` if the name of a queue stands for several
            quotas, and `<namespace>/<queue>/<quota>` if labels name several quotas within one namespace.
        quotas: maps each of these names, in sorted order, to its ClusterQueue or ElasticQuota, or to None.
        by_label: whether some jobs with the same namespace and queue have different names.
    """

    names: pl.Series
    quotas: Mapping[str, str | None]
    by_label: bool = False


def tenants(jobs: pl.DataFrame, cluster: Cluster, *, by_elastic_quotas: bool = False) -> Tenants:
    """Returns the queue and the quota of each job.

    The columns of `jobs` are `namespace` and `queue`, and `QUOTA_NAME` if labels name quotas. If both a
    ClusterQueue and an ElasticQuota are possible, the ElasticQuota counts if `by_elastic_quotas` is true
    (`PolicySpec.admits_by_elastic_quotas`).
    """
    doors = _distinct(_doors(jobs))
    quota_of = _quota_of(cluster, by_elastic_quotas=by_elastic_quotas)
    behind = [quota_of(*door) for door in doors.iter_rows()]
    of_queue: dict[str, set[str | None]] = {}
    of_door: dict[tuple[str, str], set[str | None]] = {}
    for (namespace, queue, *_), quota in zip(doors.iter_rows(), behind, strict=True):
        of_queue.setdefault(queue, set()).add(quota)
        of_door.setdefault((namespace, queue), set()).add(quota)

    def name_of(namespace: str, queue: str, quota: str | None) -> str:
        if len(of_queue[queue]) == 1:
            return queue
        if len(of_door[namespace, queue]) == 1 or quota is None:
            return f"{namespace}/{queue}"
        return f"{namespace}/{queue}/{quota}"

    found = [
        name_of(namespace, queue, quota)
        for (namespace, queue, *_), quota in zip(doors.iter_rows(), behind, strict=True)
    ]
    names = jobs["queue"]
    if any(len(several) > 1 for several in of_queue.values()):
        named = doors.with_columns(pl.Series(_NAME, found, pl.Categorical))
        names = jobs.join(named, on=doors.columns, how="left", maintain_order="left")[_NAME]
    quotas = dict(sorted(dict(zip(found, behind, strict=True)).items()))
    return Tenants(names, quotas, any(len(several) > 1 for several in of_door.values()))


def timeline_queues(jobs: pl.DataFrame, known: Iterable[str]) -> pl.Series:
    """Returns the queue of each job in the timeline, as an index in `known`.

    The jobs have the columns `namespace`, `queue` and, if the run has it, `TIMELINE_QUEUE`. `known` contains
    all queues of the timeline, as in `quota_of` of `run.json`.
    """
    names = pl.Enum(list(known))
    if TIMELINE_QUEUE in jobs.columns:
        return jobs[TIMELINE_QUEUE].cast(names)
    found = jobs["queue"].cast(names, strict=False)
    if not found.null_count():
        return found
    apart = jobs.select(pl.concat_str("namespace", "queue", separator="/")).to_series()
    return found.zip_with(found.is_not_null(), apart.cast(names, strict=False))


def _doors(jobs: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns that determine the quota of a job."""
    return jobs.select("namespace", "queue", *(name for name in (QUOTA_NAME,) if name in jobs.columns))


def _distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the distinct rows, slice by slice, because a single step would need ten times their memory.

    If all rows have the same namespace, as in most traces, the function compares only the queues, which takes
    a fifth of the time.
    """
    namespaces = rows["namespace"].unique()
    if len(namespaces) == 1 and rows.width == 2:
        queues = rows["queue"].unique()
        return pl.DataFrame([namespaces.new_from_index(0, len(queues)), queues])
    parts = [part.unique() for part in rows.iter_slices(_SLICE)]
    return parts[0] if len(parts) == 1 else pl.concat(parts).unique()


def _quota_of(cluster: Cluster, *, by_elastic_quotas: bool) -> Callable[..., str | None]:
    """Returns a function from a job's namespace, queue and label to the quota that the job counts against.

    If a queue has a ClusterQueue and an ElasticQuota, jobs count against the one that the plugin uses. Quotas
    of plugins' own kinds matter only to queues with neither.
    """
    leaves, plugins = QuotaLeaves(cluster), dict(quotas_of_plugins(cluster))

    def quota_of(namespace: str, queue: str, named: str = "") -> str | None:
        cluster_queue = cluster.cluster_queue_of(namespace, queue)
        elastic = leaves.of(namespace, queue, named)
        if cluster_queue is not None and not (by_elastic_quotas and elastic is not None):
            return cluster_queue.name
        return queue if elastic is None and queue in plugins else elastic

    return quota_of


def elastic_quotas(jobs: pl.DataFrame, cluster: Cluster) -> set[str]:
    """Returns the ElasticQuotas that the jobs count against if the plugin uses ElasticQuotas.

    ClusterQueues are ignored.
    """
    leaves = QuotaLeaves(cluster)
    found = {leaves.of(*door) for door in _distinct(_doors(jobs)).iter_rows()}
    return {name for name in found if name is not None}


def coded(tenants: Tenants) -> tuple[pl.Series, npt.NDArray[Any]]:
    """Returns the sorted names of the queues, and the queue of each job as an index in these names."""
    distinct = pl.Series(list(tenants.quotas), dtype=pl.String)
    return distinct, places(tenants.names, distinct).astype(np.int32)


def quotas(cluster: Cluster, *, by_elastic_quotas: bool = False) -> dict[str, dict[str, Any]]:
    """Returns every quota that can have jobs, as stored in `run.json`.

    `nominal` maps a resource to the guaranteed quantity. For a ClusterQueue, this is the nominal quota summed
    over flavors. For an ElasticQuota, it is `min`. A ClusterQueue has `limits` in the same form as a cohort.
    If a resource has quotas in several flavors, `flavors` contains the quotas by flavor. With
    `by_elastic_quotas`, the ElasticQuota is listed if a ClusterQueue has the same name.
    """
    plugins: dict[str, dict[str, Any]] = {
        name: {"cohort": quota.parent, "weight": str(quota.weight), "nominal": dict(quota.nominal)}
        for name, quota in quotas_of_plugins(cluster)
    }
    elastic: dict[str, dict[str, Any]] = {
        name: {"cohort": quota.parent, "weight": "1", "nominal": dict(quota.min or {})}
        for name, quota in leaves_of(cluster.elastic_quotas).items()
    }
    tree, several = QuotaTree(cluster.cluster_queues, cluster.cohorts), _has_several_flavors(cluster)
    queues: dict[str, dict[str, Any]] = {
        name: {
            "cohort": queue.cohort,
            "weight": str(queue.weight),
            "nominal": _nominal(queue.resource_groups),
            "limits": _limits(tree, tree.queues[name]),
            **(_by_flavor(queue.resource_groups) if several else {}),
        }
        for name, queue in cluster.cluster_queues.items()
    }
    # If both kinds have the same name, the position in the result is always that of the elastic quota.
    return plugins | elastic | queues | (elastic if by_elastic_quotas else {})


def cohorts(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Returns every cohort with its parent, its own quota and its limits, as stored in `run.json`."""
    tree, several = QuotaTree(cluster.cluster_queues, cluster.cohorts), _has_several_flavors(cluster)
    return {
        name: {
            "cohort": cohort.parent,
            "nominal": _nominal(cohort.resource_groups),
            "limits": _limits(tree, tree.cohorts[name]),
            **(_by_flavor(cohort.resource_groups) if several else {}),
        }
        for name, cohort in cluster.cohorts.items()
    }


def highest_cohort(cohorts: Mapping[str, Mapping[str, Any]], cohort: str) -> str:
    """Returns the highest cohort in the tree of a cohort. `cohorts` is stored in `run.json`.

    A cohort that is not stored there, such as "", is returned as it is.
    """
    while cohort in cohorts and cohorts[cohort]["cohort"]:
        cohort = cohorts[cohort]["cohort"]
    return cohort


def _nominal(groups: Iterable[ResourceGroup]) -> dict[str, int]:
    quotas = (each for group in groups for each in group.quotas())
    return summed((resource, quota.nominal) for _, resource, quota in quotas)


def _has_several_flavors(cluster: Cluster) -> bool:
    known: dict[str, str] = {}
    return any(
        known.setdefault(resource, flavor) != flavor
        for group in cluster.resource_groups
        for flavor, resource, _ in group.quotas()
    )


def _by_flavor(groups: Iterable[ResourceGroup]) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """Returns the nominal quota, and the part `kept` that is never lent, by flavor and resource."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for flavor, resource, quota in (each for group in groups for each in group.quotas()):
        limit = quota.nominal if quota.lending_limit is None else quota.lending_limit
        own = {"nominal": quota.nominal, "kept": max(0, quota.nominal - limit)}
        found.setdefault(flavor, {})[resource] = own
    return {"flavors": found}


def _limits(tree: QuotaTree, node: int) -> dict[str, dict[str, int]]:
    """Returns the borrowing and lending limits, summed over flavors, without unlimited resources.

    `borrowing` contains the quantity of each resource that can be borrowed, if every flavor limits it. `kept`
    contains the quantity that is never lent, and `lent` the quantity that can be lent.
    """
    limits: dict[str, list[int | None]] = {}
    kept: dict[str, int] = {}
    lent: dict[str, int] = {}
    for cell in tree.declared[node]:
        resource, at = tree.flavor_resources[cell].resource, node * tree.width + cell
        limits.setdefault(resource, []).append(tree.borrowing_limit[at])
        kept[resource] = kept.get(resource, 0) + tree.local_quota[at]
        lent[resource] = lent.get(resource, 0) + minus(tree.subtree[at], tree.local_quota[at])
    borrowing: dict[str, int] = {}
    for resource, of_flavors in limits.items():
        known = [limit for limit in of_flavors if limit is not None and limit < UNLIMITED]
        if len(known) == len(of_flavors):
            borrowing[resource] = sum(known)
    kept = {resource: amount for resource, amount in kept.items() if amount}
    return {"borrowing": borrowing, "kept": kept, "lent": {resource: lent[resource] for resource in kept}}
