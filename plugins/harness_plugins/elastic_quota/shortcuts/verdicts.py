"""Predicts why pods of a quota fail, from their requests and the current usage of quotas and nodes.

Pods with the same quota, priority and rules about nodes differ only in their requests. A quota refuses all
pods that exceed one of its limits. If it admits a pod, the pod fails as long as no node has enough free
resources. In both cases, there must be no pod that it may preempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import gt
from typing import NamedTuple, TypeAlias, final

from harness.models.cluster import UNLIMITED
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import Bound, Excess
from harness.models.kube.gangs import Gang
from harness.models.kube.most_room import MostRoom
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import PodInfo, Shape, Verdicts
from harness.models.told import Told
from harness_plugins.elastic_quota.failure import PLUGIN, in_words
from harness_plugins.elastic_quota.quota_request import Nominated, QuotaRequest, Taken, with_amounts
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules


class World(NamedTuple):
    """The parts of a scheduler on which a refusal depends."""

    rules: Rules
    usage: QuotaUsage
    nominated: Nominated
    scheduling: Scheduling
    said: Mapping[Gang, Told]


Limit: TypeAlias = tuple[int, int, frozenset[str]]
"""What a limit allows, the index of the resource, and the plugins that the limit stands for."""

_ABSENT = -1  # the index of a resource that the pods do not request


@final
class QuotaVerdicts:
    """The `Verdicts` on pods of one quota and priority, whose requests name the same resources.

    Args:
        pod: one of the pods.
        quota: the quota, which depends on no runtime.
        nodes: the rules of the pods about nodes.
        preempts: whether the pods ever preempt others.

    Attributes:
        shapes: some of the pods' different shapes.
    """

    def __init__(self, pod: PodInfo, quota: Quota, nodes: NodeRules, world: World, *, preempts: bool) -> None:
        self._rules, self._usage, self._nominated, scheduling, _ = world
        self._cache = cache = scheduling.cache
        self.shapes: set[Shape] = set()
        self._pod = pod
        self._quota = quota
        self._preempts = preempts
        self._names = {name: cache.resources[name] for name in self._usage.amounts(pod)}
        self._nothing: Amounts = dict.fromkeys(self._names, 0)
        # Two objects, because each keeps what it returned last.
        self._free_since = MostRoom(cache, nodes, None, pod.priority)
        self._free = MostRoom(cache, nodes, None, pod.priority)
        self.by_nodes = nodes.ruled_out_by | {NODE_RESOURCES_FIT}
        self._by_limit: dict[Bound, frozenset[str]] = {}
        # What all verdicts at one version have in common, see `_look`.
        self._at = -1
        self._limits: list[Limit] = []
        self._may_preempt = self._by_others = False
        self._largest: Sequence[int] = ()
        # For each resource, the largest amount with which a pod claims the guarantee. Empty if no pod does.
        self._claimable: list[int] = []

    @property
    def version(self) -> int:
        """See `Verdicts`."""
        return self._cache.version

    def rejecting(self, least: Sequence[int], most: Sequence[int], seen: int) -> frozenset[str] | None:
        """See `Verdicts`."""
        if self._at != self._cache.version:
            self._look()
        if self._may_preempt or (self._claimable and not any(map(gt, least, self._claimable))):
            return None
        for left, resource, rejecting in self._limits:
            if least[resource] > left:
                return rejecting
            if most[resource] > left:
                return None
        return None if self._by_others or self._may_fit(least, seen) else self.by_nodes

    def _may_fit(self, least: Sequence[int], seen: int) -> bool:
        cache = self._cache
        if not self._largest:
            self._largest = [max(cache.free_of(place), default=0) for place in range(len(cache.names))]
        if seen != cache.version and any(map(gt, least, self._largest)):
            return False
        free = self._free if seen < 0 else self._free_since
        for room in free.since(seen):  # noqa: SIM110 `any` of a generator takes twice as long
            if not any(map(gt, least, room)):
                return True
        return False

    def _look(self) -> None:
        cache, usage, quota, pod = self._cache, self._usage, self._quota, self._pod
        self._at = cache.version
        self._may_preempt = self._preempts and usage.has_lower(quota, pod.priority)
        if self._may_preempt:
            return  # nothing else matters
        taken = with_amounts(self._nothing, self._nominated.beside(quota, pod.priority))
        self._limits = self._limits_beside(taken)
        rules, self._claimable = self._rules, []
        if (
            self._preempts
            and rules.reclaims(quota, taken.in_quota, self._nothing)
            and rules.why_never(QuotaRequest(pod, quota), reclaims=True) is None
        ):
            self._claimable = [UNLIMITED] * len(cache.names)
            for name, resource in self._names.items() if not rules.by_usage else ():
                self._claimable[resource] = quota.unused_min(name) - taken.in_quota[name]
        self._by_others = bool(cache.repelling or (cache.expecting and cache.attracting))
        self._largest = ()  # computed when it is needed

    def _limits_beside(self, taken: Taken) -> list[Limit]:
        """Returns the limits in the order of checks."""
        limits, lowest = list[Limit](), {_ABSENT: 0}
        names = self._names
        lefts = self._usage.tree.lefts(self._quota, taken.in_quota, taken.shared, taken.in_all)
        for quota, name, left in lefts:
            place = names.get(name, _ABSENT)
            if left < lowest.get(place, UNLIMITED):  # otherwise an earlier limit is exceeded first
                lowest[place] = left
                bound = ("min", "", name) if quota is None else ("max", quota.name, name)
                # Every pod exceeds what is below 0.
                limits.append((left, max(place, 0), self._of_limit(bound)))
        return limits

    def _of_limit(self, bound: Bound) -> frozenset[str]:
        """Returns the plugins that a limit stands for."""
        found = self._by_limit.get(bound)
        if found is None:
            found = frozenset((PLUGIN, NODE_RESOURCES_FIT, in_words(Excess(*bound, 0))))
            self._by_limit[bound] = found
        return found


@final
class Foreseen:
    """The failure of a pod for which there are verdicts. See `harness.models.kube.pod.LastingRefusal`.

    Attributes:
        spared: see `LastingQuotaRefusal`.
    """

    keeps_figures = True
    most_room: MostRoom | None = None

    def __init__(self, verdicts: Verdicts, amounts: Sequence[int]) -> None:
        self.verdicts: Verdicts | None = verdicts
        self.amounts = amounts
        self.spared: PodInfo | None = None
        self._verdicts = verdicts
        self._seen = -1  # the version at which no node had enough resources for the pod

    def holds(self, pod: PodInfo) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        verdicts, amounts = self._verdicts, self.amounts
        rejecting = verdicts.rejecting(amounts, amounts, self._seen)
        if rejecting == verdicts.by_nodes:
            self._seen = verdicts.version
        if rejecting != pod.peers.rejected_by:
            return False
        self.spared = pod
        return True

    def outlives_nodes(self) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        return False
