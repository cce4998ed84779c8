"""What of a KubeSchedulerConfiguration changes decisions here."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.cluster.coverage.scheduling import IDLE_PLUGINS, MODELLED_PLUGINS
from harness.cluster.model import NEWER
from harness.cluster.pod_reading import read_scheduler

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
        scheduler_name: what pods call it; "" for Kubernetes' default scheduler.
    """

    percentage_of_nodes_to_score: int = 0
    disable_preemption: bool = False
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    hard_pod_affinity_weight: int = 1
    preemption_algorithm: str | None = None
    scheduler_name: str = field(default="", metadata=NEWER)

    @property
    def plugin(self) -> str:
        """The plugin that preempts as the configuration says."""
        return PREEMPTION_ALGORITHMS[self.preemption_algorithm or "Auto"]


_PREEMPTION = "DefaultPreemption"
_ALL = "*"


def read_scheduler_configuration(fields: Fields, warn: Callable[[str], None]) -> SchedulerConfiguration:
    """A KubeSchedulerConfiguration.

    Args:
        fields: of the object.
        warn: hears in a sentence which plugin stays on that it switches off.
    """
    percentage = fields.integer("percentageOfNodesToScore", least=0, most=100)
    disabled = fields.boolean("disablePreemption")
    algorithm = _algorithm(fields, None)
    candidates, nodes, weight, name = 10, 100, 1, ""
    profiles = fields.items("profiles")
    if len(profiles) > 1:
        fields.fault("profiles", "one scheduler is modelled: give one profile")
    for profile in profiles[:1]:
        percentage = profile.integer("percentageOfNodesToScore", percentage, least=0, most=100)
        name = read_scheduler(profile)
        disabled = _without_preemption(profile.child("plugins"), warn) or disabled
        for config in profile.items("pluginConfig"):
            args = config.child("args")
            algorithm = _algorithm(args, algorithm)
            match config.string("name"):
                case "DefaultPreemption":
                    candidates = args.integer("minCandidateNodesPercentage", candidates, least=0, most=100)
                    nodes = args.integer("minCandidateNodesAbsolute", nodes, least=0)
                case "InterPodAffinity":
                    weight = args.integer("hardPodAffinityWeight", weight, least=0, most=100)
    return SchedulerConfiguration(percentage, disabled, candidates, nodes, weight, algorithm, name)


def _without_preemption(plugins: Fields, warn: Callable[[str], None]) -> bool:
    """Whether a profile's plugins are without DefaultPreemption; hears of others that it is to be without.

    What is enabled at a point by its name is on, also where all are disabled. What one point says counts
    before what is said of all points.
    """
    off: dict[str, set[str]] = {}
    on: dict[str, set[str]] = {}
    for point in ("multiPoint", "postFilter"):
        of_point = plugins.child(point)
        on[point] = {plugin.string("name") for plugin in of_point.items("enabled")}
        off[point] = {plugin.string("name") for plugin in of_point.items("disabled")} - on[point]
    every = MODELLED_PLUGINS if _ALL in off["multiPoint"] else tuple(sorted(off["multiPoint"]))
    for name in every:
        if name not in (*on["multiPoint"], *IDLE_PLUGINS, _PREEMPTION):
            warn(f"profiles[].plugins.multiPoint.disabled: {name} is not modelled and stays on")
    for name in sorted(off["postFilter"] - {_PREEMPTION, _ALL}):
        warn(f"profiles[].plugins.postFilter.disabled: {name} is not modelled and stays on")
    if _PREEMPTION in on["postFilter"]:
        return False
    at_all = _PREEMPTION not in on["multiPoint"] and bool(off["multiPoint"] & {_PREEMPTION, _ALL})
    return at_all or bool(off["postFilter"] & {_PREEMPTION, _ALL})


def _algorithm(fields: Fields, default: str | None) -> str | None:
    """The `preemptionAlgorithm`, which must be given as one of those that there are; else the default."""
    if "preemptionAlgorithm" not in fields:
        return default
    return fields.choice("preemptionAlgorithm", tuple(PREEMPTION_ALGORITHMS), "Auto")
