"""What of a KubeSchedulerConfiguration changes decisions here."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.cluster.fields import Fields


PREEMPTION_ALGORITHMS = MappingProxyType(
    {"Auto": "auto", "Default": "default-preemption", "ElasticQuota": "elasticquota", "None": "none"}
)
"""What ACK's `preemptionAlgorithm` may be, and the plugin that does so."""


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A KubeSchedulerConfiguration with one profile; the defaults are kube-scheduler's.

    Attributes:
        percentage_of_nodes_to_score: 0 lets the size of the cluster decide.
        disable_preemption: whether the plugin DefaultPreemption is off.
        min_candidate_nodes_percentage, min_candidate_nodes_absolute: how many of the potential nodes a
            preemption examines: the larger of both.
        hard_pod_affinity_weight: what a required affinity of a running pod adds to a node's score.
        preemption_algorithm: ACK's choice of the policy that preempts; None when it says nothing, which
            stands for Auto: ElasticQuota where it takes effect, else Default.
    """

    percentage_of_nodes_to_score: int = 0
    disable_preemption: bool = False
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    hard_pod_affinity_weight: int = 1
    preemption_algorithm: str | None = None

    @property
    def plugin(self) -> str:
        """The plugin that preempts as the configuration says."""
        return PREEMPTION_ALGORITHMS[self.preemption_algorithm or "Auto"]


_HARMLESS = (
    "apiVersion", "clientConnection", "delayCacheUntilActive", "enableContentionProfiling",
    "enableProfiling", "healthzBindAddress", "kind", "leaderElection", "metadata", "metricsBindAddress",
    "parallelism",
)  # fmt: skip


_PREEMPTS = ("DefaultPreemption", "*")
_MODELLED = MappingProxyType({"postFilter": _PREEMPTS, "multiPoint": ("DefaultPreemption",)})
"""What may be disabled at a point: after the filters there is DefaultPreemption alone, at all points more."""


def read_scheduler_configuration(fields: Fields, warn: Callable[[str], None]) -> SchedulerConfiguration:
    """A KubeSchedulerConfiguration; what it says beyond the model stays unread, to be warned of.

    Args:
        fields: of the object.
        warn: hears in a sentence what a field that is read asks for beyond the model.
    """
    fields.ignore(*_HARMLESS)
    percentage = fields.integer("percentageOfNodesToScore", least=0, most=100)
    disabled = fields.boolean("disablePreemption")
    algorithm = _algorithm(fields, None)
    candidates, nodes, weight = 10, 100, 1
    profiles = fields.items("profiles")
    if len(profiles) > 1:
        fields.fault("profiles", "one scheduler is modelled: give one profile")
    for profile in profiles[:1]:
        profile.ignore("schedulerName")
        percentage = profile.integer("percentageOfNodesToScore", percentage, least=0, most=100)
        plugins = profile.child("plugins")
        for point in ("postFilter", "multiPoint"):
            for plugin in plugins.child(point).items("disabled"):
                name = plugin.string("name")
                disabled = disabled or name in _PREEMPTS
                if name not in _MODELLED[point]:
                    warn(f"profiles[].plugins.{point}.disabled: {name} is not modelled and stays on")
        for config in profile.items("pluginConfig"):
            args = config.child("args")
            args.ignore("apiVersion", "kind")
            algorithm = _algorithm(args, algorithm)
            match config.string("name"):
                case "DefaultPreemption":
                    candidates = args.integer("minCandidateNodesPercentage", candidates, least=0, most=100)
                    nodes = args.integer("minCandidateNodesAbsolute", nodes, least=0)
                case "InterPodAffinity":
                    weight = args.integer("hardPodAffinityWeight", weight, least=0, most=100)
    return SchedulerConfiguration(percentage, disabled, candidates, nodes, weight, algorithm)


def _algorithm(fields: Fields, default: str | None) -> str | None:
    """The `preemptionAlgorithm`, which must be given as one of those that there are; else the default."""
    if "preemptionAlgorithm" not in fields:
        return default
    return fields.choice("preemptionAlgorithm", tuple(PREEMPTION_ALGORITHMS), "Auto")
