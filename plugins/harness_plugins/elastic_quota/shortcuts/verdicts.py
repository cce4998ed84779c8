"""Predicts why pods and gangs fail again, from their requests and the current usage of quotas and nodes.

Pods with the same quota, priority and rules about nodes differ only in their requests. A quota refuses all
pods that exceed one of its limits. If it admits a pod, the pod fails as long as no node has enough free
resources. In both cases, preemption must not help. There is no pod that it may preempt, or no node would have
enough resources without such pods of its quota.

The same is true for a gang of equal pods, whose requests to the quota are added up. If the gang had too few
places, it still has too few as long as no changed node has enough free resources for one of its pods. If it
may preempt, no node must have enough for one of its pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import gt
from typing import final

from harness.base.memo import Memo
from harness.models.cluster import UNLIMITED
from harness.models.elastic.quota import Amounts, Quota
from harness.models.elastic.tree import Excess, QuotaTree
from harness.models.kube.cache import Cache
from harness.models.kube.gangs import Gang
from harness.models.kube.most_room import MostRoom, amounts_of
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.node_rules import NodeRules
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.status import NODE_RESOURCES_FIT
from harness.models.kube.pod import PodInfo, Shape, Verdicts
from harness.models.kube.refusal import DISABLED
from harness_plugins.elastic_quota.failure import PLUGIN, QuotaRefusal, in_words
from harness_plugins.elastic_quota.quota_request import Nominated, QuotaRequest, Taken
from harness_plugins.elastic_quota.rules import Rules

_SEVERAL = 8
_ABSENT = -1  # the index of a resource that the pods do not request


@final
class QuotaVerdicts:
    """The `Verdicts` on pods of one quota and priority, whose requests name the same resources.

    Args:
        pod: one of the pods. Its quota, if it has one, depends on no runtime.
        nodes: the rules of the pods about nodes.
        preempts: whether the pods ever preempt others.
    """

    def __init__(
        self, pod: PodInfo, nodes: NodeRules, rules: Rules, nominated: Nominated, cache: Cache, preempts: bool
    ) -> None:
        self._nominated = nominated
        self._rules = rules
        self._usage = rules.usage
        self._cache = cache
        self._shapes: set[Shape] = set()  # some of the shapes of the pods
        self._pod = pod
        self._priority = pod.priority  # the pod itself may get the priority of another gang member later
        self._quota = rules.usage.quota_of(pod)
        self._preempts = preempts
        self._names = {name: cache.resources[name] for name in self._usage.of(pod).amounts}
        self._nothing: Amounts = dict.fromkeys(self._names, 0)
        # What nodes offer without and with preemption. Two objects each, which keep what they returned last.
        self._free = [MostRoom(cache, nodes, None, pod.priority) for _ in range(2)]
        self._freed = [MostRoom(cache, nodes, pod.priority, victims=self._victims) for _ in range(2)]
        self.by_nodes = nodes.ruled_out_by | {NODE_RESOURCES_FIT}
        # All limits, as long as the same pods are nominated and no further resource is used. Each has its
        # usage, its resource, what it leaves (see `QuotaTree.limits`), the index of the resource, and the
        # plugins that it stands for.
        self._taken = Taken({}, {}, {})
        self._used = 0
        self._limits: list[tuple[Quota | QuotaTree, str, int, int, frozenset[str]]] = []
        self._unlimited = {_ABSENT: 0, **dict.fromkeys(self._names.values(), UNLIMITED)}
        # What all verdicts at one version have in common, see `_look`.
        self._at = -1
        # What each limit allows, with the index of the resource and the plugins that the limit stands for.
        self._left: list[tuple[int, int, frozenset[str]]] = []
        self._searches = self._by_others = False
        self._searches_since = -1  # the version at which they last began to search
        self._largest: Sequence[int] = ()
        # For each resource, the largest amount with which a pod may claim the guarantee.
        self._claimable = [UNLIMITED] * len(cache.names)
        self._claims: bool | None = None  # whether such a pod claims it, see `_may_claim`
        self._in_vain = False

    def judges(self, shape: Shape) -> bool:
        """Returns True if pods of this and of several other shapes have failed.

        Pods of fewer shapes are judged one by one, which is then faster.
        """
        if len(self._shapes) < _SEVERAL:
            self._shapes.add(shape)
        return len(self._shapes) >= _SEVERAL

    @property
    def version(self) -> int:
        """See `Verdicts`."""
        return self._cache.version

    @property
    def searches(self) -> bool:
        """Whether the pods now search for victims in their own quota, unless they claim its guarantee."""
        if self._at != self._cache.version:
            self._look()
        return self._searches

    def rejecting(
        self, least: Sequence[int], most: Sequence[int], seen: int, each: Sequence[int] | None = None
    ) -> frozenset[str] | None:
        """See `Verdicts`.

        For a gang, `least` and `most` have the requests of all its pods together, and `each` has those of one
        pod. `seen` is a version at which the gang had too few places.
        """
        searches = self.searches
        if self._claims is not False and not any(map(gt, least, self._claimable)) and self._may_claim(each):
            return None
        if searches:
            if each is not None:  # preemption is tried for the first pod, even if a limit refuses the gang
                least = most = each
            # With `names_nodes`, the recorded reasons name the pod that searched.
            if self._rules.names_nodes or self._may_fit(least, seen):
                return None
        for left, resource, rejecting in self._left:
            if least[resource] > left:
                return rejecting
            if most[resource] > left:
                return None
        if self._by_others or (not searches and self._may_fit(each or least, seen)):
            return None
        return self.by_nodes

    def _may_claim(self, each: Sequence[int] | None) -> bool:
        """Returns True if a pod with a claimable request may preempt pods of other quotas.

        A claim is in vain if no other quota borrows. A gang then fails by another rule, which is recorded, so
        the result is True for a gang.
        """
        if self._claims is None:
            rules, quota, asked = self._rules, self._quota, self._taken.with_own(self._nothing).in_quota
            self._claims = rules.reclaims(QuotaRequest(self._pod, quota, self._nothing, asked))
            self._in_vain = self._claims and rules.claim(quota, reclaims=True).is_in_vain()
        return self._claims and not (self._in_vain and each is None)

    def _may_fit(self, least: Sequence[int], seen: int) -> bool:
        cache, rooms = self._cache, self._freed if self._searches else self._free
        if self._searches:
            seen = seen if seen >= self._searches_since else -1
        elif seen < 0:  # otherwise few nodes have changed
            if not self._largest:
                self._largest = [max(cache.free_of(place), default=0) for place in range(len(cache.names))]
            if any(map(gt, least, self._largest)):
                return False
        for room in rooms[seen < 0].since(seen):  # noqa: SIM110 `any` of a generator takes twice as long
            if not any(map(gt, least, room)):
                return True
        return False

    def _victims(self, node: NodeInfo, priority: int) -> Sequence[PodInfo]:
        """Returns the pods of a node that would be gone after a preemption. See `Victims`."""
        of, quota = self._usage.of, self._quota
        lower = (pod for pod in node.pods if pod.terminating or pod.priority < priority)
        return [pod for pod in lower if pod.terminating or of(pod).quota is quota]

    def _look(self) -> None:
        cache, usage, quota, priority = self._cache, self._usage, self._quota, self._priority
        searched, self._at = self._searches, cache.version
        self._by_others = bool(cache.repelling or (cache.expecting and cache.attracting))
        self._largest = ()  # computed when it is needed
        if quota is None:  # the pod can at most preempt by priority
            self._by_others |= self._preempts and cache.has_lower(priority)
            return
        self._searches = self._preempts and usage.has_lower(quota, priority)
        if self._searches and not searched:
            self._searches_since = cache.version
        taken = self._nominated.beside(quota, priority)
        if taken is not self._taken or len(usage.tree.used) != self._used:
            self._taken, self._used, self._limits = taken, len(usage.tree.used), []
            in_quota, in_all, shared = taken.with_own(self._nothing)
            for over, name, most in usage.tree.limits(quota, in_quota, shared, in_all):
                excess = Excess("min", "", name, 0) if over is None else Excess("max", over.name, name, 0)
                rejecting = frozenset((PLUGIN, NODE_RESOURCES_FIT, in_words(excess)))
                # Every pod exceeds what is below 0, even if it does not request the resource.
                place = self._names.get(name, _ABSENT)
                self._limits.append((over or usage.tree, name, most, place, rejecting))
        lowest = self._unlimited.copy()
        self._left = []
        for whose, name, most, place, rejecting in self._limits:
            left = most - whose.used.get(name, 0)
            if left < lowest[place]:  # otherwise an earlier limit is exceeded first
                lowest[place] = left
                self._left.append((left, place, rejecting))
        self._claims = None if self._preempts else False
        for name, resource in self._names.items() if not self._rules.by_usage else ():
            self._claimable[resource] = quota.unused_min(name) - taken.in_quota.get(name, 0)


@final
class Foreseen:
    """The failure of a pod or gang for which there are verdicts.

    See `harness.models.kube.pod.LastingRefusal`.

    Args:
        verdicts: the verdicts on the pods.
        pods: the pod, or all pods of the gang, which are equal.
        each: the request of each pod.
        rule: for a gang, the rule and the limit that refused it, which are among its reasons.
        seen: a version at which nodes had too few places for the pods.
    """

    keeps_figures = True
    most_room: MostRoom | None = None

    def __init__(
        self,
        verdicts: QuotaVerdicts,
        pods: Sequence[PodInfo],
        each: Sequence[int],
        rule: frozenset[str],
        seen: int,
    ) -> None:
        several = pods[0].gang is None and verdicts.judges(pods[0].template.shape)
        self.verdicts: Verdicts | None = verdicts if several else None
        self.amounts = tuple([len(pods) * amount for amount in each])
        self._verdicts = verdicts
        self._pods = len(pods)
        self._each = each
        self._rule = rule
        self._searches = verdicts.searches  # when the pods failed
        self._seen = -1 if self._searches else seen

    def still(self, gang: Gang | None, rejected_by: frozenset[str]) -> bool:
        """Returns True if these plugins would reject an equal pod or gang now."""
        verdicts, amounts = self._verdicts, self.amounts
        searches = verdicts.searches
        if gang is not None and (searches != self._searches or not gang.waits or gang.missing != self._pods):
            return False  # another rule applies, or the pods are not all pending pods of the gang
        by_nodes = searches or rejected_by == verdicts.by_nodes | self._rule
        seen = self._seen if by_nodes else verdicts.version  # otherwise nodes don't matter
        found = verdicts.rejecting(amounts, amounts, seen, self._each if gang is not None else None)
        if found is None or found | self._rule != rejected_by:
            return False
        if by_nodes:
            self._seen = verdicts.version
        return True

    def holds(self, pod: PodInfo) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        peers = pod.peers
        if not self.still(pod.gang, peers.rejected_by):
            return False
        peers.refusal = None  # a record needs the figures of an attempt
        return True

    def outlives_nodes(self) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        return False


@final
class KeptRefusals:
    """Finds lasting refusals, and keeps the verdicts on which they are based."""

    def __init__(self, rules: Rules, nominated: Nominated, scheduling: Scheduling) -> None:
        self._rules = rules
        self._nominated = nominated
        self._scheduling = scheduling
        self._verdicts: Memo[object, QuotaVerdicts] = Memo()

    def of(
        self, refusal: QuotaRefusal, pods: Sequence[PodInfo], rejecting: frozenset[str]
    ) -> Foreseen | None:
        """Returns the reason why a pod or a whole gang would fail again, or None if it is not known.

        Args:
            refusal: why it failed now.
            pods: the pod, or the pods of the gang.
            rejecting: the plugins that the pod or gang waits with.
        """
        usage, scheduling = self._rules.usage, self._scheduling
        pod, cache = pods[0], scheduling.cache
        template, spec, gang = pod.template, pod.template.spec, pod.gang
        shape, (quota, amounts, _) = template.shape, usage.of(pod)
        if quota is not None and usage.tree.runtimes is not None:
            return None
        if shape.ports or shape.missing or template.spread or spec.affinity or spec.anti_affinity:
            return None
        if any(name not in cache.resources for name in amounts):
            return None
        nodes = scheduling.shape_nodes(shape).rules
        if not nodes.open or nodes.named is not None:
            return None
        if any(each.template is not template or usage.quota_of(each) is not quota for each in pods):
            return None
        preempts = pod.preempts and refusal.rule != DISABLED
        key = quota, pod.priority, preempts, tuple(amounts), nodes
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            verdicts = QuotaVerdicts(pod, nodes, self._rules, self._nominated, cache, preempts)
            self._verdicts[key] = verdicts
        foreseen = Foreseen(
            verdicts,
            pods,
            amounts_of(shape, len(cache.names)),
            frozenset(() if gang is None else refusal.said),
            -1 if refusal.failure.diagnosis is None else cache.version,
        )
        if refusal.place and verdicts.searches:
            return None  # a node offers enough for the first pod
        return foreseen if foreseen.still(gang, rejecting) else None

    def renew(self) -> None:
        """Drops all verdicts, because nodes, their order or quotas have changed."""
        self._verdicts.clear()
