"""Implements queueing hints, which say whether an event may help a pod that some filters rejected."""

from __future__ import annotations

from typing import final

from harness.cluster.kinds.pods import NamespaceLabels
from harness.models.kube.placement.filters import ports_taken
from harness.models.kube.placement.interpod import means
from harness.models.kube.placement.status import (
    INTER_POD_AFFINITY,
    NODE_PORTS,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
)
from harness.models.kube.pod import PodInfo, Template


@final
class Hints:
    """Asks the plugins that rejected a pod, and caches their answers for each pair of templates."""

    def __init__(self, labels_of: NamespaceLabels) -> None:
        self._labels_of = labels_of
        self._near: dict[tuple[Template, Template], bool] = {}
        self._repelled: dict[tuple[Template, Template], bool] = {}

    def after_deletion(self, waiting: PodInfo, gone: PodInfo) -> bool:
        """Returns True if the end of a bound pod, or a withdrawn nomination, may help a pending pod."""
        rejected_by = waiting.rejected_by
        if NODE_RESOURCES_FIT in rejected_by:
            return True
        if INTER_POD_AFFINITY in rejected_by and self._repel(waiting.template, gone.template):
            return True
        if NODE_PORTS in rejected_by and ports_taken(waiting.template.shape.ports, gone.template.shape.ports):
            return True
        return POD_TOPOLOGY_SPREAD in rejected_by and _counted(waiting.template, gone.template)

    def after_binding(self, waiting: PodInfo, bound: PodInfo) -> bool:
        """Returns True if a newly bound pod may help a pending pod."""
        rejected_by = waiting.rejected_by
        if INTER_POD_AFFINITY in rejected_by and self._is_near(waiting.template, bound.template):
            return True
        return POD_TOPOLOGY_SPREAD in rejected_by and _counted(waiting.template, bound.template)

    def _is_near(self, template: Template, other: Template) -> bool:
        """Returns True if pods of `other` satisfy all required affinity terms of `template`."""
        found = self._near.get((template, other))
        if found is None:
            terms, labels_of = template.spec.affinity, self._labels_of
            found = bool(terms) and all(means(term, other, labels_of) for term in terms)
            self._near[template, other] = found
        return found

    def _repel(self, template: Template, other: Template) -> bool:
        """Returns True if all required anti-affinity terms of one template match the other, or vice versa."""
        found = self._repelled.get((template, other))
        if found is None:
            labels_of = self._labels_of
            found = any(
                bool(here.spec.anti_affinity)
                and all(means(term, there, labels_of) for term in here.spec.anti_affinity)
                for here, there in ((template, other), (other, template))
            )
            self._repelled[template, other] = found
        return found


def _counted(template: Template, other: Template) -> bool:
    return template.namespace == other.namespace and any(
        constraint.selector is not None and constraint.selector.matches(other.labels)
        for constraint in template.spread
    )
