"""Reads pods from manifests, and from the pod sets of jobs in a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields as fields_of
from functools import lru_cache
from operator import attrgetter
from typing import Any

from harness.base.errors import Fault
from harness.base.json_text import mapping_of
from harness.base.pod_set import PodSet
from harness.base.units import SECOND
from harness.cluster.draft import Draft
from harness.cluster.kinds.containers import Amounts, Container, Held, pod_requests, read_held, read_resources
from harness.cluster.kinds.pod_rules import (
    PREFERRED,
    REQUIRED,
    read_preferred_nodes,
    read_preferred_pods,
    read_required_nodes,
    read_spread,
    read_term,
)
from harness.cluster.kinds.pods import DEFAULT_CPU, DEFAULT_MEMORY, DEFAULT_SCHEDULER, Pod, PodSpec
from harness.cluster.kinds.scheduling_groups import read_group_reference
from harness.cluster.kinds.selectors import read_toleration
from harness.cluster.kinds.topology import TOPOLOGY_ANNOTATIONS
from harness.cluster.kinds.workloads import read_deadline, read_time
from harness.cluster.model import SYSTEM_PRIORITY_CLASSES, frozen
from harness.cluster.yaml.fields import Fields

_DEFAULTS: Amounts = {"cpu": DEFAULT_CPU, "memory": DEFAULT_MEMORY}
_LASTING = frozenset(("DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet"))
_POD_SET_LABELS = (
    "kueue.x-k8s.io/podset", "kueue.x-k8s.io/role-hash", "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type", "ray.io/group",
)  # fmt: skip
"""The labels that name the pod set of a pod: Kueue's own label, and the labels from which Kueue derives
names.

https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/
"""
_INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "kueue.x-k8s.io/pod-group-pod-index")
_POLICIES = ("PreemptLowerPriority", "Never")
_rules_of = attrgetter(*[each.name for each in fields_of(PodSpec)][3:-1])  # everything but quantities


def read_running_pod(fields: Fields, draft: Draft) -> None:
    """Read a Pod. A Pod that has failed is dropped.

    A Pod that has succeeded uses no resources, but its Workload counts it as an ended pod.
    """
    pod = read_pod(fields)
    if pod.ended:
        if fields.child("status").raw("phase") == "Succeeded":
            draft.succeeded.append(pod)
        return
    draft.pods.add((pod.namespace, pod.name), pod, fields)


def check_pods(draft: Draft) -> None:
    """Check that the manifests contain the priority class and the node that each pod names."""
    for key, pod in draft.pods.items():
        if (
            pod.priority is None
            and pod.priority_class
            and pod.priority_class not in draft.priority_classes
            and pod.priority_class not in SYSTEM_PRIORITY_CLASSES
        ):
            what = f"there is no PriorityClass {pod.priority_class!r}; add its manifest, or set spec.priority"
            draft.pods.fields(key).fault("spec.priorityClassName", what)
        if pod.node and pod.node not in draft.nodes:
            what = f"runs on node {pod.node}, which no manifest describes"
            draft.warnings.add("Pod", f"{pod.namespace}/{pod.name}", what)


def read_pod(fields: Fields) -> Pod:
    """Read a Pod, whether bound or pending."""
    metadata = fields.child("metadata")
    name = metadata.string("name", required=True)
    namespace = metadata.string("namespace", "default") or "default"
    labels = metadata.strings("labels")
    terminating = "deletionTimestamp" in metadata
    spec, status = fields.child("spec"), fields.child("status")
    node = spec.string("nodeName")
    priority = spec.integer("priority") if "priority" in spec else None
    policy = spec.choice("preemptionPolicy", _POLICIES, _POLICIES[0]) if "preemptionPolicy" in spec else None
    grace = None
    if "terminationGracePeriodSeconds" in spec:
        grace = spec.integer("terminationGracePeriodSeconds", least=0) * SECOND
    said = {**_texts(metadata.raw("annotations")), **labels}
    preempted = [_says_preempted(condition) for condition in status.items("conditions")]
    start = read_time(status, "startTime")
    nominated = status.string("nominatedNodeName")
    ended = status.string("phase") in ("Succeeded", "Failed")
    owners = {owner.string("kind") for owner in metadata.items("ownerReferences")}
    gone_at = read_time(metadata, "deletionTimestamp")
    gates = spec.items("schedulingGates") if spec.raw("schedulingGates") else []
    return Pod(
        name,
        namespace,
        labels,
        read_pod_spec(spec, namespace, labels, held=read_held(status)),
        node,
        nominated,
        priority,
        spec.string("priorityClassName"),
        None if policy is None else policy == _POLICIES[0],
        grace,
        start,
        terminating,
        any(preempted),
        ended,
        read_scheduler(spec),
        read_group_reference(spec),
        _is_in_topology(metadata.raw("annotations")),
        "DaemonSet" in owners,
        pod_set="head" if said.get("ray.io/node-type") == "head" else _first(said, _POD_SET_LABELS),
        index=int(index) if (index := _first(said, _INDEX_LABELS)).isdecimal() else None,
        lasting=not _LASTING.isdisjoint(owners),
        deadline=read_deadline(spec),
        gone_at=gone_at,
        told_at=None if gone_at is None else gone_at - _grace_of_deletion(metadata, grace),
        gates=tuple(gate.string("name") for gate in gates),
    )


def _grace_of_deletion(metadata: Fields, grace: int | None) -> int:
    name = "deletionGracePeriodSeconds"
    if name in metadata:
        return metadata.integer(name, least=0) * SECOND
    return 30 * SECOND if grace is None else grace


def _texts(annotations: Any) -> dict[str, str]:
    found = annotations if isinstance(annotations, Mapping) else {}
    return {str(name): value for name, value in found.items() if isinstance(value, str)}


def _first(said: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((said[name] for name in names if said.get(name)), "")


def unbound(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a copy of a Pod's manifest without a node and a status, so that the Pod waits for a node."""
    spec = {key: value for key, value in manifest["spec"].items() if key != "nodeName"}
    return {**manifest, "spec": spec, "status": {}}


