"""Models restrictions on the nodes of a pod set: tolerations, node selector and required node affinity."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import final

from harness.base.errors import ClusterError, Fault
from harness.models.cluster import Node, NodeSelectorTerm, ResourceFlavor, Taint, Toleration, taint_text
from harness.models.manifests import Fields, read_requirement, read_toleration, template_of
from harness.policy import PodSet

UNTOLERATED, TEMPORARY, PERMANENT = range(3)
"""How pods tolerate taints: at least one not at all, some only for a time, or all permanently."""


@final
class Constraints:
    """The restrictions on nodes in the template of a pod set.

    Raises:
        ClusterError: the template is not a valid Pod template.
    """

    def __init__(self, pod_set: PodSet) -> None:
        faults: list[Fault] = []
        where = f"pod set {pod_set.name}"
        template = template_of(pod_set, faults, where)
        self._selector: Mapping[str, str] = {}
        self._tolerations: tuple[Toleration, ...] = ()
        self._terms: list[NodeSelectorTerm] = []
        if template:  # most pods in traces have no template
            spec = Fields(template, where, faults)
            self._selector = spec.strings("nodeSelector")
            self._tolerations = tuple(read_toleration(item) for item in spec.items("tolerations"))
            self._terms = _required_terms(spec.child("affinity"))
        if faults:
            raise ClusterError(where, faults)

    def allow(self, flavor: ResourceFlavor, keys: Container[str] | None = None) -> bool:
        """Returns True if `misfit` finds no reason why pods cannot run in a flavor."""
        return not self.misfit(flavor, keys)

    def misfit(self, flavor: ResourceFlavor, keys: Container[str] | None = None) -> str:
        """Returns the reason why pods cannot run in a flavor, or "" if they can.

        The method checks the taints of the flavor, and the node selector and affinity of the pods. It ignores
        labels that are not in `keys`. For them, only the labels of the flavor's nodes decide.

        Args:
            flavor: the flavor.
            keys: the names of the labels to check. By default, these are the labels of the flavor.
        """
        taint = self._untolerated(flavor.taints, flavor)
        if taint is not None:
            return f"has the taint {taint_text(taint)}, which the job does not tolerate"
        labels = flavor.node_labels
        keys = labels if keys is None else keys
        for key, value in self._selector.items():
            if key in keys and labels.get(key) != value:
                return f"has nodes with {key}={labels.get(key, '')}, but the job selects {key}={value}"
        terms = [[item for item in term.match_expressions if item.key in keys] for term in self._terms]
        # Terms are alternatives, so a term without any of this flavor's labels accepts the flavor.
        if terms and not any(all(item.matches(labels) for item in term) for term in terms):
            return "has nodes that the job's node affinity does not select"
        return ""

    def suit(self, node: Node, flavor: ResourceFlavor) -> bool:
        """Returns True if pods that are assigned to a flavor can run on a given node of the flavor."""
        labels = node.labels
        return (
            self._untolerated(node.taints, flavor) is None
            and all(labels.get(key) == value for key, value in self._selector.items())
            and (not self._terms or any(term.matches(node.name, labels) for term in self._terms))
        )

    def tolerance(self, taints: Iterable[Taint], flavors: Iterable[ResourceFlavor]) -> int:
        """Returns how long pods in these flavors tolerate all of the taints.

        The result is `UNTOLERATED` if they don't tolerate one of the taints. It is `TEMPORARY` if they
        tolerate one only for a limited time, and otherwise `PERMANENT`. Taints with `PreferNoSchedule` are
        ignored.
        """
        found = PERMANENT
        tolerations = [*self._tolerations, *(each for flavor in flavors for each in flavor.tolerations)]
        for taint in taints:
            if taint.effect == "PreferNoSchedule":
                continue
            tolerating = [each for each in tolerations if each.tolerates(taint)]
            if not tolerating:
                return UNTOLERATED
            if all(each.seconds is not None for each in tolerating):
                found = TEMPORARY
        return found

    def _untolerated(self, taints: Iterable[Taint], flavor: ResourceFlavor) -> Taint | None:
        tolerations: tuple[Toleration, ...] = (*self._tolerations, *flavor.tolerations)
        for taint in taints:
            tolerated = any(item.tolerates(taint) for item in tolerations)
            if taint.effect != "PreferNoSchedule" and not tolerated:
                return taint
        return None


def _required_terms(affinity: Fields) -> list[NodeSelectorTerm]:
    required = affinity.child("nodeAffinity").child("requiredDuringSchedulingIgnoredDuringExecution")
    return [
        NodeSelectorTerm(
            *(
                tuple([read_requirement(item) for item in term.items(name)])
                for name in ("matchExpressions", "matchFields")
            )
        )
        for term in required.items("nodeSelectorTerms")
    ]
