"""Reads the parts of a KubeSchedulerConfiguration that affect decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType

from harness.base.values import Value, fixed
from harness.cluster.coverage.scheduling import IDLE_PLUGINS, MODELLED_PLUGINS
from harness.cluster.draft import Draft
from harness.cluster.kinds.pod_reading import read_scheduler
from harness.cluster.kinds.pods import DEFAULT_SCHEDULER
from harness.cluster.model import NEWER
from harness.cluster.yaml.fields import Fields

PREEMPTION_ALGORITHMS = MappingProxyType(
    {"Auto": "auto", "Default": "default-preemption", "ElasticQuota": "elasticquota", "None": "none"}
)
"""Maps each value of ACK's `preemptionAlgorithm` to its plugin."""


LEAST_ALLOCATED, MOST_ALLOCATED, BY_RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"


@fixed()
class ScoringStrategy(Value):
    """How the plugin NodeResourcesFit scores nodes.

    Attributes:
        kind: whether nodes with fewer allocated resources score higher, nodes with more allocated resources
            score higher, or `shape` determines the score.
        resources: the resources that count, with their weights.
        shape: the points of a line. Each point has an allocated percentage of a resource and a score from 0
            to 10.
    """

    kind: str = LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: tuple[tuple[int, int], ...] = ()


USUAL_STRATEGY = ScoringStrategy()

DEVICE_POLICIES = (
    "binpack", "spread", "best-fit", "dot-product", "packing", "clustering", "fgd", "random",
)  # fmt: skip
"""The policies for placing pods on devices. The first policy is the default."""


@fixed()
class DevicePlacement(Value):
    """How nodes are scored and devices are chosen for pods that share GPUs.

    Attributes:
        policy: one of `DEVICE_POLICIES`.
        seed: the seed for the order of equal nodes and for the policy `random`. None means that equal nodes
            are sorted by name, and that `random` uses seed 0.
    """

    policy: str = DEVICE_POLICIES[0]
    seed: int | None = None


USUAL_PLACEMENT = DevicePlacement()


@fixed()
class SchedulerConfiguration(Value):
    """The modelled fields of a KubeSchedulerConfiguration, with the settings of one of its profiles.

    Absent fields have kube-scheduler's defaults.

    Attributes:
        percentage_of_nodes_to_score: if it is 0, the percentage depends on the size of the cluster.
        disable_preemption: whether the plugin DefaultPreemption is off.
        min_candidate_nodes_percentage, min_candidate_nodes_absolute: the minimum number of nodes that a
            preemption considers as candidates. The larger of the two numbers applies.
        hard_pod_affinity_weight: how much the required affinity of a running pod raises the score of a node.
        preemption_algorithm: the algorithm that ACK uses for preemption. None means Auto, which is
            ElasticQuota if quotas are in effect, and Default otherwise.
        scheduler_name: the name by which pods choose this scheduler, or "" for Kubernetes' default scheduler.
        scoring: how NodeResourcesFit scores nodes.
        devices: how pods that share GPUs are placed. Upstream has no such argument.
        other_names: the names of the other profiles, in the same form as `scheduler_name`.
    """

    percentage_of_nodes_to_score: int = 0
    disable_preemption: bool = False
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    hard_pod_affinity_weight: int = 1
    preemption_algorithm: str | None = None
    scheduler_name: str = field(default="", metadata=NEWER)
    scoring: ScoringStrategy = field(default=USUAL_STRATEGY, metadata=NEWER)
    devices: DevicePlacement = field(default=USUAL_PLACEMENT, metadata=NEWER)
    other_names: tuple[str, ...] = field(default=(), metadata=NEWER)

    @property
    def plugin(self) -> str:
        """Returns the plugin that performs preemption under this configuration."""
        return PREEMPTION_ALGORITHMS[self.preemption_algorithm or "Auto"]


_PREEMPTION = "DefaultPreemption"
_ALL = "*"