def _is_in_topology(annotations: Any) -> bool:
    """Returns True if Kueue places a pod in a topology, according to `IsTAS` in its pkg/util/tas."""
    return isinstance(annotations, Mapping) and any(name in annotations for name in TOPOLOGY_ANNOTATIONS)


def read_scheduler(fields: Fields) -> str:
    """Returns the `schedulerName` of a pod or a profile, or "" for Kubernetes' default scheduler."""
    name = fields.string("schedulerName")
    return "" if name == DEFAULT_SCHEDULER else name


def _says_preempted(condition: Fields) -> bool:
    return (
        condition.string("type") == "DisruptionTarget"
        and condition.string("status") == "True"
        and condition.string("reason") == "PreemptionByScheduler"
    )


# --- the spec ---------------------------------------------------------------------------------------------


def read_pod_spec(
    fields: Fields,
    namespace: str,
    labels: Mapping[str, str],
    requests: Amounts | None = None,
    limits: Amounts | None = None,
    held: Held | None = None,
) -> PodSpec:
    """Read the `spec` of a pod.

    The `nodeName` in `fields` is ignored, because a scheduler chose the node of a bound pod. `namespace` is
    that of the pod, for affinity terms that don't specify one, and `labels` are those of the pod, for
    `matchLabelKeys`. `requests` and `limits` apply if no container has requests, as in a trace. `held` is
    what the containers of a running pod hold.
    """
    containers = [Container(item) for item in fields.items("containers")]
    init = [Container(item) for item in fields.items("initContainers")]
    lasting = [*containers, *(container for container in init if container.sidecar)]
    overhead = fields.amounts("overhead")
    host_network = fields.boolean("hostNetwork")
    affinity = fields.child("affinity")
    nodes = affinity.child("nodeAffinity")
    near, far = affinity.child("podAffinity"), affinity.child("podAntiAffinity")
    _, as_whole = read_resources(fields)
    if as_whole or requests is None or any(container.requests for container in (*containers, *init)):
        qos = _qos_class([(container.requests, container.limits) for container in containers])
        if held is not None:
            for container in (*containers, *init):
                container.requests = held.by(container)
        total = pod_requests(containers, init, {}, as_whole, overhead)
        scored = pod_requests(containers, init, _DEFAULTS, as_whole, overhead)
    else:
        total = {key: requests.get(key, 0) + overhead.get(key, 0) for key in {**requests, **overhead}}
        scored = {
            key: (requests.get(key) or least) + overhead.get(key, 0) for key, least in _DEFAULTS.items()
        }
        qos = _qos_class([(requests, limits or {})])
    return PodSpec(
        frozen(total),
        scored.get("cpu", 0),
        scored.get("memory", 0),
        tuple(port for container in lasting for port in container.ports(host_network)),
        "",
        fields.strings("nodeSelector"),
        tuple(read_toleration(item) for item in fields.items("tolerations")),
        read_required_nodes(nodes),
        tuple(read_preferred_nodes(item) for item in nodes.items(PREFERRED)),
        tuple(read_term(item, namespace, labels) for item in near.items(REQUIRED)),
        tuple(read_term(item, namespace, labels) for item in far.items(REQUIRED)),
        tuple(read_preferred_pods(item, namespace, labels, 1) for item in near.items(PREFERRED))
        + tuple(read_preferred_pods(item, namespace, labels, -1) for item in far.items(PREFERRED)),
        tuple(read_spread(item, labels) for item in fields.items("topologySpreadConstraints")),
        qos,
    )


