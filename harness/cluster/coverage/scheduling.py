"""States how a replay treats the fields of PodGroups, Workloads and KubeSchedulerConfigurations.

These are the Workloads of `scheduling.k8s.io`, not those of Kueue.

The fields of KubeSchedulerConfiguration are listed at
https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

from __future__ import annotations

from harness.cluster.coverage.common import STATUS, metadata
from harness.cluster.coverage.pods import KOORDINATORS_GANG
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled, only

POD_GROUP = Coverage(
    metadata(namespaced=True),
    STATUS,
    KOORDINATORS_GANG,
    modelled("spec.minMember"),
    assumed(
        "kube-scheduler tries the group even if less than these resources are free in the whole cluster",
        "spec.minResources",
    ),
    assumed(
        "harness places all pods of a group at once, so no pod waits for the others until this time is over",
        "spec.scheduleTimeoutSeconds",
    ),
)

_CONTROLLER = "it names the object that the group, or its template, was created for"
ON_ITS_OWN = "harness schedules each pod group on its own, as if it belonged to no group of groups"
_ONE_BY_ONE = "each pod of the group preempts, and is preempted, individually and by its own priority"
_LATER = ("v1alpha2", "v1alpha3", "v1beta1")

SCHEDULING_WORKLOAD = Coverage(
    only(
        ("v1alpha1",),
        [
            *metadata(namespaced=True),
            *modelled("spec.podGroups[].(name|policy.basic|policy.gang.minCount)"),
            *harmless(_CONTROLLER, "spec.controllerRef"),
        ],
    ),
    only(
        _LATER, harmless("PodGroups have copies of its templates", "apiVersion", "kind", "metadata", "spec")
    ),
)
"""The kind Workload of kube-scheduler's own API."""

SCHEDULING_POD_GROUP = Coverage(
    metadata(namespaced=True),
    STATUS,
    modelled("spec.schedulingPolicy.basic", "spec.schedulingPolicy.gang.minCount"),
    harmless(_CONTROLLER, "spec.podGroupTemplateRef", "spec.workloadRef"),
    assumed("pods of a group may run on any nodes", "spec.schedulingConstraints"),
    assumed(_ONE_BY_ONE, "spec.disruptionMode", usual=("Pod", {"single": {}})),
    assumed(_ONE_BY_ONE, "spec.preemptionPolicy", usual=("PreemptLowerPriority",)),
    assumed(_ONE_BY_ONE, "spec.priority", "spec.priorityClassName"),
    assumed("harness allocates no devices to resource claims", "spec.resourceClaims"),
    assumed(ON_ITS_OWN, "spec.parentCompositePodGroupName"),
)  # fmt: skip

_POINTS = (
    "bind", "filter", "permit", "placementGenerate", "placementScore", "postBind", "postFilter", "preBind",
    "preEnqueue", "preFilter", "preScore", "queueSort", "reserve", "score",
)  # fmt: skip

MODELLED_PLUGINS = (
    "DefaultBinder", "DefaultPreemption", "InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts",
    "NodeResourcesBalancedAllocation", "NodeResourcesFit", "NodeUnschedulable", "PodTopologySpread",
    "PrioritySort", "TaintToleration",
)  # fmt: skip
"""The plugins of the default profile that are modelled."""

IDLE_PLUGINS = (
    "DynamicResources", "GangScheduling", "ImageLocality", "NodeDeclaredFeatures", "NodeVolumeLimits",
    "SchedulingGates", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
)  # fmt: skip
"""The other plugins, which have no effect whether or not they are enabled.

A pod with fields that these plugins read causes a warning.
"""

_STAY = "the plugins of kube-scheduler's default profile decide, with their default weights"
_ARGUMENTS = "profiles[].pluginConfig[].args"
_OWN = "the plugin of kube-scheduler runs with its default arguments"
_CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def _point(path: str) -> list[Row]:
    """Returns the coverage of the plugins that a profile can enable and disable at an extension point."""
    return [
        *harmless("a disabled plugin has no weight", f"{path}.disabled[].weight"),
        *assumed(_STAY, f"{path}.enabled[].name", usual=(*MODELLED_PLUGINS, *IDLE_PLUGINS)),
        *assumed(_STAY, f"{path}.enabled[].weight", usual=(0,)),
    ]


_PROFILE: list[Row] = [
    *modelled("profiles[].percentageOfNodesToScore"),
    *modelled("profiles[].schedulerName"),
    *_point("profiles[].plugins.multiPoint"),
    *(row for point in _POINTS for row in _point(f"profiles[].plugins.{point}")),
    # Only DefaultPreemption can be disabled, either at its own extension point or at all of them.
    *modelled("profiles[].plugins.(multiPoint|postFilter).disabled[].name"),
    *(
        row
        for point in _POINTS
        if point != "postFilter"
        for row in assumed(_STAY, f"profiles[].plugins.{point}.disabled[].name", usual=IDLE_PLUGINS)
    ),
    *modelled("profiles[].pluginConfig[].name"),
    *modelled(
        f"{_ARGUMENTS}.(minCandidateNodesPercentage|minCandidateNodesAbsolute|hardPodAffinityWeight)",
        f"{_ARGUMENTS}.(preemptionAlgorithm|scoringStrategy.type)",
        f"{_ARGUMENTS}.scoringStrategy.resources[].(name|weight)",
        f"{_ARGUMENTS}.scoringStrategy.requestedToCapacityRatio.shape[].(utilization|score)",
        f"{_ARGUMENTS}.(placement|seed)",
    ),
    *harmless("they only name the type of the arguments", f"{_ARGUMENTS}.apiVersion", f"{_ARGUMENTS}.kind"),
    *assumed(_OWN, f"{_ARGUMENTS}.defaultingType", usual=("System",)),
    *assumed(_OWN, f"{_ARGUMENTS}.resources", usual=(_CPU_AND_MEMORY,)),
    *assumed(_OWN, _ARGUMENTS),
]  # fmt: skip

SCHEDULER_CONFIGURATION = Coverage(
    harmless("it names the file", "apiVersion", "kind", "metadata"),
    modelled("percentageOfNodesToScore", "disablePreemption", "preemptionAlgorithm"),
    _PROFILE,
    assumed("kube-scheduler does not call an extender", "extenders"),
    assumed(
        "after its first failed attempt, a pod waits 1 s before kube-scheduler tries it again",
        "podInitialBackoffSeconds", usual=(1,),
    ),
    assumed(
        "a pod waits at most 10 s before kube-scheduler tries it again",
        "podMaxBackoffSeconds", usual=(10,),
    ),
    harmless(
        "it influences how the scheduler runs, but not what the scheduler decides",
        "algorithmSource", "bindTimeoutSeconds", "clientConnection", "delayCacheUntilActive",
        "enableContentionProfiling", "enableProfiling", "hardPodAffinitySymmetricWeight",
        "healthzBindAddress", "leaderElection", "metricsBindAddress", "parallelism", "schedulerName",
    ),
)  # fmt: skip
