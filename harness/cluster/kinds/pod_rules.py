"""Reads the affinity, anti-affinity and topology spread rules of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cluster.kinds.pods import (
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredNodes,
    PreferredPods,
    TopologySpreadConstraint,
)
from harness.cluster.kinds.selectors import (
    NODE_OPERATORS,
    LabelSelector,
    Requirement,
    read_requirement,
    read_selector,
)
from harness.cluster.yaml.fields import Fields

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_required_nodes(fields: Fields) -> tuple[NodeSelectorTerm, ...] | None:
    """Returns the required part of a `nodeAffinity`, or None if there is no required part."""
    if REQUIRED not in fields:
        return None
    required = fields.child(REQUIRED)
    terms = required.items("nodeSelectorTerms")
    if not terms:
        required.fault("nodeSelectorTerms", "must not be empty")
    return tuple(_read_node_term(item) for item in terms)


def _read_node_term(fields: Fields) -> NodeSelectorTerm:
    match_fields = tuple(read_requirement(item, ("In", "NotIn")) for item in fields.items("matchFields"))
    for number, requirement in enumerate(match_fields):
        if requirement.key != "metadata.name":
            fields.fault(
                f"matchFields[{number}].key", "must be metadata.name, the only field that can be matched"
            )
    return NodeSelectorTerm(
        tuple(read_requirement(item, NODE_OPERATORS) for item in fields.items("matchExpressions")),
        match_fields,
    )


def read_preferred_nodes(fields: Fields) -> PreferredNodes:
    """Read a preferred term of a `nodeAffinity`."""
    weight = fields.integer("weight", 1, required=True, least=1, most=100)
    return PreferredNodes(weight, _read_node_term(fields.child("preference")))


def read_term(fields: Fields, namespace: str, labels: Mapping[str, str]) -> PodAffinityTerm:
    """Read a required affinity or anti-affinity term of a pod in `namespace` with `labels`."""
    key = fields.string("topologyKey", required=True)
    selector = _with_label_keys(_read_optional(fields, "labelSelector"), fields, labels)
    namespaces = fields.texts("namespaces")
    among = _read_optional(fields, "namespaceSelector")
    if not namespaces and among is None:
        namespaces = (namespace,)
    return PodAffinityTerm(key, selector, namespaces, among)


def read_preferred_pods(
    fields: Fields, namespace: str, labels: Mapping[str, str], sign: int
) -> PreferredPods:
    """Read a preferred term of a pod affinity (`sign` is 1) or anti-affinity (`sign` is -1)."""
    weight = fields.integer("weight", 1, required=True, least=1, most=100)
    return PreferredPods(sign * weight, read_term(fields.child("podAffinityTerm"), namespace, labels))


def read_spread(fields: Fields, labels: Mapping[str, str]) -> TopologySpreadConstraint:
    """Read a topology spread constraint of a pod that has `labels`."""
    when = fields.choice(
        "whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), "DoNotSchedule", required=True
    )
    honor = ("Honor", "Ignore")
    return TopologySpreadConstraint(
        fields.string("topologyKey", required=True),
        fields.integer("maxSkew", 1, required=True, least=1),
        _with_label_keys(_read_optional(fields, "labelSelector"), fields, labels),
        when == "DoNotSchedule",
        fields.integer("minDomains", 1, least=1),
        fields.choice("nodeAffinityPolicy", honor, "Honor") == "Honor",
        fields.choice("nodeTaintsPolicy", honor, "Ignore") == "Honor",
    )


def _read_optional(fields: Fields, name: str) -> LabelSelector | None:
    return read_selector(fields.child(name)) if name in fields else None


def _with_label_keys(
    selector: LabelSelector | None, fields: Fields, labels: Mapping[str, str]
) -> LabelSelector | None:
    """Returns a selector that `matchLabelKeys` and `mismatchLabelKeys` restrict with the pod's own labels."""
    own = [
        Requirement(key, operator, (labels[key],))
        for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in fields.texts(name)
        if key in labels
    ]
    if selector is None or not own:
        return selector
    return LabelSelector(selector.match_labels, (*selector.match_expressions, *own))
