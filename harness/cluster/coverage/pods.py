"""States how a replay treats the fields of Pods, and of the pod templates in other kinds."""

from __future__ import annotations

from harness.cluster.coverage.common import OWNERS, metadata, selector, tolerations
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, below, harmless, modelled
from harness.cluster.kinds.pods import KUEUES_GATES
from harness.cluster.kinds.topology import TOPOLOGY_ANNOTATIONS

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_NO_DEVICES = "harness allocates no devices to resource claims"
_NO_VOLUMES = "the volume does not bind its pod to a node, and a node can attach any number of volumes"
_DEADLINE = (
    "the deadline does not stop any pod; harness uses it only to limit the run times of unfinished work"
)
_INSIDE = "it influences what happens inside a pod, but not where the pod runs"


def _node_term(path: str) -> list[Row]:
    return modelled(f"{path}.(matchExpressions|matchFields)[].(key|operator|values)")


def _pod_term(path: str) -> list[Row]:
    return [
        *selector(f"{path}.labelSelector"),
        *selector(f"{path}.namespaceSelector"),
        *modelled(f"{path}.(topologyKey|namespaces|matchLabelKeys|mismatchLabelKeys)"),
    ]


_AFFINITY: list[Row] = [
    *modelled("affinity"),
    *_node_term(f"affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[]"),
    *modelled(f"affinity.nodeAffinity.{_PREFERRED}[].weight"),
    *_node_term(f"affinity.nodeAffinity.{_PREFERRED}[].preference"),
    *(
        row
        for kind in ("podAffinity", "podAntiAffinity")
        for row in (
            *_pod_term(f"affinity.{kind}.{_REQUIRED}[]"),
            *modelled(f"affinity.{kind}.{_PREFERRED}[].weight"),
            *_pod_term(f"affinity.{kind}.{_PREFERRED}[].podAffinityTerm"),
        )
    ),
]

_SPREAD: list[Row] = [
    *selector("topologySpreadConstraints[].labelSelector"),
    *modelled(
        "topologySpreadConstraints[].(matchLabelKeys|maxSkew|minDomains|nodeAffinityPolicy|nodeTaintsPolicy)",
        "topologySpreadConstraints[].(topologyKey|whenUnsatisfiable)",
    ),
]


def _resources(path: str) -> list[Row]:
    return [*modelled(f"{path}.limits{{}}", f"{path}.requests{{}}"), *assumed(_NO_DEVICES, f"{path}.claims")]


_OF_CONTAINERS = (
    "args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name",
    "readinessProbe", "resizePolicy", "restartPolicyRules", "securityContext", "startupProbe", "stdin",
    "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices",
    "volumeMounts", "workingDir",
)  # fmt: skip


def _containers(path: str) -> list[Row]:
    return [
        *_resources(f"{path}.resources"),
        *modelled(f"{path}.ports[].(containerPort|hostIP|hostPort|protocol)"),
        *harmless(_INSIDE, *(f"{path}.{name}" for name in _OF_CONTAINERS)),
    ]


_VOLUMES: list[Row] = [
    *assumed(
        _NO_VOLUMES,
        *(
            f"volumes[].{kind}"
            for kind in (
                "awsElasticBlockStore", "azureDisk", "cinder", "csi", "ephemeral", "fc", "flexVolume",
                "gcePersistentDisk", "iscsi", "persistentVolumeClaim", "photonPersistentDisk",
                "portworxVolume", "rbd", "scaleIO", "storageos", "vsphereVolume",
            )
        ),
    ),
    *harmless(
        "such a volume is available on every node",
        *(
            f"volumes[].{kind}"
            for kind in (
                "azureFile", "cephfs", "configMap", "downwardAPI", "emptyDir", "flocker", "gitRepo",
                "glusterfs", "hostPath", "image", "name", "nfs", "projected", "quobyte", "secret",
            )
        ),
    ),
]  # fmt: skip

_PORT_NAMES = ("containers[].ports[].name", "initContainers[].ports[].name")
"""Kueue treats workloads as different if their pods differ in these fields, or in how long they tolerate a
taint.
"""

_OF_ALL: list[Row] = [
    *_AFFINITY,
    *_SPREAD,
    *_containers("containers[]"),
    *_containers("initContainers[]"),
    *modelled("initContainers[].restartPolicy"),
    *harmless(_INSIDE, "containers[].restartPolicy"),
    *_resources("resources"),
    *_VOLUMES,
    *modelled("nodeSelector{}", "overhead{}", "hostNetwork", "terminationGracePeriodSeconds"),
    *assumed(_NO_DEVICES, "resourceClaims"),
    *assumed(_DEADLINE, "activeDeadlineSeconds"),
    *harmless("a debugger adds them to running pods, and they request no resources", "ephemeralContainers"),
    *harmless("a pod is ready as soon as it runs", "readinessGates"),
    *harmless(
        _INSIDE,
        "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
        "hostIPC", "hostPID", "hostUsers", "hostname", "hostnameOverride", "imagePullSecrets", "os",
        "restartPolicy", "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN",
        "shareProcessNamespace", "subdomain",
    ),
]  # fmt: skip

