"""Detects that a pod or gang fails again, because the input of its last attempt has not changed.

If no pod can be preempted, the input has two parts: the limit that refused the pod, and whether the pod fits
on a node. Sometimes pods of its own quota can be preempted, but the pod or gang would not fit even without
all of them. The input has the same two parts then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from harness.base.memo import Memo
from harness.models.elastic.quota import Quota
from harness.models.elastic.runtime_quotas import add_to
from harness.models.elastic.tree import Bound, bound_of
from harness.models.kube.devices import places
from harness.models.kube.most_room import MostRoom, amounts_of
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import LastingRefusal, PodInfo, Shape, Verdicts
from harness.models.kube.refusal import DISABLED
from harness.models.told import NOTHING_TOLD
from harness_plugins.elastic_quota.failure import QuotaRefusal
from harness_plugins.elastic_quota.quota_request import with_amounts
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.shortcuts.verdicts import Foreseen, QuotaVerdicts, World

_MOST_SHAPES = 2048
"""The maximum number of shapes to cache. More shapes would use too much memory on large clusters."""

_SEVERAL = 8  # pods with fewer different requests are judged one by one, which is then faster


@final
class Places:
    """The number of pods of each shape that fit on the nodes.

    Attributes:
        valid: whether the nodes are the same as when this object was created.
    """

    def __init__(self, scheduling: Scheduling, usage: QuotaUsage) -> None:
        self.valid = True
        self._scheduling = scheduling
        self._usage = usage
        self._kept: Memo[tuple[Shape, Quota | None, int], PlacesOfShape] = Memo(_MOST_SHAPES)

    def of(self, shape: Shape, quota: Quota | None = None, priority: int = 0) -> PlacesOfShape:
        """Returns the number of places for pods of a shape.

        If a quota is given, this is the largest number that preemption within the quota could make possible.
        All terminating pods and all pods of the quota with a lower priority count as gone. This includes pods
        that must not be preempted.
        """
        key = shape, quota, 0 if quota is None else priority
        places = self._kept.get(key)
        if places is None:
            places = self._kept[key] = PlacesOfShape(*key, self._scheduling, self._usage)
        return places


@final
class PlacesOfShape:
    """The number of equal pods that fit on the nodes. The pods have no host ports or rules about other pods.

    Equal pods that are placed one after another get all of these places, in any order of nodes. They get
    fewer places if resources are reserved for nominated pods.
    """

    __slots__ = ("_cache", "_on", "_priority", "_quota", "_ruled_out", "_seen", "_shape", "_total", "_usage")

    def __init__(
        self, shape: Shape, quota: Quota | None, priority: int, scheduling: Scheduling, usage: QuotaUsage
    ) -> None:
        self._shape = shape
        self._quota = quota
        self._priority = priority
        self._usage = usage
        self._cache = cache = scheduling.cache
        nodes = scheduling.shape_nodes(shape)
        self._ruled_out = [nodes.ruled_out(node.position) is not None for node in cache.nodes]
        self._on = [self._count(node) for node in cache.nodes]
        self._total = sum(self._on)
        self._seen = cache.version

    def now(self) -> int:
        """Returns the current number of places."""
        cache = self._cache
        if self._seen != cache.version:
            for position in cache.changed_since(self._seen):
                count = self._count(cache.nodes[position])
                self._total += count - self._on[position]
                self._on[position] = count
            self._seen = cache.version
        return self._total

    def _count(self, node: NodeInfo) -> int:
        shape, free, least = self._shape, node.free, node.slots
        if self._ruled_out[node.position] or shape.missing:
            return 0
        gone = [] if self._quota is None else [pod for pod in node.pods if self._may_be_gone(pod)]
        if gone:
            free, least = free.copy(), least + len(gone)
            for pod in gone:
                for resource, amount in pod.template.shape.requests:
                    free[resource] += amount
        requests = shape.requests
        if shape.device is not None and node.devices:
            requests, least = shape.amounts, min(least, places(node.devices_without(gone), shape.device))
        for resource, amount in requests:
            fit = free[resource] // amount
            if fit < least:
                least = fit
        return max(0, least)

    def _may_be_gone(self, pod: PodInfo) -> bool:
        if pod.terminating:
            return True
        return pod.priority < self._priority and self._usage.quota_of(pod) is self._quota


@final
class LastingQuotaRefusal:
    """The failure of a pod or gang that can preempt no pods, or not enough pods of its own quota.

    Suppose that a quota cannot claim its guarantee and has no less important pods. This remains true until
    its own pods change, because nominated pods only add to its requests.

    A pod without a quota preempts by priority. It has no victims if no less important pod is bound. Nominated
    pods only reduce the number of feasible nodes. They don't change the reason, unless bound pods have
    affinities.

    Attributes:
        spared: the last pod whose attempt was skipped, because it would have failed in the same way. None if
            the refusal of this pod is already known.
    """

    keeps_figures = True
    most_room: MostRoom | None = None
    verdicts: Verdicts | None = None
    amounts: Sequence[int] = ()

    def __init__(
        self, refusal: QuotaRefusal, pods: Sequence[PodInfo], world: World, of_nodes: Places
    ) -> None:
        rules, usage, nominated, scheduling, said = world
        self.spared: PodInfo | None = None
        self._refusal = refusal
        self._first = pods[0]
        self._pods = len(pods)
        self._quota = usage.quota_of(pods[0])
        self._asked: dict[str, int] = {}
        self._of_one_kind = True
        template = pods[0].template
        for pod in pods:
            of_pod = usage.of(pod)
            add_to(self._asked, of_pod.amounts)
            if of_pod.quota is not self._quota or pod.template is not template or of_pod.firm:
                self._of_one_kind = False
        self._rules = rules
        self._usage = usage
        self._nominated = nominated
        self._bound = bound_of(refusal.failure.request.excess)
        self._words = refusal.said
        self._scheduling = scheduling
        self._of_nodes = of_nodes
        shape = template.shape
        self._within = self._quota if refusal.nodes else None  # the quota within which it tried to preempt
        self._places = of_nodes.of(shape, self._within, pods[0].priority)
        self._said = said
        self._changes = -1  # the changes of its quota when all checks last succeeded

    @property
    def asks_all(self) -> bool:
        """True if this class checks everything that the attempt depended on.

        All pods must be equal, have the same quota, and be preemptible. In addition, either the quota has
        refused them without a dry run, or the nodes do not have enough room for all of them.
        """
        diagnosis, excess = self._refusal.failure.diagnosis, self._refusal.failure.request.excess
        if self._refusal.nodes and (self._within is None or excess is not None):
            return False
        gang = self._first.gang
        if gang is not None and gang.missing != self._pods:  # the pods must be all pending pods of the gang
            return False
        if excess is not None:
            if self._refusal.failure.request.pod is not self._first:
                return False
        elif diagnosis is None or diagnosis.state is not NOTHING or self._places.now() >= self._pods:
            return False
        # If the quota refuses a gang, it may still admit the pod that failed.
        if self._within is not None and self._exceeded(self._within, self._first.priority) is not None:
            return False
        if self._first.template.shape.ports:
            return False
        return self._of_one_kind and self._victims_as_before()

    def holds(self, pod: PodInfo) -> bool:
        """Returns True if an attempt for an equal pod would fail in the same way. See `LastingRefusal`."""
        if not self._of_nodes.valid:  # a node's exclusion rules do not change as long as the node exists
            return False
        if not self._usage.tree.settled:  # a query changes the results of other queries
            return False
        if not (self._is_refused(pod) and self._victims_as_before()):
            return False
        gang = pod.gang
        if gang is not None:
            if gang.missing != self._pods:  # the pods must be all pending pods of the gang
                return False
            if self._words != self._said.get(gang, NOTHING_TOLD).last or not gang.waits:
                return False
        self.spared = pod
        return True

    def outlives_nodes(self) -> bool:
        """Returns True if `holds` remains correct after nodes or their order have changed."""
        return False

    def _is_refused(self, pod: PodInfo) -> bool:
        """Returns True if the same limit refuses the pod, or if still none does and it fits on no node."""
        cache, quota, bound = self._scheduling.cache, self._quota, self._bound
        if quota is not None:
            if self._exceeded(quota, pod.priority) != bound:
                return False
            if bound is not None:
                return True
        diagnosis = self._refusal.failure.diagnosis
        if diagnosis is None or (cache.expecting and (cache.repelling or cache.attracting)):
            return False
        if cache.repelling and self._scheduling.pre_filter(self._first) is not NOTHING:
            return False
        # The same plugins reject the pod, because exclusion rules and node sizes have not changed.
        return self._places.now() < self._pods

    def _exceeded(self, quota: Quota, priority: int) -> Bound | None:
        tree, taken = self._usage.tree, with_amounts(self._asked, self._nominated.beside(quota, priority))
        return bound_of(tree.refusing(quota, taken.in_quota, taken.shared, taken.in_all))

    def _victims_as_before(self) -> bool:
        """Returns True if the quota cannot claim its guarantee, and there are no new potential victims.

        If pods are never preempted, the bound pods do not matter. The pod may also have no quota.
        """
        if self._refusal.rule == DISABLED:
            return True
        quota, usage = self._quota, self._usage
        if self._refusal.nodes is not None and self._within is None:
            return quota is None and not self._scheduling.cache.has_lower(self._first.priority)
        changes = usage.changes(quota)
        if changes != self._changes:
            if quota is not None and self._rules.reclaims(quota, self._asked, self._asked):
                return False
            if usage.has_lower(quota, self._first.priority) != (self._within is not None):
                return False
            self._changes = changes
        return True


@final
class KeptRefusals:
    """Finds and remembers lasting refusals."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._places = Places(world.scheduling, world.usage)
        self._verdicts: Memo[object, QuotaVerdicts] = Memo()

    def of(
        self, refusal: QuotaRefusal, pods: Sequence[PodInfo], rejecting: frozenset[str]
    ) -> LastingRefusal | None:
        """Returns the reason why a pod or a whole gang would fail again, or None if it is not known.

        Args:
            refusal: why it failed now.
            pods: the pod, or the pods of the gang.
            rejecting: the plugins that the pod or gang waits with.
        """
        foreseen = self._foreseen(refusal, pods[0], rejecting)
        if foreseen is not None:
            return foreseen
        lasting = LastingQuotaRefusal(refusal, pods, self._world, self._places)
        return lasting if lasting.asks_all else None

    def _foreseen(self, refusal: QuotaRefusal, pod: PodInfo, rejecting: frozenset[str]) -> Foreseen | None:
        """Returns the failure of a pod that waits alone, or None if no verdicts explain it."""
        _, usage, _, scheduling, _ = self._world
        template, spec, cache = pod.template, pod.template.spec, scheduling.cache
        shape, (quota, amounts, _) = template.shape, usage.of(pod)
        if pod.gang is not None or quota is None or usage.tree.runtimes is not None:
            return None
        if shape.ports or shape.missing or template.spread or spec.affinity or spec.anti_affinity:
            return None
        if any(name not in cache.resources for name in amounts):
            return None
        nodes = scheduling.shape_nodes(shape).rules
        if not nodes.open or nodes.named is not None:
            return None
        preempts = pod.preempts and refusal.rule != DISABLED
        key = quota, pod.priority, preempts, tuple(amounts), nodes
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            verdicts = self._verdicts[key] = QuotaVerdicts(pod, quota, nodes, self._world, preempts=preempts)
        if len(verdicts.shapes) < _SEVERAL:
            verdicts.shapes.add(shape)
            return None
        requests = amounts_of(shape, len(cache.names))
        if verdicts.rejecting(requests, requests, -1) != rejecting:
            return None
        return Foreseen(verdicts, requests)

    def spared(self, lasting: LastingRefusal | None) -> PodInfo | None:
        """Returns the last pod whose attempt was skipped since the previous call of this method, or None."""
        if not isinstance(lasting, (LastingQuotaRefusal, Foreseen)):
            return None
        spared, lasting.spared = lasting.spared, None  # until another attempt is skipped
        return spared

    def renew(self) -> None:
        """Drops all results that depend on nodes, their order or quotas, because these have changed."""
        self._places.valid = False  # stored refusals refer to this object
        self._places = Places(self._world.scheduling, self._world.usage)
        self._verdicts.clear()
