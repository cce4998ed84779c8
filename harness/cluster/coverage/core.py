"""States how a replay treats the fields of NodePool and of Kubernetes' own kinds except Pods.

The fields are listed at https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/
"""

from __future__ import annotations

from harness.cluster.coverage.common import STATUS, metadata, selector, taints
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled, only

_KOORDINATORS_NODE: list[Row] = assumed(
    "pods may use the whole allocatable amount in the node's status",
    "metadata.(annotations|labels){node.koordinator.sh/*}",
)

_GPU_MEMORY = "{aliyun.com/gpu-mem}"
_ONE_SUM = (
    "harness adds up the memory of all GPUs of a node, so pods may get more memory "
    "of one GPU than this GPU has"
)

_STATUS: list[Row] = [
    *modelled("status.(allocatable|capacity){}"),
    *assumed(_ONE_SUM, f"status.allocatable{_GPU_MEMORY}"),
    *modelled("status.conditions[].(type|status)"),
    *harmless(
        "the time and the wording of a condition have no effect",
        "status.conditions[].(lastHeartbeatTime|lastTransitionTime|message|reason)",
    ),
    *harmless("the images of jobs are unknown, so no node is preferred for them", "status.images"),
    *harmless(
        "the kubelet records it; pods that use it have a warning of their own",
        "status.(addresses|config|daemonEndpoints|declaredFeatures|features|nodeInfo|phase|runtimeHandlers)",
        "status.(volumesAttached|volumesInUse)",
    ),
]

NODE = Coverage(
    metadata(labels=True),
    _KOORDINATORS_NODE,
    taints("spec.taints"),
    modelled("metadata.annotations{harness/drain}", "spec.unschedulable"),
    harmless(
        "a node's addresses do not influence which pods run on the node",
        "spec.(configSource|externalID|podCIDR|podCIDRs|providerID)",
    ),
    _STATUS,
)

NODE_POOL = Coverage(
    metadata(),
    modelled("spec.count", "spec.template.metadata.labels{}", "spec.template.spec.unschedulable"),
    taints("spec.template.spec.taints"),
    modelled("spec.template.(allocatable|devices){}", "spec.template.status.(allocatable|capacity){}"),
    assumed(
        _ONE_SUM, f"spec.template.allocatable{_GPU_MEMORY}", f"spec.template.status.allocatable{_GPU_MEMORY}"
    ),
)

NAMESPACE = Coverage(
    metadata(labels=True),
    STATUS,
    harmless("it matters only when the namespace is deleted", "spec.finalizers"),
)

PRIORITY_CLASS = Coverage(
    metadata(),
    modelled("value", "globalDefault", "preemptionPolicy"),
    harmless("it is meant for people", "description"),
    assumed(
        "pods of a higher priority can preempt pods of this class at any time",
        "metadata.annotations{preemption-toleration.scheduling.(sigs.k8s.io|x-k8s.io)/*}",
    ),
)

DISRUPTION_BUDGET = Coverage(
    metadata(namespaced=True),
    selector("spec.selector"),
    modelled("spec.minAvailable", "spec.maxUnavailable"),
    harmless(
        "only the eviction API reads it, and preemption ignores it; bound pods always count as healthy",
        "spec.unhealthyPodEvictionPolicy",
    ),
    modelled("status.disruptionsAllowed", "status.disruptedPods{}"),
    STATUS,
)

_REQUEST = "spec.spec.devices.requests[]"
_PRESENT = (f"{_REQUEST}.firstAvailable", "spec.spec.devices.constraints", "spec.spec.devices.config")


def _device_request(path: str) -> list[Row]:
    return [
        *modelled(f"{path}.(deviceClassName|allocationMode|count|adminAccess)"),
        *assumed("harness assumes that enough devices match these selectors", f"{path}.selectors"),
        *harmless("Kueue does not read it, and harness does not allocate devices", f"{path}.tolerations"),
        *assumed(
            "a device counts as one, even if the claim requests only a part of its capacity",
            f"{path}.capacity",
        ),
    ]


CLAIM_TEMPLATE = Coverage(
    metadata(namespaced=True, deleted=""),
    harmless("the object's content has an effect until the object is gone", "metadata.deletionTimestamp"),
    harmless("it selects claims, and a replay does not select claims", "spec.metadata"),
    harmless("a name identifies one request of a claim", f"{_REQUEST}.name"),
    _device_request(f"{_REQUEST}.exactly"),
    only(["v1beta1"], _device_request(_REQUEST)),
    modelled(*_PRESENT),
    harmless("only its presence matters, not its content", *(f"{each}[]" for each in _PRESENT)),
)

RUNTIME_CLASS = Coverage(
    metadata(),
    harmless("the kubelet starts pods with it", "handler"),
    modelled("overhead.podFixed{}"),
    assumed("the RuntimeClass does not restrict the nodes of the pods of Workloads", "scheduling"),
)

LIMIT_RANGE = Coverage(
    metadata(namespaced=True),
    modelled("spec.limits[].(type|default{}|defaultRequest{}|max{}|min{})"),
    assumed("harness assumes that all pods stay within this ratio", "spec.limits[].maxLimitRequestRatio"),
)
