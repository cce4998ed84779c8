"""PodGroup and KubeSchedulerConfiguration.

Fields of the latter: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

from __future__ import annotations

from harness.cluster.coverage.common import STATUS, metadata
from harness.cluster.coverage.pods import KOORDINATORS_GANG
from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled

POD_GROUP = Coverage(
    metadata(namespaced=True),
    STATUS,
    KOORDINATORS_GANG,
    modelled("spec.minMember"),
    assumed("a group is tried whatever the whole cluster has left", "spec.minResources"),
    assumed(
        "a group is placed at one instant, so no pod waits for the others", "spec.scheduleTimeoutSeconds"
    ),
)

_POINTS = (
    "bind", "filter", "permit", "placementGenerate", "placementScore", "postBind", "postFilter", "preBind",
    "preEnqueue", "preFilter", "preScore", "queueSort", "reserve", "score",
)  # fmt: skip

MODELLED_PLUGINS = (
    "DefaultBinder", "DefaultPreemption", "InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts",
    "NodeResourcesBalancedAllocation", "NodeResourcesFit", "NodeUnschedulable", "PodTopologySpread",
    "PrioritySort", "TaintToleration",
)  # fmt: skip
"""Plugins of the default profile that are modelled."""

IDLE_PLUGINS = (
    "DynamicResources", "GangScheduling", "ImageLocality", "NodeDeclaredFeatures", "NodeVolumeLimits",
    "SchedulingGates", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
)  # fmt: skip
"""The others: what they look at is warned of where pods have it, so that they change nothing, on or off."""

_STAY = "the plugins of the default profile decide, with their own weights"
_ARGUMENTS = "profiles[].pluginConfig[].args"


def _point(path: str) -> list[Row]:
    """What may be switched on and off at one point."""
    return [
        *harmless("what is off has no weight", f"{path}.disabled[].weight"),
        *assumed(_STAY, f"{path}.enabled[].name", usual=(*MODELLED_PLUGINS, *IDLE_PLUGINS)),
        *assumed(_STAY, f"{path}.enabled[].weight", usual=(0,)),
    ]


_PROFILE: list[Row] = [
    *modelled("profiles[].percentageOfNodesToScore"),
    *modelled("profiles[].schedulerName"),
    *_point("profiles[].plugins.multiPoint"),
    *(row for point in _POINTS for row in _point(f"profiles[].plugins.{point}")),
    # DefaultPreemption is the one that may be off: alone at its point, or at all points.
    *modelled(
        "profiles[].plugins.multiPoint.disabled[].name", "profiles[].plugins.postFilter.disabled[].name"
    ),
    *(
        row
        for point in _POINTS
        if point != "postFilter"
        for row in assumed(_STAY, f"profiles[].plugins.{point}.disabled[].name", usual=IDLE_PLUGINS)
    ),
    *modelled("profiles[].pluginConfig[].name"),
    *modelled(
        *(
            f"{_ARGUMENTS}.{name}"
            for name in (
                "minCandidateNodesPercentage", "minCandidateNodesAbsolute", "hardPodAffinityWeight",
                "preemptionAlgorithm",
            )
        )
    ),
    *harmless("they name what the arguments are", f"{_ARGUMENTS}.apiVersion", f"{_ARGUMENTS}.kind"),
    *assumed("the plugin has its own defaults", _ARGUMENTS),
]  # fmt: skip

SCHEDULER_CONFIGURATION = Coverage(
    harmless("it names the file", "apiVersion", "kind", "metadata"),
    modelled("percentageOfNodesToScore", "disablePreemption", "preemptionAlgorithm"),
    _PROFILE,
    assumed("no extender is asked", "extenders"),
    assumed("a pod waits 1 s before it is tried again", "podInitialBackoffSeconds", usual=(1,)),
    assumed("a pod waits 10 s at most before it is tried again", "podMaxBackoffSeconds", usual=(10,)),
    harmless(
        "it says how the scheduler runs, not what it decides",
        "algorithmSource", "bindTimeoutSeconds", "clientConnection", "delayCacheUntilActive",
        "enableContentionProfiling", "enableProfiling", "hardPodAffinitySymmetricWeight",
        "healthzBindAddress", "leaderElection", "metricsBindAddress", "parallelism", "schedulerName",
    ),
)  # fmt: skip
