"""Says in which namespaces Kueue manages jobs: `managedJobsNamespaceSelector` of its Configuration.

A replay doesn't need this, because a trace contains only jobs with queues.
"""

from __future__ import annotations

from harness.base.errors import ClusterError, Fault
from harness.cluster.kinds.selectors import LabelSelector, Requirement, read_selector
from harness.cluster.model import NAMESPACE_NAME, Cluster
from harness.cluster.yaml.fields import Fields

_GROUP = "config.kueue.x-k8s.io/"
_FIELD = "managedJobsNamespaceSelector"
_CONTROLLER = "kueue-system"
"""The default namespace of Kueue's controller."""


def manages_jobs(cluster: Cluster, namespace: str) -> bool:
    """Returns True if Kueue manages jobs in a namespace.

    By default, it manages them everywhere except in `kube-system` and in the namespace of its controller.
    Upstream: `SetDefaults_Configuration` in apis/config/v1beta2/defaults.go.

    Raises:
        ClusterError: the selector in the Configuration is faulty.
    """
    given = (each for each in cluster.manifests if str(each.get("apiVersion")).startswith(_GROUP))
    faults: list[Fault] = []
    fields = Fields(next(given, {}), "Configuration", faults)
    if _FIELD in fields:
        selector = read_selector(fields.child(_FIELD))
    else:
        system = "kube-system", fields.string("namespace") or _CONTROLLER
        selector = LabelSelector(match_expressions=(Requirement(NAMESPACE_NAME, "NotIn", system),))
    if faults:
        raise ClusterError(cluster.source or "the manifests", faults)
    return selector.matches(cluster.namespace_labels(namespace))
