"""States how a replay treats the fields of Kueue's Configuration.

Kueue decodes a Configuration strictly, so harness rejects unknown fields in it, too.
"""

from __future__ import annotations

from harness.cluster.coverage.verdicts import Coverage, Row, assumed, harmless, modelled, only
from harness.cluster.kinds.kueue_configuration import GATES

_CONTROLLER = ("controller", "health", "leaderElection", "metrics", "pprofBindAddress", "tls", "webhook")
"""The fields that the configuration of every controller manager has, in addition to Kueue's own fields."""

_JOBS = "the trace contains the jobs and their queues"
_HERE = "Kueue sends no job to another cluster, so all jobs run in this cluster"
_RUNS = "it influences how Kueue runs, but not what Kueue decides"
_FIRST: list[Row] = [
    *modelled("fairSharing.enable", "waitForPodsReady.enable"),
    *harmless(_JOBS, "integrations.podOptions"),
    *harmless(_RUNS, "queueVisibility"),
]
"""The fields that exist only in v1beta1."""

_SECOND: list[Row] = [
    *assumed(
        "as with BlockUndeclared, a workload that requests a resource without any quota is not admitted",
        "resources.quotaCheckStrategy",
        usual=("BlockUndeclared",),
    ),
    *assumed(
        "harness does not know the amounts of devices of these classes, and counts them as zero",
        "resources.deviceClassMappings[].sources",
    ),
    *assumed(_HERE, "multiKueue.clusterProfile"),
    *assumed(_HERE, "multiKueue.incrementalDispatcherConfig.stepSize", usual=(3,)),
    *harmless(_RUNS, "visibilityServer"),
]
"""The fields that exist only in v1beta2."""

CONFIGURATION = Coverage(
    harmless("it names the file", "apiVersion", "kind"),
    modelled("fairSharing.preemptionStrategies"),
    modelled("admissionFairSharing.(usageHalfLifeTime|usageSamplingInterval|resourceWeights{})"),
    modelled(*(f"featureGates{{{gate}}}" for gate in GATES)),
    assumed("the feature gate has its default value in Kueue", "featureGates{}"),
    modelled(
        "waitForPodsReady.(timeout|recoveryTimeout|blockAdmission)",
        "waitForPodsReady.requeuingStrategy.(timestamp|backoffLimitCount|backoffBaseSeconds|backoffMaxSeconds)",
    ),
    modelled(
        "resources.excludeResourcePrefixes",
        "resources.transformations[].(input|strategy|multiplyBy|outputs{})",
        "resources.deviceClassMappings[].(name|deviceClassNames)",
    ),
    assumed(_HERE, "multiKueue.gcInterval", usual=("1m", "1m0s")),
    assumed(_HERE, "multiKueue.origin", usual=("multikueue",)),
    assumed(_HERE, "multiKueue.workerLostTimeout", usual=("15m", "15m0s")),
    assumed(_HERE, "multiKueue.dispatcherName", usual=("kueue.x-k8s.io/multikueue-dispatcher-all-at-once",)),
    assumed(_HERE, "multiKueue.externalFrameworks[].name"),
    harmless(
        _JOBS,
        "manageJobsWithoutQueueName",
        "managedJobsNamespaceSelector",
        "integrations.(frameworks|externalFrameworks|labelKeysToCopy)",
    ),
    harmless(
        "Kueue only deletes finished or deactivated workloads by it, and they no longer matter",
        "objectRetentionPolicies.workloads.(afterFinished|afterDeactivatedByKueue)",
    ),
    harmless(
        _RUNS,
        "namespace",
        "internalCertManagement.(enable|webhookServiceName|webhookSecretName)",
        "clientConnection.(qps|burst)",
        *_CONTROLLER,
    ),
    only(["v1beta1"], _FIRST),
    only(["v1beta2"], _SECOND),
    strict=True,
)
