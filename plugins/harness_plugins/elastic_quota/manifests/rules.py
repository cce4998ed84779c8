"""Checks the rules between elastic quotas, and notes fields without an effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from harness.base.units import format_amount
from harness.models.cluster import (
    CORE_RESOURCES,
    KOORDINATOR,
    KOORDINATORS,
    UNLIMITED,
    ElasticQuota,
    has_free_min,
    is_koordinators,
    leaves_of,
)
from harness.models.manifests import Draft, Objects
from harness_plugins.elastic_quota.manifests.coverage import QUEUE_RESOURCES

_DEEPEST = 40
"""The maximum depth of the quota tree. Computations visit each quota on a path to the root."""

_ROOT = "root"  # the older, shorter name of the root in Koordinator's labels


_EVICTS = (
    "may still refuse a pod after other pods were evicted for it. With quirks=on, dry runs check the quota "
    "only when they put a victim back; if the quota refuses this victim, the node is not a candidate"
)
_SPARES = (
    "names several resources in its max: with quirks=on, a pod that does not request the overused "
    "resource is refused, and does not preempt"
)
_FIRM = (
    "has a min below its max: with quirks=on, a non-preemptible pod may evict other pods and "
    "still not be admitted, because it would exceed min"
)
_IDLE = (
    "does not lend its min: with quirks=on, until its first pod arrives, the quota gets at most its share "
    "of the nodes' capacity"
)


def check_elastic(draft: Draft) -> None:
    """Checks the rules between elastic quotas, and notes fields without an effect."""
    quotas, in_tree = draft.quotas, bool(draft.quota_trees)
    if in_tree:
        for name in draft.elastic_quotas:
            what = "is left out, because the ElasticQuotaTree replaces it"
            draft.warnings.add("ElasticQuota", name, what)
    else:
        _complete(quotas)
        _check_parents(quotas)
        _check_trees(quotas, draft)
        _warn_of_unlabelled(quotas, draft)
    of_spec = "" if in_tree else "spec."
    _check_bounds(quotas, draft, of_spec)
    _check_namespaces(quotas, in_tree=in_tree)
    _check_children(quotas, of_spec)
    _check_capacity(quotas, draft)
    warn_of_quirks(quotas, draft)


def _check_bounds(quotas: Objects[str, ElasticQuota], draft: Draft, of_spec: str) -> None:
    """Checks that no `min` exceeds its `max`, and warns if a `max` allows less than it seems to allow."""
    for name, quota in quotas.items():
        for resource in quota.named:
            if quota.min_of(resource) > quota.max_of(resource):
                least, most = _amounts(resource, quota.min_of(resource), quota.max_of(resource))
                if resource not in (quota.max or ()):
                    most = f"{most} because it does not name {resource}"
                what = f"{least} is above max, which is {most}"
                quotas.fields(name).refuse(f"{of_spec}min.{resource}", what)
        if quota.max is not None:
            missing = [each for each in CORE_RESOURCES[:2] if each not in quota.max]
            if missing and quota.semantics != KOORDINATORS:
                them = "it" if len(missing) == 1 else " or ".join(missing)
                what = (
                    f"max does not name {' and '.join(missing)}: pods that request {them} are not admitted, "
                    f"except with semantics={KOORDINATORS}"
                )
                draft.warnings.add("elastic quota", name, what)


def _check_namespaces(quotas: Objects[str, ElasticQuota], *, in_tree: bool) -> None:
    owners: dict[tuple[str, str], str] = {}
    for name, quota in quotas.items():
        fields = quotas.fields(name)
        for namespace in quota.namespaces:
            owner = owners.setdefault((quota.tree, namespace), name)
            if owner != name:
                place = "namespaces" if in_tree else "metadata.namespace"
                if not in_tree and is_koordinators(fields.raw("metadata")):
                    place = f"metadata.annotations.{KOORDINATOR}namespaces"
                fields.refuse(place, f"{namespace!r} already belongs to {owner}")


def _complete(quotas: Objects[str, ElasticQuota]) -> None:
    """Assigns each quota to the tree of its parent, like Koordinator's webhook.

    The parent `root` means all quotas together, unless a quota has this name.
    """
    for name, quota in quotas.items():
        parent = "" if quota.parent == _ROOT and _ROOT not in quotas else quota.parent
        trees = (each.tree for each in (quota, *islice(_above(quotas, quota), _DEEPEST)) if each.tree)
        quotas[name] = replace(quota, parent=parent, tree=next(trees, ""))


def _above(quotas: Objects[str, ElasticQuota], quota: ElasticQuota) -> Iterator[ElasticQuota]:
    """Yields the ancestors of a quota, starting with its parent. In a cycle, each is yielded only once."""
    seen: set[str] = set()
    above = quotas.get(quota.parent)
    while above is not None and above.name not in seen:
        seen.add(above.name)
        yield above
        above = quotas.get(above.parent)


def _check_parents(quotas: Objects[str, ElasticQuota]) -> None:
    """Checks that each parent exists, is marked as a parent, and is not below its child."""
    place = f"metadata.labels.{KOORDINATOR}parent"
    for name, quota in quotas.items():
        above, fields = quotas.get(quota.parent), quotas.fields(name)
        if not quota.parent:
            continue
        if above is None:
            fields.fault(place, f"there is no ElasticQuota {quota.parent!r}")
        elif not above.is_parent:
            what = f"{quota.parent} is not marked as a parent; label it {KOORDINATOR}is-parent: "
            fields.refuse(place, f'{what}"true"')
        higher = list(islice(_above(quotas, quota), _DEEPEST + 1))
        if any(each.name == name for each in higher):
            fields.fault(place, f"{name} is above itself")
        elif len(higher) > _DEEPEST:
            fields.fault(
                place, f"{name} is below more than {_DEEPEST} other quotas, which is the limit of harness"
            )
            return


def _check_trees(quotas: Objects[str, ElasticQuota], draft: Draft) -> None:
    place = f"metadata.labels.{KOORDINATOR}tree-id"
    for name, quota in quotas.items():
        above = quotas.get(quota.parent)
        if above is not None and quota.tree != above.tree:
            what = f"{quota.tree!r} differs from {above.tree!r}, the tree of its parent {above.name}"
            quotas.fields(name).refuse(place, what)
    if len({quota.tree for quota in quotas.values()}) > 1:
        for name, quota in quotas.items():
            if quota.tree and not quota.parent:
                what = "is a tree of its own, and shares the nodes of all trees unless multiQuotaTree=true"
                draft.warnings.add("elastic quota", name, what)


def _warn_of_unlabelled(quotas: Objects[str, ElasticQuota], draft: Draft) -> None:
    flat = [name for name in quotas if not is_koordinators(quotas.fields(name).raw("metadata"))]
    for name in flat if len(flat) < len(quotas) else ():
        what = "has none of Koordinator's labels, unlike other quotas, so it counts the pods of its namespace"
        draft.warnings.add("elastic quota", name, what)


def _check_children(quotas: Objects[str, ElasticQuota], of_spec: str) -> None:
    below: dict[str, list[ElasticQuota]] = {}
    for quota in quotas.values():
        below.setdefault(quota.parent, []).append(quota)
    for name, quota in quotas.items():
        children = below.get(name, [])
        free = any(has_free_min(quotas.fields(each.name).raw("metadata")) for each in (quota, *children))
        for resource in dict.fromkeys(each for child in children for each in child.named):
            total = min(sum(child.min_of(resource) for child in children), UNLIMITED)
            if total > quota.min_of(resource) and not free:
                sum_of, own = _amounts(resource, total, quota.min_of(resource))
                what = f"{own} is below the sum of its children, which is {sum_of}"
                quotas.fields(name).refuse(f"{of_spec}min.{resource}", what)
            for child in () if of_spec else children:
                bound, most = quota.max_of(resource), child.max_of(resource)
                if child.max is not None and resource in child.max and most > bound:
                    of_child, own = _amounts(resource, most, bound)
                    what = f"{of_child} exceeds the max of {name}, which is {own}"
                    quotas.fields(child.name).refuse(f"max.{resource}", what)


def _check_capacity(quotas: Objects[str, ElasticQuota], draft: Draft) -> None:
    """Warns about guarantees that the nodes cannot meet. Trees share the nodes (see `_check_trees`)."""
    roots = [quota for quota in quotas.values() if not quota.parent]
    if not draft.nodes or not roots:
        return
    for resource in dict.fromkeys(each for root in roots for each in root.min or ()):
        if resource.startswith(QUEUE_RESOURCES):
            continue
        total = sum(root.min_of(resource) for root in roots)
        there = sum(node.allocatable.get(resource, 0) for node in draft.nodes.values())
        if total > there:
            promised, has = _amounts(resource, total, there)
            what = f"min of {resource} is {promised} in total, but the nodes have {has}"
            if any(quota.semantics == KOORDINATORS for quota in quotas.values()):
                what += "; with enableMinQuotaScale=true each min is scaled down when its quota is queried"
            draft.warnings.add("elastic quota", roots[0].name, what)


def _amounts(resource: str, *amounts: int) -> list[str]:
    return ["unlimited" if each >= UNLIMITED else format_amount(resource, each) for each in amounts]


def warn_of_quirks(quotas: Mapping[str, ElasticQuota], draft: Draft) -> None:
    """Warns about behaviour that the options `quirks=off` and `enableMinQuotaScale=false` disable."""
    own = {name: quota for name, quota in quotas.items() if quota.semantics == KOORDINATORS}
    if not own or not draft.nodes:
        return
    there: dict[str, int] = {}
    for node in draft.nodes.values():
        for resource, amount in node.allocatable.items():
            there[resource] = there.get(resource, 0) + amount
    for name, quota in leaves_of(own).items():
        for what in (*_of_scaling(quota, own, there), *_of_preemption(quota, own, there, draft)):
            draft.warnings.add("elastic quota", name, what)


def _of_scaling(
    quota: ElasticQuota, own: Mapping[str, ElasticQuota], there: Mapping[str, int]
) -> Iterator[str]:
    """Yields sentences about the effects of guarantees that are scaled down."""
    tops = [each for each in own.values() if not each.parent]
    scaled = [each for each in there if sum(top.min_of(each) for top in tops) > there[each]]
    if not quota.lends and any(quota.min_of(each) for each in scaled):
        yield _IDLE
    weights = quota.weight if quota.weight is not None else quota.max or {}
    unweighted = [each for each in quota.min or () if quota.min_of(each) and not weights.get(each)]
    if quota.parent and unweighted:
        listed = ", ".join(unweighted)
        yield (
            f"has weight 0 in {listed}: with enableMinQuotaScale=true, the quota gets less than its min "
            f"while all quotas below {quota.parent} together request less than the sum of their min"
        )


def _of_preemption(
    quota: ElasticQuota, own: Mapping[str, ElasticQuota], there: Mapping[str, int], draft: Draft
) -> Iterator[str]:
    """Yields sentences about the effects of dry runs, if pods may differ in priority."""
    most = quota.max or {}
    if not draft.priority_classes:
        return
    if len(leaves_of(own)) > 1 or any(bound < there.get(each, 0) for each, bound in most.items()):
        yield _EVICTS
        if len(most) > 1:
            yield _SPARES
    above = own.get(quota.parent)
    beside = [above] if above is not None else own.values()
    unnamed = sorted({each for other in beside for each in other.max or ()}.difference(most))
    if unnamed:
        yield (
            f"does not name {', '.join(unnamed)} in its max, unlike other quotas: with quirks=on, a pod that "
            "requests such a resource preempts either no pod on a node, or too many pods"
        )
    firm = any(pod.labels.get(f"{KOORDINATOR}preemptible") == "false" for pod in draft.pods.values())
    if firm and any(quota.min_of(each) < bound for each, bound in most.items() if each in (quota.min or ())):
        yield _FIRM
