"""Reads ElasticQuotaTrees and the ElasticQuotas of both API groups, with Koordinator's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.base.errors import InputError
from harness.base.json_text import parse_json
from harness.base.units import parse_quantity, round_up
from harness.models.cluster import CAPACITY, CORE_RESOURCES, KOORDINATOR, KOORDINATORS, ElasticQuota, frozen
from harness.models.manifests import Draft, Fields, read_metadata, shown

_ROOT_QUOTA = "koordinator-root-quota"
_OWN_QUOTAS = {
    _ROOT_QUOTA: "it is Koordinator's built-in root of all quotas",
    "koordinator-default-quota": "it is Koordinator's quota for pods without a quota, which have no limit",
    "koordinator-system-quota": "it is Koordinator's quota for system pods, which have no limit",
}


# --- ElasticQuotaTree -------------------------------------------------------------------------------------


def read_elastic_quota_tree(fields: Fields, draft: Draft) -> None:
    """Reads an ElasticQuotaTree. A cluster can have only one."""
    name = read_metadata(fields).name
    if "" in draft.quota_trees:
        fields.fault("", f"is a second tree; the first is in {draft.quota_trees.fields('').where}")
        return
    draft.quota_trees.add("", name, fields)
    spec = fields.child("spec")
    if "root" not in spec:
        spec.fault("root", "is missing: add the root quota, which contains all other quotas")
        return
    root = spec.child("root")
    _read_tree(root, "", draft)
    if "children" not in root and "namespaces" not in root:
        what = "has no quota below its root, so only pods whose label or queue names the root belong to it"
        draft.warnings.add("ElasticQuotaTree", name, what)
    top = draft.quota_nodes.get(root.string("name"))
    if top is not None and any(top.min_of(each) != top.max_of(each) for each in top.named):
        what = "min and max of the root differ, which ACK does not allow; both apply to the whole tree"
        draft.warnings.add("ElasticQuotaTree", name, what)


def _read_tree(node: Fields, parent: str, draft: Draft) -> None:
    name = node.string("name", required=True)
    children = node.items("children")
    namespaces = _namespaces(node, "namespaces", node.texts("namespaces"))
    quota = ElasticQuota(
        name, _bounds(node, "min"), _bounds(node, "max"), parent, namespaces, is_parent=bool(children)
    )
    if children and namespaces:
        node.fault("namespaces", "belong to leaves; this quota has children")
    if name in draft.quota_nodes:
        node.fault("name", f"{name!r} is already the name of {draft.quota_nodes.fields(name).path}")
    elif name:
        draft.quota_nodes.add(name, quota, node)
    for child in children:
        _read_tree(child, name, draft)


# --- ElasticQuota -----------------------------------------------------------------------------------------


def read_elastic_quota(fields: Fields, draft: Draft) -> None:
    """Reads an ElasticQuota of scheduler-plugins, or of Koordinator if it has one of Koordinator's labels.

    A flat quota counts the pods in its own namespace. A Koordinator quota counts the pods that name it, and
    the pods in the namespaces that its annotation lists. If the quota has the same name as its own namespace,
    it also counts the pods in that namespace.
    """
    metadata = read_metadata(fields)
    if metadata.name in _OWN_QUOTAS:
        draft.warnings.add("ElasticQuota", metadata.name, f"is left out: {_OWN_QUOTAS[metadata.name]}")
        return
    spec = fields.child("spec")
    least, most = _bounds(spec, "min"), _bounds(spec, "max")
    labels = {
        name.removeprefix(KOORDINATOR): value
        for name, value in metadata.labels.items()
        if name.startswith(KOORDINATOR)
    }
    notes = _Annotations(fields)
    if labels or notes:
        _warn_of_labels(metadata.name, labels, notes, draft)
        own = (metadata.name,) if metadata.namespace == metadata.name else ()
        quota = _koordinator_quota(metadata.name, least, most, own, labels, notes)
        for resource in least or ():
            # If max is given, the core resources are checked for all kinds of quotas.
            if most is None or resource not in (*most, *CORE_RESOURCES):
                spec.refuse(
                    f"min.{resource}",
                    "Koordinator requires every resource of min in max: add the resource to max",
                )
    elif metadata.namespace in draft.elastic_quotas:
        first = draft.elastic_quotas.fields(metadata.namespace).where
        hint = f'if the quotas are Koordinator\'s, give them the label {KOORDINATOR}is-parent: "false"'
        fields.fault("", f"is a second quota of the namespace {metadata.namespace}, after {first}; {hint}")
        return
    else:
        quota = ElasticQuota(
            metadata.namespace, least, most, namespaces=(metadata.namespace,), semantics=CAPACITY
        )
    draft.elastic_quotas.add(quota.name, quota, fields)


def _koordinator_quota(
    name: str,
    least: Mapping[str, int] | None,
    most: Mapping[str, int] | None,
    own: tuple[str, ...],
    labels: Mapping[str, str],
    notes: _Annotations,
) -> ElasticQuota:
    """Returns a Koordinator quota. Pods count only against quotas that are not parents."""
    parent, listed = labels.get("parent", ""), notes.namespaces()
    is_parent = labels.get("is-parent") == "true"
    if is_parent and listed:
        notes.refuse("namespaces", "belong to leaves; this quota is a parent")
    return ElasticQuota(
        name,
        least,
        most,
        "" if parent == _ROOT_QUOTA else parent,
        () if is_parent else tuple(dict.fromkeys((*own, *listed))),
        is_parent,
        labels.get("allow-lent-resource") != "false",
        notes.weight(),
        labels.get("tree-id", ""),
        KOORDINATORS,
        notes.amounts("total-resource") if labels.get("is-root") == "true" else None,
        labels.get("ignore-default-tree") == "true",
    )


def _warn_of_labels(name: str, labels: Mapping[str, str], notes: _Annotations, draft: Draft) -> None:
    for label, otherwise in (("is-parent", "false"), ("allow-lent-resource", "true")):
        if labels.get(label, "") not in ("", "true", "false"):
            what = f'label {KOORDINATOR}{label} is {labels[label]!r}, which counts as "{otherwise}"'
            draft.warnings.add("ElasticQuota", name, what)


class _Annotations:
    """Koordinator's annotations of a quota, which contain JSON."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields.child("metadata")
        self._texts = {
            name: text
            for name, text in self._fields.strings("annotations").items()
            if name.startswith(KOORDINATOR)
        }

    def __bool__(self) -> bool:
        return bool(self._texts)

    def refuse(self, name: str, what: str) -> None:
        """Adds a fault that only an admission webhook would find in a cluster."""
        self._fields.refuse(f"annotations.{KOORDINATOR}{name}", what)

    def namespaces(self) -> list[str]:
        value = self._json("namespaces", [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return list(_namespaces(self._fields, f"annotations.{KOORDINATOR}namespaces", value))
        self._fault("namespaces", f"must be a JSON list of strings, not {shown(value)}")
        return []

    def weight(self) -> Mapping[str, int] | None:
        """Returns each resource's weight for sharing what guarantees leave, or None to use `max`.

        As in Koordinator, weights that are all 0 are ignored.
        """
        weight = self.amounts("shared-weight")
        return weight if weight is not None and any(weight.values()) else None

    def amounts(self, name: str) -> Mapping[str, int] | None:
        value = self._json(name, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._fault(name, f"must be a JSON object of quantities, not {shown(value)}")
            return None
        found = {}
        for resource, text in value.items():
            try:
                found[resource] = round_up(resource, parse_quantity(text))
            except (InputError, ValueError) as error:
                self._fault(name, f"{resource}: {error}")
                continue
            if found[resource] < 0:
                self._fault(name, f"{resource}: {text} must not be negative")
        return frozen(found)

    def _json(self, name: str, default: Any) -> Any:
        text = self._texts.get(f"{KOORDINATOR}{name}")
        if not text:
            return default
        try:
            return parse_json(text)
        except ValueError as error:
            self._fault(name, f"is not JSON: {error}")
            return default

    def _fault(self, name: str, what: str) -> None:
        self._fields.fault(f"annotations.{KOORDINATOR}{name}", what)


def _namespaces(fields: Fields, name: str, listed: Sequence[str]) -> tuple[str, ...]:
    if "" in listed:
        fields.fault(name, "the name of a namespace must not be empty")
    for namespace in dict.fromkeys(listed):
        if namespace and listed.count(namespace) > 1:
            fields.refuse(name, f"{namespace!r} is listed twice")
    return tuple(dict.fromkeys(listed))


def _bounds(fields: Fields, name: str) -> Mapping[str, int] | None:
    """Returns a `min` or `max`, or None if it is absent. Quantities beyond 64 bits count as unlimited."""
    if name not in fields:
        return None
    table = fields.child(name)
    found = {resource: table.quota(resource, resource) for resource in table}
    return frozen({resource: amount for resource, amount in found.items() if amount is not None})
