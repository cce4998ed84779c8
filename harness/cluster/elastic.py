"""Reads elastic quotas: ElasticQuotaTree, and ElasticQuota of both API groups, with Koordinator's labels.

All of them become one thing, quotas with a `min` that is guaranteed and a `max` that bounds, each with the
name of the quota above it. What the semantics of these figures are is the business of the policies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.cluster.draft import Draft, Objects, read_metadata
from harness.cluster.fields import Fields, shown
from harness.cluster.model import UNLIMITED, frozen
from harness.errors import InputError
from harness.units import format_amount, parse_quantity, round_up

CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""Resources that a `max` bounds even where it does not name them, see `ElasticQuota.max_of`."""

KOORDINATOR = "quota.scheduling.koordinator.sh/"
"""What Koordinator's labels and annotations begin with."""

QUOTA_NAME_LABEL = f"{KOORDINATOR}name"
"""The label with which a pod names its quota."""

_KOORDINATOR_ROOTS = ("", "root", "koordinator-root-quota")
_NAMESPACE = "kube-system"
_QUEUE_RESOURCES = "kube-queue/"


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    """A node of an ElasticQuotaTree, or an ElasticQuota; amounts are resource -> amount.

    Attributes:
        name: the node's name; a flat quota is called by its namespace, for there is one a namespace.
        min: what is guaranteed; None when it is not given.
        max: what is never exceeded; None when it is not given.
        parent: the quota above it, "" for none.
        namespaces: whose pods it counts.
        is_parent: whether quotas may be below it.
        lends: whether others may use what it leaves idle of its `min` (Koordinator).
        weight: its part in sharing what is left (Koordinator); None stands for `max`.
        tree: which of several trees it belongs to (Koordinator).
    """

    name: str
    min: Mapping[str, int] | None = None
    max: Mapping[str, int] | None = None
    parent: str = ""
    namespaces: tuple[str, ...] = ()
    is_parent: bool = False
    lends: bool = True
    weight: Mapping[str, int] | None = None
    tree: str = ""

    def min_of(self, resource: str) -> int:
        """What is guaranteed of a resource; what is not named is 0."""
        return self.min.get(resource, 0) if self.min else 0

    def max_of(self, resource: str) -> int:
        """The bound of a resource, `UNLIMITED` without one.

        Without `max` nothing is bounded. A `max` that does not name cpu, memory or ephemeral storage allows
        none of it, as in scheduler-plugins' capacity scheduling; other resources are then unbounded.
        """
        if self.max is None:
            return UNLIMITED
        return self.max.get(resource, 0 if resource in CORE_RESOURCES else UNLIMITED)


# --- ElasticQuotaTree -------------------------------------------------------------------------------------


def read_elastic_quota_tree(fields: Fields, draft: Draft) -> None:
    """An ElasticQuotaTree; a cluster has one."""
    name = read_metadata(fields).name
    fields.ignore("status")
    given = fields.raw("metadata")
    namespace = given.get("namespace") if isinstance(given, Mapping) else None
    if namespace not in (None, _NAMESPACE):
        draft.warnings.add(
            "ElasticQuotaTree", name, f"takes effect only in {_NAMESPACE}; it is taken to be there"
        )
    draft.quota_trees.add("", name, fields)
    spec = fields.child("spec")
    if "root" not in spec:
        spec.fault("root", "is missing: it is the quota of the whole tree")
        return
    root = spec.child("root")
    _read_tree(root, "", name, draft)
    top = draft.quota_nodes.get(root.string("name"))
    if top is not None and any(top.min_of(each) != top.max_of(each) for each in _named(top)):
        what = "min and max of the root differ, which ACK does not allow; all quotas together keep to both"
        draft.warnings.add("ElasticQuotaTree", name, what)


