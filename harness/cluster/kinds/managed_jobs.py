"""Says which jobs Kueue manages, by the fields of its Configuration.

A replay doesn't need this, because a trace contains only jobs with queues.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.base.errors import ClusterError, Fault
from harness.cluster.kinds.selectors import LabelSelector, Requirement, read_selector
from harness.cluster.model import NAMESPACE_NAME, Cluster
from harness.cluster.yaml.fields import Fields

_GROUP = "config.kueue.x-k8s.io/"
_FIELD = "managedJobsNamespaceSelector"
_CONTROLLER = "kueue-system"
"""The default namespace of Kueue's controller."""

_USUAL = ("batch/job",)
"""The default of `integrations.frameworks`."""


class Managed(NamedTuple):
    """The jobs that Kueue manages.

    Attributes:
        frameworks: the kinds of jobs in `integrations.frameworks`, or None if the Configuration lists none.
        external: the kinds in `integrations.externalFrameworks`, which other controllers manage for Kueue.
        without_queue: `manageJobsWithoutQueueName`: whether Kueue suspends jobs without a queue.
        namespaces: `managedJobsNamespaceSelector`, which by default selects all namespaces except
            `kube-system` and the namespace of the controller. Upstream: `SetDefaults_Configuration` in
            apis/config/v1beta2/defaults.go.
    """

    frameworks: tuple[str, ...] | None
    external: tuple[str, ...]
    without_queue: bool
    namespaces: LabelSelector

    def manages_kind(self, kind: str, group: str) -> bool:
        """Returns True if Kueue manages jobs of a kind of an API group, as far as the Configuration says."""
        return self.frameworks is None or self._is_listed(kind, group, self.frameworks)

    def suspends_without_queue(self, kind: str, group: str) -> bool:
        """Returns True if Kueue suspends jobs of a kind that have no queue, in the namespaces it manages.

        Upstream: `WorkloadShouldBeSuspended` in pkg/controller/jobframework/utils.go.
        """
        return self.without_queue and self._is_listed(kind, group, self.frameworks or _USUAL)

    def _is_listed(self, kind: str, group: str, frameworks: tuple[str, ...]) -> bool:
        plain = group in ("", "apps")
        name = kind.lower() if plain else f"{group}/{kind.lower()}"
        return name in frameworks or any(each.startswith(f"{kind}.") for each in self.external)


def managed_jobs(cluster: Cluster) -> Managed:
    """Returns the jobs that Kueue manages.

    Raises:
        ClusterError: the Configuration is faulty.
    """
    given = (each for each in cluster.manifests if str(each.get("apiVersion")).startswith(_GROUP))
    faults: list[Fault] = []
    fields = Fields(next(given, {}), "Configuration", faults)
    if _FIELD in fields:
        namespaces = read_selector(fields.child(_FIELD))
    else:
        system = "kube-system", fields.string("namespace") or _CONTROLLER
        namespaces = LabelSelector(match_expressions=(Requirement(NAMESPACE_NAME, "NotIn", system),))
    integrations = fields.child("integrations")
    found = Managed(
        integrations.texts("frameworks") or None,
        integrations.texts("externalFrameworks"),
        fields.boolean("manageJobsWithoutQueueName"),
        namespaces,
    )
    if faults:
        raise ClusterError(cluster.source or "the manifests", faults)
    return found