_OF_GROUPS: list[Row] = modelled(
    "schedulingGroup.podGroupName", "workloadRef.(name|podGroup|podGroupReplicaKey)"
)
"""The fields with which a pod names its kube-scheduler pod group, in both spellings."""

_USUAL = ("default-scheduler",)

SPEC: list[Row] = [
    *_OF_ALL,
    *_OF_GROUPS,
    *tolerations("tolerations"),
    *harmless(_INSIDE, *_PORT_NAMES),
    *modelled("nodeName", "priority", "priorityClassName", "preemptionPolicy"),
    *modelled("schedulerName"),
    *assumed(
        "harness leaves out a gated pod that waits for a node without a Workload; it ignores other gates, "
        "and Kueue's own gates if the plugin is not Kueue's",
        "schedulingGates",
    ),
    *harmless("the API server has already added the values of the class to the pod", "runtimeClassName"),
]
"""The `spec` of a Pod."""

_TEMPLATE: list[Row] = [
    *_OF_ALL,
    *tolerations("tolerations"),
    *modelled("priority", "priorityClassName", *_PORT_NAMES),
    *assumed("the replayed scheduler places the pods", "schedulerName", usual=_USUAL),
    *assumed("the pods may run on any node, not only on this one", "nodeName"),
    *assumed(
        "Kueue may preempt other workloads for these pods, whatever this policy says",
        "preemptionPolicy",
        usual=("PreemptLowerPriority",),
    ),
    *assumed(
        "harness treats the pods as if all scheduling gates were removed when they are admitted",
        "schedulingGates[].name",
        usual=tuple(sorted(KUEUES_GATES)),
    ),
]

TEMPLATE: list[Row] = [
    *_TEMPLATE,
    *assumed("harness places the pods as if they belonged to no group", "schedulingGroup"),
    *modelled("runtimeClassName"),
]
"""The `spec` of the pods that a Workload represents."""

POD_TEMPLATE = Coverage(
    _TEMPLATE,
    _OF_GROUPS,
    assumed(
        "the RuntimeClass neither restricts the nodes of the pods nor adds to their requests",
        "runtimeClassName",
    ),
)
"""The `spec` in the column `pod_template` of a trace."""

KOORDINATORS_GANG: list[Row] = assumed(
    "a pod belongs to a gang only if one of its labels names a pod group",
    "metadata.(annotations|labels){gang.scheduling.koordinator.sh/*}",
)
"""Koordinator's gang annotations on Pods and PodGroups."""

_KOORDINATORS: list[Row] = [
    *KOORDINATORS_GANG,
    *assumed(
        "harness orders pods by Kubernetes' priority only, and treats all cores of a node as equal",
        "metadata.(annotations|labels){koordinator.sh/*}",
    ),
    *assumed(
        "Koordinator's reservations, devices and NUMA nodes do not influence where a pod runs",
        "metadata.(annotations|labels){(scheduling|node).koordinator.sh/*}",
    ),
]

_SHARES_OF_GPUS: list[Row] = [
    *assumed(
        "a pod gets a share of a GPU only if it requests a resource for it, such as "
        "alibabacloud.com/gpu-milli",
        "metadata.annotations{alibabacloud.com/gpu-*}",
    ),
    *assumed(
        "the GPU memory that a pod requests can come from any number of GPUs",
        "metadata.labels{aliyun.com/gpu-count}",
    ),
]

POD = Coverage(
    metadata(
        namespaced=True,
        labels=True,
        deleted="",
        counts=("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"),
    ),
    OWNERS,
    modelled("metadata.annotations{kueue.x-k8s.io/workload}"),
    _KOORDINATORS,
    _SHARES_OF_GPUS,
    modelled(*(f"metadata.annotations{{{name}}}" for name in TOPOLOGY_ANNOTATIONS)),
    below("spec", SPEC),
    modelled("status.(startTime|nominatedNodeName|phase)", "status.conditions[].(type|status|reason)"),
    modelled(
        *(
            f"status.{statuses}[].(name|allocatedResources{{}}|resources.requests{{}})"
            for statuses in ("containerStatuses", "initContainerStatuses")
        )
    ),
    harmless("the kubelet records it for a running pod", "status"),
    harmless("the time and the wording of a condition have no effect", "status.conditions[]"),
    harmless("the kubelet records it", "status.containerStatuses[]", "status.initContainerStatuses[]"),
)