def read_scheduler_configuration(fields: Fields, draft: Draft) -> None:
    """Read a KubeSchedulerConfiguration. A second KubeSchedulerConfiguration is a fault.

    The settings of the default scheduler's profile apply to the pods of all profiles. If no profile is the
    default scheduler's, the first one takes its place. A warning names each profile with other settings, and
    each plugin that the configuration disables but harness keeps enabled.
    """
    warn = partial(draft.warnings.add, "KubeSchedulerConfiguration", "")
    percentage = fields.integer("percentageOfNodesToScore", least=0, most=100)
    disabled = fields.boolean("disablePreemption")
    usual = SchedulerConfiguration(percentage, disabled, preemption_algorithm=_algorithm(fields, None))
    profiles = fields.items("profiles")
    found = [_read_profile(profile, usual, warn) for profile in profiles] or [usual]
    names = [each.scheduler_name for each in found]
    for number, (profile, name) in enumerate(zip(profiles, names, strict=False)):
        if name in names[:number]:
            profile.fault("schedulerName", f"{name or DEFAULT_SCHEDULER} is the name of another profile")
        elif len(profiles) > 1 and not profile.string("schedulerName"):
            profile.fault("schedulerName", "is missing; it may be left out only if there is one profile")
    chosen = found[names.index("") if "" in names else 0]
    others = [each for each in found if each is not chosen]
    for each in others:
        if replace(each, scheduler_name=chosen.scheduler_name) != chosen:
            settings = f"the settings of {chosen.scheduler_name or DEFAULT_SCHEDULER}"
            pods = f"the pods of {each.scheduler_name}"
            warn(f"profiles: {settings} apply to {pods}, because harness models one profile")
    chosen = replace(chosen, other_names=tuple(each.scheduler_name for each in others))
    draft.schedulers.add("", chosen, fields)


def _read_profile(
    profile: Fields, usual: SchedulerConfiguration, warn: Callable[[str], None]
) -> SchedulerConfiguration:
    """Returns the configuration with the settings of a profile."""
    percentage = usual.percentage_of_nodes_to_score
    percentage = profile.integer("percentageOfNodesToScore", percentage, least=0, most=100)
    disabled = _without_preemption(profile.child("plugins"), warn) or usual.disable_preemption
    algorithm = usual.preemption_algorithm
    candidates, nodes, weight, scoring = 10, 100, 1, USUAL_STRATEGY
    devices = USUAL_PLACEMENT
    for config in profile.items("pluginConfig"):
        args = config.child("args")
        algorithm = _algorithm(args, algorithm)
        match config.string("name"):
            case "DefaultPreemption":
                candidates = args.integer("minCandidateNodesPercentage", candidates, least=0, most=100)
                nodes = args.integer("minCandidateNodesAbsolute", nodes, least=0)
                if not candidates and not nodes:
                    what = (
                        "is 0, and so is minCandidateNodesAbsolute; kube-scheduler requires that one of "
                        "them is above 0"
                    )
                    args.fault("minCandidateNodesPercentage", what)
            case "InterPodAffinity":
                weight = args.integer("hardPodAffinityWeight", weight, least=0, most=100)
            case "NodeResourcesFit" if "scoringStrategy" in args:
                scoring = _scoring(args.child("scoringStrategy"))
            case "DeviceShare":
                policy = args.choice("placement", DEVICE_POLICIES, DEVICE_POLICIES[0])
                seed = args.integer("seed", least=0) if "seed" in args else None
                devices = DevicePlacement(policy, seed)
    name = read_scheduler(profile)
    return SchedulerConfiguration(
        percentage, disabled, candidates, nodes, weight, algorithm, name, scoring, devices
    )


def _scoring(fields: Fields) -> ScoringStrategy:
    kind = fields.choice("type", (LEAST_ALLOCATED, MOST_ALLOCATED, BY_RATIO), LEAST_ALLOCATED)
    resources = tuple(
        (item.string("name", required=True), item.integer("weight", least=0, most=100) or 1)
        for item in fields.items("resources")
    )
    shape: tuple[tuple[int, int], ...] = ()
    if kind == BY_RATIO:
        ratio = fields.child("requestedToCapacityRatio")
        shape = tuple(
            (point.integer("utilization", least=0, most=100), point.integer("score", least=0, most=10))
            for point in ratio.items("shape")
        )
        at = [utilization for utilization, _ in shape]
        if not shape or any(after <= before for before, after in pairwise(at)):
            ratio.fault("shape", "must have points with increasing utilization")
    return ScoringStrategy(kind, resources or USUAL_STRATEGY.resources, shape)


def _without_preemption(plugins: Fields, warn: Callable[[str], None]) -> bool:
    """Returns True if a profile disables DefaultPreemption, and warns about other plugins that it disables.

    A plugin that is enabled by name at an extension point is on, even if all plugins are disabled there. The
    setting for a single point overrides the setting for all points.
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
    if "preemptionAlgorithm" not in fields:
        return default
    return fields.choice("preemptionAlgorithm", tuple(PREEMPTION_ALGORITHMS), "Auto")
