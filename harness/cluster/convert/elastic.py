"""Reads elastic quotas as quotas (`Quota`), and writes quotas as an ElasticQuotaTree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.base.grouping import grouped
from harness.cluster.convert.kueue import ROOT
from harness.cluster.draft import Warnings
from harness.cluster.kinds.elastic import CORE_RESOURCES, ElasticQuota
from harness.cluster.kinds.quotas import Quota
from harness.cluster.manifests import elastic_quota_tree_manifest, quota_node
from harness.cluster.model import UNLIMITED, Cluster

if TYPE_CHECKING:
    from harness.cluster.convert import Family

_COHORT = "elastic-quotas"


def read_elastic(cluster: Cluster, notes: Warnings, to: Family) -> dict[str, Quota]:
    """Returns the elastic quotas of a cluster as `Quota` objects by name.

    Quotas without a parent form one group. With Koordinator's trees, there is one such group per tree.
    """
    quotas = cluster.elastic_quotas.values()
    below = grouped((quota.parent, quota) for quota in quotas)
    resources = dict.fromkeys(
        each for quota in quotas for bound in (quota.min, quota.max) for each in bound or ()
    )
    found = {}
    for quota in quotas:
        parent = quota.parent or _shared_cohort(quota, below)
        _tell(quota, notes, alone=not parent)
        nominal = {each: quota.min_of(each) for each in resources}
        limit = {each: quota.max_of(each) for each in resources}
        group = quota.name in below or quota.is_parent
        found[quota.name] = Quota(nominal, 1, parent or None, limit, quota.namespaces, quota.lends, group)
    return found


def write_elastic(quotas: Mapping[str, Quota]) -> list[dict[str, Any]]:
    """Returns quotas as one ElasticQuotaTree, in which each group becomes the parent of its quotas.

    A `max` above the `max` of the parent is lowered to it. Each quota lists every resource of the tree,
    because its pods must not use resources for which it has no quota.
    """
    below = grouped((quota.parent or "", name) for name, quota in quotas.items())
    groups = [name for name in below if name and name not in quotas]
    nodes = {name: Quota(_sum(quotas[child] for child in below[name])) for name in groups} | dict(quotas)
    tops = [*groups, *below.get("", ())]
    found = _sum(nodes[top] for top in tops)
    named = (dict(nodes[name].limit or {}) | dict(nodes[name].nominal) for name in (*tops, *nodes))
    total = {each: found.get(each, 0) for each in dict.fromkeys(each for names in named for each in names)}

    def written(name: str, above: Mapping[str, int]) -> dict[str, Any]:
        limit = nodes[name].limit or {}
        most = {each: min(limit.get(each, bound), bound) for each, bound in above.items()}
        inner = [written(child, most) for child in below.get(name, ())]
        return quota_node(name, nodes[name].nominal, most, inner, nodes[name].namespaces)

    made = [written(top, total) for top in tops]
    apart = len(tops) > 1 or not below.get(tops[0])
    return [elastic_quota_tree_manifest(quota_node(ROOT, total, total, made) if apart else made[0])]


def _sum(quotas: Iterable[Quota]) -> dict[str, int]:
    total: dict[str, int] = {}
    for quota in quotas:
        for resource, amount in quota.nominal.items():
            total[resource] = min(total.get(resource, 0) + amount, UNLIMITED)
    return total


def _shared_cohort(quota: ElasticQuota, below: Mapping[str, list[ElasticQuota]]) -> str:
    """Returns the group for a quota that has no parent, or "" for a single quota, which needs no group.

    Each tree has one such group.
    """
    mates = [each for each in below[""] if each.tree == quota.tree]
    if len(mates) == 1:
        return ""
    return f"{_COHORT}-{quota.tree}" if quota.tree else _COHORT


def _tell(quota: ElasticQuota, notes: Warnings, *, alone: bool) -> None:
    if alone and any(quota.min_of(each) != quota.max_of(each) for each in quota.named):
        what = "its 'max' is above its 'min', but a quota without a parent cannot borrow"
        notes.add("elastic quota", quota.name, what)
    if quota.weight is not None:
        what = "shared-weight: idle quota goes to the first job that requests it"
        notes.add("elastic quota", quota.name, what)
    if quota.max is None or any(quota.max_of(each) >= UNLIMITED for each in CORE_RESOURCES):
        notes.add("elastic quota", quota.name, "jobs that request resources without quota are not admitted")
