"""Refusals that last: a pod or gang fails again as long as the input of its last attempt is the same.

If no pod can be preempted, that input is small: the bound that refused it, and whether nodes have room. If
pods of its own quota can be preempted, it is as small while there is no room for all of it even without all
of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from harness.models.elastic.quota import Quota
from harness.models.elastic.tree import Bound, FirstExceeded, bound_of
from harness.models.kube.gangs import Gang
from harness.models.kube.most_room import MostRoom
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.trial import NOTHING
from harness.models.kube.pod import PodInfo
from harness.models.kube.refusal import DISABLED
from harness.models.told import NOTHING_TOLD, Told
from harness_plugins.elastic_quota.failure import QuotaRefusal
from harness_plugins.elastic_quota.quota_request import Nominated, Others, add, with_amounts
from harness_plugins.elastic_quota.quota_usage import QuotaUsage
from harness_plugins.elastic_quota.rules import Rules
from harness_plugins.elastic_quota.shortcuts.places import Places


@final
class LastingQuotaRefusal:
    """A failure of a pod, or gang, that may preempt no pod, or not enough pods of its own quota.

    A quota that may not claim its guarantee, and has no less important pods, stays so until its own pods
    change. Nominated pods only add to its requests. A pod without a quota, which preempts by priority, has no
    victims while no less important pod is bound anywhere. Room that is kept for nominated pods only makes
    fewer nodes fit, and for the same reason, unless bound pods have affinities.

    Args:
        refusal: the recorded refusal.
        pods: the pod, or all pods of the gang.
        rules: say whether a quota may claim its guarantee.
        usage: the quotas.
        nominated: the nominated pods.
        scheduling: what pods find on nodes.
        places: how many of them nodes have room for.
        said: the recorded reason of each gang.

    Attributes:
        spared: the last pod whose attempt was skipped because it would have failed like this; None if the
            refusal of that attempt is known.
    """

    most_room: MostRoom | None = None
    amounts: Sequence[int] = ()

    def __init__(
        self,
        refusal: QuotaRefusal,
        pods: Sequence[PodInfo],
        rules: Rules,
        usage: QuotaUsage,
        nominated: Nominated,
        scheduling: Scheduling,
        places: Places,
        said: Mapping[Gang, Told],
    ) -> None:
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
            add(self._asked, of_pod.amounts)
            if of_pod.quota is not self._quota or pod.template is not template or of_pod.firm:
                self._of_one_kind = False
        self._rules = rules
        self._usage = usage
        self._nominated = nominated
        self._bound = bound_of(refusal.failure.excess)
        self._first_exceeded: FirstExceeded | None = None  # until it is asked for
        self._words = refusal.said
        self._scheduling = scheduling
        self._of_nodes = places
        shape = template.shape
        self._within = self._quota if refusal.nodes else None  # within which it tried to preempt
        self._places = (
            places.of(shape)
            if self._within is None
            else places.with_victims(shape, self._within, pods[0].priority)
        )
        self._said = said
        self._changes = -1  # of its quota, when all that is asked here was so last
        self._by_its_own = bool(self._quota and self._bound and self._bound[1] == self._quota.name)

    @property
    def asks_all(self) -> bool:
        """Returns True if the checks here cover everything that the attempt depended on.

        This is so if all pods are equal, of one quota and may be preempted. Also their quota did not admit
        them, without any dry run, or nodes do not have room for all of them.
        """
        failure = self._refusal.failure
        diagnosis = failure.diagnosis
        if self._refusal.nodes and (self._within is None or failure.excess is not None):
            return False
        gang = self._first.gang
        if gang is not None and gang.missing != self._pods:  # they are to be all that wait of it
            return False
        if failure.excess is not None:
            if failure.request.pod is not self._first:
                return False
        elif diagnosis is None or diagnosis.state is not NOTHING or self._places.now() >= self._pods:
            return False
        # Of a gang that the quota does not let in, the pod that failed may be one that it does.
        if self._within is not None and self._bounds_of(self._within)(False) is not None:
            return False
        if self._first.template.shape.ports:
            return False
        return self._of_one_kind and self._victims_as_before()

    def holds(self, pod: PodInfo) -> bool:
        """See `harness.models.kube.pod.LastingRefusal`."""
        if not self._of_nodes.valid:  # what rules a node out lasts as long as the node
            return False
        if not self._usage.tree.settled:  # a question changes what others are answered
            return False
        as_before = self._usage.changes(self._quota) == self._changes  # nearly always
        if not self._is_refused(pod, own_is_kept=as_before) or not (as_before or self._victims_as_before()):
            return False
        gang = pod.gang
        if gang is not None:
            if gang.missing != self._pods:  # they are to be all that wait of it
                return False
            if self._words != self._said.get(gang, NOTHING_TOLD).last or not gang.waits:
                return False
        self.spared = pod
        return True

    def _is_refused(self, pod: PodInfo, *, own_is_kept: bool) -> bool:
        """Returns True if the same bound refuses it, or, as before, none does and there is no node.

        Args:
            pod: the pod, or the one that represents its gang.
            own_is_kept: whether its quota's usage is that of the last check.
        """
        cache, quota, bound = self._scheduling.cache, self._quota, self._bound
        if quota is not None:
            others = self._nominated.besides(()) if cache.expecting else None  # it is none of them
            if others is None:
                first = self._first_exceeded or self._bounds_of(quota)
                now = first(own_is_kept and not self._by_its_own)
            else:
                now = self._exceeded_with(others, quota, pod.priority)
            if now != bound:
                return False
            if bound is not None:
                return True
        diagnosis = self._refusal.failure.diagnosis
        if diagnosis is None or (cache.expecting and (cache.repelling or cache.attracting)):
            return False
        if cache.repelling and self._scheduling.pre_filter(self._first) is not NOTHING:
            return False
        # Which plugins reject it is as it was: what rules a node out, and its size, are as they were.
        return self._places.now() < self._pods

    def _bounds_of(self, quota: Quota) -> FirstExceeded:
        """Returns a function for the bound that would be exceeded first, without nominated pods."""
        self._first_exceeded = self._usage.tree.first_exceeded(quota, self._asked)
        return self._first_exceeded

    def _exceeded_with(self, others: Others, quota: Quota, priority: int) -> Bound | None:
        """The bound that would be exceeded first, with the amounts of nominated pods."""
        tree, taken = self._usage.tree, with_amounts(self._asked, others.beside(quota, priority))
        return bound_of(tree.refusing(quota, taken.in_quota, taken.shared, taken.in_all))

    def _victims_as_before(self) -> bool:
        """Returns True if its quota may claim no guarantee, and has less important pods only if it had some.

        If no pod is ever preempted, the bound pods do not matter. A pod may also have no quota.
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
