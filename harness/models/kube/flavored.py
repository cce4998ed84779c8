"""Creates pod templates to which Kueue has added the constraints of their flavors."""

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
    """Returns the template of the pods in a pod set.

    Args:
        templates: the known templates, where equal templates are one object.
        cluster: the cluster with the flavors.
        job: the job of the pods.
        pod_set: the pod set.
        flavors: the names of the assigned flavors. Their node labels and tolerations apply.
        labels: other labels that the nodes must have, such as those of a topology domain.

    Raises:
        ClusterError: the template is not a valid Pod template.
    """
    faults: list[Fault] = []
    spec = pod_spec_of(pod_set, job.namespace, faults, f"job {job.id}, pod set {pod_set.name}")
    if faults:
        raise ClusterError("the trace", faults)
    selector = dict(spec.node_selector)
    tolerations = list(spec.tolerations)
    for name in sorted(set(flavors)):
        flavor = cluster.flavor(name)
        selector.update(flavor.node_labels)
        tolerations += flavor.tolerations
    selector.update(labels)
    spec = replace(spec, node_selector=selector, tolerations=tuple(tolerations))
    return templates.of(job.namespace, pod_set.labels, spec)
