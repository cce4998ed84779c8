"""What pods have in common once Kueue has added what their flavors demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness.base.errors import ClusterError, Fault
from harness.cluster.kinds.pod_reading import pod_spec_of
from harness.cluster.model import Cluster
from harness.models.kube.pod import Template, Templates
from harness.policy import Job, PodSet


def template_in(
    templates: Templates,
    cluster: Cluster,
    job: Job,
    pod_set: PodSet,
    flavors: Iterable[str],
    labels: Mapping[str, str],
) -> Template:
    """What the pods of a pod set have in common.

    Args:
        templates: knows what pods have in common.
        cluster: has the flavors.
        job: whose pods they are.
        pod_set: the pod set.
        flavors: the names of the flavors that it was admitted with; their node labels and tolerations count.
        labels: what else its nodes must have, as the domain of a topology.

    Raises:
        ClusterError: its template is not what a Pod has.
    """
    faults: list[Fault] = []
    spec = pod_spec_of(pod_set, job.namespace, faults, f"job {job.id}, pod set {pod_set.name}")
    if faults:
        raise ClusterError("the trace", faults)
    selector = dict(spec.node_selector)
    tolerations = list(spec.tolerations)
    for name in sorted(set(flavors)):
        flavor = cluster.flavors[name]
        selector.update(flavor.node_labels)
        tolerations += flavor.tolerations
    selector.update(labels)
    spec = replace(spec, node_selector=selector, tolerations=tuple(tolerations))
    return templates.of(job.namespace, pod_set.labels, spec)