def asking_for(spec: PodSpec, requests: Amounts, limits: Amounts) -> PodSpec:
    """Returns a copy of a pod's spec with other requests and limits, which come from a trace.

    The pod template from which the spec was read must not contain requests or limits.
    """
    cpu, memory = requests.get("cpu") or DEFAULT_CPU, requests.get("memory") or DEFAULT_MEMORY
    rest = *_rules_of(spec), _qos_class([(requests, limits)])
    return PodSpec(frozen(requests), cpu, memory, *rest)


def _qos_class(containers: list[tuple[Amounts, Amounts]]) -> str:
    """Returns the QoS class, which depends on the containers' requests and limits for cpu and memory.

    https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
    """
    some, all_limited = False, True
    for requests, limits in containers:
        for name in ("cpu", "memory"):
            request, limit = requests.get(name), limits.get(name)
            some = some or bool(request or limit)
            all_limited = all_limited and bool(limit) and request in (None, limit)
    return ("Guaranteed" if all_limited else "Burstable") if some else "BestEffort"


# --- pod sets of a trace ----------------------------------------------------------------------------------


def pod_spec_of(pod_set: PodSet, namespace: str, faults: list[Fault], where: str) -> PodSpec:
    """Returns the spec of the pods in a pod set.

    `pod_template` is the `spec` of a pod, or a template with `metadata.labels` and `spec`. `tolerations` and
    `affinity` are the fields of the same name in a pod's `spec`. If the containers of the template have
    requests, these requests apply. Otherwise, the requests in the trace apply, and a request of 0 counts as
    absent. If the template is the manifest of a Pod, the Pod's status says what its containers hold.
    """
    fields = Fields(template_of(pod_set, faults, where), where, faults)
    status = mapping_of(_json(pod_set.pod_template, "pod_template", [], where), "status")
    held = read_held(Fields(status, where, faults)) if status else None
    return read_pod_spec(fields, namespace, pod_set.labels, pod_set.requests, pod_set.limits, held)


def template_of(pod_set: PodSet, faults: list[Fault], where: str) -> dict[str, Any]:
    """Returns the `spec` of the pods in a pod set as JSON, as a manifest would contain it.

    The requests that the trace states for the pod set are not included.
    """
    if not (pod_set.pod_template or pod_set.tolerations or pod_set.affinity or pod_set.node_selector):
        return {}  # like most pod sets in traces
    template = _json(pod_set.pod_template, "pod_template", faults, where)
    if isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        template = template["spec"]
    spec: dict[str, Any] = dict(template) if isinstance(template, Mapping) else {}
    if template is not None and not isinstance(template, Mapping):
        faults.append(Fault(f"{where}: pod_template", "must be a pod's spec"))
    for name, text in (("tolerations", pod_set.tolerations), ("affinity", pod_set.affinity)):
        value = _json(text, name, faults, where)
        if value is not None:
            spec[name] = value
    own = spec.get("nodeSelector")
    if pod_set.node_selector and (
        own is None or isinstance(own, Mapping)
    ):  # the reader of the spec reports the other faults
        spec["nodeSelector"] = {**(own or {}), **pod_set.node_selector}
    return spec


def manifest_of(pod_set: PodSet) -> Pod | None:
    """Returns the Pod from which a pod set was made, or None if its job comes from a trace.

    The `pod_template` of such a pod set is the whole manifest of the Pod.
    """
    manifest = _json(pod_set.pod_template, "pod_template", [], "")
    if not isinstance(manifest, Mapping) or "spec" not in manifest:
        return None
    return read_pod(Fields(manifest, "", []))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    return json.loads(text)


def _json(text: str | None, name: str, faults: list[Fault], where: str) -> Any:
    if not text:
        return None
    try:
        return _parsed(text)
    except ValueError as error:
        faults.append(Fault(f"{where}: {name}", f"is not JSON: {error}"))
        return None