def _read_tree(node: Fields, parent: str, tree: str, draft: Draft) -> None:
    """A node of the tree and all below it."""
    name = node.string("name", required=True)
    children = node.items("children")
    namespaces = node.texts("namespaces")
    quota = ElasticQuota(
        name, _bounds(node, "min"), _bounds(node, "max"), parent, namespaces, is_parent=bool(children)
    )
    if children and namespaces:
        node.fault("namespaces", "belong to leaves; this quota has children")
    if "attributes" in node:
        node.ignore("attributes")
        what = "attributes are not modelled: a quota may use any node"
        draft.warnings.add("ElasticQuotaTree", tree, what)
    for resource in _named(quota):
        if resource.startswith(_QUEUE_RESOURCES):
            what = f"{resource} is not modelled: jobs leave their queue without regard to it"
            draft.warnings.add("ElasticQuotaTree", tree, what)
    if name in draft.quota_nodes:
        node.fault("name", f"{name!r} is the name of {draft.quota_nodes.fields(name).path} already")
    elif name:
        draft.quota_nodes.add(name, quota, node)
    for child in children:
        _read_tree(child, name, tree, draft)


# --- ElasticQuota -----------------------------------------------------------------------------------------


def read_elastic_quota(fields: Fields, draft: Draft) -> None:
    """An ElasticQuota of scheduler-plugins, or of Koordinator when it bears one of its labels.

    A flat quota counts the pods of its own namespace. Koordinator's counts those that name it, those of the
    namespace that is called like it, and those of the namespaces that an annotation lists.
    """
    metadata = read_metadata(fields)
    fields.ignore("status")
    spec = fields.child("spec")
    least, most = _bounds(spec, "min"), _bounds(spec, "max")
    labels = {
        name.removeprefix(KOORDINATOR): value
        for name, value in metadata.labels.items()
        if name.startswith(KOORDINATOR)
    }
    notes = _Annotations(fields)
    if not labels and not notes:
        quota = ElasticQuota(metadata.namespace, least, most, namespaces=(metadata.namespace,))
    else:
        parent = labels.get("parent", "")
        quota = ElasticQuota(
            metadata.name,
            least,
            most,
            "" if parent in _KOORDINATOR_ROOTS else parent,
            tuple(dict.fromkeys((metadata.name, *notes.namespaces()))),
            labels.get("is-parent") == "true",
            labels.get("allow-lent-resource") != "false",
            notes.weight(),
            labels.get("tree-id", ""),
        )
    draft.elastic_quotas.add(quota.name, quota, fields)


class _Annotations:
    """Koordinator's annotations of a quota, which hold JSON."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields.child("metadata")
        self._fields.ignore_rest()
        self._texts = {
            name: text
            for name, text in self._fields.strings("annotations").items()
            if name.startswith(KOORDINATOR)
        }

    def __bool__(self) -> bool:
        return bool(self._texts)

    def namespaces(self) -> list[str]:
        """Namespaces whose pods the quota counts."""
        value = self._json("namespaces", [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        self._fault("namespaces", f"must be a JSON list of texts, not {shown(value)}")
        return []

    def weight(self) -> Mapping[str, int] | None:
        """The quota's part in sharing what is left: resource -> weight."""
        value = self._json("shared-weight", None)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._fault("shared-weight", f"must be a JSON object of quantities, not {shown(value)}")
            return None
        weight = {}
        for resource, text in value.items():
            try:
                weight[resource] = round_up(resource, parse_quantity(text))
            except (InputError, ValueError) as error:
                self._fault("shared-weight", f"{resource}: {error}")
        return frozen(weight)

    def _json(self, name: str, default: Any) -> Any:
        text = self._texts.get(f"{KOORDINATOR}{name}")
        if not text:
            return default
        try:
            return json.loads(text)
        except ValueError as error:
            self._fault(name, f"is not JSON: {error}")
            return default

    def _fault(self, name: str, what: str) -> None:
        self._fields.fault(f"annotations.{KOORDINATOR}{name}", what)


def _bounds(fields: Fields, name: str) -> Mapping[str, int] | None:
    """A `min` or `max`; None when it is absent, an amount that does not fit 64 bits has no end."""
    if name not in fields:
        return None
    table = fields.child(name)
    found = {resource: table.quota(resource, resource) for resource in table}
    return frozen({resource: amount for resource, amount in found.items() if amount is not None})


# --- rules between quotas ---------------------------------------------------------------------------------


def quotas_of(draft: Draft) -> Objects[str, ElasticQuota]:
    """The quotas that count: those of the tree if there is one, parents before what is below them."""
    return draft.quota_nodes if draft.quota_trees else draft.elastic_quotas


