"""Models the scheduling cycle of one pod, with the feasible nodes, their scores, and the chosen node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, final

from harness.base.memo import Memo
from harness.cluster.kinds.scheduler_configuration import (
    USUAL_STRATEGY,
    SchedulerConfiguration,
    ScoringStrategy,
)
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.device_policies import DevicePolicy, device_policy
from harness.models.kube.placement.fit_scores import fit_score
from harness.models.kube.placement.interpod import AffinityRules, AffinityState
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.placement.scores import score_nodes
from harness.models.kube.placement.shape_nodes import FITS, NO_KEY, ShapeNodes, rank_of
from harness.models.kube.placement.soft_scores import attracts, pod_affinity, soft_spread
from harness.models.kube.placement.spread import SpreadRules, SpreadState
from harness.models.kube.placement.status import Code, Status
from harness.models.kube.placement.trial import NOTHING, PreFilter, Trial
from harness.models.kube.pod import PodInfo, Shape, Template, Templates

_FEW_NODES = 100
_LEAST_PERCENTAGE = 5
_MOST_RULES = 256
_MOST_SHAPES = 2048
"""The maximum number of shapes to cache. More shapes would use too much memory on large clusters."""


def scheduling_of(
    cache: Cache, templates: Templates, configuration: SchedulerConfiguration, percentage: int | None = None
) -> Scheduling:
    """Returns the `Scheduling` for a configuration.

    Args:
        cache: the nodes and pods.
        templates: the templates of pods.
        configuration: the KubeSchedulerConfiguration fields that are used.
        percentage: `percentageOfNodesToScore`, which overrides the value in the configuration.
    """
    if configuration.devices.seed is not None:
        cache.draw_order(configuration.devices.seed)
    return Scheduling(
        cache,
        percentage=configuration.percentage_of_nodes_to_score if percentage is None else percentage,
        hard_affinity_weight=configuration.hard_pod_affinity_weight,
        scoring=configuration.scoring,
        devices=device_policy(configuration.devices, templates),
    )


@final
class Diagnosis:
    """The reasons why nodes rejected a pod.

    Attributes:
        pod: the pod.
        state: the counts of other pods for topology spread and affinity.
        nodes: for each node, the results that depend only on the pod's shape and the node.
        statuses: maps the position of a node to its rejection, if the rejection has another reason, such as
            affinity or nominated pods.
        all_nodes: all nodes by position.
    """

    __slots__ = ("all_nodes", "nodes", "pod", "state", "statuses")

    def __init__(
        self,
        pod: PodInfo,
        state: PreFilter,
        nodes: ShapeNodes,
        statuses: Mapping[int, Status],
        all_nodes: Sequence[NodeInfo],
    ) -> None:
        self.pod = pod
        self.state = state
        self.nodes = nodes
        self.statuses = statuses
        self.all_nodes = all_nodes

    def status(self, node: NodeInfo) -> Status:
        """Returns the reason why a node rejected the pod."""
        status = self.statuses.get(node.position) or self.nodes.status(node)
        assert status is not None, "a pod that fits was rejected"
        return status

    @property
    def rejecting(self) -> frozenset[str]:
        """The plugins that rejected the pod on any node."""
        if self._one_by_one:
            return frozenset(self.status(node).plugin for node in self.all_nodes)
        rejecting = self.nodes.rejecting()
        if self.statuses:
            rejecting = rejecting.union([status.plugin for status in self.statuses.values()])
        return rejecting

    @property
    def by_nodes_alone(self) -> bool:
        """True if affinity, topology spread, nominations and host ports did not cause any rejection."""
        return not self.statuses and not self.pod.template.shape.ports

    @property
    def potential(self) -> Sequence[int]:
        """The positions of the nodes on which preemption may help, in order."""
        if self._one_by_one:
            return [node.position for node in self.all_nodes if self.status(node).code is Code.UNSCHEDULABLE]
        return self.nodes.unschedulable()

    @property
    def _one_by_one(self) -> bool:
        """True if filters other than NodeResourcesFit could have caused `statuses`."""
        return bool(self.statuses) and (self.state is not NOTHING or bool(self.pod.template.shape.ports))


class Examination(NamedTuple):
    """The result of examining nodes one by one: the feasible nodes, and the rejections by position."""

    feasible: list[NodeInfo]
    statuses: dict[int, Status]
    looked_at: int


@final
class Scheduling:
    """Finds a node for a pod.

    Args:
        cache: the nodes and pods.
        percentage: `percentageOfNodesToScore`. If it is 0, it is derived from the number of nodes.
        hard_affinity_weight: the number that a required affinity of a bound pod adds to the score of
            InterPodAffinity.
        scoring: how NodeResourcesFit scores nodes.
        devices: the policy that chooses devices and can score nodes. If it is None, only kube-scheduler's
            plugins score nodes.

    Attributes:
        wanted: the number of feasible nodes after which a search ends.
        start: the position of the node at which the next search starts.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        percentage: int = 0,
        hard_affinity_weight: int = 1,
        scoring: ScoringStrategy = USUAL_STRATEGY,
        devices: DevicePolicy | None = None,
    ) -> None:
        self.cache = cache
        self._devices = devices
        self._percentage = percentage
        self._scoring = scoring
        self._hard_weight = hard_affinity_weight
        self.start = 0
        self._shapes: dict[Shape, ShapeNodes] = {}
        self._rules: Memo[object, NodeRules] = Memo(_MOST_RULES)
        self._resources = -1
        self._spreads: dict[tuple[Template, bool], SpreadRules] = {}
        self._affinities: dict[Template, AffinityRules] = {}
        self.renew()

    def renew(self) -> None:
        """Drops all cached results about nodes, because nodes or their order have changed."""
        cache, devices = self.cache, self._devices
        if self._resources != len(cache.names):  # shapes have vectors over all resources
            self._resources = len(cache.names)
            self._fit_score = fit_score(self._scoring, cache.resources)
            self._shapes.clear()
        if devices is not None:
            devices.follow(cache.nodes)
            self._shapes.clear()
            for node in cache.nodes:
                node.chooser = devices
            if devices.scores:
                self._fit_score = devices.score
        self.wanted = nodes_to_find(len(cache.nodes), self._percentage)
        self._spreads.clear()

    def schedule(self, pod: PodInfo) -> NodeInfo | Diagnosis:
        """Returns the node for a pod, or the reasons why no node fits."""
        template, cache = pod.template, self.cache
        if self._devices is not None and self._devices.learn():
            self._shapes.clear()
        alone = template.alone and not cache.repelling and not cache.attracting
        state, nodes = NOTHING if alone else self.pre_filter(pod), self.shape_nodes(template.shape)
        failed: dict[int, Status] = {}
        if pod.nominated:
            node = cache.by_name.get(pod.nominated)
            if node is not None:
                status = self.filter(pod, node, state, nodes)
                if status is None:
                    return node
                failed[node.position] = status
        by_nodes = alone or (state is NOTHING and not (template.soft_spread or self._attracted(template)))
        if by_nodes and not nodes.rules.varied:
            return self._by_key(pod, nodes, failed)
        found = self.examine(pod, state, nodes)
        self._advance(found.looked_at, failed, nodes.rules.named)
        if not found.feasible:
            return Diagnosis(pod, state, nodes, found.statuses, cache.nodes)
        if len(found.feasible) == 1:
            return found.feasible[0]
        if self._devices is not None and self._devices.draws:
            key = self._devices.draw([node.rank for node in found.feasible], cache.version)
            return cache.by_rank[key]
        totals = [sum(scores.values()) for scores in self.scores(pod, found.feasible)]
        _, _, node = min(
            (-total, node.rank, node) for total, node in zip(totals, found.feasible, strict=True)
        )
        return node

    def _by_key(self, pod: PodInfo, nodes: ShapeNodes, failed: Mapping[int, Status]) -> NodeInfo | Diagnosis:
        """Schedules a pod for which only nodes and their nominations matter, as for nearly all pods."""
        cache = self.cache
        rejected = self._rejected_for_nominated(pod, nodes) if cache.expecting else {}
        hidden = nodes.hide(rejected) if rejected else ()
        key, total = NO_KEY, len(cache.nodes)
        looked_at = total
        if FITS in nodes.kinds:
            if self._devices is not None and self._devices.draws:
                key = self._devices.draw(nodes.keys(0, total), cache.version)
            elif self.wanted >= total:
                key = nodes.best(0, total)
            else:
                start = self.start % total  # `start` remains the same number when nodes change
                looked_at = nodes.reach(start, self.wanted)
                key = nodes.best(start, looked_at)
        if looked_at < total or (nodes.rules.named is not None and self.wanted < total):
            self._advance(looked_at, failed, nodes.rules.named)
        if hidden:
            nodes.restore(hidden)
        if key == NO_KEY:
            return Diagnosis(pod, NOTHING, nodes, rejected, cache.nodes)
        return cache.by_rank[rank_of(key)]

    def _rejected_for_nominated(self, pod: PodInfo, nodes: ShapeNodes) -> dict[int, Status]:
        """Returns why nodes reject the pod if the pods nominated to them count as bound, by position.

        A node with too few free resources is skipped if nominated pods cannot add a reason.
        """
        rejected: dict[int, Status] = {}
        shape = pod.template.shape
        for node in self.cache.expecting:
            position = node.position
            if nodes.fits(position) or (nominated_may_add(shape, node) and nodes.ruled_out(position) is None):
                status = self._with_nominated(pod, node, NOTHING)
                if status is not None:
                    rejected[position] = status
        return rejected

    def examine(self, pod: PodInfo, state: PreFilter, nodes: ShapeNodes) -> Examination:
        """Examines nodes one by one until enough of them fit."""
        every, start = self.cache.nodes, self.start
        feasible: list[NodeInfo] = []
        statuses: dict[int, Status] = {}
        for looked_at in range(len(every)):
            node = every[(start + looked_at) % len(every)]
            status = self.filter(pod, node, state, nodes)
            if status is not None:
                statuses[node.position] = status
            elif len(feasible) == self.wanted:
                return Examination(feasible, statuses, looked_at)
            else:
                feasible.append(node)
        return Examination(feasible, statuses, len(every))

    def _advance(self, looked_at: int, failed: Iterable[int], named: int | None) -> None:
        """Sets the start of the next search to the end of this search.

        Nominated nodes that failed count, too. If node affinity names nodes, the search examines only these
        nodes.
        """
        total = len(self.cache.nodes)
        if named is not None:
            looked_at, failed = named, ()
        for position in failed:
            if (position - self.start) % total >= looked_at:
                looked_at += 1
        self.start = (self.start + looked_at) % total if total else 0

    def moves_on(self, nodes: ShapeNodes) -> bool:
        """Returns True if even failed attempts move the start of the next search, so none may be skipped."""
        return bool(nodes.rules.named) and self.wanted < len(self.cache.nodes)

    # --- filters ------------------------------------------------------------------------------------------

    def pre_filter(self, pod: PodInfo) -> PreFilter:
        """Counts bound pods for the filters PodTopologySpread and InterPodAffinity.

        A filter that cannot reject the pod gets None instead of counts.
        """
        template = pod.template
        spec = template.spec
        spread = SpreadState(self._spread_rules(template, required=True)) if template.spread else None
        affinity = None
        if spec.affinity or spec.anti_affinity or self._unwanted(template):
            affinity = AffinityState(self._affinity_rules(template), self.cache)
        return NOTHING if spread is None and affinity is None else PreFilter(spread, affinity)

    def _unwanted(self, template: Template) -> bool:
        """Returns True if a bound pod has a required anti-affinity term that matches pods of the template."""
        repelling = self.cache.repelling
        if not repelling:
            return False
        rules = self._affinity_rules(template)
        return any(rules.effect(other).unwanted for other in repelling)

    def filter(self, pod: PodInfo, node: NodeInfo, state: PreFilter, nodes: ShapeNodes) -> Status | None:
        """Returns the rejection by the first filter that rejects the node, or None.

        As in kube-scheduler, the node must pass all filters both with and without its nominated pods.
        """
        status = nodes.ruled_out(node.position)
        if status is None:
            status = self._with_nominated(pod, node, state)
        if status is None:
            status = nodes.status(node)
        if status is None and state is not NOTHING:
            status = state.filter(node)
        return status

    def _with_nominated(self, pod: PodInfo, node: NodeInfo, state: PreFilter) -> Status | None:
        """Returns the rejection if nominated pods of the same or a higher priority count as bound."""
        nominated = nominated_before(pod, node)
        if not nominated:
            return None
        trial = Trial(pod, node, state, self.cache.names)
        for other in nominated:
            trial.add(other)
        return trial.filter()

    # --- scores -------------------------------------------------------------------------------------------

    def scores(self, pod: PodInfo, feasible: Sequence[NodeInfo]) -> list[dict[str, int]]:
        """Returns the weighted score of each plugin for each feasible node."""
        template = pod.template
        nodes = self.shape_nodes(template.shape)
        scores = score_nodes(template.shape, nodes, feasible, self._fit_score)
        if template.soft_spread:
            rules = self._spread_rules(template, required=False)
            for found, score in zip(scores, soft_spread(rules, self.cache, feasible), strict=True):
                found["PodTopologySpread"] = score
        if self._attracted(template):
            affinity = self._affinity_rules(template)
            points = pod_affinity(affinity, self.cache, feasible, self._hard_weight)
            for found, score in zip(scores, points, strict=True):
                found["InterPodAffinity"] = score
        return scores

    def _attracted(self, template: Template) -> bool:
        """Returns True if InterPodAffinity scores nodes because of terms of the pod or of bound pods."""
        if template.spec.preferred_pods:
            return True
        attracting = self.cache.attracting
        if not attracting:
            return False
        rules = self._affinity_rules(template)
        return any(attracts(rules, other) for other in attracting)

    # --- what is kept -------------------------------------------------------------------------------------

    def any_fits(self, shape: Shape) -> bool:
        """Returns True if a shape fits on any node, apart from rules about other pods."""
        return (self._shapes.get(shape) or self.shape_nodes(shape)).any_fits()

    def shape_nodes(self, shape: Shape) -> ShapeNodes:
        """Returns up-to-date results of a shape on all nodes."""
        nodes = self._shapes.pop(shape, None)
        if nodes is None:
            if len(self._shapes) >= _MOST_SHAPES:
                del self._shapes[next(iter(self._shapes))]
            rules = self._rules.get(shape.rules)
            if rules is None:
                rules = self._rules[shape.rules] = NodeRules(shape, self.cache)
            balances = self._devices is None or not self._devices.scores
            nodes = ShapeNodes(shape, self.cache, self._fit_score, rules, balances=balances)
        self._shapes[shape] = nodes  # the most recently used shape is last
        nodes.refresh()
        return nodes

    def _spread_rules(self, template: Template, *, required: bool) -> SpreadRules:
        rules = self._spreads.get((template, required))
        if rules is None:
            constraints = template.spread if required else template.soft_spread
            rules = self._spreads[template, required] = SpreadRules(template, constraints, self.cache)
        return rules

    def _affinity_rules(self, template: Template) -> AffinityRules:
        rules = self._affinities.get(template)
        if rules is None:
            rules = self._affinities[template] = AffinityRules(template, self.cache.labels_of)
        return rules


def nominated_may_add(shape: Shape, node: NodeInfo) -> bool:
    """Returns True if pods that are nominated to a full node may give it another reason to reject a shape."""
    return shape.asks_for_several or node.slots <= len(node.nominated)


def nominated_before(pod: PodInfo, node: NodeInfo) -> list[PodInfo]:
    """Returns the pods nominated to a node that count as already bound when the scheduler tries this pod.

    These are the other nominated pods with the same or a higher priority.
    """
    return [other for other in node.nominated if other.keeps >= pod.priority and other is not pod]


def nodes_to_find(total: int, percentage: int) -> int:
    """Returns the number of feasible nodes after which a search ends, so that it does not visit all nodes."""
    if total < _FEW_NODES:
        return total
    if percentage == 0:
        percentage = max(_LEAST_PERCENTAGE, 50 - total // 125)
    return max(_FEW_NODES, total * percentage // 100)