def check_elastic(draft: Draft) -> None:
    """The rules that hold between elastic quotas, and what is said about them that has no effect."""
    quotas = quotas_of(draft)
    if draft.quota_trees:
        for name in draft.elastic_quotas:
            what = "is left out: the ElasticQuotaTree counts"
            draft.warnings.add("ElasticQuota", name, what)
    owners: dict[tuple[str, str], str] = {}
    for name, quota in quotas.items():
        fields = quotas.fields(name)
        for resource in _named(quota):
            if quota.min_of(resource) > quota.max_of(resource):
                least, most = _amounts(resource, quota.min_of(resource), quota.max_of(resource))
                fields.refuse(f"min.{resource}", f"{least} is above max, which is {most}")
        for namespace in quota.namespaces:
            owner = owners.setdefault((quota.tree, namespace), name)
            if owner != name:
                fields.refuse("namespaces", f"{namespace!r} belongs to {owner} already")
        if quota.max is not None:
            missing = [each for each in CORE_RESOURCES[:2] if each not in quota.max]
            if missing:
                what = f"max does not name {' and '.join(missing)}: pods that request it are not admitted"
                draft.warnings.add("elastic quota", name, what)
    _check_parents(quotas)
    _check_children(quotas, in_tree=bool(draft.quota_trees))
    _check_capacity(quotas, draft)


def _check_parents(quotas: Objects[str, ElasticQuota]) -> None:
    for name, quota in quotas.items():
        above = quotas.get(quota.parent)
        place = f"metadata.labels.{KOORDINATOR}parent"
        if not quota.parent:
            continue
        if above is None:
            quotas.fields(name).fault(place, f"there is no ElasticQuota {quota.parent!r}")
        elif not above.is_parent:
            quotas.fields(name).refuse(place, f"{quota.parent} does not say that it is a parent")
        seen = {name}
        while above is not None and above.parent and above.name not in seen:
            seen.add(above.name)
            above = quotas.get(above.parent)
        if above is not None and above.name == name:
            quotas.fields(name).fault(place, f"{name} is above itself")


def _check_children(quotas: Objects[str, ElasticQuota], *, in_tree: bool) -> None:
    """What is guaranteed below a quota it guarantees itself, and nothing below it is allowed more."""
    below: dict[str, list[ElasticQuota]] = {}
    for quota in quotas.values():
        below.setdefault(quota.parent, []).append(quota)
    for name, quota in quotas.items():
        children, fields = below.get(name, []), quotas.fields(name)
        for resource in dict.fromkeys(each for child in children for each in _named(child)):
            total = min(sum(child.min_of(resource) for child in children), UNLIMITED)
            if total > quota.min_of(resource):
                sum_of, own = _amounts(resource, total, quota.min_of(resource))
                fields.refuse(f"min.{resource}", f"{own} is below the sum of its children's, {sum_of}")
            for child in children if in_tree else ():
                bound, most = quota.max_of(resource), child.max_of(resource)
                if child.max is not None and resource in child.max and most > bound:
                    of_child, own = _amounts(resource, most, bound)
                    what = f"{of_child} is above that of {name}, which is {own}"
                    quotas.fields(child.name).refuse(f"max.{resource}", what)


def _check_capacity(quotas: Objects[str, ElasticQuota], draft: Draft) -> None:
    """Warn of guarantees that the nodes cannot keep."""
    roots = [quota for quota in quotas.values() if not quota.parent and not quota.tree]
    if not draft.nodes or not roots:
        return
    for resource in dict.fromkeys(each for root in roots for each in root.min or ()):
        if resource.startswith(_QUEUE_RESOURCES):
            continue
        total = sum(root.min_of(resource) for root in roots)
        there = sum(node.allocatable.get(resource, 0) for node in draft.nodes.values())
        if total > there:
            promised, has = _amounts(resource, total, there)
            what = f"min of {resource} is {promised} in all, and the nodes have {has}"
            draft.warnings.add("elastic quota", roots[0].name, what)


def _named(quota: ElasticQuota) -> Iterator[str]:
    """The resources that a quota names."""
    return iter(dict.fromkeys((*(quota.min or ()), *(quota.max or ()))))


def _amounts(resource: str, *amounts: int) -> list[str]:
    return ["unlimited" if each >= UNLIMITED else format_amount(resource, each) for each in amounts]
